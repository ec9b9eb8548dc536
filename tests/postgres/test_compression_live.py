"""A column's own COMPRESSION, on servers with lz4 and without."""

from __future__ import annotations

from pathlib import Path

import observed
import pytest

from pgheadroom.accuracy import figures
from pgheadroom.errors import LabError
from pgheadroom.profile import read_profile
from pgheadroom.prove import prove
from pgheadroom.servers import Cluster, Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

PROFILE = Path(__file__).parents[2] / "golden" / "profiles" / "columns-compressed.toml"


def _has_lz4(cluster: Cluster) -> bool:
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT 'lz4' = ANY (enumvals) FROM pg_settings"
            " WHERE name = 'default_toast_compression'"
        ).fetchone()
    return row == (True,)


@pytest.mark.contrib
def test_a_profile_with_compressed_columns_is_exact_or_refused(programs: ServerPrograms) -> None:
    """Every figure is the server's; one without lz4 is named, and not its error alone."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        has_lz4 = _has_lz4(cluster)
    profile = read_profile(PROFILE)
    if not has_lz4:
        with pytest.raises(LabError, match=r"built without lz4, by which docs\.a is compressed"):
            prove(profile, server=str(programs.bin_dir))
        return
    (cell,) = prove(profile, server=str(programs.bin_dir)).cells
    found = list(figures(cell.predicted, cell.measured))
    assert len(found) >= 14
    assert [one for one in found if one.measured not in (None, one.predicted)] == []


@pytest.mark.contrib
def test_a_columns_compression_is_observed(programs: ServerPrograms) -> None:
    """As CREATE TABLE or ALTER TABLE has set it; a column that says nothing has none."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        other = "lz4" if _has_lz4(cluster) else "pglz"
        observed.load(
            cluster,
            f"""
            CREATE TABLE docs (id int4 PRIMARY KEY, a text COMPRESSION {other}, b text, c text,
                n numeric COMPRESSION {other});
            ALTER TABLE docs ALTER c SET COMPRESSION pglz;
            INSERT INTO docs SELECT i, 'a', 'b', repeat('c', 30), i FROM generate_series(1, 50) i
            """,
        )
        table = observed.profile_of(observed.watched(cluster)).table("docs")
    assert table.observed is not None
    assert {column.name: column.compression for column in table.columns} == {
        "id": None,
        "a": other,
        "b": None,
        "c": "pglz",
        "n": other,
    }
    assert [column.compression for column in table.observed.columns] == [
        None,
        other,
        None,
        "pglz",
        other,
    ]
