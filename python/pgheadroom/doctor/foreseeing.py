"""
What the twin foresees of a table to which autovacuum comes too late: as it is set, and otherwise.

The table is played alone, with the work of an interval that was watched, from a fresh load on, as
an advice plays it: a sample of its rows, with checkpoints and the horizon as they were. A VACUUM of
the sample takes as long as one of the whole table would: its pace and the server's memory shrink
with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.decide import not_repeated
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.runs import BudgetSpent, PlayedPiece, Runner, ScenarioPiece
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario, make_scenario
from pgheadroom.advise.shares import observed_shares
from pgheadroom.doctor.rule import DAY_S
from pgheadroom.errors import TwinError
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile, ServerSettings
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.unpriced import as_they_are
from pgheadroom.settings.arithmetic import COST_LIMIT_MAX

BUDGET_S = 40.0
"""Seconds of processor time for all tables together; arbitrary."""
_OFF_FRAC = 0.25
"""By which dead rows may be off: where in its round a VACUUM looks, which pages it finds clean, and
for how long the interval stands. The runs of docs/accuracy/doctor-foreseen.md are within it."""
_REPORT_S = 1.0
"""Sessions report so often (`PGSTAT_MIN_INTERVAL`, pgstat.c), and autovacuum looks in between."""
_SAMPLE_PAGES = 5000
"""More than an advice needs: a checkpoint that has few pages to write is soon done (100 ms each,
`CheckpointWriteDelay`), and VACUUM finds more of them clean, which costs, at a time."""
_OPERATIONS_MAX = 240_000
"""Some seconds of processor time each run."""
_PARTS = (1.0, 0.5)
"""Of the cost limit that VACUUM has: two workers at a time share it (`AutoVacuumUpdateCostLimit`),
and what it sleeps is longer on a busy machine than it asked for."""
_WINDOWS = 1000
"""Of a run, at whose ends dead rows are counted: in tens of them for each VACUUM, mostly."""
_SHARED_BUFFERS_MIN = 16 * 1024**2
"""The twin plays no less. Pages of a large table's sample are then hits that were misses, which
cost 1 instead of 2, beside 20 for each that becomes dirty."""
_DELAY_MS_MAX = 100.0
_LIMIT = "autovacuum_vacuum_cost_limit"
_DELAY = "autovacuum_vacuum_cost_delay"
_LIMIT_DEFAULT, _DELAY_MS_DEFAULT = 200.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """
    How autovacuum is set for a table.

    Attributes:
        autovacuum: Of the server; None: as it is.
        settings: Of the server, beside those that it has.
        options: Storage parameters of the table, beside its own; None takes one away.
        is_held: Whether the horizon is held, as it was.
    """

    autovacuum: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str | None] = field(default_factory=dict)
    is_held: bool = True


AS_IT_IS = Way()


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """
    The later half of a long run of a table, blown up from its sample.

    Over all picks of rows that repeat what was watched.

    Attributes:
        after_s: How long the whole run is, on the twin's clock.
        dead_rows: The most at a time, as the server counts them (n_dead_tup); from, middle, to.
        vacuums_per_day: That autovacuum has begun; from, to.
    """

    after_s: float
    dead_rows: tuple[int, int, int]
    vacuums_per_day: tuple[float, float]


class NotForeseen(Exception):  # noqa: N818 - reads as what happened
    """Nothing is foreseen of a table, with why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysAsked:
    """A table, and how autovacuum may be set for it."""

    table: str
    ways: tuple[Way, ...]


WaysForeseen = tuple[Foreseen, ...] | str


def foresee(
    profile: Profile, questions: Sequence[WaysAsked], *, budget_s: float = BUDGET_S
) -> tuple[WaysForeseen, ...]:
    """
    Play tables as autovacuum is set for them, and otherwise.

    Args:
        profile: Made by `observe`, of the interval whose work goes on.
        questions: Of its tables.
        budget_s: Seconds of processor time, all questions together.

    Returns:
        Of each question what is foreseen, a way each; or why nothing is.
    """
    profile = profile.loaded_anew()
    version = str(minor_version(profile).version)
    found: list[WaysForeseen] = [f"its {budget_s:g} s of processor time were spent"] * len(
        questions
    )
    with Runner(budget_s=budget_s) as runner:

        def answer(place: int) -> WaysForeseen | None:
            try:
                return _answered(profile, questions[place], version, runner)
            except BudgetSpent:
                return None
            except (NotForeseen, TwinError) as error:
                return str(error)
            except ValueError as error:  # PostgreSQL takes 0x3E8 for a number
                return f"a setting is not understood: {error}"

        for place, given in runner.side_by_side(answer, range(len(questions))):
            if given is not None:
                found[place] = given
    return tuple(found)


def is_horizon_held(profile: Profile) -> bool:
    """Whether the cleanup horizon stood still for a part of the interval."""
    observed = profile.server.observed
    return observed is not None and bool(observed.horizon.stood_still)


def raised_limit(server: ServerSettings, table: TableProfile) -> int:
    """Ten times what autovacuum's work on the table may cost at a time, or the most there is."""
    limit, _ = _pace(server, table)
    return min(round(10 * limit), COST_LIMIT_MAX)


def _answered(
    profile: Profile, question: WaysAsked, version: str, runner: Runner
) -> tuple[Foreseen, ...]:
    table = profile.table(question.table)
    scenarios = [
        replace(one, windows=_WINDOWS, steady_from=_WINDOWS // 2)
        for one in _repeating(_without_wal(profile), table, version, runner)
    ]
    each = [
        _as_set(one, way, part) for way in question.ways for one in scenarios for part in _PARTS
    ]
    played = runner.play(
        ScenarioPiece(scenario=one, version=version, fillfactor=table.fillfactor, seed=0)
        for one in each
    )
    count = len(scenarios) * len(_PARTS)
    return tuple(_foreseen(played[n * count : (n + 1) * count]) for n in range(len(question.ways)))


def _without_wal(profile: Profile) -> Profile:
    """
    The profile without all WAL of the interval.

    It contradicts a twin that changes another column than the statements do, which nobody saw;
    where row versions go is the same.
    """
    assert profile.server.observed is not None, "an observed profile"
    counters = replace(profile.server.observed.counters, wal=None, wal_position_bytes=None)
    observed = replace(profile.server.observed, counters=counters)
    return replace(profile, server=replace(profile.server, observed=observed))


def _repeating(
    profile: Profile, table: TableProfile, version: str, runner: Runner
) -> list[Scenario]:
    """
    The scenarios that repeat what was watched, one for each pick of rows that does.

    They part where the pace of VACUUM decides: which pages it skips, and which of them it finds
    clean. Of a table without updates it is made of its rates.
    """
    shares = observed_shares(table)
    every = [Knobs()]
    if shares is not None:
        fitted = calibrate(profile, table, shares, version, runner, sample_pages=SAMPLE_PAGES)
        if fitted is None:
            raise NotForeseen(_NO_OPERATION)
        unlike = not_repeated(table, fitted.calibration, fitted.off)
        if fitted.guard.reason is not None or unlike is not None:
            raise NotForeseen(fitted.guard.reason or ("" if unlike is None else unlike.reason))
        if fitted.calibration.fit is not None:
            knobs = fitted.calibration.fit.knobs
            picks = [knobs.pick, *(one.reading.pick for one in fitted.others)]
            every = [replace(knobs, pick=pick) for pick in picks]
    found = [
        make_scenario(
            profile,
            as_they_are(table),
            knobs,
            sample_pages=_SAMPLE_PAGES,
            operations_most=_OPERATIONS_MAX,
        )
        for knobs in every
    ]
    scenarios = [one for one in found if one is not None]
    if not scenarios:
        raise NotForeseen(_NO_OPERATION)
    return scenarios


_NO_OPERATION = (
    "nothing that changes it was seen in the interval, or no unique index finds its rows"
)


def _as_set(scenario: Scenario, way: Way, part: float) -> Scenario:
    """The scenario with autovacuum set so, at a part of the pace that the sample needs."""
    table, server = scenario.table, scenario.profile.server
    options = {**table.reloptions, **{k: v for k, v in way.options.items() if v is not None}}
    for name, value in way.options.items():
        if value is None:
            options.pop(name, None)
    for name, value in way.options.items():
        if name.endswith("_threshold") and value is not None:
            options[name] = str(round(float(value) * scenario.share))  # rows, as the others are
    server = replace(
        server,
        autovacuum=server.autovacuum if way.autovacuum is None else way.autovacuum,
        settings={**server.settings, **way.settings},
    )
    table = replace(table, reloptions=options)
    limit, delay_ms = _pace(server, table)
    if scenario.share * part < 1 and delay_ms > 0:
        shrunk, delay_ms = _shrunk(limit / delay_ms * scenario.share * part)
        options = {**options, _LIMIT: str(shrunk), _DELAY: f"{delay_ms:.6g}"}
        table = replace(table, reloptions=options)
        memory = round(server.shared_buffers_bytes * scenario.share)
        server = replace(server, shared_buffers_bytes=max(memory, _SHARED_BUFFERS_MIN))
    workload = scenario.profile.workload
    if not way.is_held:
        workload = replace(workload, run=replace(workload.run, snapshots=()))
    profile = replace(scenario.profile, server=server, tables=(table,), workload=workload)
    return replace(scenario, profile=profile)


def _shrunk(credit_per_ms: float) -> tuple[int, float]:
    """A limit and a delay in milliseconds that allow so much, as near as whole limits can."""
    limit = max(min(round(credit_per_ms * _DELAY_MS_MAX), COST_LIMIT_MAX), 1)
    return limit, min(limit / credit_per_ms, _DELAY_MS_MAX)


def _pace(server: ServerSettings, table: TableProfile) -> tuple[float, float]:
    """
    Limit and delay (in milliseconds) of autovacuum's work on the table.

    Source: `VacuumUpdateCosts` and `AutoVacuumUpdateCostLimit`, autovacuum.c: the table's own,
    autovacuum's, VACUUM's.
    """

    def value(name: str, default: float) -> float:
        for found in (
            table.reloptions.get(f"autovacuum_{name}"),
            server.settings.get(f"autovacuum_{name}"),
            server.settings.get(name) if default == _LIMIT_DEFAULT else None,
        ):
            if found is not None and (number := float(str(found).removesuffix("ms"))) >= 0:
                return number
        return default

    return value("vacuum_cost_limit", _LIMIT_DEFAULT), value("vacuum_cost_delay", _DELAY_MS_DEFAULT)


def _foreseen(runs: Sequence[PlayedPiece]) -> Foreseen:
    """From the least to the most of the runs, each as far off as one may be."""
    peaks, beside, vacuums = zip(*map(_figures, runs), strict=True)
    return Foreseen(
        after_s=runs[0].piece.scenario.duration_s,
        dead_rows=(
            max(round((1 - _OFF_FRAC) * min(peaks) - max(beside)), 0),
            round(sum(peaks) / len(peaks)),
            round((1 + _OFF_FRAC) * max(peaks) + max(beside)),
        ),
        vacuums_per_day=(min(vacuums), max(vacuums)),
    )


def _figures(run: PlayedPiece) -> tuple[float, float, float]:
    """The most dead rows at a time, those that die between two reports, vacuums a day."""
    scenario = run.piece.scenario
    half = scenario.steady_from
    begin_s = scenario.duration_s * half / scenario.windows
    counts = run.simulated.series["tables"][scenario.table.name]
    died = sum(counts[name][-1] for name in ("n_tup_upd", "n_tup_del"))
    vacuums = sum(
        kind == "autovacuum" and not is_toast and began_s >= begin_s
        for kind, _, is_toast, began_s, _, _ in run.simulated.happened
    )
    return (
        max(counts["n_dead_tup"][half:]) / scenario.share,
        _REPORT_S * died / scenario.duration_s / scenario.share,
        vacuums / ((scenario.duration_s - begin_s) / DAY_S),
    )
