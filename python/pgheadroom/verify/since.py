"""
What has happened to a table since its setting was applied, as a run of the twin until now.

The plan's own operations are scaled to what was counted, after a life that the table had before:
how long that was decides what room its pages have for the next rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom.advise.scenario import Scenario, tiled
from pgheadroom.advise.younger import younger
from pgheadroom.profile import Operation, Snapshot
from pgheadroom.profile.workload import by_transaction

_OPERATIONS_MAX = 300_000
_ROWS_MIN = 500
_LIVED_UPDATES_PER_ROW = 2.0  # of the life before: then a page has been round once; arbitrary
_LIVED_GROWTH = 0.5  # part of the rows at the setting that came in it, of a table that grows
_LIVED_MAX = 20.0  # of what came since
_WINDOWS_MIN, _WINDOWS_MAX = 20, 120
_UPDATES_MIN = 300  # in the windows that stand for now, where the run has as many
_NEW_KIND_FRAC = 0.02  # rows changed in a way that the plan never saw
_SNAPSHOTS_MAX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """
    What has happened to a table since its setting was applied, or since the plan for one kept.

    Attributes:
        rows: When it began.
        heap_bytes: When it began; None where nobody looked.
        inserts: Rows since then; updates and deletes likewise.
        window_updates: Updates of the measurement, the last ones.
        length_s: Until now.
        fillfactor_before: At which its pages had been filled.
        fillfactor: In force since then.
        lives: Updates that its pages had seen when it began, each number that may be; None: so many
            that more make no difference.
        vacuums: Of the table since then, by hand or not; None: not known.
    """

    rows: int
    heap_bytes: int | None
    inserts: int
    updates: int
    deletes: int
    window_updates: int
    length_s: float
    fillfactor_before: int
    fillfactor: int
    lives: tuple[int | None, ...] = (None,)
    vacuums: int | None = None


class Unforeseen(Exception):  # noqa: N818 - an answer, not an error of ours
    """Why nothing can be foreseen for the state that the table is in now."""


def until_now(
    scenario: Scenario, since: Since, updates_before: int | None
) -> tuple[Scenario, int, int]:
    """The run until now; after which window the setting comes, and the first that is now."""
    operations, statements = _as_counted(scenario.profile.workload.operations, since)
    net = since.inserts - since.deletes
    # The life before, in parts of what came since.
    lived = _LIVED_UPDATES_PER_ROW * since.rows / max(since.updates, 1)
    if updates_before is not None:
        lived = min(lived, updates_before / max(since.updates, 1))
    if net > 0:
        lived = min(lived, _LIVED_GROWTH * since.rows / net)
    if net < 0:
        lived = 0.0
    lived = min(lived, _LIVED_MAX)
    now_frac = since.window_updates / max(since.updates, 1) / (1 + lived)
    windows = min(_WINDOWS_MAX, max(_WINDOWS_MIN, math.ceil(2 / max(now_frac, 1e-9))))
    alter_at = max(1, round(windows * lived / (1 + lived)))
    lived = alter_at / (windows - alter_at)
    share = min(scenario.share, _OPERATIONS_MAX / (statements * (1 + lived)))
    share = min(1.0, max(share, _ROWS_MIN / since.rows))
    count = round(statements * (1 + lived) * share)
    if count > 4 * _OPERATIONS_MAX:
        raise Unforeseen("too much has happened since to play it")
    rows = max(1, round((since.rows - net * lived) * share))
    duration_s = max(since.length_s, 1e-3) * (1 + lived)
    updates_in_run = since.updates * (1 + lived) * share
    wanted = max(now_frac, min(_UPDATES_MIN / max(updates_in_run, 1), 0.25 / (1 + lived)))
    first = windows - max(1, round(wanted * windows))
    run = replace(
        scenario.profile.workload.run,
        operations=max(100, count),
        snapshots=_thinned(tiled(scenario, duration_s)),
    )
    made = replace(
        scenario,
        profile=replace(
            scenario.profile,
            tables=(replace(scenario.table, rows=rows),),
            workload=replace(
                scenario.profile.workload,
                operations=younger(operations, rows, rows / scenario.table.rows),
                run=run,
            ),
        ),
        share=share,
        per_s=max(100, count) / duration_s,
        duration_s=duration_s,
        updates_per_row=updates_in_run / max(rows, 1),
        sized_s=None,
        windows=windows,
        steady_from=first,
    )
    return made, alter_at, first


def _as_counted(
    operations: tuple[Operation, ...], since: Since
) -> tuple[tuple[Operation, ...], float]:
    """The plan's operations in the numbers that were counted since, and how many those are."""
    counted = {"insert": since.inserts, "update": since.updates, "delete": since.deletes}
    seen = dict.fromkeys(counted, 0.0)
    for operation in operations:
        if operation.kind in seen:
            seen[operation.kind] += operation.weight * operation.rows_mean
    total = sum(counted.values())
    for kind, rows in counted.items():
        if rows > _NEW_KIND_FRAC * total and not seen[kind]:
            raise Unforeseen(f"{rows} rows were changed by {kind} since, the plan has seen none")
    apart = all(operation.transaction is None for operation in operations)
    whole = total / max(sum(seen.values()), 1e-9)

    def factor(operation: Operation) -> float:
        # Statements of one transaction come together, so that no kind can be scaled by itself.
        if not apart or operation.kind not in seen:
            return whole
        return counted[operation.kind] / seen[operation.kind] if seen[operation.kind] else 0.0

    parts = [(operation, operation.weight * factor(operation)) for operation in operations]
    # A transaction comes as often as its first operation.
    first = {id(transaction[0]) for transaction in by_transaction(operations)}
    statements = math.fsum(weight for operation, weight in parts if id(operation) in first)
    if not statements:
        raise Unforeseen("nothing has happened to it since")
    scaled = tuple(
        replace(operation, weight=max(1, round(1e6 * weight / statements)))
        for operation, weight in parts
        if weight
    )
    return scaled, statements


def _thinned(found: Sequence[Snapshot]) -> tuple[Snapshot, ...]:
    """So many that they can be played."""
    return tuple(found[:: max(1, math.ceil(len(found) / _SNAPSHOTS_MAX))])
