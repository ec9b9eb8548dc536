"""
What another version of PostgreSQL changes, by a site's own records.

Two records of one experiment with the same factors, scale and options, on two major versions, are
held side by side, cell by cell. Only counters that both have are compared: times of two runs that
were not interleaved say nothing of a version. Where several measures differ, the table is of WAL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgheadroom.errors import InputError
from pgheadroom.lab import reading
from pgheadroom.lab.design import cell_key
from pgheadroom.lab.measure_titles import title
from pgheadroom.lab.result import ExperimentResult, ResultCell
from pgheadroom.report.table import Column, Table
from pgheadroom.types import PgVersion

_ROWS_OPEN = 15  # more rows are folded; arbitrary
_TOLD_FIRST = ("wal_bytes", "wal_bytes_per_tx", "wal_bytes_per_update", "wal_records")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPair:
    """
    Two records of one experiment.

    Attributes:
        places: Among the site's records, the earlier version's first.
        versions: Of both.
        equal: How many counters are the same in both, of `compared`.
        compared: How many both have.
        changed: Those of one measure that are not, the largest change first; cells with the same
            two values are a row. None where no counter differs.
    """

    places: tuple[int, int]
    versions: tuple[str, str]
    equal: int
    compared: int
    changed: Table | None


def version_pairs(results: Sequence[ExperimentResult]) -> list[VersionPair]:
    """Each record beside the one of the version before it, of those that differ in nothing else."""
    found = []
    for place, result in enumerate(results):
        before = _before(results, result)
        pair = None if before is None else _pair(results, before, place)
        if pair is not None:
            found.append(pair)
    return found


def _before(results: Sequence[ExperimentResult], result: ExperimentResult) -> int | None:
    """The place of the record of the newest earlier major version."""
    version = _version(result)
    earlier = [
        (known, -place)
        for place, other in enumerate(results)
        if (known := _version(other)) is not None
        and version is not None
        and known.major < version.major
        and _is_alike(result, other)
    ]
    return -max(earlier)[1] if earlier else None


def _pair(results: Sequence[ExperimentResult], old: int, new: int) -> VersionPair | None:
    before, after = results[old], results[new]
    cells = {_key(after, cell): cell for cell in after.cells}
    rows: dict[str, dict[tuple[float, float], list[str]]] = {}
    compared = 0
    for cell in before.cells:
        match = cells.get(_key(before, cell))
        for measure in [] if match is None else _counters(before):
            then, now = (reading.number(found.get(measure)) for found in (cell, match or {}))
            compared += then is not None and now is not None
            if then is not None and now is not None and then != now:
                of_measure = rows.setdefault(measure, {})
                of_measure.setdefault((then, now), []).append(_words(before, cell))
    if not compared:
        return None
    told = next((name for name in _TOLD_FIRST if name in rows), next(iter(rows), None))
    differing = sum(len(cells) for found in rows.values() for cells in found.values())
    versions = (reading.printable(before.server), reading.printable(after.server))
    return VersionPair(
        places=(old, new),
        versions=versions,
        equal=compared - differing,
        compared=compared,
        changed=None if told is None else _changed(told, versions, rows[told]),
    )


def _counters(result: ExperimentResult) -> list[str]:
    """Measures that are counts, by name; what was predicted is of the twin, not of a version."""
    return [
        measure.name
        for measure in result.measures
        if not measure.is_clock and not measure.name.startswith("predicted_")
    ]


def _version(result: ExperimentResult) -> PgVersion | None:
    try:
        return PgVersion.parse(result.server)
    except InputError:
        return None


def _is_alike(one: ExperimentResult, other: ExperimentResult) -> bool:
    return (
        one.name == other.name
        and one.scale == other.scale
        and dict(one.options) == dict(other.options)
        and {factor.name for factor in one.factors} == {factor.name for factor in other.factors}
    )


def _key(result: ExperimentResult, cell: ResultCell) -> str:
    return cell_key({factor.name: str(cell.get(factor.name)) for factor in result.factors})


def _words(result: ExperimentResult, cell: ResultCell) -> str:
    """A cell's levels; those that say nothing alone with their factor's name."""
    said = []
    for factor in reading.varying(result):
        level = reading.label(cell.get(factor.name))
        alone = level[:1].isalpha() and level not in ("on", "off")
        said.append(level if alone else f"{reading.printable(factor.name)} {level}")
    return ", ".join(said)


def _changed(
    name: str, versions: tuple[str, str], rows: Mapping[tuple[float, float], Sequence[str]]
) -> Table:
    unit = next((unit for unit in ("bytes", "pages", "records") if unit in name), None)
    told = []
    for (then, now), cells in sorted(rows.items(), key=lambda row: -abs(row[0][1] - row[0][0])):
        more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
        change = f"{(now / then - 1) * 100:+.2g} %" if then else "from none"
        told.append((f"{cells[0]}{more}", then, now, change))
    return Table(
        title=f"Where they differ: {title(name)}",
        columns=(
            Column("where", "where", style="words"),
            Column("before", versions[0], unit=unit),
            Column("after", versions[1], unit=unit),
            Column("change", "change", style="text"),
        ),
        rows=tuple(told),
        folded=len(told) > _ROWS_OPEN,
    )
