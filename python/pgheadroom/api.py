"""
What programs call: the stages of the loop as functions, with typed frozen values as results.

`import pgheadroom as ph` has them at the top. Each takes a profile as a value or as the path of its
file. Results have `to_json()`, and as tables `rows()`, `to_frame()` and the form that notebooks
show. Errors are those of `pgheadroom.errors`; what a parameter causes is a `ParameterError`, which
names it.

Each function loads its own part when it is called: who reads a profile does not wait for the
laboratory's numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pgheadroom import results
from pgheadroom.defaults import BUDGET_S, LENGTH_S, SEEDS_DEFAULT
from pgheadroom.errors import ParameterError
from pgheadroom.profile import Profile
from pgheadroom.profile import read_profile as _read_profile
from pgheadroom.progress import Progress

Source = Profile | str | os.PathLike[str]
"""A profile, or the path of its file."""


def _quiet(_done: int, _total: int, _what: str, /) -> None:
    """Nobody wants to know."""


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """
    Read a profile, TOML or JSON.

    Raises:
        InputError: Not readable, or a field is wrong; with path, line, what was found and expected.
    """
    return _read_profile(Path(path))


def observe(
    conninfo: str = "",
    *,
    seconds: float = LENGTH_S,
    tables: str | Sequence[str] = (),
    mask: bool = False,
    sample: bool = True,
    logs: Sequence[str | os.PathLike[str]] = (),
    statements: Sequence[str | os.PathLike[str]] = (),
    wal: bool | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = False,
    progress: Progress | None = None,
) -> Profile:
    """
    Watch a live database, only reading, as a profile of its tables and workload.

    Args:
        conninfo: A connection, as libpq takes it (URI or keywords); empty: as libpq's PG*.
        seconds: How long; counters are read at both ends.
        tables: Only these (`name` or `schema.name`); empty: all.
        mask: Pseudonyms for names, no texts of statements.
        sample: Read rows, of at most 1,000 pages and the newest 1,000 rows a table.
        logs: Server logs with statements, which are read for the interval.
        statements: Files of statements.
        wal: Read the write-ahead log of the interval too: of the server (True), or out of files
            and folders (its pg_wal, or the archive that it fills).
        progress: Called with what is being done, in seconds of the interval.

    Raises:
        ConnectionFailed: No server answers.
        InputError: A table that is not there, a file that is none.
    """
    from pgheadroom.observe import observe_live, request_of  # noqa: PLC0415 - only this function's
    from pgheadroom.wal.beside import beside  # noqa: PLC0415 - only this function's
    from pgheadroom.wal.paths import existing  # noqa: PLC0415 - only this function's

    if not 1 <= seconds <= 86400:
        raise ParameterError("seconds", f"{seconds:g}: expected 1 to 86400")
    show = progress or _quiet
    request = request_of(seconds, samples=sample, tables=_names(tables))
    files = () if isinstance(wal, bool) else existing(wal)
    with beside(conninfo, {}, wanted=wal is True, files=files) as log:
        profile = observe_live(
            conninfo,
            {},
            request,
            mask=mask,
            logs=tuple(map(Path, logs)),
            statements=tuple(map(Path, statements)),
            say=lambda what: show(0, 0, what),
            at=lambda moment, _: log.at(moment),
        )
        return log.add(profile)


def advise(
    profile: Source,
    *,
    tables: str | Sequence[str] = (),
    goal: str = "balanced",
    prices: Mapping[str, float] | None = None,
    max_growth: float | None = None,
    budget_s: float = BUDGET_S,
    progress: Progress | None = None,
) -> results.Advice:
    """
    Advise on every table of an observed profile: CHANGE, KEEP or ABSTAIN, with curve and causes.

    Args:
        profile: Made by `observe`.
        tables: Only these, by their names in the profile; empty: all.
        goal: What to save: `balanced`, `wal`, `size` or `latency`.
        prices: Instead of the goal's: `kept_gb`, `wal_gb`, `written_mpages`, `read_mpages`.
        max_growth: The heap may grow by this share.
        budget_s: Seconds of processor time for simulations; what has not ended then is cut off.
        progress: Called with tables that were played, and those worth it.

    Raises:
        InputError: Not an observed profile; a table, goal or price that is none.
    """
    from pgheadroom.advise import Options, make_policy  # noqa: PLC0415 - only this function's
    from pgheadroom.advise import advise as _advise  # noqa: PLC0415 - only this function's

    policy = make_policy(goal, dict(prices or {}), max_growth)
    options = Options(policy=policy, budget_s=budget_s, tables=_names(tables))
    return _advise(_profile(profile), options, say=progress or _quiet)


def doctor(conninfo: str = "", *, seconds: float | None = None) -> results.Diagnosis:
    """
    Look for what an expert looks for on a live database, only reading.

    Args:
        conninfo: A connection, as libpq takes it (URI or keywords); empty: as libpq's PG*.
        seconds: Between two readings of counters, for rates of that interval; None: one reading,
            of what the statistics have since their start.

    Returns:
        Findings by effect, and which rules could not look (`cut_off`: some should have).

    Raises:
        ConnectionFailed: No server answers.
    """
    from pgheadroom.doctor.live import examine_live  # noqa: PLC0415 - only this function's

    if seconds is not None and not 0 < seconds <= 86400:
        raise ParameterError("seconds", f"{seconds:g}: expected more than 0, at most 86400")
    return examine_live(conninfo, {}, interval_s=seconds)


def doctor_plan(
    conninfo: str = "",
    *,
    seconds: float | None = None,
    standbys: str | Sequence[str] = (),
    rewrite: str = "auto",
    settings: bool = False,
    progress: Progress | None = None,
) -> results.DoctorPlan:
    """
    Look as `doctor` does, and plan the remedies whose effect can be measured; only reading.

    Args:
        conninfo: A connection, as libpq takes it (URI or keywords); empty: as libpq's PG*.
        seconds: Between two readings of counters; None: one reading, and what less is logged
            cannot be verified afterwards.
        standbys: A connection to each standby, to the same database: without their word no index
            is dropped that they may read.
        rewrite: How tables are rewritten: `auto` by what lets clients go on, `none`, or a tool:
            `repack`, `pg_squeeze`, `pg_repack`, `vacuum-full`.
        settings: The server's settings too.
        progress: Called with what is being done.

    Returns:
        What was found and its plan. `pgheadroom apply` carries out the file that it is saved as,
        and `pgheadroom verify` judges it: nothing here changes a database.

    Raises:
        ConnectionFailed: A server does not answer.
        InputError: The server is a standby itself, or one that is named is none of its; no such
            way to rewrite.
        SourceError: The connection ended before a plan could be made.
    """
    from pgheadroom.doctor.planned import plan_live  # noqa: PLC0415 - only this function's

    if seconds is not None and not 0 < seconds <= 86400:
        raise ParameterError("seconds", f"{seconds:g}: expected more than 0, at most 86400")
    show = progress or _quiet
    return plan_live(
        conninfo,
        interval_s=seconds,
        standbys=_names(standbys),
        rewrite=rewrite,
        settings=settings,
        say=lambda what: show(0, 0, what),
    )


def evaluate(profile: Source, *, server: str | None = None) -> Profile:
    """
    Have a throw-away server evaluate what the twin cannot of indexes' expressions and predicates.

    Args:
        profile: The workload; what it states of expressions stays as it is.
        server: Version, or a folder with server programs; None: the profile's version.

    Returns:
        The profile that states what was found, which `predict` and `prove` then take; `assumed`
        says how it was found.

    Raises:
        InputError: The server does not take an expression, or cannot evaluate it for a row.
        ServerNotFound: That version is not at hand.
        LabError: The server failed, or an expression took too long.
    """
    from pgheadroom.play.evaluating import evaluated  # noqa: PLC0415 - only this function's

    return evaluated(_profile(profile), server=server)


def predict(
    profile: Source,
    fillfactor: int | Iterable[int] | None = None,
    *,
    table: str | None = None,
    server: str | None = None,
    seeds: int | None = None,
    tps: float | None = None,
    windows: int = 0,
    sample_pages: int | None = None,
    progress: Progress | None = None,
) -> results.Prediction:
    """
    Predict HOT updates, pages and WAL by the twin; no server takes part.

    Args:
        profile: The workload.
        fillfactor: Percent, one cell each: a number, or several such as `range(50, 101, 5)`; None:
            the profile's own.
        table: The table to vary; None: every table that has updates.
        server: Version whose storage the twin follows, such as `"18"` or `"16.14"`; None: the
            profile's.
        seeds: Orders of the clients' transactions that are tried where the outcome is statistical;
            None: 8, or 4 where more than 16 fillfactors are asked for and each is simulated whole.
        tps: Transactions a second, where the profile has none and a clock needs them.
        windows: How many windows of simulated time `series` has; 0: none.
        sample_pages: Heap pages of the largest table that stand for the whole; None: all, up to
            2 GB.
        progress: Called with rows and transactions that are done, and their number.

    Raises:
        InputError: A fillfactor, table or version that is none.
        TwinError: The twin cannot play the profile; the message names the field.
    """
    from pgheadroom.predict import Timing  # noqa: PLC0415 - only this function's
    from pgheadroom.predict import predict as _predict  # noqa: PLC0415 - only this function's

    return _predict(
        _profile(profile),
        _levels(fillfactor),
        table,
        server=server,
        seeds=seeds,
        timing=Timing(tps=tps, windows=windows),
        sample_pages=sample_pages,
        report=progress,
    )


def prove(
    profile: Source,
    fillfactor: int | Iterable[int] | None = None,
    *,
    table: str | None = None,
    server: str | None = None,
    seeds: int = SEEDS_DEFAULT,
    progress: Progress | None = None,
) -> results.Proof:
    """
    Play a profile on a throw-away server and in the twin, figure by figure.

    Args:
        profile: The workload.
        fillfactor: As in `predict`.
        table: As in `predict`.
        server: A version at hand, or a folder with server programs; None: the profile's.
        seeds: Orders of the clients' transactions that are tried where the outcome is statistical.
        progress: Called with the twin's and the server's progress.

    Raises:
        InputError: A fillfactor or table that is none; `server` is a connection.
        ServerNotFound: That version is not at hand.
        TwinError: The twin cannot play the profile.
        LabError: The server failed, or its run is invalid.
    """
    from pgheadroom.prove import prove as _prove  # noqa: PLC0415 - only this function's

    show = progress or _quiet
    return _prove(
        _profile(profile),
        _levels(fillfactor),
        table,
        server=server,
        seeds=seeds,
        report=progress,
        say=show,
    )


def layout(source: Source = "", *, table: str | None = None, sample: bool = True) -> results.Layout:
    """
    Where a row's bytes go, column by column, and the room that each fillfactor leaves.

    Args:
        source: A profile or its file, or a connection as libpq takes it; empty: as libpq's PG*.
        table: Only this one (`name` or `schema.name`).
        sample: Of a connection: read rows, of at most 1,000 pages a table.

    Raises:
        ConnectionFailed: No server answers.
        InputError: No such table.
    """
    from pgheadroom.layout import of_live_tables, of_profile  # noqa: PLC0415 - only this function's

    if isinstance(source, Profile):
        return of_profile(source, table)
    if not isinstance(source, str) or (source and Path(source).is_file()):
        return of_profile(read_profile(source), table)
    from pgheadroom.sources.columns import read_tables  # noqa: PLC0415 - only this function's
    from pgheadroom.sources.session import read_only_session  # noqa: PLC0415 - only this function's

    with read_only_session(source, {}) as connection:
        tables, access = read_tables(connection, table=table, samples=sample)
        version = str(connection.info.parameter_status("server_version"))
        return of_live_tables(tables, access, server=version, table=table)


def read_wal(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    begin: str | None = None,
    end: str | None = None,
    timeline: int | None = None,
    names: str | os.PathLike[str] | None = None,
    by: str | None = None,
) -> results.WalStats:
    """
    Sum write-ahead log by relation and cause.

    Args:
        paths: Segments, folders of them, patterns.
        begin: Records from this position (`16/B374D848`) or time (ISO 8601, UTC unless said) on.
        end: Records that end there or before.
        timeline: The timeline to follow; None: the newest.
        names: What relations are called: a file of `wal names`, or an observed profile.
        by: Sums beside those by relation: `checkpoint`, `transaction`, or slices of time (`10m`).

    Raises:
        InputError: No such file, or a position or time that is none.
        WalError: No WAL there, or none that is read. A part that is missing is no error but one of
            the result's `gaps`.
    """
    from pgheadroom.wal import read_names  # noqa: PLC0415 - only this function's
    from pgheadroom.wal import read_wal as _read_wal  # noqa: PLC0415 - only this function's

    known = None if names is None else read_names(Path(names))
    return _read_wal(paths, begin=begin, end=end, timeline=timeline, names=known, by=by)


def _profile(source: Source) -> Profile:
    return source if isinstance(source, Profile) else read_profile(source)


def _levels(given: int | Iterable[int] | None) -> list[int] | None:
    if given is None:
        return None
    return [given] if isinstance(given, int) else list(given)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names; one alone is one, not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)
