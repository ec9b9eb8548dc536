"""
The record folder: what was asked, where, every raw sample, the result.

    request.json       what was asked; equal requests are the same run
    environment.json   server, settings, machine, tool, command line
    samples.jsonl      one finished trial a line, appended and synced
    series/*.json      per-second series of a trial
    result.json        the experiment's result
    report.html        for people

A folder is complete in itself: it can be moved, mailed, compared. It may be the copy of what lies
on object storage (`stored.py`). A run that was stopped goes on
where it stopped; files are replaced whole or not at all, and only the last line of the samples
can be torn, which opening for writing repairs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pgheadroom.errors import InputError, LabError
from pgheadroom.files import file_error, write_atomically
from pgheadroom.forms import FieldError, Filed, Kept, in_file, kept, read, unframed, write
from pgheadroom.input_file import exists, load_json, read_bytes, read_text
from pgheadroom.lab.design import SCHEMA_VERSION, Level, Request
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.lab.stored import RecordPlace, StoredRecord, compact, folder_of

T = TypeVar("T", bound=Filed)

_FILE_BYTES_MAX = 1024**3  # years of samples; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What decided a trial's random numbers: the seed of its run and its repetition there."""

    seed: int
    repetition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOn:
    """The worker of a cluster that played a trial: its label and its name."""

    label: str
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSample:
    """
    One finished trial: its cell, its measures, and notes on what was out of the ordinary.

    `drawn_from` is None unless the record is another than the one that the trial ran for, `ran_on`
    unless a worker of a cluster played it; `environment.json` has that worker's machine.
    """

    trial: str
    cell: dict[str, Level]
    repetition: int
    arm: str
    started_at: str
    duration_s: float
    measures: dict[str, float | None]
    notes: tuple[str, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)
    drawn_from: Origin | None = field(default=None, metadata=in_file(unless_none=True))
    ran_on: RanOn | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """What a server did by itself: when it began, in seconds, and how long it took if it ended."""

    t_s: float
    kind: str
    duration_s: float | None = None
    text: str


SecondsColumn = tuple[float | None, ...]
"""A value for each second of a series; None where there was none."""


@kept
class SecondsSeries(Kept, Filed):
    """
    A window second by second: `series/*.json`; what was not sampled is None.

    A second without a transaction has tps 0 and no latencies.
    """

    KIND = "series"
    VERSION = SCHEMA_VERSION

    cell: Mapping[str, Level]
    repetition: int
    arm: str
    t_s: tuple[float, ...]
    tps: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    latency_ms_mean: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    latency_ms_max: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    wal_bytes_per_s: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    heap_bytes: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    index_bytes: SecondsColumn | None = field(default=None, metadata=in_file(unless_none=True))
    events: tuple[LogEvent, ...] = ()


def to_json_text(value: Mapping[str, Any]) -> str:
    """JSON as all our files spell it; refuses NaN and infinities, which JSON cannot hold."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path, *, kind: str, required: Sequence[str] = ()) -> dict[str, Any]:
    """
    Read one of our JSON files and check its kind, schema version and fields.

    Raises:
        InputError: The file is missing, not JSON, of another kind, of an unknown schema, or lacks
            a required field.
    """
    try:
        if not exists(path):
            raise InputError(
                f"{path} does not exist: expected a file of kind {kind!r}; "
                "a record folder is what `pgheadroom lab run` writes"
            )
        value = load_json(read_text(path, bytes_max=_FILE_BYTES_MAX, expected=f"JSON of {kind}"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged ({error}): expected JSON of kind {kind!r}; restore it from a copy"
        ) from error
    found = value.get("kind") if isinstance(value, dict) else type(value).__name__
    if found != kind:
        raise InputError(f"{path} is of kind {found!r}: expected {kind!r}")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"{path} has schema_version {value.get('schema_version')!r}: this pgheadroom reads "
            f"{SCHEMA_VERSION}; use the version that wrote it"
        )
    missing = [name for name in required if name not in value]
    if missing:
        raise InputError(
            f"{path} is damaged: it lacks {', '.join(missing)}; restore it from a copy, or remove "
            "it if it is result.json, which `pgheadroom lab report` makes anew"
        )
    return dict(value)


def read_form(path: Path, form: type[T]) -> T:
    """
    Read one of our JSON files as the value that it holds.

    Raises:
        InputError: As `read_json`, or a field is not as it must be.
    """
    data = read_json(path, kind=form.KIND)
    try:
        if not issubclass(form, Kept):  # which keeps the frame too
            data = unframed(data)
        return read(form, data, exact=True)
    except FieldError as error:
        raise InputError(
            f"{path} is damaged: {error}; restore it from a copy, or remove it if it is "
            "result.json, which `pgheadroom lab report` makes anew"
        ) from error


class Record:
    """
    A record folder, open for reading or, locked against other runs, for writing.

    Use `Record.create` to run into it and `Record.open` to read it.
    """

    def __init__(self, place: RecordPlace, request: Request, samples: list[TrialSample]) -> None:
        self.folder = folder_of(place)
        self.name = str(place)
        self.request = request
        self.samples = samples
        self._samples_file: int | None = None
        self._stored = place if isinstance(place, StoredRecord) else None
        self._with_next: dict[str, str] = {}

    @classmethod
    def open(cls, place: RecordPlace) -> Self:
        """
        Read a record, finished or not; what is then written stays in its folder, or in its copy.

        Raises:
            InputError: Not a record folder, or a damaged one.
        """
        folder = folder_of(place)
        request = Request.from_json(read_json(folder / "request.json", kind="lab_request"))
        return cls(place, request, _read_samples(folder / "samples.jsonl")[0])

    @classmethod
    def create(cls, place: RecordPlace, request: Request) -> Self:
        """
        Make a record, or go on with one that has the same request.

        Raises:
            InputError: The folder holds something else, or another request.
            LabError: Another run is writing it right now.
            SourceError: The object storage that it is to lie on fails.
        """
        folder = folder_of(place)
        if (folder / "request.json").exists():
            record = cls.open(place)
            if record.request != request:
                raise InputError(
                    f"{place} holds a record of another request: "
                    f"{_difference(record.request, request)}; give `record` another folder",
                    mentions=("record",),
                )
        elif not (place.is_empty if isinstance(place, StoredRecord) else _is_free(place)):
            raise InputError(
                f"{place} exists and is not a record: give `record` another folder",
                mentions=("record",),
            )
        else:
            try:
                (folder / "series").mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise file_error(error, folder) from error
            text = to_json_text(request.to_json())
            if isinstance(place, StoredRecord):
                place.begin(text)
            write_atomically(folder / "request.json", text)
            record = cls(place, request, [])
        record._lock()
        return record

    def _lock(self) -> None:
        path = self.folder / "samples.jsonl"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LabError(
                f"another run is writing the record {self.name}: wait for it, "
                "or give `record` another folder",
                mentions=("record",),
            ) from None
        self._samples_file = descriptor
        # Read again under the lock; a torn last line is what a killed run leaves.
        self.samples, whole_bytes = _read_samples(path)
        os.ftruncate(descriptor, whole_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the lock back; the folder stays readable."""
        if self._samples_file is not None:
            os.close(self._samples_file)
            self._samples_file = None

    def append(self, sample: TrialSample) -> None:
        """
        Add one finished trial, on disk when this returns.

        Raises:
            DiskFull: No room; the samples before it are whole.
            LabError: Another run writes the same record on object storage.
            SourceError: Object storage fails; the samples before it are there.
        """
        assert self._samples_file is not None, "append needs a record opened by create"
        line = compact(write(sample)) + "\n"
        if self._stored is not None:
            self._stored.add(self._with_next, line)
            self._with_next = {}
        size_bytes = os.fstat(self._samples_file).st_size
        rest = line.encode()
        try:
            while rest:
                rest = rest[os.write(self._samples_file, rest) :]
            os.fsync(self._samples_file)
        except OSError as error:
            os.ftruncate(self._samples_file, size_bytes)
            raise file_error(error, self.folder / "samples.jsonl") from error
        self.samples.append(sample)

    def write(self, name: str, value: Mapping[str, Any]) -> Path:
        """Write one JSON file of the record atomically and return its path."""
        path = self.folder / name
        write_atomically(path, to_json_text(value))
        if self._samples_file is not None:
            self.filed(name)
        return path

    def filed(self, name: str) -> None:
        """
        Have a file that was written into the folder where the record is.

        On object storage what belongs to a trial goes with its sample, so that both are there or
        none.
        """
        if self._stored is None:
            return
        if name == "environment.json" or name.startswith("series/"):
            text = (self.folder / name).read_text(encoding="utf-8")
            self._with_next[name] = compact(json.loads(text))
        else:
            self._stored.put(name)

    def write_environment(self, environment: Environment) -> Path:
        """Write `environment.json`; what it was read with besides stays in it."""
        return self.write("environment.json", environment.to_json())

    def read_environment(self) -> Environment | None:
        """The environment of the run, None before the first trial."""
        path = self.folder / "environment.json"
        return read_form(path, Environment) if path.exists() else None

    def read_result(self) -> ExperimentResult:
        """The result; raises InputError for a run without one."""
        return read_form(self.folder / "result.json", ExperimentResult)

    def read_series(self) -> list[SecondsSeries]:
        """All per-second series, in the order of their file names."""
        paths = sorted((self.folder / "series").glob("*.json"))
        return [read_form(path, SecondsSeries) for path in paths]


def _is_free(folder: Path) -> bool:
    """Whether a record can begin there: nothing is there, or an empty folder."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def _read_samples(path: Path) -> tuple[list[TrialSample], int]:
    """All whole lines, and how many bytes they take; a torn last line is left out."""
    if not exists(path):
        return [], 0
    content = read_bytes(path, bytes_max=_FILE_BYTES_MAX, expected="the samples of a record")
    whole_bytes = content.rfind(b"\n") + 1
    samples: list[TrialSample] = []
    seen: set[str] = set()
    for number, line in enumerate(content[:whole_bytes].splitlines(), start=1):
        try:
            sample = read(TrialSample, load_json(line.decode()), exact=True)
            if sample.trial in seen:
                raise ValueError(f"trial {sample.trial} is there twice")
            seen.add(sample.trial)
            samples.append(sample)
        except (ValueError, RecursionError, FieldError) as error:
            raise InputError(
                f"{path} is damaged in line {number} ({error}): expected "
                "one trial a line; restore the record from a copy, or remove that line to have "
                "the trial run again"
            ) from error
    return samples, whole_bytes


def _difference(there: Request, here: Request) -> str:
    """The first few fields in which two requests differ."""
    found, asked = write(there), write(here)
    fields = [
        f"{name} is {found.get(name)!r} there and {asked.get(name)!r} here"
        for name in dict.fromkeys((*found, *asked))
        if found.get(name) != asked.get(name)
    ]
    return "; ".join(fields[:3])
