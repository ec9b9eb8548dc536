"""
Experiments on somebody's server: what they need, what they leave alone, what they say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError, PrivilegeMissing
from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.run import run
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = [pytest.mark.contrib, pytest.mark.usefixtures("run_parent")]


def _request(name: str, *settings: str) -> Request:
    experiment = get(name)
    levels, options = parse_settings(
        settings, experiment.factors, experiment.options, name=experiment.name
    )
    return Request(
        experiment=name,
        server="borrowed",
        scale=1,
        seed=1,
        repetitions=1,
        levels=levels,
        options=options,
    )


def _conninfo(cluster: Cluster, user: str) -> str:
    environment = cluster.client_env()
    return f"host={environment['PGHOST']} port={environment['PGPORT']} user={user} dbname=postgres"


def _run(request: Request, cluster: Cluster, user: str, folder: Path) -> dict[str, Any]:
    return run(
        request,
        folder,
        server=_conninfo(cluster, user),
        command="test",
        report=lambda _: None,
    )


@pytest.mark.pg(">= 15")
def test_a_role_without_checkpoint_is_told_what_it_needs(
    programs: ServerPrograms, tmp_path: Path
) -> None:
    """CREATEDB makes the database; the forced checkpoint needs a right of its own."""
    with Host(programs) as host:
        cluster = host.cluster("lender")
        cluster.start({"full_page_writes": "off", "autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE ROLE guest LOGIN CREATEDB")
        request = _request("update-cost", "filler_length=64", "update_bid=0", "change=4660")
        with pytest.raises(PrivilegeMissing, match="GRANT pg_checkpoint TO"):
            _run(request, cluster, "guest", tmp_path / "record")
        with cluster.connect() as connection:
            connection.execute("GRANT pg_checkpoint TO guest")
        cells = _run(request, cluster, "guest", tmp_path / "record")["cells"]
        assert [cell["pages_dirtied"] for cell in cells] == [206, 101]
        with cluster.connect() as connection:
            found = connection.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall()
        assert found == [("postgres",), ("template0",), ("template1",)]


@pytest.mark.pg(">= 15")
def test_statements_of_others_stay_counted(programs: ServerPrograms, tmp_path: Path) -> None:
    """pg_stat_statements is everybody's: differences are taken, nothing is reset."""
    if "pg_stat_statements" not in programs.contrib:
        pytest.skip(f"{programs} has no pg_stat_statements")
    with Host(programs) as host:
        cluster = host.cluster("lender")
        cluster.start({"shared_preload_libraries": "pg_stat_statements"})
        with cluster.connect() as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute("SELECT 'of a DBA'")
        settings = ("measure=throughput", "window_s=1", "fillfactor=90", "script=accounts-update")
        with pytest.raises(InputError, match="memory=server"):
            _run(_request("fillfactor", *settings), cluster, "postgres", tmp_path / "refused")
        request = _request("fillfactor", *settings, "memory=server", "autovacuum=server")
        result = _run(request, cluster, "postgres", tmp_path / "record")
        assert result["cells"][0]["accounts_update_ms"] > 0
        assert result["assumed"]["accounts_update_ms"] == "from pg_stat_statements"
        assert result["assumed"]["io"] == "as the borrowed server has it"
        assert any("whole borrowed server" in warning for warning in result["warnings"])
        assert "settings_that_vary" not in result["environment"], "its fsync is left as it is"
        with cluster.connect() as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_statements WHERE query = 'SELECT $1'"
            ).fetchone()
        assert row == (1,)
