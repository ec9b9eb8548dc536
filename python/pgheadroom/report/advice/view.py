"""
The view of an advice: what goes first, a line for each table, and all that is known of one.

The writers (terminal, Markdown, page) differ in form alone; which tables are treated in full and
what is said of them is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.advise.advice import Advice, Observation, StatedPolicy
from pgheadroom.advise.cold_updates import CAUSES
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.shares import AGREES_WITHIN
from pgheadroom.advise.table_advice import Remark, TableAdvice
from pgheadroom.lab import reading
from pgheadroom.outcome import Value, middle
from pgheadroom.report import csv_file
from pgheadroom.report.advice import sql as advice_sql
from pgheadroom.report.advice.statements import Statements, gains_by_rewrite, hot_moves, statements
from pgheadroom.report.advice.tables import blamed, causes, curve
from pgheadroom.report.advice.values import given, hidden_wal, known_wal, plain, share, short, three
from pgheadroom.report.table import NOTHING, Column, Table
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes, show_duration

_MOST_LISTED = 20
"""Tables up to which a terminal lists those that need nothing (arbitrary: half a screen)."""

_MANY_STILL = 4
"""Tables without an update from which on they are named in one line (arbitrary)."""

_MOST_NAMED = 8
"""Tables that are named where the others are counted."""


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


def title(advice: Advice) -> str:
    """What was advised, and where."""
    seen = advice.observation
    where = "a masked profile" if seen.masked else reading.printable(seen.database or "a database")
    return f"Advice for {where}, PostgreSQL {reading.printable(seen.server_version)}"


def full_name(table: TableAdvice) -> str:
    """The table as people write it, with the schema unless it is `public`; safe to print."""
    schema = "" if table.schema == "public" else f"{reading.printable(table.schema)}."
    return f"{schema}{reading.printable(table.name)}"


def summary(advice: Advice) -> list[str]:
    """How many tables have which verdict, over which interval."""
    count = {
        verdict: sum(table.verdict == verdict for table in advice.tables)
        for verdict in ("CHANGE", "KEEP", "ABSTAIN")
    }
    seen = advice.observation
    when = f" from {observed_at(seen)}" if seen.observed_at else ""
    total = len(advice.tables)
    said = [
        f"{total} table{'' if total == 1 else 's'} seen for {show_duration(seen.interval_s)}"
        f"{when}: {count['CHANGE']} to change, {count['KEEP']} to keep, "
        f"{count['ABSTAIN']} without an answer."
    ]
    said += budget(advice)
    policy = advice.policy
    growth = policy.max_growth_frac
    limit = "" if growth is None else f", heap may grow by {growth * 100:.4g} %"
    said.append(
        f"Goal {policy.goal}{limit}; a change has to save "
        f"{policy.min_gain_frac * 100:.4g} % of the cost{_room_price(policy)}."
    )
    return said


def _room_price(policy: StatedPolicy) -> str:
    """What a larger heap has to save beside; a file of an earlier version has no such price."""
    price = policy.gain_per_growth
    return f", and {price * 10:.4g} % more for each 10 % that the heap grows" if price else ""


def budget(advice: Advice) -> list[str]:
    """What the time for simulations was enough for; nothing where it was not needed."""
    found = advice.budget
    if not found.worth or found.played is None or found.cpu_s is None:
        return []
    worth, left, played = found.worth, found.not_weighed or (), found.played
    allowed = f"{show_duration(found.cpu_s)} of processor time"
    if not left:
        noun = "table was" if played == 1 else "tables were"
        # A table that is begun comes to its end, so the last ones may take more than is left.
        return [
            f"{played} {noun} played (none is begun after {allowed}); counters decide the rest."
        ]
    names = ", ".join(map(reading.printable, left[:_MOST_NAMED]))
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    verb = "is" if len(left) == 1 else "are"
    return [
        f"Played {played} of {worth} tables in {allowed}, by the WAL at stake; {len(left)} {verb} "
        f"not weighed ({names}{more}): --budget gives more, --table one of them."
    ]


def observed_at(seen: Observation) -> str | None:
    """When the observation was made, to the minute; as it stands where its form is another."""
    found = reading.text(seen.observed_at)
    match = re.fullmatch(r"(\S{10})[T ](\d\d:\d\d)[\d:.]*(?:\+00(?::?00)?|Z)", found or "")
    return f"{match[1]} {match[2]} UTC" if match else found


def unseen(seen: Observation) -> list[str]:
    """What could not be seen, and with which rights it was looked."""
    levels = ", ".join(map(reading.printable, seen.levels)) or "only what everyone sees"
    return [
        f"Access: {levels}.",
        *(f"Broken: {reading.printable(line)}" for line in seen.broken),
        *(f"Not seen: {reading.printable(line)}" for line in seen.missing),
    ]


def treated(advice: Advice, *, verbose: bool = False) -> list[TableAdvice]:
    """The tables that get a detail: those to change, those whose index is found; or all."""
    return [
        table
        for table in advice.tables
        if verbose
        or table.verdict == "CHANGE"
        or any(remark.kind in ("index", "horizon") for remark in table.remarks)
    ]


def overview(advice: Advice, *, verbose: bool = False, folds: bool = True) -> Table:
    """
    One line a table; those that need nothing only while they are few.

    Args:
        advice: Of all tables.
        verbose: All of them.
        folds: Tables that nothing updated are left to `others`.
    """
    few = verbose or len(advice.tables) <= _MOST_LISTED
    still = {id(table) for table in _still(advice)} if folds and not verbose else set()
    listed = [table for table in advice.tables if id(table) not in still]
    wanted = listed if few else treated(advice)
    return Table(
        title="Tables by gain",
        columns=(
            Column(key="table", title="table", style="words", lead=True),
            Column(key="verdict", title="verdict", style="words"),
            Column(key="fillfactor", title="fillfactor", style="text"),
            Column(key="hot", title="HOT measured", unit="%", style="text"),
            Column(key="hot_then", title="HOT in the long run", unit="%", style="text"),
            Column(key="wal", title="WAL measured", unit="bytes/update", style="text", minor=True),
            Column(
                key="wal_then",
                title="WAL in the long run",
                unit="bytes/update",
                style="text",
                minor=True,
            ),
            Column(key="gain", title="saves", unit="% of cost", style="text"),
            Column(key="size", title="heap", style="text", minor=True),
            Column(key="rate", title="updates/s", style="text", minor=True),
            Column(key="by", title="by", style="words", minor=True),
            Column(key="reason", title="reason", style="words"),
        ),
        rows=tuple(map(_line, wanted)),
        note="Measured at the setting in force; the long run, predicted, at the setting in force "
        "and -> at the advised one. WAL is what the statements that update rows write, over the "
        "rows, images apart; measured only where pg_stat_statements counted it. The heap is as "
        "measured, and by how much it is larger at the advised setting, predicted. A verdict is "
        "by the interval's counters, by a rule (an index, the horizon), or by the twin.",
    )


def others(advice: Advice, *, folds: bool = True) -> list[str]:
    """The tables that the overview leaves out, counted and named shortly."""
    still = _still(advice) if folds else []
    left = {id(table) for table in still}
    said = []
    if len(advice.tables) > _MOST_LISTED:
        left |= {id(table) for table in treated(advice)}
        for verdict in ("KEEP", "ABSTAIN"):
            found = [t for t in advice.tables if t.verdict == verdict and id(t) not in left]
            if found:
                said.append(f"{verdict} {_named(found)}.")
    if still:
        named = _named(still).replace(":", " tables were not updated, and stay as they are:", 1)
        said.append(f"{named}.")
    return said


def _still(advice: Advice) -> list[TableAdvice]:
    """Tables that nothing updated and of which nothing else is to be said, where they are many."""
    found = [
        table
        for table in advice.tables
        if table.verdict == "KEEP" and table.updates == 0 and not table.remarks
    ]
    return found if _MANY_STILL <= len(found) < len(advice.tables) else []


def _named(tables: Sequence[TableAdvice]) -> str:
    """How many, and the first of them by name."""
    more = len(tables) - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{len(tables)}: {', '.join(map(full_name, tables[:_MOST_NAMED]))}{rest}"


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


_CSV: tuple[str, ...] = (
    "rank", "schema", "table", "parent", "verdict", "fillfactor", "advised_fillfactor",
    "gain_frac", "gain_frac_low", "gain_frac_high", "rows", "heap_bytes", "updates",
    "updates_per_s", "hot_frac", "then_hot_frac", "then_hot_frac_low", "then_hot_frac_high",
    "now_wal_bytes_per_update", "then_wal_bytes_per_update", "then_heap_bytes",
    *(f"{kind}_frac" for kind in CAUSES if kind != "hot"),
    "blamed_indexes", "transition", "transition_s", "remarks", "reason",
)  # fmt: skip


def as_csv(advice: Advice) -> str:
    """One line a table, by gain; where a value is missing, nothing."""
    rows = []
    for rank, table in enumerate(advice.tables, start=1):
        then = table.point(table.advised_fillfactor)
        share = {cause.kind: cause.frac for cause in table.causes}
        hot = then.hot_frac if then else None
        indexes = [index.name for cause in table.causes for index in cause.indexes]
        rows.append([
            rank, table.schema, table.name, table.parent, table.verdict, table.fillfactor,
            table.advised_fillfactor, *three(table.gain_frac), table.rows, table.heap_bytes,
            table.updates, table.updates_per_s, table.hot_frac, *three(hot),
            middle(known_wal(table.wal_bytes_per_update)),
            middle(then.wal_bytes_per_update) if then else None,
            middle(then.heap_bytes) if then else None,
            *(middle(share.get(kind)) for kind in CAUSES if kind != "hot"),
            " ".join(indexes), table.transition.verdict if table.transition else None,
            table.transition.after_s if table.transition else None,
            " ".join(remark.kind for remark in table.remarks), table.reason,
        ])  # fmt: skip
    return csv_file.written(_CSV, rows)


def _line(table: TableAdvice) -> tuple[object, ...]:
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    change = table.verdict == "CHANGE" and then is not None
    fillfactor = str(table.fillfactor)
    # Of a table without an answer nothing is foreseen.
    hot = wal = NOTHING
    shares = shown_shares(table)
    if now is not None and table.verdict != "ABSTAIN":
        hot, wal = _hot(now, shares, ranged=False), short(now.wal_bytes_per_update)
    if change and then is not None:
        fillfactor += f" -> {table.advised_fillfactor}"
        after = _hot(then, shares)
        stays = _hot(then, shares, ranged=False) == hot
        hot = f"stays {after}" if stays else f"{hot} -> {after}"
        wal += f" -> {short(then.wal_bytes_per_update)}"
    return (
        full_name(table),
        table.verdict,
        fillfactor,
        share(table.hot_frac, beside=shares),
        hot,
        short(known_wal(table.wal_bytes_per_update)),
        wal,
        share(table.gain_frac, ranged=False) if change else NOTHING,
        size(table),
        short(table.updates_per_s),
        table.decided_by,
        table.reason,
    )


def shown_shares(table: TableAdvice) -> tuple[Value, ...]:
    """HOT shares of a table that are read beside each other: measured, now, as advised."""
    found: list[Value] = [table.hot_frac]
    if table.verdict != "ABSTAIN":
        at = (table.fillfactor, table.advised_fillfactor)
        found += [point.hot_frac for setting in at if (point := table.point(setting)) is not None]
    return tuple(found)


def _hot(point: Point, beside: tuple[Value, ...], *, ranged: bool = True) -> str:
    """HOT in the long run; where that was not reached, how far it has come."""
    found = share(point.hot_frac, ranged=ranged, beside=beside)
    return found if point.is_settled else f"{found} (not settled)"


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


def size(table: TableAdvice) -> str:
    """The heap now, and by how much a change makes it larger where both are played as long."""
    now = NOTHING if table.heap_bytes is None else show_bytes(table.heap_bytes)
    grows = growth(table)
    return now if grows is None else f"{now} {grows}"


def growth(table: TableAdvice) -> str | None:
    """
    How much larger the heap is at the advised setting than at the one in force, both predicted.

    Not beside the size that was measured: a table that grows is larger at the end in any case.
    """
    grows = table.heap_grows_frac
    return None if table.verdict != "CHANGE" or grows is None else f"{100 * grows:+.3g} %"


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


def _input(found: object) -> str:
    value = given(found)
    return reading.label(found) if value is None else plain(value)


def _written(measure: str, *values: Value) -> list[str]:
    """Values of one measure that are read beside each other."""
    return [_write(measure, value, values) for value in values]


def _write(measure: str, value: Value, beside: tuple[Value, ...]) -> str:
    if measure.endswith("_frac"):
        return f"{share(value, beside=beside)} %"
    if measure.endswith("_bytes") and (mid := middle(value)) is not None:
        return show_bytes(mid)
    return plain(value, ranged=True)
