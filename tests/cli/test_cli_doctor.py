"""`doctor` as a user calls it: forms, exit codes, what is known and what is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator

from pgheadroom.servers import Cluster, Host, find_programs

Run = Callable[..., "CompletedProcess[str]"]
LOCKED = "55P03 LockNotAvailable: canceling statement due to lock timeout"
LONG = " and a name that is longer than it"
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "doctor.schema.json"


@pytest.fixture
def server(run_parent: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """One with two faults: fsync is off, and an index is there twice."""
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(run_parent))
    with Host(find_programs("18")) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t (v int)")
            connection.execute("CREATE INDEX one ON t (v)")
            connection.execute(f'CREATE INDEX "other ""one{LONG}" ON t (v)')
        yield cluster


def test_forms_and_exit_codes(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    env = server.client_env()
    where = ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")

    def doctor(*options: str) -> CompletedProcess[str]:
        return in_process("doctor", *where, *options)

    text = doctor()
    assert text.returncode == 0, text.stderr
    assert text.stdout.startswith("1 error, 1 info in postgres, PostgreSQL 18.4\n")
    assert text.stdout.index("error: fsync-off: fsync") < text.stdout.index("info: duplicate-index")
    assert 'do: DROP INDEX CONCURRENTLY "public"."other ""one' + f'{LONG}";\n' in text.stdout
    assert text.stdout.count(f'one{LONG}" ON public.t USING btree (v);\n') == 1
    assert "\n  undo: CREATE INDEX CONCURRENTLY " in text.stdout
    assert "! blind:" in text.stdout

    found = doctor("-f", "json", "-o", "before.json")
    assert found.returncode == 0
    data = json.loads((tmp_path / "before.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    assert (data["kind"], data["schema_version"]) == ("doctor", 1)
    assert [each["rule"] for each in data["findings"]] == ["fsync-off", "duplicate-index"]

    assert doctor("--fail-on", "error").returncode == 1
    assert doctor("--fail-on", "error", "--baseline", "before.json").returncode == 0
    known = doctor("--baseline", "before.json")
    assert known.stdout.startswith("no finding in postgres")
    assert "left out: 2 findings that the baseline has too" in known.stdout

    accepted = ("--accept", "fsync-off:fsync", "--fail-on", "warning", "--until")
    kept = doctor(*accepted, "9999-12-31")
    assert kept.returncode == 0
    assert "accepted until 9999-12-31: fsync-off:fsync (error)" in kept.stdout
    over = doctor(*accepted, "2001-01-01")
    assert over.returncode == 1
    assert "counts again: fsync-off:fsync" in over.stdout

    assert doctor("-f", "csv").stdout.splitlines()[1].startswith("error,fsync-off,fsync,")
    assert "## error: fsync-off, fsync" in doctor("-f", "markdown").stdout
    watched = doctor("--for", "0.2s", "--html", "page.html")
    assert watched.returncode == 0
    assert "counters of 0." in watched.stdout
    with server.connect(autocommit=False) as holder:
        holder.execute("LOCK TABLE pg_sequence IN ACCESS EXCLUSIVE MODE")
        held = doctor("-f", "json")
    assert held.returncode == 3
    data = json.loads(held.stdout)
    assert [each["rule"] for each in data["findings"]] == ["fsync-off", "duplicate-index"]
    cut_off = {each["rule"]: each["why"] for each in data["blind"] if each["cut_off"]}
    assert cut_off == {"sequence-nearly-used": LOCKED}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "fsync is off" in page
    assert "<script" not in page
    assert "states no finding" not in page
    # What is copied stands by itself, with what takes it back.
    (statements,) = re.findall(r'<td class="[^"]*code"[^>]*>([^<]*pg_reload_conf[^<]*)</td>', page)
    assert statements.startswith("ALTER SYSTEM ")
    assert "; -- undo: ALTER SYSTEM " in statements


def test_explain_needs_no_server(in_process: Run) -> None:
    """Every field of the rule, and its query for psql."""
    shown = in_process("doctor", "--explain", "unused-index")
    assert shown.returncode == 0
    assert "Finding:" in shown.stdout
    assert "FROM pg_index i" in shown.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--explain", "used-index"), 2, "--explain 'used-index'"),
        (("--explain", "unused-index", "--for", "1s"), 2, "--for does nothing"),
        (("--accept", "a:b"), 2, "belong together"),
        (("--accept", "a:b", "--until", "soon"), 2, "2027-03-31"),
        (("--fail-on", "info"), 2, "info"),
        (("--baseline", "nowhere.json"), 2, "nowhere.json"),
        (
            (
                "-h",
                "/nowhere",
            ),
            3,
            "no connection",
        ),
    ],
)
def test_mistakes(options: tuple[str, ...], code: int, said: str, in_process: Run) -> None:
    done = in_process("doctor", *options)
    assert done.returncode == code
    assert said in done.stderr


def test_a_plan_and_its_forms(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """One file for `apply`, others to read; what would do nothing is refused with what would."""
    env = server.client_env()
    where = ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")
    paths = [tmp_path / f"plan.{ending}" for ending in ("json", "md", "sql")]
    asked = [word for path in paths for word in ("--plan", str(path))]
    done = in_process("doctor", *where, *asked, "--settings")
    assert done.returncode == 0, done.stderr
    assert "plan: 2 steps in" in done.stderr
    assert "made without an interval" not in done.stderr, "nothing was written to the index"
    plan = json.loads(paths[0].read_text(encoding="utf-8"))
    Draft202012Validator(json.loads((SCHEMA.parent / "plan.schema.json").read_text())).validate(
        plan
    )
    assert [step["kind"] for step in plan["remedies"]] == ["set_server", "drop_index"]
    assert "## Step 2: drop index" in paths[1].read_text(encoding="utf-8")
    assert 'DROP INDEX CONCURRENTLY "public".' in paths[2].read_text(encoding="utf-8")

    applied = in_process("apply", str(paths[0]), *where, "--yes", "-f", "json")
    assert applied.returncode == 0, applied.stderr
    record = json.loads(applied.stdout)
    schema = json.loads((SCHEMA.parent / "applied.schema.json").read_text())
    Draft202012Validator(schema).validate(record)
    verify = ("verify", str(paths[0]), *where, "--for", "10ms")
    found = in_process(*verify, "-f", "json")
    assert found.returncode == 0, found.stdout
    schema = json.loads((SCHEMA.parent / "verification.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(found.stdout))
    assert {one["verdict"] for one in json.loads(found.stdout)["claims"]} == {"held"}
    for form, said in (("csv", "given_back_bytes"), ("markdown", "| held |"), ("text", "held")):
        assert said in in_process(*verify, "-f", form).stdout
    refused = in_process(*verify, "--log", str(server.log_path))
    assert refused.returncode == 2
    assert "--log does nothing with a plan of the doctor's" in refused.stderr

    for options, why in (
        (("--settings",), "--settings does nothing without a plan"),
        (("--standby", "dbname=x"), "--standby does nothing without a plan"),
        (("--plan", "p.json", "--rewrite", "copy"), "--rewrite 'copy' is not known"),
        (("--plan", "p.json", "dbname=x", "dbname=y"), "--plan does nothing with several servers"),
    ):
        odd = in_process("doctor", *where, *options)
        assert odd.returncode == 2, odd.stderr
        assert why in " ".join(odd.stderr.split()), odd.stderr
