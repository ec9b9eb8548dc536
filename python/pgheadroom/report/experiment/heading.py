"""What stands above an experiment's tables and charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pgheadroom import units
from pgheadroom.lab import reading
from pgheadroom.lab.measure_titles import title
from pgheadroom.lab.presented import presented
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.report.heading import Heading


def of(result: ExperimentResult) -> Heading:
    """Its words, printable."""
    return Heading(
        kind=f"experiment {reading.text(result.name) or 'without a name'}",
        title=reading.text(result.title) or reading.printable(result.name),
        server=reading.printable(result.server),
        question=reading.text(result.question),
        answer=presented(result).answer,
        findings=_worded(result, result.findings),
        warnings=_worded(result, result.warnings),
        alarms=(*_alarms(result), *_worded(result, result.warnings)),
        assumed=tuple(f"{name}: {how}" for name, how in result.assumed.items()),
        complete=result.complete,
        command=reading.text(result.command),
        merged=tuple(
            f"# {reading.printable(folder)}:\n{reading.text(command) or '# not known'}"
            for folder, command in (result.environment.merged_from or {}).items()
        ),
        source=reading.text(result.source),
        meta=tuple(_meta(result)),
        tool_version=reading.text(result.tool_version),
    )


def _worded(result: ExperimentResult, said: Sequence[str]) -> tuple[str, ...]:
    """Sentences of a record: titles for names of measures, percentages as we write them."""
    titles = {
        measure.name: title(measure.name) for measure in result.measures if "_" in measure.name
    }
    names = "|".join(sorted(map(re.escape, titles), key=len, reverse=True))
    found = reading.texts(said)
    if names:
        named = re.compile(rf"(?<![\w=])(?:{names})(?![\w=])")
        found = tuple(named.sub(lambda at: titles[at[0]], text) for text in found)
    return tuple(re.sub(r"(?<=\d)%", " %", text) for text in found)


def _alarms(result: ExperimentResult) -> Iterator[str]:
    """What the figures themselves warn of, before the answer."""
    if not result.complete:
        yield "This run is not complete: cells or repetitions are missing."
    noisy = [
        title(control.measure)
        for control in result.controls
        if control.ratio is not None and control.ratio.excludes(1.0)
    ]
    if noisy:
        yield (
            f"An A/A control of {', '.join(dict.fromkeys(noisy))} excludes 1 although both of its "
            "sides are equal: differences of that size in this record may be noise."
        )


def _meta(result: ExperimentResult) -> Iterator[tuple[str, str]]:
    """When, where and how much: terms with their values, without those that are not known."""
    started = reading.text(result.started_at)
    if started and started.endswith(("+00:00", "Z")):
        started = re.sub(r"T(\d\d:\d\d).*", r" \1 UTC", started)
    repetitions = sorted(
        {found for cell in result.cells
         if (found := reading.number(cell.get("repetitions"))) is not None}
    )  # fmt: skip
    span = [reading.label(item) for item in (*repetitions[:1], *repetitions[1:][-1:])]
    took = result.duration_s
    items = [
        ("Server", f"PostgreSQL {reading.printable(result.server)}"),
        ("Scale", _shown(result.scale)),
        ("Cells", str(len(result.cells))),
        ("Repetitions", " to ".join(span) or None),
        ("Seed", _shown(result.seed)),
        ("Started", started),
        ("Took", None if took is None else units.show_duration(took)),
        ("Cores", _shown(result.environment.cores)),
        ("Made by", None if not result.tool_version else
         f"pgheadroom {reading.printable(result.tool_version)}"),
    ]  # fmt: skip
    return ((term, value) for term, value in items if value)


def _shown(value: object) -> str | None:
    return None if value is None else reading.label(value)
