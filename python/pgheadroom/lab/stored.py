"""
A record on object storage: where it lies, and the copy in a folder that everything else reads.

    request.json                  made once, by whoever begins
    trials/000001.jsonl, ...      a trial each: its environment and series, a line each, where there
                                  are some, then its sample; made once
    conduct.json, result.json, report.html    as in a folder

Each trial is one object, and its number is taken by making it. So a run that is killed leaves whole
trials, and of two runs that write one record the second to end a trial finds the number taken and
stops. A record folder that was copied there as it is (`samples.jsonl`, `series/`) is read as well.

The copy goes with the block; that of a run which was killed goes with the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgheadroom.errors import HeadroomError, InputError, LabError
from pgheadroom.input_file import load_json
from pgheadroom.object_storage import ObjectFolder, is_url
from pgheadroom.servers.locked_folder import LockedFolder
from pgheadroom.servers.run_folder import run_parent, sweep

_TRIAL = re.compile(r"trials/([0-9]{6,9})\.jsonl")
_COPIED = re.compile(
    r"(?:(?:request|environment|conduct|result)\.json|samples\.jsonl|series/[^/\0]+\.json)"
)
_FILE_BYTES_MAX = 1024**3  # as of files in a folder
_BEGUN = "request.json"
_ENVIRONMENT = "environment.json"
_KINDS = {"lab_environment": _ENVIRONMENT, "series": "series"}


class StoredRecord:
    """
    A record under a prefix, and its copy.

    Attributes:
        folder: The copy.
        is_empty: Whether nothing at all lay under the prefix.
    """

    def __init__(self, store: ObjectFolder, folder: Path) -> None:
        self.folder = folder
        self._store = store
        sizes = store.sizes()
        self.is_empty = not sizes
        self._last = 0
        trials = {int(found[1]): name for name in sizes if (found := _TRIAL.fullmatch(name))}
        names = [name for name in sizes if _COPIED.fullmatch(name)]
        for name in (*names, *trials.values()):
            if sizes[name] > _FILE_BYTES_MAX:
                raise InputError(f"{self}/{name} is larger than 1024 MiB: expected a record's file")
        (folder / "series").mkdir()
        for name, content in store.read(names).items():
            (folder / name).write_bytes(content)
        contents = store.read(list(trials.values()))
        for number in sorted(trials):
            self._unfold(trials[number], contents[trials[number]])
            self._last = number

    def __str__(self) -> str:
        return self._store.url

    def begin(self, request: str) -> None:
        """
        Make the record, which nobody else has made.

        Args:
            request: The text of `request.json`.

        Raises:
            LabError: Another run has made it meanwhile.
        """
        if not self._store.create(_BEGUN, request.encode()):
            raise self._taken()

    def add(self, files: Mapping[str, str], sample: str) -> None:
        """
        Add one finished trial, which is there when this returns.

        Args:
            files: JSON of its environment and series, one line each, by their names in a folder.
            sample: Its line of `samples.jsonl`.

        Raises:
            LabError: Another run has added one meanwhile.
            SourceError: The store fails.
        """
        lines = "".join(f"{text}\n" for text in files.values()) + sample
        if not self._store.create(f"trials/{self._last + 1:06d}.jsonl", lines.encode()):
            raise self._taken()
        self._last += 1

    def put(self, name: str) -> None:
        """
        Put a file of the copy where the record is, in the place of an older one.

        Raises:
            SourceError: The store fails.
        """
        self._store.put(name, (self.folder / name).read_bytes())

    def _taken(self) -> LabError:
        return LabError(
            f"another run is writing the record {self}: what it has added is kept, and this one "
            "stops; wait for it, or give `record` another prefix",
            mentions=("record",),
        )

    def _unfold(self, name: str, content: bytes) -> None:
        """Lay a trial's lines where a folder has them."""
        try:
            # Of bytes: of a text they are also at characters that JSON may hold.
            *before, line = [each.decode() for each in content.splitlines()]
            trial = str(load_json(line)["trial"])
            if "/" in trial or "\0" in trial:
                raise ValueError(f"no trial is called {trial!r}")
            for text in before:
                file = _KINDS[load_json(text)["kind"]]
                path = self.folder / (file if file == _ENVIRONMENT else f"{file}/{trial}.json")
                path.write_text(f"{text}\n", encoding="utf-8")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{self}/{name} is damaged ({error}): restore it from a copy, or remove it to "
                "have the trial run again"
            ) from error
        with (self.folder / "samples.jsonl").open("a", encoding="utf-8") as samples:
            samples.write(f"{line}\n")


RecordPlace = Path | StoredRecord
"""Where a record is: a folder, or under a prefix of a bucket."""


def folder_of(place: RecordPlace) -> Path:
    """The folder that has a record's files."""
    return place if isinstance(place, Path) else place.folder


@contextmanager
def record_at(where: str | Path) -> Iterator[RecordPlace]:
    """
    A record, or the place for one.

    Args:
        where: A folder, or `s3://BUCKET/PREFIX`.

    Raises:
        InputError: It is another URL, or something damaged lies there.
        SourceError: The store does not answer, or refuses.
    """
    if isinstance(where, Path) or not is_url(where):
        yield Path(where)
        return
    with ObjectFolder(where) as store:
        parent = run_parent(None)
        sweep(parent)
        with LockedFolder.create(parent, mode=0o700) as locked:
            copy = locked.path / store.name
            copy.mkdir()
            try:
                yield StoredRecord(store, copy)
            except HeadroomError as error:
                # The copy is gone when this is read.
                error.args = tuple(str(arg).replace(str(copy), store.url) for arg in error.args)
                raise


@contextmanager
def records_at(places: Sequence[str]) -> Iterator[list[RecordPlace]]:
    """As `record_at`, of several."""
    with ExitStack() as stack:
        yield [stack.enter_context(record_at(place)) for place in places]


def compact(value: Mapping[str, object]) -> str:
    """JSON on one line; refuses NaN and infinities, which JSON cannot hold."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
