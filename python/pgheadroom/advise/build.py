"""
The whole: an observed profile becomes an advice.

Every table first gets what counters, layout and rules say of it (`table.py`). Those for which that
is not the last word are played, by the WAL at stake, side by side, until the budget of processor
time is spent. What is then under way is cut off, and nothing of it is used, so that what is said of
a table does not depend on the pace of the machine. Those that were cut off or not reached say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import pgheadroom
from pgheadroom.advise.advice import Advice, Budget, Observation, Partitions, Verdicts
from pgheadroom.advise.index_finding import ranked
from pgheadroom.advise.policy import DEFAULT_POLICY, Policy
from pgheadroom.advise.remarks import first_remarks
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES
from pgheadroom.advise.table import TableCase
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.advise.updates import updates_per_s
from pgheadroom.defaults import BUDGET_S
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.outcome import mid
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile
from pgheadroom.profile.observed_server import ObservedServer, Partitioned
from pgheadroom.profile.tables import TableProfile
from pgheadroom.progress import Progress
from pgheadroom.quoting import called


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What an advice is made with.

    Attributes:
        policy: What things cost.
        budget_s: Seconds of processor time for simulations, all threads together; what is not at
            its end then is cut off.
        tables: Only these, by their names in the profile; empty: all.
        sample_pages: Heap pages that are simulated of each table.
    """

    policy: Policy = DEFAULT_POLICY
    budget_s: float = BUDGET_S
    tables: tuple[str, ...] = ()
    sample_pages: int = SAMPLE_PAGES


def advise(
    profile: Profile,
    options: Options | None = None,
    *,
    executor: Executor | None = None,
    say: Progress | None = None,
) -> Advice:
    """
    Advise on every table of an observed profile.

    Args:
        profile: Made by `observe`.
        options: What to make it with.
        executor: Where the twin runs; a thread a core when None.
        say: Called with tables that were played, those worth it, and the last one played.

    Raises:
        InputError: Not an observed profile, or a table that it does not have.
    """
    options = options or Options()
    observed = profile.server.observed
    if observed is None or any(table.observed is None for table in profile.tables):
        raise InputError(
            "the profile was not made by `pgheadroom observe`: advice needs what was observed; "
            "for a profile written by hand see `predict`"
        )
    unknown = set(options.tables) - set(profile.table_names)
    if unknown:
        raise ParameterError(
            "table",
            f"{sorted(unknown)[0]!r} is not in the profile: expected one of "
            f"{', '.join(profile.table_names[:20])}",
        )
    # What is advised is what a rewrite at a fillfactor gives, and what it is compared with too.
    profile = profile.loaded_anew()
    minor = minor_version(profile)
    cases = [
        TableCase(profile, table, minor.version, options.policy, options.sample_pages)
        for table in profile.tables
        if not options.tables or table.name in options.tables
    ]
    worth = in_order([case for case in cases if case.is_worth_playing])
    with Runner(executor, options.budget_s) as runner:
        _play(worth, runner, say)
    played = sum(case.is_played for case in worth)
    for case in worth:
        if not case.is_played:
            case.leave(budget_s=options.budget_s, played=played, worth=len(worth))
    made = [case.advice() for case in cases]
    return Advice(
        tool_version=pgheadroom.__version__,
        observation=_observation(observed),
        policy=options.policy.stated(),
        first=first_remarks(profile),
        tables=tuple(sorted(made, key=_rank)),
        partitioned=partitions_of(observed, made, profile.tables),
        assumed=(*observed.assumed, *map(str, minor.assumed.values())),
        indexes=ranked(finding for case in cases for finding in case.findings),
        indexes_together=tuple(found for case in cases for found in case.together) or None,
        budget=Budget(
            cpu_s=options.budget_s,
            worth=len(worth),
            played=played,
            not_weighed=tuple(case.name for case in worth if case.is_not_weighed),
            cut_off=tuple(case.name for case in worth if case.is_cut_off) or None,
        ),
    )


def in_order(cases: Sequence[TableCase]) -> list[TableCase]:
    """
    By the WAL at stake, most first.

    Where that is the same (nothing, for tables whose updates are all HOT already), by the most that
    any setting could save, then by updates.
    """
    return sorted(
        cases, key=lambda case: (-case.stake.wal_bytes_per_day, -case.most, -case.updates_per_s)
    )


def _play(worth: Sequence[TableCase], runner: Runner, say: Progress | None) -> None:
    """Play them while there is budget."""
    if say is not None:
        say(0, len(worth), worth[0].name if worth else "")
    played = runner.side_by_side(lambda case: case.play(runner), worth)
    for done, (case, _) in enumerate(played, start=1):
        if say is not None:
            say(done, len(worth), case.name)
    if say is not None:
        say(len(worth), len(worth), "")


def _observation(observed: ObservedServer) -> Observation:
    access = observed.access
    return Observation(
        server_version=observed.server_version,
        database=observed.database,
        database_oid=observed.database_oid,
        system_identifier=observed.system_identifier,
        observed_at=observed.observed_at,
        interval_s=float(observed.interval_s),
        masked=bool(observed.masked),
        levels=tuple(access.levels),
        missing=tuple(access.missing),
        broken=observed.broken,
        modules=observed.modules,
        is_superuser=access.is_superuser,
        changed=observed.changed or None,
        left_out=tuple(
            f"{called(item.schema, item.name)}: {item.why}"
            for item in observed.left_out or ()
            if not item.is_told_as_changed
        )
        or None,
    )


def _rank(table: TableAdvice) -> tuple[int, float, float]:
    """Changes first, by what they save; then what is not known; then what stays."""
    order = {"CHANGE": 0, "ABSTAIN": 1, "KEEP": 2}[table.verdict]
    point = table.point(table.fillfactor)
    saved = mid(table.gain_frac) * (mid(point.cost) if point is not None else 0.0)
    return order, -saved, -table.updates_per_s


def _updates_per_s(
    parent: Partitioned, own: Sequence[TableProfile], interval_s: float
) -> float | None:
    """Of all partitions; None where some came or went, and nothing tells how many they had."""
    elsewhere = parent.updates_elsewhere
    if elsewhere is None and (parent.came or parent.went or not own):
        return None
    return sum(map(updates_per_s, own)) + (elsewhere or 0) / interval_s


def partitions_of(
    observed: ObservedServer, tables: Sequence[TableAdvice], every: Sequence[TableProfile]
) -> tuple[Partitions, ...]:
    """
    Each partitioned table, with the verdicts of its partitions of all levels counted.

    Args:
        observed: Of the server.
        tables: That are advised on.
        every: Of the profile: updates are those of all partitions, advised on or not.
    """
    made = []
    above = {called(one.schema, one.name): one.parent for one in observed.partitioned}

    def is_below(parent: str | None, full: str) -> bool:
        passed = set[str]()
        while parent is not None and parent != full and parent not in passed:
            passed.add(parent)  # a file may say that two are each other's parents
            parent = above.get(parent)
        return parent == full

    for parent in observed.partitioned:
        schema, name = parent.schema, parent.name
        full = called(schema, name)
        own = [table for table in tables if is_below(table.parent, full)]
        parts = [t for t in every if t.observed is not None and is_below(t.observed.parent, full)]
        count = Counter(table.verdict for table in own)
        advised = sorted(
            {t.advised_fillfactor for t in own if t.verdict == "CHANGE" and t.advised_fillfactor}
        )
        made.append(
            Partitions(
                schema=schema,
                name=name,
                partitions=tuple(table.table for table in own),
                verdicts=Verdicts(
                    change=count["CHANGE"], keep=count["KEEP"], abstain=count["ABSTAIN"]
                ),
                advised_fillfactors=tuple(advised),
                updates_per_s=_updates_per_s(parent, parts, observed.interval_s),
                parent=parent.parent,
            )
        )
    return tuple(made)
