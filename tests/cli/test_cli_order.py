"""`order` as a user calls it: forms, and mistakes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from jsonschema import Draft202012Validator

from pgheadroom.servers import Cluster, Host, find_programs

Run = Callable[..., "CompletedProcess[str]"]
SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "order.schema.json"


@pytest.fixture
def server(run_parent: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(run_parent))
    with Host(find_programs("18")) as host:
        cluster = host.cluster("main")
        cluster.start({"fsync": "off", "autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute('CREATE TABLE "Wild\x1b[31m" (k int PRIMARY KEY, v text)')
            connection.execute(
                "INSERT INTO \"Wild\x1b[31m\" SELECT (x * 7919) % 20011, repeat('v', 90) "
                "FROM generate_series(1, 20000) x"
            )
            connection.execute("ANALYZE")
        yield cluster


def test_forms(server: Cluster, in_process: Run, tmp_path: Path) -> None:
    """Each form says the same; nothing of a name acts on a terminal or ends a row."""
    env = server.client_env()
    where = ("-h", env["PGHOST"], "-p", env["PGPORT"], "-U", "postgres", "-d", "postgres")

    def order(*options: str) -> CompletedProcess[str]:
        done = in_process("order", *where, *options)
        assert done.returncode == 0, done.stderr
        return done

    text = order("--pages", "4000", "--html", "page.html").stdout
    assert "\x1b" not in text
    assert "times those of a freshly clustered one" in " ".join(text.split())
    assert "Wild" in (tmp_path / "page.html").read_text(encoding="utf-8")
    order("-f", "json", "-o", "order.json", "--pages", "4000", "--for", "0.1s")
    data = json.loads((tmp_path / "order.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    assert data["kind"] == "order"
    (table,) = data["tables"]
    (index,) = table["indexes"]
    now, fresh = index["pages_per_range"], index["pages_fresh"]
    assert index["evidence"] == "sampled"
    assert fresh["low"] <= fresh["mid"] < 20 < now["low"] <= now["mid"] <= now["high"] <= 1000
    (row,) = csv.DictReader(io.StringIO(order("-f", "csv", "--pages", "4000").stdout))
    assert float(row["pages_per_range"]) == pytest.approx(now["mid"], rel=0.1)
    assert order("-f", "markdown").stdout.startswith("# Order of 1 table")
    blind = order("--no-sample").stdout
    assert "to 316.0" in blind or "not known" in blind


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--no-sample", "--pages", "500"), "--pages does nothing with --no-sample"),
        (("--pages", "3"), "expected 100 to 1,000,000"),
        (("--for", "soon"), "soon"),
        (("host",), "the connection is not understood"),
    ],
)
def test_mistakes(in_process: Run, options: tuple[str, ...], said: str) -> None:
    """Exit code 2, and what was expected."""
    done = in_process("order", *options)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
