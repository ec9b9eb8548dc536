"""
Ways in for damaged files: what each command reads, up to where the simulation would begin.

An entry is called with a damaged text and ends quietly, or by an error that a user is told
(`HeadroomError`). Anything else is a bug.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from mutations import Mutator

from pgheadroom import _core
from pgheadroom.advise import Options, advise
from pgheadroom.errors import HeadroomError, TwinError
from pgheadroom.input_file import read_text
from pgheadroom.lab.run import summarise_record
from pgheadroom.layout import of_profile
from pgheadroom.migration import check_migration, read_migration
from pgheadroom.plan import check_plannable, make_plan
from pgheadroom.plan.measured import measure
from pgheadroom.plan.reading import digest, plan_text, read_plan
from pgheadroom.plan.record import new_record, read_record, record_path
from pgheadroom.plan.text import as_markdown, as_text
from pgheadroom.plan.values import Plan
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.profile.reading import load_text
from pgheadroom.sources.log import read_statements
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.statements import NotParsed, writes_of
from pgheadroom.verify import verify

RECORDED = Path(__file__).parents[1] / "experiments" / "advice" / "record" / "observed"
_PROFILES = ("indexed-include-dfc4d0ce", "held-80-5962eb79", "growing-120-730b16ac")
_SETTINGS = ("wal_level", "autovacuum_vacuum_scale_factor", "checkpoint_timeout", "max_wal_size")

MIGRATION = """
-- a comment
CREATE INDEX CONCURRENTLY i ON t (n, lower(code)) INCLUDE (v) WHERE n > 3;
ALTER TABLE ONLY public.t ADD COLUMN c int DEFAULT 5, ALTER COLUMN v TYPE bigint, DROP COLUMN log;
CREATE UNIQUE INDEX ON "t" USING btree (id) WITH (fillfactor = 70);
DROP INDEX IF EXISTS t_pkey; ALTER TABLE t RENAME COLUMN v TO w; ALTER TABLE t SET (fillfactor=80);
DO $$ BEGIN PERFORM 1; END $$; CREATE TABLE x (a int GENERATED ALWAYS AS (1 + 2) STORED);
"""
STATEMENTS = """
\\set id random(1, 100000)
UPDATE t SET v = v + 1, log = log || 'x' WHERE id = :id;
INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
WITH found AS (UPDATE t SET v = 1 WHERE id = 3 RETURNING id) SELECT count(*) FROM found;
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 'it''s'
  WHEN NOT MATCHED THEN DO NOTHING;
SELECT $1, "a b", E'\\n', $x$ ; $x$; DELETE FROM t
"""


def simulation_left_out(*_: Any, **__: Any) -> Any:
    """In the place of the twin, which refuses what it cannot play by this error too."""
    raise TwinError("left out")


@contextmanager
def without_simulation() -> Iterator[None]:
    """The twin refuses everything."""
    with mock.patch.object(_core, "simulate", simulation_left_out):
        yield


def profiles() -> list[dict[str, Any]]:
    """Observed profiles, small, with everything in them that an observation can have."""
    found = []
    for name in _PROFILES:
        data = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        server, table = data["server"]["observed"], data["table"][0]["observed"]
        settings = server["settings"]
        server["settings"] = {k: v for k, v in settings.items() if k in _SETTINGS}
        server["counters"]["io"] = server["counters"]["io"][:1]
        server["horizon"]["series"] = server["horizon"]["series"][:1]
        server["horizon"]["holders"].append(_holder("slot", "s1", None))
        server["horizon"]["holders"].append(_holder("session", "4711", 400.0))
        server["partitioned"] = [{"schema": "public", "name": "p", "oid": 7, "parent": None}]
        table["sample"]["ages"] = table["sample"]["ages"][:6]
        for place in table["free_space"]:
            place["classes"] = place["classes"][:4]
        for index in table["indexes"]:
            index["totals"] = {"idx_scan": 5}
        seen = table["updates"]
        seen["source"], seen["unattributed_frac"] = "pg_stat_statements", 0.01
        for one in seen["classes"]:
            one |= {"rows": one["calls"], "wal_bytes": 200 * one["calls"], "appended": []}
        found.append(data)
    return found


def _holder(kind: str, name: str, age_s: float | None) -> dict[str, Any]:
    return {
        **{"kind": kind, "name": name, "backend_type": None, "application_name": None},
        **{"usename": "me", "state": "idle in transaction", "holds_data": True},
        **{"age_xids_max": 5000, "seen": 9, "transaction_age_s": age_s},
    }


def to_text(value: Mapping[str, Any]) -> str:
    """A JSON file, undamaged."""
    return json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A way in: its undamaged input, how that is damaged, and what reads it."""

    name: str
    damaged: Callable[[Mutator], str]
    read: Callable[[str], object]


def entries(folder: Path) -> list[Entry]:
    """
    All ways in.

    Args:
        folder: For files, which some readers want.
    """
    whole = profiles()
    plan = _plan(whole[0])
    kept = new_record(plan)
    files = _Files(folder, plan, parse_profile(whole[0]))
    (folder / "whole-plan.json").write_text(plan_text(plan), encoding="utf-8")
    return [
        Entry(name="profile", damaged=_cycled(whole), read=_read_profile),
        Entry(name="plan", damaged=_of_json(json.loads(plan_text(plan))), read=files.plan),
        Entry(name="applied", damaged=_of_json(kept.to_json()), read=files.applied),
        Entry(name="lab request", damaged=_of_json(LAB_REQUEST), read=files.lab("request.json")),
        Entry(name="lab samples", damaged=_of_json(LAB_SAMPLE), read=files.lab("samples.jsonl")),
        Entry(name="statements", damaged=lambda m: m.text_of(STATEMENTS), read=files.statements),
        Entry(name="migration", damaged=lambda m: m.text_of(MIGRATION), read=files.migration),
    ]


def _cycled(values: list[dict[str, Any]]) -> Callable[[Mutator], str]:
    turn = 0

    def damaged(mutator: Mutator) -> str:
        nonlocal turn
        turn += 1
        return mutator.file_of(values[turn % len(values)])

    return damaged


def _of_json(value: Mapping[str, Any]) -> Callable[[Mutator], str]:
    return lambda mutator: mutator.file_of(value)


def _read_profile(text: str) -> None:
    """What `advise --plan`, `check`, `layout`, `verify` and `predict` do with one."""
    profile = parse_profile(load_text(text))
    json.dumps(to_json(profile), allow_nan=False).encode()
    of_profile(profile, None)
    if profile.server.observed is None:
        return
    found = advise(profile, Options(budget_s=600))
    json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False).encode()
    check_migration(profile, read_migration("CREATE INDEX i ON t (v); DROP INDEX t_pkey"))
    check_plannable(profile)
    plan = make_plan(found, profile, rewrite="auto")
    plan_text(plan).encode()
    for table in profile.tables:
        measure(profile, table)
    verify(plan, None, profile, Recording(()))


def _plan(data: dict[str, Any]) -> Plan:
    profile = parse_profile(data)
    return make_plan(advise(profile, Options(budget_s=600)), profile, rewrite="vacuum-full")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


class _Files:
    def __init__(self, folder: Path, plan: Plan, profile: Profile) -> None:
        self._folder = folder
        self._profile = profile
        self._plan = plan
        self._path = folder / "plan.json"

    def plan(self, text: str) -> None:
        """As it is, and with the digest that somebody has worked out anew."""
        try:
            data = json.loads(text)
            rest = {k: v for k, v in data.items() if k not in ("kind", "schema_version", "digest")}
            data["digest"] = digest(Plan.from_json(rest))
            text = json.dumps(data)
        except (HeadroomError, ValueError, AttributeError, RecursionError):
            pass
        _write(self._path, text)
        found = read_plan(self._path)
        as_text(found).encode()
        as_markdown(found).encode()

    def applied(self, text: str) -> None:
        path = record_path(self._path)
        _write(path, text)
        read_record(path, self._plan)

    def lab(self, damaged: str) -> Callable[[str], None]:
        folder = self._folder / "record"
        folder.mkdir(exist_ok=True)
        whole = {
            "request.json": json.dumps(LAB_REQUEST),
            "environment.json": json.dumps(LAB_ENVIRONMENT),
            "samples.jsonl": json.dumps(LAB_SAMPLE) + "\n",
        }

        def read(text: str) -> None:
            (folder / "result.json").unlink(missing_ok=True)
            for name, content in whole.items():
                _write(folder / name, f"{text}\n" if name == damaged else content)
            summarise_record(folder).read_result()

        return read

    def statements(self, text: str) -> None:
        path = self._folder / "statements.sql"
        _write(path, text)
        for statement in read_statements(path).counts:
            try:
                writes_of(statement)
            except NotParsed:
                continue

    def migration(self, text: str) -> None:
        path = self._folder / "migration.sql"
        _write(path, text)
        found = read_migration(read_text(path, bytes_max=1024**2, expected="a file of SQL"))
        check_migration(self._profile, found)


LAB_REQUEST = {
    **{"schema_version": 1, "kind": "lab_request", "experiment": "update-cost", "server": "18"},
    **{"scale": 1, "seed": 1, "repetitions": 1, "options": {"change": "random"}},
    "levels": {"filler_length": [64], "fillfactor": [80], "update_bid": [0]},
}
LAB_ENVIRONMENT = {"schema_version": 1, "kind": "lab_environment", "server": "18.4"}
LAB_SAMPLE = {
    "trial": "r001_measured_filler_length=64_fillfactor=80_update_bid=0",
    "cell": {"filler_length": 64, "fillfactor": 80, "update_bid": 0},
    **{"repetition": 1, "arm": "measured", "started_at": "x", "duration_s": 1},
    **{"measures": {"wal_bytes": 7200}, "notes": [], "assumed": {}},
}
