"""
What a server's run tells the twin, where a prediction alone cannot know it.

What came when, how long the run was, how its clients stood still and came on, and what their
sessions spent their time on. All of it stands under `assumed`.
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom.play import Played
from pgheadroom.play.course import farthest_apart
from pgheadroom.play.events import Event
from pgheadroom.predict import Cell, Given
from pgheadroom.predict.run_plan import in_order
from pgheadroom.predict.twin import Simulation
from pgheadroom.profile import MachineTimes, Profile, Run
from pgheadroom.types import Assumed, Taken
from pgheadroom.units import percent

_TRANSACTIONS_LEAST = 100
"""Of a client, for its session's times to be those of transactions; arbitrary."""
_NOT_MEASURED = (
    "not measured in this run, so each run of the twin draws its machine; what the profile says is "
    "of another server and its clients"
)


def times_count(profile: Profile) -> bool:
    """Whether what happens depends on how several clients come on."""
    run = profile.workload.run
    return run.clients > 1 and run.rate_per_s is None


def given_by_clients(cell: Cell, run: Played, first: Simulation) -> Given:
    """
    What the clients of a server's run tell of themselves.

    Args:
        cell: What was played.
        run: The server's run of it.
        first: A run of the twin that knew nothing of it, for what a transaction consists of.
    """
    standing, asked = run.standing, cell.profile.workload.run
    processors = None if asked.clients == 1 else run.processors
    # What the profile says is of the machine that it was made of: the throw-away server flushes
    # nothing, and pgbench's clients do not pause. What nobody has measured here is drawn.
    drawn = None if asked.clients == 1 else MachineTimes()
    # A server that cannot keep to a rate begins fewer transactions than are due.
    begun = run.transactions if asked.duration_s is not None else None
    if not times_count(cell.profile):
        return Given(machine=drawn, processors=processors, operations=begun)
    return Given(
        operations=begun,
        standing=(standing.share, standing.lengths, standing.inside) if standing else None,
        course=run.course,
        machine=machine_of(asked, run, first) or drawn,
        processors=processors,
        at_work=at_work_of(asked, run),
    )


def machine_of(asked: Run, run: Played, first: Simulation) -> MachineTimes | None:
    """
    How long sessions took for a statement and a pause, in the mean; None where nobody knows.

    The time at work is that of all statements and COMMITs, of which the twin counts how many times
    an UPDATE by key they are. In a run of a few transactions most of it goes into what a session
    does once.

    Args:
        asked: The run as the profile has it.
        run: The server's run.
        first: A run of the twin on a machine of which nothing is known.
    """
    times, transactions = run.session_times, run.transactions
    if times is None or transactions < _TRANSACTIONS_LEAST * asked.clients:
        return None
    return MachineTimes(
        statement_us=_us(times.at_work_s, first.worked_each * transactions) or None,
        pause_us=_us(times.in_transaction_s, first.pauses_each * transactions),
        between_us=_us(times.between_s, transactions),
    )


def at_work_of(asked: Run, run: Played) -> float | None:
    """How many of the clients' sessions were at work at a time, in the mean; None: not known."""
    times = run.session_times
    if times is None or times.at_work_s is None or times.between_s is None:
        return None
    present_s = times.at_work_s + times.in_transaction_s + times.between_s
    return asked.clients * times.at_work_s / present_s if present_s else None


def _us(seconds: float | None, count: float) -> float | None:
    """Of each of so many, if there are some and it is known."""
    return None if seconds is None or not count else round(1e6 * seconds / count, 3)


def given_by(cell: Cell, run: Played, first: Simulation) -> Given:
    """
    What a server's run tells the twin, its times as shares of the transactions.

    What autovacuum's workers hold, an analyze's snapshot among it, the twin gets as snapshots. A
    vacuum takes its time from its beginning to its end, each known to a millisecond of the log.
    """
    events = [
        event
        for event in run.events
        if event.table is None or event.table in cell.profile.table_names
    ]
    rest = [event for event in events if event.began is None]
    placed = [(_shares(event, run)[1], event.kind, event.table) for event in rest]
    placed += [
        (_shares(event, run)[0], "autovacuum_starting", event.table)
        for event in rest
        if event.kind == "autovacuum"
    ]
    return replace(
        given_by_clients(cell, run, first),
        duration_s=run.duration_s or None,
        events=in_order(placed),
        vacuums=tuple(
            (event.began, event.ended, event.table)
            for event in events
            if event.began is not None and event.ended is not None and event.table is not None
        ),
        snapshots=tuple(sorted(run.snapshots)),
        maintained=run.maintained,
        holds=tuple((hold.began, hold.ended) for hold in run.holds),
    )


def _shares(event: Event, run: Played) -> tuple[float, float]:
    """From and to which share of the run an event went; by time where nothing else tells."""
    if event.at_frac is not None and event.began_frac is not None:
        return event.began_frac, event.at_frac
    return max(0.0, event.t_s - event.elapsed_s) / run.duration_s, event.t_s / run.duration_s


def told(n: int, profile: Profile, given: Given, run: Played) -> Assumed:
    """What was handed over for cell `n`, for the record."""
    told: dict[str, Taken] = {}
    if profile.workload.run.rate_per_s is None:
        told[f"cells[{n}].duration_s"] = round(run.duration_s, 3)
    told |= _told_of_clients(n, profile, given)
    if given.operations is not None:
        told[f"cells[{n}].operations"] = given.operations
    if given.events:
        told[f"cells[{n}].events"] = tuple(
            f"{kind}{f' {table}' if table else ''} at {frac:.4f} of the run"
            for frac, kind, table in given.events
        )
    if given.vacuums:
        told[f"cells[{n}].vacuums"] = tuple(
            f"autovacuum {table} from {_range(began)} to {_range(ended)} of the run"
            for began, ended, table in given.vacuums
        )
    if given.snapshots:
        told[f"cells[{n}].snapshots"] = tuple(
            f"from {began:.4f} to {ended:.4f} of the run" for began, ended in given.snapshots
        )
    if given.maintained:
        commands = profile.workload.run.maintenance
        told[f"cells[{n}].maintenance"] = tuple(
            f"{command.do} of {command.table} at {_range(span)} of the run"
            for command, span in zip(commands, given.maintained, strict=True)
        )
    if given.holds:
        told[f"cells[{n}].holds"] = tuple(
            f"from {_range(began)} to {_range(ended)} of the run" for began, ended in given.holds
        )
    return told


def _told_of_clients(n: int, profile: Profile, given: Given) -> Assumed:
    told: dict[str, Taken] = {}
    if given.standing is not None:
        share, lengths, inside = given.standing
        said = f"{percent(share, 2)} of the transactions stood still"
        if lengths:
            said += f", for {min(lengths):.0f} to {max(lengths):.0f} of another client's"
            if inside is not None:
                least, most = (100 * part for part in inside)
                said += f", {least:.0f} to {most:.0f} % of that within a statement"
        told[f"cells[{n}].standing"] = said
    if said := _said_of(given.machine, profile.workload.run.machine):
        told[f"cells[{n}].machine"] = said
    if given.processors is not None:
        told[f"cells[{n}].processors"] = given.processors
    if given.at_work is not None:
        told[f"cells[{n}].sessions_at_work"] = round(given.at_work, 2)
    if given.course:
        told[f"cells[{n}].course"] = (
            f"clients came on as on the server in {len(given.course)} stretches of the run, one up "
            f"to {100 * farthest_apart(given.course):.0f} % of its transactions ahead of another"
        )
    return told


def _said_of(machine: MachineTimes | None, stated: MachineTimes | None) -> str:
    """What was measured, beside what the profile says; nothing where both are silent."""
    if machine is None or machine == MachineTimes():
        return "" if machine is None or stated is None else _NOT_MEASURED
    each = (
        ("an UPDATE by key took {:.3g} us at work in the mean", machine.statement_us),
        ("pauses between transactions {:.3g} us", machine.between_us),
        ("pauses within one {:.3g} us", machine.pause_us),
    )
    said = ", ".join(said.format(us) for said, us in each if us is not None)
    return said and f"{said}; every other run of the twin plays with that, the rest draw it"


def _range(moment: tuple[float, float]) -> str:
    low, high = (f"{frac:.5f}" for frac in moment)
    return low if low == high else f"{low}..{high}"
