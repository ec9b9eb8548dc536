"""
One run of the twin that watches a page: what happens to it, event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.page_life import PageLife, read_life
from pgheadroom.predict import failing, running_out, without_row
from pgheadroom.predict.cells import make_cells, updated_tables
from pgheadroom.predict.clock import clock_of, has_clockwork
from pgheadroom.predict.memory import check_memory
from pgheadroom.predict.run_plan import Given, RunPlan
from pgheadroom.predict.twin import simulate
from pgheadroom.predict.version import minor_version
from pgheadroom.profile import Profile
from pgheadroom.types import PgVersion

_SEEDS = 2  # a run at a rate takes the middle of its possible lengths, as the first of these


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPage:
    """
    A page's life and what it was predicted for.

    Attributes:
        server: The minor version that was followed.
        life: What happened.
        approximations: What the twin did not play as a server would, in sentences.
    """

    server: PgVersion
    life: PageLife
    approximations: tuple[str, ...]


def predict_page(
    profile: Profile,
    block: int,
    table: str | None = None,
    fillfactors: Sequence[int] | None = None,
    *,
    server: str | None = None,
    tps: float | None = None,
) -> WatchedPage:
    """
    Play a profile in the twin and watch a page.

    Args:
        profile: The profile.
        block: The page's number, from 0; it need not exist when the run begins.
        table: Its table; the first with updates, else the first, when None.
        fillfactors: At most one, for the tables that have updates; None: the profile's own.
        server: As for `predict`.
        tps: Transactions a second, where the profile has no rate; None: assumed.

    Raises:
        InputError: No such table or page, or several fillfactors.
        TwinError: The twin cannot play the profile.
    """
    if fillfactors is not None and len(fillfactors) != 1:
        raise ParameterError(
            "page", f"with {len(fillfactors)} fillfactors: a page lives at one, expected one value"
        )
    table = table or (updated_tables(profile) or tuple(profile.table_names))[0]
    if table not in profile.table_names:
        raise ParameterError(
            "table",
            f"{table}: the profile has no such table, expected one of "
            f"{', '.join(profile.table_names)}",
        )
    (cell,) = make_cells(profile, fillfactors)
    version = minor_version(profile, server).version
    given = None if has_clockwork(cell.profile) else [Given(events=())]
    clock = clock_of(cell.profile, tps)
    plan = RunPlan(cells=[cell], version=version, given=given, clock=clock, seeds=_SEEDS)
    piece = plan.piece(0, 0)
    needed_bytes = _core.needed_bytes(piece.profile_json, piece.transactions)
    check_memory([needed_bytes], [cell.profile], 1)
    run = simulate(piece, watch=(table, block))
    text = run.page_life_json
    assert text is not None, "a page was watched"
    life = read_life(text, table)
    if life.event_count == 0 and not life.end.items:
        pages = next(outcome.heap_pages for outcome in run.tables if outcome.name == table)
        if block >= pages:
            raise ParameterError(
                "page", f"{block}: {table} has {pages} pages at the end, expected 0 to {pages - 1}"
            )
    life = replace(
        life,
        warnings=(
            *running_out.sentences(cell.profile, run.transactions),
            *without_row.sentences(cell.profile, [without_row.turns_of([run])]),
            *failing.sentences([failing.failed_frac([run])]),
        ),
    )
    return WatchedPage(server=version, life=life, approximations=tuple(run.approximations))
