"""
What the doctor says of servers on which all is well, after ten minutes of load with autovacuum.

    python -m doctor_healthy [NAME ...] [--clones FOLDER] [--minutes 10]

Each case is looked at over the load, and as if nothing else had happened for a month. A finding
of severity warning or error has to stand in explained.toml with why it is true, else this fails.
What was found is kept in experiments/record/doctor-healthy, and docs/accuracy/healthy.md is made
of that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from doctor_healthy.cases import ROOT, Watched, cases
from doctor_healthy.page import page
from pgheadroom.doctor import Diagnosis, Examination, Finding, all_rules
from pgheadroom.errors import HeadroomError
from pgheadroom.files import write_atomically
from pgheadroom.servers import Cluster
from pgheadroom.servers.signals import terminate_cleanly
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal import names_of_server, read_wal

RECORD = ROOT / "experiments" / "record" / "doctor-healthy"
EXPLAINED = Path(__file__).with_name("explained.toml")
PAGE = ROOT / "docs" / "accuracy" / "healthy.md"
_MONTH_S = 40 * 86_400.0
_BEYOND_S = 5.0
"""So that an interval of ten minutes is one: rates of less make no warning."""

OVER_LOAD, AFTER_A_MONTH = "over the load", "after a month"
_OF_TREES = ("index-ends-hot", "no-room-on-page")
"""Rules whose price is what updates log into B-trees, at least."""

Json = dict[str, Any]


def main() -> int:
    """Play what is asked; without a name, all cases."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="with OWNER/NAME in it")
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args()
    known = cases(options.clones)
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(known)}")
    explained = read_explained()
    wrong: list[str] = []
    if not options.page:
        RECORD.mkdir(parents=True, exist_ok=True)
        with terminate_cleanly():
            for name in options.names or known:
                wrong += _played(name, known[name], options.minutes, explained)
    kept = {name: json.loads(_path(name).read_text()) for name in known if _path(name).exists()}
    write_atomically(PAGE, page(kept, explained))
    for each in wrong:
        sys.stderr.write(f"{each}\n")
    return 1 if wrong else 0


def read_explained() -> Mapping[tuple[str, str, str], str]:
    """Why findings are true, by case, rule and object."""
    data = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    return {
        (case, each["rule"], each["object"]): each["why"]
        for each in data.get("finding", ())
        for case in each["cases"]
    }


def _path(name: str) -> Path:
    return RECORD / f"{name}.json"


def _played(
    name: str,
    case: Callable[[], AbstractContextManager[Watched]],
    minutes: float,
    explained: Mapping[tuple[str, str, str], str],
) -> Sequence[str]:
    """One case; what is wrong with what the doctor says of it."""
    sys.stderr.write(f"{name}: {minutes:g} minutes of load\n")
    begin = time.monotonic()
    try:
        with case() as (cluster, dbname, work):
            kept = _looked(cluster, dbname, lambda: work(60 * minutes + _BEYOND_S))
    except HeadroomError as error:
        return [f"{name}: {error}"]
    kept = {"case": name, "minutes": minutes, **kept}
    write_atomically(_path(name), json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
    wrong = [f"{name}: {each['rule']} was cut off: {each['why']}" for each in kept["cut_off"]]
    for found in kept["findings"]:
        rule, about = found["rule"], found["object"]
        if found["severity"] != "info" and (name, rule, about) not in explained:
            wrong.append(f"{name}: not explained: {rule} {about}: {found['text']}")
    return wrong


def _looked(cluster: Cluster, dbname: str, work: Callable[[], int | None]) -> Json:
    env = cluster.client_env()
    target = f"host={env['PGHOST']} port={env['PGPORT']} user=postgres dbname={dbname}"
    with read_only_session(target, {}) as connection:
        examination = Examination(connection, all_rules())
        begin = _position(cluster)
        examination.start()
        transactions = work()
        over_load = examination.end()
    of_trees = _logged_by_trees(cluster, target, begin)
    with read_only_session(target, {}) as connection:
        a_month = Examination(connection, all_rules(), ahead_s=_MONTH_S).end()
        row = connection.execute(
            "SELECT sum(autovacuum_count + autoanalyze_count)::int8,"
            " sum(n_tup_ins + n_tup_upd + n_tup_del)::int8, count(*) FROM pg_stat_user_tables"
        ).fetchone()
        assert row is not None, "an aggregate has one row"
    return {
        "server": str(cluster.version),
        "transactions": transactions,
        "load_s": over_load.examined.interval_s,
        "autovacuums": row[0],
        "rows_changed": row[1],
        "tables": row[2],
        "findings": [
            {**_of(found), "seen": seen, **_beside(found, seen, of_trees)}
            for seen, diagnosis in ((OVER_LOAD, over_load), (AFTER_A_MONTH, a_month))
            for found in diagnosis.findings
        ],
        "cut_off": [
            {"rule": each.rule, "why": each.why}
            for diagnosis in (over_load, a_month)
            for each in _cut(diagnosis)
        ],
    }


def _of(found: Finding) -> Json:
    return {
        "rule": found.rule,
        "severity": found.severity,
        "object": found.object,
        "text": found.text,
        "amount": found.price.amount,
        "unit": found.price.unit,
    }


def _position(cluster: Cluster) -> str:
    with cluster.connect() as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None, "a function has one row"
    return str(row[0])


def _logged_by_trees(cluster: Cluster, target: str, begin: str) -> dict[str, tuple[int, int]]:
    """Bytes that the load has logged into each table's B-trees: images aside, and these."""
    end = _position(cluster)
    names = names_of_server(target, {})
    stats = read_wal(cluster.data_dir / "pg_wal", begin=begin, end=end, names=names)
    found: dict[str, tuple[int, int]] = {}
    for relation in stats.relations:
        if relation.method == "btree" and relation.table is not None:
            table = relation.table.removeprefix("public.")
            own, images = found.get(table, (0, 0))
            own += relation.bytes - relation.fpi_bytes
            found[table] = own, images + relation.fpi_bytes
    return found


def _beside(found: Finding, seen: str, of_trees: Mapping[str, tuple[int, int]]) -> Json:
    """
    What the log says of a finding whose price is WAL of B-trees.

    An entry whose page is logged whole stands in the image alone (`XLogRecordAssemble`).
    """
    if found.rule not in _OF_TREES or seen != OVER_LOAD or found.object not in of_trees:
        return {}
    own, images = of_trees[found.object]
    return {"logged_bytes": own, "image_bytes": images}


def _cut(diagnosis: Diagnosis) -> list[Any]:
    return [each for each in diagnosis.blind if each.cut_off]


if __name__ == "__main__":
    sys.exit(main())
