"""
Record what pgbench draws, for the twin's golden tests.

    python tools/record_pgbench_golden.py 18 16 15

For each version an embedded or installed server runs pgbench with scripts that insert their
draws into a table. Every version has to draw the same, and that is written once, to
golden/pgbench. Only pgbench matters here; the server just keeps the numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pgheadroom.servers import Host, find_client, find_programs
from pgheadroom.servers.cluster import Cluster

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "pgbench"

DRAWS = """\
\\set u random(1, 100000)
\\set w random(-5000, 5000)
\\set b random(-9000000000000000000, 200000000000000000)
\\set z random_zipfian(1, 100000, 1.1)
\\set y random_zipfian(1, 1000, 2.5)
\\set g random_gaussian(1, 100000, 3.0)
\\set e random_exponential(1, 100000, 4.5)
\\set p permute(:u - 1, 100000, 1)
\\set q permute(:u, 1234567)
\\set m hash(:u)
\\set f hash_fnv1a(:u, 5)
INSERT INTO draws VALUES (DEFAULT, :client_id, 0, :u, :w, :b, :z, :y, :g, :e, :p, :q, :m, :f);
"""
COLUMNS = ("u", "w", "b", "z", "y", "g", "e", "p", "q", "m", "f")
SEEDS = (0, 1, 42, 18446744073709551615)

BUILTINS = """\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
INSERT INTO chosen VALUES (DEFAULT, 'tpcb-like', :aid, :bid, :tid, :delta);
"""
SELECT_ONLY = """\
\\set aid random(1, 100000 * :scale)
INSERT INTO chosen VALUES (DEFAULT, 'select-only', :aid, 0, 0, 0);
"""


def run_pgbench(host: Host, cluster: Cluster, *options: str) -> list[str]:
    """Run pgbench on the cluster and return the options that matter, for the origin."""
    pgbench, version = find_client("pgbench", find_programs(str(cluster.version.major)))
    assert version.major == cluster.version.major, f"pgbench {version} for {cluster.version}"
    command = [str(pgbench), "-n", "-j", "1", *options, "postgres"]
    done = host.run(command, env=cluster.client_env())
    assert done.returncode == 0, done.stderr
    return ["-n", "-j", "1", *(Path(option).name for option in options)]


def record_draws(host: Host, cluster: Cluster, script: Path, seed: int) -> dict[str, Any]:
    """Two clients, 200 transactions each: every function, from one seed."""
    with cluster.connect(autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS draws")
        connection.execute(
            "CREATE TABLE draws (i bigserial, client int, t int, "
            + ", ".join(f"{column} bigint" for column in COLUMNS)
            + ")"
        )
    script.write_text(DRAWS)
    options = ("-c", "2", f"--random-seed={seed}", "-t", "200", "-f", str(script))
    command = run_pgbench(host, cluster, *options)
    clients = []
    with cluster.connect() as connection:
        for client in (0, 1):
            rows = connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM draws WHERE client = %s ORDER BY i", (client,)
            ).fetchall()
            assert len(rows) == 200
            clients.append([list(row) for row in rows])
    return {
        "command": command,
        "script": DRAWS.splitlines(),
        "columns": list(COLUMNS),
        "seed": str(seed),
        "client_0": clients[0],
        "client_1": clients[1],
    }


def record_choice(host: Host, cluster: Cluster, scripts: list[Path]) -> dict[str, Any]:
    """One client, two weighted scripts with the draws of the built-in ones."""
    with cluster.connect(autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS chosen")
        connection.execute(
            "CREATE TABLE chosen (i bigserial, script text, aid int, bid int, tid int, delta int)"
        )
    scripts[0].write_text(BUILTINS)
    scripts[1].write_text(SELECT_ONLY)
    options = ["-c", "1", "--random-seed=7", "-t", "300", "-D", "scale=3"]
    options += ["-f", f"{scripts[0]}@3", "-f", f"{scripts[1]}@2"]
    command = run_pgbench(host, cluster, *options)
    with cluster.connect() as connection:
        rows = connection.execute(
            "SELECT CASE script WHEN 'tpcb-like' THEN 0 ELSE 1 END, aid, bid, tid, delta "
            "FROM chosen ORDER BY i"
        ).fetchall()
    assert len(rows) == 300
    return {
        "command": command,
        "scripts": {"tpcb-like": BUILTINS.splitlines(), "select-only": SELECT_ONLY.splitlines()},
        "weights": [3, 2],
        "scale": 3,
        "columns": ["script", "aid", "bid", "tid", "delta"],
        "transactions": [list(row) for row in rows],
    }


def write(name: str, versions: list[str], content: dict[str, Any]) -> None:
    """Write a golden file, one row of figures a line."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in ({"origin": f"pgbench {', '.join(versions)}"} | content).items():
        is_table = isinstance(value, list) and value and isinstance(value[0], list)
        text = (
            "[\n    " + ",\n    ".join(json.dumps(row) for row in value) + "\n  ]"
            if is_table
            else json.dumps(value)
        )
        parts.append(f"  {json.dumps(key)}: {text}")
    (GOLDEN / name).write_text("{\n" + ",\n".join(parts) + "\n}\n")


def record(spec: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """The version, and its files' contents by name."""
    with Host(find_programs(spec)) as host:
        cluster = host.cluster("golden")
        cluster.start({"autovacuum": "off"})
        found = {
            f"draws-{seed}.json": record_draws(host, cluster, host.scratch / "draws.sql", seed)
            for seed in SEEDS
        }
        scripts = [host.scratch / "tpcb.sql", host.scratch / "select.sql"]
        found["scripts.json"] = record_choice(host, cluster, scripts)
        return str(cluster.version), found


def main(specs: list[str]) -> None:
    """Record every version given, 15, 16 and 18 without any."""
    recorded = dict(record(spec) for spec in specs or ["15", "16", "18"])
    first, *others = recorded
    for version in others:
        differing = [n for n, found in recorded[version].items() if found != recorded[first][n]]
        if differing:
            sys.exit(f"pgbench {version} draws other than {first}: {', '.join(differing)}")
    for name, content in recorded[first].items():
        write(name, list(recorded), content)
    print(f"recorded {GOLDEN}: {', '.join(recorded)}")


if __name__ == "__main__":
    main(sys.argv[1:])
