"""Experiment custom on real servers: a script with its schema, a profile, servers as a factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.cli.lab_run import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import read_json
from pgheadroom.lab.run import run
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

SCHEMA = """
CREATE TABLE item (id int PRIMARY KEY, seen int, note text);
INSERT INTO item SELECT i, 0, repeat('x', 80) FROM generate_series(1, 5000 * :scale) i;
CREATE INDEX item_seen ON item USING brin (seen);
"""
SCRIPT = """
\\set id random(1, 5000 * :scale)
UPDATE item SET seen = seen + 1 WHERE id = :id;
"""
PROFILE = """
schema_version = 1
[server]
version = "18"
shared_buffers = "64MB"
[[table]]
name = "accounts"
rows = 5000
columns = [ { name = "aid", type = "int4" }, { name = "abalance", type = "int4" },
            { name = "filler", type = "bpchar(84)" } ]
indexes = [ { name = "accounts_pkey", columns = ["aid"], unique = true } ]
[[operation]]
table = "accounts"
kind = "update"
sets = ["abalance"]
pick = { distribution = "uniform" }
[run]
operations = 2000
clients = 1
"""


def _run(server: str, folder: Path, *settings: str) -> dict[str, Any]:
    """As the command does: the request holds the files' text."""
    request = make_request(get("custom"), list(settings), 1, 1, 1, server)
    return run(request, folder, server=server, command="test", report=lambda _: None)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A schema, a script and a profile."""
    made = {"schema": SCHEMA, "script": SCRIPT, "profile": PROFILE}
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in made}


def test_a_script_is_swept_over_a_reloption(
    newest: ServerPrograms, tmp_path: Path, files: dict[str, Path]
) -> None:
    """
    The table is as if loaded at each fillfactor, and room on the page makes every update HOT.

    Its BRIN index does not stand in the way from 16 on. Rows are 112 bytes and a pointer.
    """
    result = _run(
        str(newest.bin_dir),
        tmp_path / "record",
        f"script={files['script']}",
        f"schema={files['schema']}",
        "item.fillfactor=100,70",
        "transactions=1500",
    )
    row_bytes = _core.heap_tuple_bytes([("int4", 4), ("int4", 4), ("text", 80)])
    cells = {cell["item.fillfactor"]: cell for cell in result["cells"]}
    for fillfactor, cell in cells.items():
        pages = _core.heap_pages(5000, row_bytes, fillfactor)
        assert cell["heap_pages_before"] == pages, fillfactor
        assert cell["n_tup_upd"] == cell["transactions"] == 1500
    assert cells[70]["hot_frac"] == 1
    assert 0.8 < cells[100]["hot_frac"] < 1
    assert cells[100]["heap_pages"] > cells[100]["heap_pages_before"]
    assert result["factors"][0]["name"] == "item.fillfactor"
    assert "Not predicted: the workload is a script, not a profile." in result["findings"]


def test_a_profile_is_swept_over_fillfactor_and_a_setting(
    newest: ServerPrograms, tmp_path: Path, files: dict[str, Path]
) -> None:
    """
    Compression of full-page images shrinks WAL and nothing else; a window gives throughput.

    The counters of cells that differ in the setting alone are equal, since the seed is the block's,
    and with one client the twin foresees them to the row; WAL lies in its interval.
    """
    result = _run(
        str(newest.bin_dir),
        tmp_path / "record",
        f"profile={files['profile']}",
        "fillfactor=100,80",
        "setting.wal_compression=off,pglz",
        "window_s=1",
    )
    assert len(result["cells"]) == 4
    for fillfactor in (100, 80):
        off, on = (
            next(
                cell
                for cell in result["cells"]
                if (cell["fillfactor"], cell["setting.wal_compression"]) == (fillfactor, level)
            )
            for level in ("off", "pglz")
        )
        assert on["wal_bytes_per_tx"] < 0.7 * off["wal_bytes_per_tx"]
        for counter in ("n_tup_upd", "n_tup_hot_upd", "heap_pages", "index_pages"):
            assert on[counter] == off[counter]
        assert on["tps"] > 0
        assert on["n_tup_upd"] == 2000
        for cell in (off, on):
            for counter in ("hot_frac", "newpage_frac", "heap_pages", "index_pages"):
                assert cell[f"predicted_{counter}"] == cell[counter]
                assert cell[f"predicted_{counter}_interval"] is None
            for figure in ("wal_bytes_per_tx", "wal_fpi_per_tx"):
                span = cell[f"predicted_{figure}_interval"]
                assert span["low"] <= cell[figure] <= span["high"]
    assert any("Windows of 1 s" in warning for warning in result["warnings"])
    environment = result["environment"]
    assert "fsync" not in environment["settings"]
    assert environment["settings_that_vary"]["fsync"] == ["off", "on"]
    assert "on in timed windows" in environment["fsync"]
    assert sorted(environment["settings_that_vary"]["wal_compression"]) == ["off", "pglz"]
    assert set(environment["settings_that_vary"]) == {"fsync", "wal_compression"}
    assert len(result["series"]) == 5, "four cells and the control arm"
    loaded = min(cell["heap_pages_before"] for cell in result["cells"])
    for item in result["series"]:
        form = read_json(tmp_path / "record" / item["file"], kind="series")
        assert form["tps"][0] > 0
        assert form["wal_bytes_per_s"][0] > 0
        assert form["heap_bytes"][0] >= 8192 * loaded


LIVED = """
schema_version = 1
[server]
version = "18"
[[table]]
name = "docs"
rows = 3000
columns = [ { name = "id", type = "int4" },
            { name = "state", type = "enum", labels = ["todo", "it's done"] },
            { name = "body", type = "tsvector", elements = { min = 5, max = 20, ndistinct = 99 } } ]
pages = [{ pages_frac = 0.5, rows = 20 }, { pages_frac = 0.5, rows = 38 }]
indexes = [ { name = "docs_pkey", columns = ["id"], unique = true },
            { name = "docs_open", columns = ["id"], where = "state = 'todo'" },
            { name = "body", method = "gin", columns = ["body"], gin_pending_list_limit = 64 } ]
[[operation]]
table = "docs"
kind = "update"
sets = ["state"]
[[operation]]
table = "docs"
kind = "update"
sets = ["body"]
[[operation]]
table = "docs"
kind = "insert"
[run]
operations = 1200
"""


def test_enums_gins_and_tables_that_have_lived(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Pages are predicted as they are measured, at the table's own fillfactor and at another one.

    Free space maps, of which a GIN's cleaning writes three pages, were measured as pages of
    indexes, and at the other fillfactor the rows were loaded by the room of the table's own.
    """
    path = tmp_path / "lived.toml"
    path.write_text(LIVED, encoding="utf-8")
    folder = tmp_path / "record"
    result = _run(str(newest.bin_dir), folder, f"profile={path}", "fillfactor=100,60")
    own, anew = result["cells"]
    for cell in (own, anew):
        for name in ("heap_pages", "index_pages", "hot_frac", "newpage_frac"):
            assert cell[f"predicted_{name}"] == cell[name] is not None, (cell["fillfactor"], name)
    assert 100 < own["heap_pages_before"] < 115
    assert "at fillfactor 100 alone" in result["assumed"]["table[0].pages"]


GATHERED = """
schema_version = 1
[server]
version = "18"
full_page_writes = false
settings = { maintenance_work_mem = "1MB" }
[[table]]
name = "docs"
rows = 20_000
columns = [ { name = "id", type = "int4" },
            { name = "body", type = "text[]", elements = { min = 3, max = 9, ndistinct = 4000 } } ]
indexes = [ { name = "docs_pkey", columns = ["id"], unique = true },
            { name = "body", method = "gin", columns = ["body"], gin_pending_list_limit = 256 } ]
[[operation]]
table = "docs"
kind = "update"
sets = ["body"]
[run]
operations = 3000
"""


def test_memory_decides_what_comes_to_a_gin_at_once(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    That of the build is the profile's, that of cleaning the cell's.

    A build had four times PostgreSQL's default, as other loads have, and what a cell set was taken
    to have no effect.
    """
    path = tmp_path / "gathered.toml"
    path.write_text(GATHERED, encoding="utf-8")
    levels = (f"profile={path}", "setting.work_mem=64kB,4MB")
    result = _run(str(newest.bin_dir), tmp_path / "record", *levels)
    wal = []
    for cell in result["cells"]:
        for name in ("index_pages", "heap_pages"):
            assert cell[f"predicted_{name}"] == cell[name] is not None, name
        wal.append(cell["wal_bytes_per_tx"])
        predicted = cell["predicted_wal_bytes_per_tx"]
        middle = predicted["middle"] if isinstance(predicted, dict) else predicted
        assert middle == pytest.approx(wal[-1], rel=0.01)
    assert wal[0] > 1.05 * wal[1]
    after = (f"profile={path}", "setting.maintenance_work_mem=1MB,64MB")
    result = _run(str(newest.bin_dir), tmp_path / "after", *after)
    said = "Not predicted: what maintenance_work_mem does to a GIN after its load is not predicted."
    assert said in result["findings"]


@pytest.mark.each
@pytest.mark.pg(">= 16, < 17")
def test_servers_are_a_factor(
    programs: ServerPrograms, newest: ServerPrograms, tmp_path: Path, files: dict[str, Path]
) -> None:
    """Two servers take turns, each on clusters of its own, and each minor version is named."""
    if programs.bin_dir == newest.bin_dir:
        pytest.skip("another server than the newest is compared with it")
    result = _run(
        "18",
        tmp_path / "record",
        f"profile={files['profile']}",
        f"server={newest.bin_dir},{programs.bin_dir}",
    )
    assert len(result["cells"]) == 2
    assert result["assumed"][f"server {programs.bin_dir}"] == f"PostgreSQL {programs.version}"
    assert len({cell["n_tup_hot_upd"] for cell in result["cells"]}) == 1
    for cell in result["cells"]:
        assert cell["predicted_heap_pages"] == cell["heap_pages"]
        assert cell["predicted_hot_frac"] == cell["hot_frac"]


def test_a_borrowed_server_keeps_its_settings(
    newest: ServerPrograms, tmp_path: Path, files: dict[str, Path]
) -> None:
    """
    On somebody's server reloptions are swept in a database of ours, and nothing else changes.

    What makes the profile's clients find rows by their key is set for that database, which goes.
    """
    with Host(newest) as host:
        cluster = host.cluster("borrowed")
        cluster.start({})
        environment = cluster.client_env()
        conninfo = f"host={environment['PGHOST']} port={cluster.port} user=postgres dbname=postgres"
        result = _run(
            conninfo, tmp_path / "record", f"profile={files['profile']}", "fillfactor=100,70"
        )
        assert {cell["fillfactor"]: cell["hot_frac"] for cell in result["cells"]}[70] == 1
        with cluster.connect() as connection:
            left = connection.execute("SELECT count(*) FROM pg_db_role_setting").fetchone()
        cluster.stop()
    assert left == (0,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["fillfactor=80"], "found neither"),
        (["script={script}", "fillfactor=80"], "schema .* cannot be read"),
        (["profile={profile}"], "nothing to vary"),
        (["profile={profile}", "other.fillfactor=80,70"], "has no table 'other'"),
        (["profile={profile}", "shared_buffers=1GB"], "no factor or option 'shared_buffers'"),
    ],
)
def test_what_is_missing_or_unknown_is_said(
    newest: ServerPrograms,
    tmp_path: Path,
    files: dict[str, Path],
    settings: list[str],
    message: str,
) -> None:
    """Each mistake is answered with what was expected."""
    given = [setting.format(**files) for setting in settings]
    with pytest.raises(InputError, match=message):
        _run(str(newest.bin_dir), tmp_path / "record", *given)
