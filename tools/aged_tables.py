"""
Tables that have lived, forecast and then measured: what came, beside what was foreseen.

    python tools/aged_tables.py [--server 18] [--only NAME] [--write]

Each table is loaded on a throw-away server, aged by a workload of its own, and observed while that
goes on. The profile that `observe` makes of it is played in the twin, once as it is and once as
though the table were loaded anew (as before `pages` was known), and beside both stands what the
same workload then does to the very table. `--write` puts the table into docs/method/observe.md.

Full-page images are off, so that WAL is what the updates write; autovacuum is, and VACUUM runs
between rounds of the aging, so that what is compared does not hang on when it came.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import Outcome
from pgheadroom.predict import predict
from pgheadroom.profile import Operation, Profile, Run
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.tables import PageKind
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_programs
from pgheadroom.servers.programs import find_client
from pgheadroom.sources.log import read_statements
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.session import read_only_session

PAGE = Path(__file__).resolve().parent.parent / "docs" / "method" / "observe.md"
BEGIN, END = "<!-- aged tables -->", "<!-- end of aged tables -->"
SETTINGS = {
    "autovacuum": "off",
    "full_page_writes": "off",
    "fsync": "off",
    "shared_buffers": "512MB",
    "max_wal_size": "20GB",
    "checkpoint_timeout": "1d",
}
SEED = 5
ACCOUNTS = """
CREATE TABLE aged (id int4 PRIMARY KEY, n int4 NOT NULL, f char(84) NOT NULL){options};
{index}
INSERT INTO aged SELECT i, 0, 'f' FROM generate_series(1, 60000) i;
VACUUM ANALYZE aged
"""
UPDATE = """\\set k random(1, 60000)
UPDATE aged SET n = n + 1 WHERE id = :k;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """
    A table and what is done to it.

    Attributes:
        ddl: Makes and loads it.
        script: pgbench's; a transaction is one run of it.
        rounds: Of the aging, each with so many transactions and a VACUUM behind it.
        transactions: Of a round, of what is observed, and of what is forecast.
        vacuums: Whether what is forecast begins behind a VACUUM.
    """

    name: str
    what: str
    ddl: str = ACCOUNTS.format(options="", index="")
    script: str = UPDATE
    rounds: int = 5
    transactions: int = 30_000
    vacuums: bool = True


LIVES = (
    Life(
        name="uniform-100",
        what="60,000 rows of 120 bytes, any updated as likely, fillfactor 100",
    ),
    Life(
        name="uniform-90",
        what="the same, fillfactor 90",
        ddl=ACCOUNTS.format(options=" WITH (fillfactor = 90)", index=""),
    ),
    Life(
        name="indexed",
        what="the same with an index over the changed column",
        ddl=ACCOUNTS.format(options="", index="CREATE INDEX aged_n ON aged (n);"),
        transactions=20_000,
    ),
    Life(
        name="unvacuumed",
        what="the same, no VACUUM before what was foreseen",
        vacuums=False,
    ),
    Life(
        name="hot-rows",
        what="the same, four of five updates to 5 % of the rows",
        script="""\\set hot random(1, 5)
\\set k CASE WHEN :hot <= 4 THEN 20 * random(1, 3000) ELSE random(1, 60000) END
UPDATE aged SET n = n + 1 WHERE id = :k;
""",
    ),
    Life(
        name="purged",
        what="the same, after half of the rows were deleted at random",
        ddl=ACCOUNTS.format(options="", index="")
        + ";\nDELETE FROM aged WHERE hashint4(id) % 2 = 0;\nVACUUM aged",
        script="""\\set k random(1, 60000)
UPDATE aged SET n = n + 1 WHERE id = (SELECT id FROM aged WHERE id >= :k ORDER BY id LIMIT 1);
""",
        rounds=2,
        transactions=20_000,
    ),
    Life(
        name="growing",
        what="rows grow by a byte with each update, fillfactor 95",
        ddl="""
CREATE TABLE aged (id int4 PRIMARY KEY, n int4 NOT NULL, s text NOT NULL) WITH (fillfactor = 95);
INSERT INTO aged SELECT i, 0, repeat('s', 40 + i % 60) FROM generate_series(1, 60000) i;
VACUUM ANALYZE aged
""",
        script="""\\set k random(1, 60000)
UPDATE aged SET n = n + 1, s = s || 'x' WHERE id = :k;
""",
        rounds=4,
    ),
    Life(
        name="queue",
        what="a queue of 20,000: one comes, one is updated, the oldest goes",
        ddl="""
CREATE TABLE aged (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state int4 NOT NULL,
    made timestamptz NOT NULL DEFAULT now(), f char(60) NOT NULL DEFAULT 'f');
INSERT INTO aged (state) SELECT 0 FROM generate_series(1, 20000);
VACUUM ANALYZE aged
""",
        script="""BEGIN;
INSERT INTO aged (state) VALUES (0);
UPDATE aged SET state = 1 WHERE id = (SELECT max(id) - 10000 FROM aged);
DELETE FROM aged WHERE id = (SELECT min(id) FROM aged);
COMMIT;
""",
        transactions=10_000,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a workload did to a table; WAL without images, a number for each update."""

    hot_frac: float
    newpage_frac: float
    heap_pages: int
    grown_pages: int
    wal_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A life, what came, and what was foreseen of it in both ways."""

    life: Life
    server: str
    kinds: str
    came: Came
    lived: Came | None
    anew: Came | None
    refused: str = ""


class Table:
    """A table of a running server, and pgbench on it."""

    def __init__(
        self, programs: ServerPrograms, cluster: Cluster, life: Life, folder: Path
    ) -> None:
        self._programs, self._cluster = programs, cluster
        self._life = life
        self._script = folder / "script.sql"
        self._script.write_text(life.script, encoding="utf-8")
        self._seed = SEED
        with cluster.connect() as connection:
            for statement in filter(str.strip, life.ddl.split(";")):
                connection.execute(statement.encode())

    def age(self) -> None:
        """Rounds of the workload, a VACUUM behind each."""
        for _ in range(self._life.rounds):
            self.work()
            self.vacuum()

    def vacuum(self) -> None:
        """VACUUM ANALYZE of the table."""
        with self._cluster.connect() as connection:
            connection.execute("VACUUM ANALYZE aged")

    def work(self) -> None:
        """A round of the workload."""
        self._seed += 1
        program = find_client("pgbench", self._programs)[0]
        command = [str(program), "-n", "-M", "prepared", "-f", str(self._script), "-c", "1"]
        command += ["-t", str(self._life.transactions), f"--random-seed={self._seed}", "postgres"]
        subprocess.run(
            command, env=self._cluster.client_env(), check=True, capture_output=True, text=True
        )

    def measured(self) -> Came:
        """A round of the workload, and what it did."""
        before = self._state()
        self.work()
        time.sleep(1.5)  # the session that has ended reports its counters
        after = self._state()
        n = {name: after[name] - before[name] for name in before}
        updates = n["n_tup_upd"]
        return Came(
            hot_frac=n["n_tup_hot_upd"] / updates,
            newpage_frac=n["n_tup_newpage_upd"] / updates,
            heap_pages=after["pages"],
            grown_pages=n["pages"],
            wal_bytes=n["wal"] / updates,
        )

    def _state(self) -> dict[str, int]:
        with self._cluster.connect() as connection:
            row = connection.execute(
                "SELECT n_tup_upd, n_tup_hot_upd, n_tup_newpage_upd, "
                "pg_relation_size(relid) / 8192, (SELECT wal_bytes FROM pg_stat_wal) "
                "FROM pg_stat_user_tables WHERE relname = 'aged'"
            ).fetchone()
        assert row is not None
        names = ("n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "pages", "wal")
        return {name: int(value) for name, value in zip(names, row, strict=True)}

    def observed(self, folder: Path) -> Profile:
        """The profile of a round of the workload."""
        statements = folder / "statements.sql"
        lines = self._life.script.splitlines()
        texts = [line for line in lines if not line.startswith(("\\", "BEGIN", "COMMIT"))]
        statements.write_text(_numbered("\n".join(texts)), encoding="utf-8")
        env = self._cluster.client_env()
        conninfo = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname=postgres"
        done: list[str] = []

        def at_tick(text: str) -> None:
            if not done:
                self.work()
                time.sleep(1.5)
            done.append(text)

        with read_only_session(conninfo, {}) as connection:
            request = ObservationRequest(duration_s=0.4, ticks=2, samples=True)
            recording = watch(connection, request, at_tick)
        classes = find_classes(recording, [], [read_statements(statements)])
        return observe(recording, classes, mask=False, sampled=True)


def _numbered(text: str) -> str:
    return text.replace(":k", "$1")


def _of_length(profile: Profile, transactions: int) -> Profile:
    """The profile for as many transactions as will be measured."""
    run = Run(operations=transactions, seed=SEED)
    server = replace(profile.server, autovacuum=False, full_page_writes=False)
    return checked_profile(replace(profile.in_file(), run=run, server=server))


def _foreseen(profile: Profile, server: str) -> Came:
    (cell,) = predict(profile, server=server).cells
    (empty,) = predict(
        checked_profile(
            replace(
                profile.in_file(),
                operations=(Operation(table="aged", kind="select"),),
                run=Run(operations=1),
            )
        ),
        server=server,
    ).cells
    found: Outcome = cell.predicted

    def mid(name: str) -> float:
        value: Any = getattr(found, name)
        return float(getattr(value, "mid", value))

    start: Any = empty.predicted.heap_pages
    return Came(
        hot_frac=mid("hot_frac"),
        newpage_frac=mid("newpage_frac"),
        heap_pages=round(mid("heap_pages")),
        grown_pages=round(mid("heap_pages")) - int(getattr(start, "mid", start)),
        wal_bytes=mid("wal_nonfpi_bytes_per_update"),
    )


def play(life: Life, server: str) -> Line:
    """Age a table, observe it, foresee what comes, and see it."""
    programs = find_programs(server)
    with Host(programs) as host, TemporaryDirectory() as folder:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        table = Table(programs, cluster, life, Path(folder))
        table.age()
        profile = table.observed(Path(folder))
        if life.vacuums:
            table.vacuum()
        came = table.measured()
    observed_table = profile.tables[0]
    kinds = ", ".join(map(_kind, observed_table.pages))
    lived = anew = None
    refused = ""
    try:
        profile = _of_length(profile, life.transactions)
        version = str(programs.version)
        lived = _foreseen(profile, version)
        anew = _foreseen(profile.loaded_anew(), version)
    except Exception as error:  # noqa: BLE001 - it is shown
        refused = str(error)
    return Line(
        life=life,
        server=str(programs.version),
        kinds=f"{kinds} of {observed_table.rows_per_page}" if kinds else "none",
        came=came,
        lived=lived,
        anew=anew,
        refused=refused,
    )


def _kind(kind: PageKind) -> str:
    """Share, rows, redirects, and unused line pointers where the profile says them."""
    redirects = f" ({kind.redirects})" if kind.redirects else ""
    unused = f" + {kind.unused}" if kind.unused else ""
    return f"{kind.pages_frac:.2f}: {kind.rows}{redirects}{unused}"


def _markdown(lines: Sequence[Line]) -> str:
    """A table of all."""
    head = (
        "| table | its pages as observed (share: rows (redirects) + unused) | HOT % | "
        "updates to a new page % | "
        "heap pages | WAL bytes an update |\n|---|---|---:|---:|---:|---:|\n"
    )
    rows = []
    for line in lines:
        assert line.lived is not None, line.refused
        assert line.anew is not None, line.refused
        three = (line.came, line.lived, line.anew)
        shown = (
            "; ".join(f"{100 * found.hot_frac:.1f}" for found in three),
            "; ".join(f"{100 * found.newpage_frac:.1f}" for found in three),
            "; ".join(f"{found.heap_pages:,}" for found in three),
            "; ".join(f"{found.wal_bytes:.0f}" for found in three),
        )
        rows.append(f"| {line.life.what} | {line.kinds} | {' | '.join(shown)} |")
    return head + "\n".join(rows) + "\n"


def main() -> None:
    """Play all, or those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="18")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    lines = []
    for life in LIVES:
        if arguments.only not in life.name:
            continue
        line = play(life, arguments.server)
        lines.append(line)
        print(line.life.name, line.server, "pages:", line.kinds, line.refused)
        for name, found in (("came", line.came), ("lived", line.lived), ("anew", line.anew)):
            if found is not None:
                print(
                    f"  {name:6} HOT {100 * found.hot_frac:6.2f} "
                    f"new page {100 * found.newpage_frac:6.2f} "
                    f"heap {found.heap_pages} (+{found.grown_pages}) WAL {found.wal_bytes:.1f}",
                    flush=True,
                )
    if arguments.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
        _, end, after = rest.partition(END)
        assert end, f"{PAGE} has no {BEGIN} and {END}"
        PAGE.write_text(f"{before}{BEGIN}\n{_markdown(lines)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
