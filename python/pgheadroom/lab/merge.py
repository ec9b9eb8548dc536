"""
Several records of one request as one: more blocks, from other days or other machines.

Blocks stay whole, so every paired ratio still compares runs that were interleaved; whole blocks
are numbered first, those that a budget added follow. Each sample keeps what decided its random
numbers, from which predictions follow. The sources stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.forms import changed
from pgheadroom.lab import conduct
from pgheadroom.lab.design import Request, Trial, cell_key
from pgheadroom.lab.environment import command_line
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Origin, Record, TrialSample, read_json
from pgheadroom.lab.run import summarise_into
from pgheadroom.lab.stored import RecordPlace, folder_of
from pgheadroom.object_storage import is_url
from pgheadroom.types import PgVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """One of the records, opened."""

    record: Record
    request: Request
    environment: Environment

    @property
    def folder(self) -> Path:
        return self.record.folder

    @property
    def name(self) -> str:
        """The folder's name, or where it lies on object storage."""
        return self.record.name

    def origin(self, sample: TrialSample) -> Origin:
        """What decided the random numbers of one of its samples."""
        own = Origin(seed=self.request.seed, repetition=sample.repetition)
        return sample.drawn_from or own

    def worker(self, name: str) -> str:
        """What a worker of its cluster is called beside those of other records."""
        return f"{name}, in {self.name}"


_Block = list[tuple[_Source, TrialSample]]


def merge(places: Sequence[RecordPlace], into: RecordPlace) -> Record:
    """
    Write one record with the blocks of all.

    Args:
        places: Two or more records with equal experiment, levels, options, scale and server
            version; seeds may differ.
        into: Where nothing is yet.

    Returns:
        The new record, with its result.

    Raises:
        InputError: The records do not fit together, hold a trial twice, or `into` holds something.
    """
    sources = [_source(place) for place in places]
    _check(sources)
    _check_each_once(sources)
    blocks = [block for source in sources for block in _blocks(source)]
    first = sources[0].request
    experiment = get(first.experiment)
    arms = {(cell_key(trial.cell), trial.arm) for trial in experiment.one_block(first)}
    whole = [block for block in blocks if {(cell_key(s.cell), s.arm) for _, s in block} == arms]
    blocks = whole + [block for block in blocks if block not in whole]
    merged = replace(first, repetitions=max(len(whole), 1))
    if (folder_of(into) / "request.json").exists():
        raise InputError(
            f"{into} holds a record already: give `output` a new folder", mentions=("output",)
        )
    with Record.create(into, merged) as record:
        record.write_environment(_joined(sources, into))
        for number, block in enumerate(blocks, start=1):
            for source, sample in block:
                _copy(record, source, sample, number)
        said = f"{len(blocks)} blocks, merged from {len(places)} records"
        conduct.write(record, said, warnings=[*_machines(sources), *_same_draws(blocks)])
        version = PgVersion.parse(sources[0].environment.server)
        summarise_into(experiment, merged, record, version)
    return record


def _source(place: RecordPlace) -> _Source:
    record = Record.open(place)
    environment = record.read_environment()
    if environment is None or not record.samples:
        raise InputError(f"{place} has no finished trial yet: it cannot be merged")
    if environment.merged_from is not None and any(
        each.drawn_from is None for each in record.samples
    ):
        raise InputError(
            f"{place} was merged by a version that did not keep what each trial drew: merge the "
            "records that it was made of instead"
        )
    return _Source(record=record, request=record.request, environment=environment)


def _check(sources: Sequence[_Source]) -> None:
    """All but seed and number of repetitions must be equal."""
    first = sources[0]
    for other in sources[1:]:
        pairs = {
            "experiment": (first.request.experiment, other.request.experiment),
            "scale": (first.request.scale, other.request.scale),
            "levels": (first.request.levels, other.request.levels),
            "options": (first.request.options, other.request.options),
            "server": (first.environment.server, other.environment.server),
        }
        for name, (ours, theirs) in pairs.items():
            if ours != theirs:
                raise InputError(
                    f"{first.name} has {name} {ours} and {other.name} has {theirs}: records "
                    "are merged when only seed and repetitions differ; others are compared"
                )


def _check_each_once(sources: Sequence[_Source]) -> None:
    """Blocks that are there twice are no further blocks, and intervals would be too narrow."""
    given: set[Path | str] = set()
    found: dict[str, str] = {}
    for source in sources:
        # Copies of one on object storage are several folders.
        one = source.name if is_url(source.name) else source.folder.resolve()
        if one in given:
            raise InputError(f"{source.name} is given twice: name each record once")
        given.add(one)
        for sample in source.record.samples:
            other = found.setdefault(_identity(sample), source.name)
            if other != source.name:
                raise InputError(
                    f"{other} and {source.name} hold the same trial ({sample.arm}, {sample.cell},"
                    f" begun {sample.started_at}): one is a copy of the other, or was merged from "
                    "it; leave one of the two out"
                )


def _identity(sample: TrialSample) -> str:
    """What no two trials share: when it began, how long it took, and all that it measured."""
    what = (sample.cell, sample.arm, sample.started_at, sample.duration_s, sample.measures)
    return json.dumps(what, sort_keys=True)


def _blocks(source: _Source) -> list[_Block]:
    """The samples of a record by repetition."""
    blocks: dict[int, _Block] = {}
    for sample in source.record.samples:
        blocks.setdefault(sample.repetition, []).append((source, sample))
    return [blocks[number] for number in sorted(blocks)]


def _copy(record: Record, source: _Source, sample: TrialSample, repetition: int) -> None:
    trial = Trial(cell=sample.cell, repetition=repetition, arm=sample.arm)
    made = replace(sample, trial=trial.id, repetition=repetition, drawn_from=source.origin(sample))
    if sample.ran_on is not None:
        made = replace(
            made, ran_on=replace(sample.ran_on, worker=source.worker(sample.ran_on.worker))
        )
    record.append(made)
    series = source.folder / "series" / f"{sample.trial}.json"
    if series.exists():
        form = read_json(series, kind="series")
        record.write(f"series/{trial.id}.json", form | {"repetition": repetition})


def _joined(sources: Sequence[_Source], into: RecordPlace) -> Environment:
    """The first environment, the command that merges, and each source's command and machine."""
    commands: dict[str, str | None] = {}
    machines: dict[str, str | None] = {}
    for source in sources:
        folder, environment = source.name, source.environment
        commands[folder] = environment.command
        machines[folder] = json.dumps(environment.hardware())
        # What a source was itself merged from, so that every trial's command stays known.
        for into_too, inner in (
            (commands, environment.merged_from),
            (machines, environment.merged_machines),
        ):
            into_too |= {f"{name}, in {folder}": value for name, value in (inner or {}).items()}
    workers = {
        source.worker(name): worker
        for source in sources
        for name, worker in (source.environment.workers or {}).items()
    }
    command = ["lab", "merge", *(source.name for source in sources), "-o", str(into)]
    return changed(
        sources[0].environment,
        command=command_line(command),
        merged_from=commands,
        merged_machines=machines,
        workers=workers or None,
    )


def _machines(sources: Sequence[_Source]) -> list[str]:
    """What the sources differ in that ratios survive and medians do not."""
    warnings = []
    machines = [source.environment.hardware() for source in sources]
    for name in machines[0]:
        values = list(dict.fromkeys(str(each[name]) for each in machines))
        if len(values) > 1:
            warnings.append(
                f"The merged records come from machines with different {name} "
                f"({'; '.join(values)}): ratios within blocks stand, medians of times mix them."
            )
    return warnings


def _same_draws(blocks: Sequence[_Block]) -> list[str]:
    """Blocks with the random numbers of another: of counters they are no further evidence."""
    origins = {source.origin(sample) for block in blocks for source, sample in block[:1]}
    repeated = len(blocks) - len(origins)
    if not repeated:
        return []
    return [
        f"{repeated} of {len(blocks)} merged blocks draw the same random numbers as another one "
        "(equal seed and repetition): their times are of runs of their own, but counters that "
        "follow from the draws only repeat, and their intervals are narrower than they should be; "
        "records of different seeds are free of this."
    ]
