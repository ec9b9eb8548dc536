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


@pytest.mark.each
def test_the_compression_of_a_build_is_known(programs: ServerPrograms) -> None:
    """
    What the programs say before they run is the running server's; a profile takes the other one.

    From 19 on lz4 is the default, where it was built in: a server of 19 without it has pglz, and
    a recording of one says so though nobody has set it.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            ((own,),) = connection.execute(
                "SELECT boot_val FROM pg_settings WHERE name = 'default_toast_compression'"
            ).fetchall()
        observed.load(cluster, "CREATE TABLE docs (id int4 PRIMARY KEY, a text)")
        recording = observed.watched(cluster)
    assert programs.toast_compression == own
    profile, major = observed.profile_of(recording), programs.version.major
    assert "default_toast_compression" not in profile.server.settings
    assert profile.as_built(major, own) == profile
    other = "lz4" if own == "pglz" else "pglz"
    assert profile.as_built(major, other).server.settings["default_toast_compression"] == other
    for row in recording.rows("settings"):
        if row["name"] == "default_toast_compression":
            assert row["source"] == "default"
            row["setting"] = other
    assert observed.profile_of(recording).server.settings["default_toast_compression"] == other


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
