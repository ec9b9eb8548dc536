"""
All that is said of one table of an advice.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.advise.advice import Advice, Observation
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.shares import AGREES_WITHIN
from pgheadroom.advise.table_advice import Remark, TableAdvice
from pgheadroom.lab import reading
from pgheadroom.outcome import Value, middle
from pgheadroom.report.advice import sql as advice_sql
from pgheadroom.report.advice.head import full_name
from pgheadroom.report.advice.statements import Statements, gains_by_rewrite, hot_moves, statements
from pgheadroom.report.advice.tables import blamed, causes, curve
from pgheadroom.report.advice.values import hidden_wal, plain, share
from pgheadroom.report.table import Table
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes, show_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """All that is said of one table."""

    title: str
    table: TableAdvice
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    statements: tuple[Statements, ...]
    remarks: tuple[str, ...]
    missing: tuple[str, ...]


def detail(advice: Advice, table: TableAdvice, *, all_points: bool = False) -> Detail:
    """Everything about one table."""
    # A curve that nothing is picked from is for those who ask for everything.
    wanted = all_points or table.verdict == "CHANGE"
    found = [causes(table), blamed(table)]
    found += [curve(table, all_points=all_points)] if wanted else []
    return Detail(
        title=_title(table),
        table=table,
        sentences=tuple(_sentences(table, advice.observation)),
        tables=tuple(item for item in found if item is not None),
        statements=tuple(statements(table, advice.observation)),
        remarks=tuple(map(remark_text, table.remarks)),
        missing=tuple(map(reading.printable, table.missing)),
    )


def remark_text(remark: Remark) -> str:
    """A remark with its gain, in one line."""
    parts = [
        f"{reading.printable(measure)} " + " -> ".join(_written(measure, item.now, item.then))
        for measure, item in remark.gain.items()
    ]
    gain = f" ({'; '.join(parts)})" if parts else ""
    return f"{remark.kind}: {reading.printable(remark.text)}{gain} [{remark.evidence}]"


def unsettled(table: TableAdvice) -> list[str]:
    """At which settings the run was ended before it had settled, and between what HOT moved."""
    left = [point for point in table.curve if not point.is_settled]
    if table.verdict == "ABSTAIN":
        return []
    wanted = {table.fillfactor, table.advised_fillfactor}
    named = [point for point in left if point.fillfactor in wanted]
    if not named:  # the curve marks the others
        return []
    told = [
        f"fillfactor {point.fillfactor} (HOT {_seen(point)} % seen"
        + (f", {point.updates_per_row:.3g} updates a row)" if point.updates_per_row else ")")
        for point in named
    ]
    more = len(left) - len(named)
    rest = f" and {more} other settings" if more > 1 else " and another setting" if more else ""
    return [
        f"Not settled: the run at {', '.join(told)}{rest} was ended while it still moved, so its "
        "long run may lie beyond."
    ]


def _seen(point: Point) -> str:
    ends = [_end(point, which) for which in ("low", "high")]
    return " to ".join(dict.fromkeys(share(end, beside=ends) for end in ends))


def _end(point: Point, which: str) -> float | None:
    seen = point.hot_frac_seen
    return float(getattr(seen, which)) if isinstance(seen, Interval) else None


def _title(table: TableAdvice) -> str:
    if table.verdict == "CHANGE":
        return f"{full_name(table)}: fillfactor {table.fillfactor} -> {table.advised_fillfactor}"
    return f"{full_name(table)}: {table.verdict}, fillfactor {table.fillfactor}"


def _sentences(table: TableAdvice, seen: Observation) -> list[str]:
    said = [reading.printable(table.reason)]
    said += unsettled(table)
    if table.verdict == "CHANGE" and table.gain_frac is not None:
        said.append(f"Saves {share(table.gain_frac)} % of the cost, by the policy.")
    if (found := table.calibration) is not None:
        said.append(calibration(table))
        if found.fitted:
            inputs = ", ".join(
                f"{reading.printable(item.name)} = {_input(item.stands)}" for item in found.fitted
            )
            said.append(f"Set so that the twin repeats the observation: {inputs}.")
    said += filter(None, [hidden_wal(table.wal_bytes_per_update)])
    if table.verdict == "CHANGE":
        said.append(transition(table))
        if gains_by_rewrite(table):
            said.append(advice_sql.rewrite(table, seen.server_version, seen.modules).how)
    return said


def calibration(table: TableAdvice) -> str:
    """How well the twin repeats what was measured; its own figures would be a third meaning."""
    found = table.calibration
    assert found is not None, "only a simulated table is calibrated"
    note = reading.printable(found.note)
    contradicted = "; ".join(map(reading.printable, found.contradicted))
    if found.predicted_hot_frac is None and contradicted:
        return f"The twin's figures contradict what was measured: {contradicted}. {note}."
    hot = _off(found.observed_hot_frac, found.predicted_hot_frac)
    moved = _off(found.observed_newpage_frac, found.predicted_newpage_frac)
    is_by_moved = not found.agrees and moved is not None and hot is not None and moved > hot
    repeats = found.agrees or (is_by_moved and hot is not None and hot <= AGREES_WITHIN)
    said = (
        f"At fillfactor {table.fillfactor} the twin {'repeats' if repeats else 'does not repeat'} "
        f"the measured HOT, {share(found.observed_hot_frac)} %{_points(hot)}"
    )
    if is_by_moved:
        said += (
            f", {'but not' if repeats else 'nor'} the {share(found.observed_newpage_frac)} % of "
            f"the updates that went to another page{_points(moved)}"
        )
    said += f". {note}"
    return f"{said}. Contradicted: {contradicted}." if contradicted else said


def _off(known: float | None, predicted: Value) -> float | None:
    """By how much the twin is off, in the state that it takes the table to be in."""
    taken = middle(predicted)
    return None if known is None or taken is None else abs(taken - known)


def _points(off: float | None) -> str:
    return "" if off is None else f": off by {off * 100:.1f} points"


def transition(table: TableAdvice) -> str:
    """The setting acts on new pages only: what that means here."""
    lead = "Acts on new pages only"
    found = table.transition
    if found is None:
        return f"{lead}; how long it takes to show was not predicted."
    if not hot_moves(table):
        return f"{lead}: what it saves comes as pages are filled anew; a rewrite has it at once."
    both = (found.final_hot_frac, found.rewritten_hot_frac)
    arrives, rewritten = (f"{share(one, beside=both)} %" for one in both)
    arrives += " HOT"
    if found.verdict == "at once":
        return f"{lead}, but shows at once: {arrives} without a rewrite, {rewritten} with it."
    if found.verdict == "no updates":
        return f"{lead}, and without updates nothing moves."
    if found.verdict == "converges":
        when = [] if found.after_s is None else [f"{show_duration(found.after_s)} at this rate"]
        if found.after_updates_per_row is not None:
            when.append(f"{found.after_updates_per_row:.2g} updates a row")
        after = f" after {', '.join(when)}" if when else ""
        return f"{lead}: it arrives at {arrives}{after}; a rewrite has {rewritten} at once."
    return f"{lead}: without a rewrite it stays at {arrives}; with one it has {rewritten}."


def _input(stands: float | str) -> str:
    return reading.printable(stands) if isinstance(stands, str) else plain(float(stands))


def _written(measure: str, *values: Value) -> list[str]:
    """Values of one measure that are read beside each other."""
    return [_write(measure, value, values) for value in values]


def _write(measure: str, value: Value, beside: tuple[Value, ...]) -> str:
    if measure.endswith("_frac"):
        return f"{share(value, beside=beside)} %"
    if measure.endswith("_bytes") and (mid := middle(value)) is not None:
        return show_bytes(mid)
    return plain(value, ranged=True)
