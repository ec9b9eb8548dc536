"""
The workloads. In each round every arm does the same, in an order that is drawn anew.

Times are of one session and of the statement alone. What an arm leaves in the buffers is the next
one's burden; the drawn order spreads that evenly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench_extension.rows import Row, counted, ratio
from bench_extension.server import (
    HEAP,
    PLACED,
    SORTED,
    TRIGGER,
    Arm,
    Session,
    running,
    spent_ms,
)
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_client

Times = dict[str, list[float]]

ROUNDS = 10
RANGE_SETS = 24
RANGES_OF_A_SET = 20
TEXT = "repeat('x', 350)"  # 21 rows a page


def shuffled(arms: Sequence[Arm], rng: random.Random) -> list[Arm]:
    """All of them in an order that is drawn."""
    return rng.sample(arms, len(arms))


def one(session: Session, query: str) -> float:
    """The number that a query gives."""
    row = session.execute(query).fetchone()
    assert row is not None
    return float(row[0])


def per_1000(session: Session, arm: Arm) -> float:
    """Pages under 1,000 rows that follow each other in the index."""
    return one(session, f"SELECT pages_per_1000 FROM cluster_quality('{arm.name}')")


def program_of_2007(
    programs: ServerPrograms,
    rows: int,
    runs: int,
    buffers_mb: int,
    bounds: tuple[float, float, float | None],
) -> Iterator[Row]:
    """
    Tom Lane's program: DELETE of 2 %, VACUUM, INSERT of 2 % with random keys, ten rounds.

    The bounds are of INSERT, of INSERT from a sorted source, and of range SELECTs after the last
    round.
    """
    arms = (HEAP, PLACED, SORTED, TRIGGER)
    inserts: Times = {arm.name: [] for arm in arms}
    selects: Times = {arm.name: [] for arm in arms}
    grown: dict[str, float] = {}
    label = f"2007 program, {rows:,} rows, {buffers_mb} MB of buffers"
    rng = random.Random(buffers_mb)  # noqa: S311
    for _ in range(runs):
        with running(programs, f"{buffers_mb}MB") as (_, _, session):
            for arm in arms:
                _load_2007(session, arm, rows)
            fresh = {arm.name: per_1000(session, arm) for arm in arms}
            for _ in range(ROUNDS):
                seeds = rng.uniform(-1, 1), rng.uniform(-1, 1)
                for arm in shuffled(arms, rng):
                    inserts[arm.name].append(_round_2007(session, arm, rows, seeds))
            grown = {arm.name: per_1000(session, arm) / fresh[arm.name] for arm in arms}
            _ranges_2007(session, arms, rows, rng, selects)
    heap = inserts[HEAP.name]
    yield ratio(label, "INSERT", bounds[0], inserts[PLACED.name], heap)
    yield ratio(label, "INSERT, source sorted", bounds[1], inserts[SORTED.name], heap)
    yield ratio(label, "INSERT, cluster_place()", None, inserts[TRIGGER.name], heap)
    whole = "pages per 1,000 keys after 10 rounds, against freshly clustered"
    for arm, name, bound in ((HEAP, "plain heap", None), (PLACED, "placed", 1.2)):
        yield counted(label, f"{whole}, {name}", bound, grown[arm.name])
    for arm, bound in ((PLACED, bounds[2]), (SORTED, None), (TRIGGER, None)):
        name = f"range SELECT, {arm.name}"
        yield ratio(label, name, bound, selects[arm.name], selects[HEAP.name])


def _load_2007(session: Session, arm: Arm, rows: int) -> None:
    arm.create(session, "k int, d text", "k")
    session.execute(f"INSERT INTO {arm.name} SELECT x, {TEXT} FROM generate_series(1, {rows}) x")
    session.execute(f"CLUSTER {arm.name} USING {arm.name}_key")
    session.execute(f"VACUUM ANALYZE {arm.name}")
    arm.place(session)


def _round_2007(session: Session, arm: Arm, rows: int, seeds: tuple[float, float]) -> float:
    session.execute(f"SELECT setseed({seeds[0]})")
    session.execute(f"DELETE FROM {arm.name} WHERE random() < 0.02")
    session.execute(f"VACUUM {arm.name}")
    session.execute(f"SELECT setseed({seeds[1]})")
    return spent_ms(
        session,
        f"INSERT INTO {arm.name} SELECT (random() * {rows})::int, {TEXT} "
        f"FROM generate_series(1, {rows // 50}) {'ORDER BY 1' if arm.is_sorted else ''}",
    )


def _ranges_2007(
    session: Session, arms: Sequence[Arm], rows: int, rng: random.Random, selects: Times
) -> None:
    """Times of index scans over 1,001 keys: the document's server had no others."""
    for scan in ("seqscan", "bitmapscan", "indexonlyscan"):
        session.execute(f"SET enable_{scan} = off")
    for _ in range(RANGE_SETS):
        starts = [rng.randrange(1, max(rows - 1000, 2)) for _ in range(RANGES_OF_A_SET)]
        for arm in shuffled(arms, rng):
            times = [
                spent_ms(
                    session,
                    f"SELECT count(*) FROM {arm.name} WHERE k BETWEEN {start} AND {start + 1000}",
                )
                for start in starts
            ]
            selects[arm.name].append(sum(times))


def streams(programs: ServerPrograms, rows: int, runs: int) -> Iterator[Row]:
    """A thousand ascending streams that grow by turns, key (stream, time), from empty tables."""
    arms = (HEAP, PLACED, SORTED)
    count = max(rows // 1000, 10)
    batches, ticks = 100, 10
    times: Times = {arm.name: [] for arm in arms}
    pages: dict[str, float] = {}
    rng = random.Random(2)  # noqa: S311
    label = f"{count} streams, {count * batches * ticks:,} rows"
    for _ in range(runs):
        with running(programs, "512MB") as (_, _, session):
            for arm in arms:
                arm.create(session, "stream int, at int, v text", "stream, at")
            for batch in range(batches):
                for arm in shuffled(arms, rng):
                    order = "ORDER BY 1, 2" if arm.is_sorted else ""
                    statement = (
                        f"INSERT INTO {arm.name} SELECT g % {count}, "
                        f"{batch * ticks} + g / {count}, repeat('x', 90) "
                        f"FROM generate_series(0, {count * ticks - 1}) g {order}"
                    )
                    times[arm.name].append(spent_ms(session, statement))
            pages = {arm.name: _pages_of_streams(session, arm, count) for arm in arms}
    heap = times[HEAP.name]
    yield ratio(label, "INSERT", 1.5, times[PLACED.name], heap)
    yield ratio(label, "INSERT, source sorted", 1.35, times[SORTED.name], heap)
    for arm in arms:
        bound = 10 if arm is PLACED else None
        yield counted(label, f"pages of 500 rows, {arm.name}", bound, pages[arm.name])


def _pages_of_streams(session: Session, arm: Arm, count: int) -> float:
    return one(
        session,
        "SELECT avg(n) FROM (SELECT count(DISTINCT (ctid::text::point)[0]) AS n "
        f"FROM {arm.name} WHERE at BETWEEN 250 AND 749 AND stream % {max(count // 50, 1)} = 0 "
        "GROUP BY stream) s",
    )


def ascending(programs: ServerPrograms, rows: int, rounds: int) -> Iterator[Row]:
    """Keys that come in order, into an empty table, by COPY and by INSERT ... SELECT."""
    arms = (HEAP, PLACED)
    rows = rows // 4
    rng = random.Random(3)  # noqa: S311
    with running(programs, "1GB") as (_, cluster, session):
        session.execute(
            f"CREATE TABLE source AS SELECT g AS k, repeat('x', 100) AS d "
            f"FROM generate_series(1, {rows}) g"
        )
        file = cluster.data_dir / "ascending"  # where the server may write
        session.execute(f"COPY source TO '{file}'")
        for arm in arms:
            arm.create(session, "k int, d text", "k")
        for name, statement in (
            ("COPY", f"COPY {{}} FROM '{file}'"),
            ("INSERT ... SELECT", "INSERT INTO {} SELECT * FROM source"),
        ):
            times: Times = {arm.name: [] for arm in arms}
            for number in range(rounds + 1):
                for arm in shuffled(arms, rng):
                    session.execute(f"TRUNCATE {arm.name}")
                    took = spent_ms(session, statement.format(arm.name))
                    if number:  # the first one warms up
                        times[arm.name].append(took)
            yield ratio(
                f"ascending keys, {rows:,} rows",
                name,
                1.1,
                times[PLACED.name],
                times[HEAP.name],
                is_end_bound=True,
            )


def single_rows(programs: ServerPrograms, rows: int, rounds: int) -> Iterator[Row]:
    """
    One client, one row of a random key a transaction, prepared; by pgbench.

    With the server's defaults each commit waits for the disk; without that wait the placement is
    a larger part of what is left.
    """
    for label, settings in (
        ("committed to disk", {"fsync": "on", "synchronous_commit": "on"}),
        ("asynchronous commit", {"fsync": "off", "synchronous_commit": "off"}),
    ):
        yield from _single_rows(programs, rows, rounds, label, settings)


def _single_rows(
    programs: ServerPrograms, rows: int, rounds: int, label: str, settings: dict[str, str]
) -> Iterator[Row]:
    arms = (HEAP, PLACED, TRIGGER)
    transactions = max(rows // 300, 100)
    rng = random.Random(4)  # noqa: S311
    rows = rows // 3
    pgbench, _ = find_client("pgbench", programs)
    with running(programs, "2GB", **settings) as (host, cluster, session):
        for arm in arms:
            _load_2007(session, arm, rows)
            (host.scratch / f"{arm.name}.sql").write_text(
                f"\\set k random(1, {rows})\nINSERT INTO {arm.name} VALUES (:k, {TEXT});\n"
            )
        times: Times = {arm.name: [] for arm in arms}
        for number in range(rounds + 1):
            for arm in shuffled(arms, rng):
                script = host.scratch / f"{arm.name}.sql"
                took = 1 / _per_second(host, cluster, pgbench, script, transactions)
                if number:
                    times[arm.name].append(took)
    workload = f"single rows, one client, prepared, {label}, {rows:,} rows"
    for arm in (PLACED, TRIGGER):
        yield ratio(workload, arm.name, 1.1, times[arm.name], times[HEAP.name])


def _per_second(
    host: Host, cluster: Cluster, pgbench: Path, script: Path, transactions: int
) -> float:
    words: list[str | Path] = [pgbench, "-n", "-M", "prepared", "-c", "1"]
    words += ["-t", str(transactions), "-f", script, "postgres"]
    done = host.run(words, env=cluster.client_env())
    found = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"pgbench: {done.stdout}{done.stderr}")
    return float(found[1])
