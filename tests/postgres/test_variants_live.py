"""
Variants on real servers: the changed profile is played by both, and the twin is exact.

Log-structured storage is no server's; what it must equal is a server with everything off that
protects pages from being torn.
"""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.accuracy import beyond
from pgheadroom.outcome import KEYS
from pgheadroom.play import play
from pgheadroom.predict import IndexChange, predict
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]


def _profile(**server: Any) -> Json:
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"} | server,
        "table": [
            {
                "name": "jobs",
                "rows": 2000,
                "fillfactor": 90,
                "columns": [
                    {"name": "id", "type": "int8"},
                    {
                        "name": "owner",
                        "type": "int4",
                        "values": {"kind": "random", "ndistinct": 50},
                    },
                    {"name": "state", "type": "int2"},
                    {"name": "due", "type": "timestamptz", "values": {"kind": "serial"}},
                    {
                        "name": "payload",
                        "type": "text",
                        "width": {"min_bytes": 50, "max_bytes": 120},
                    },
                ],
                "indexes": [
                    {"name": "jobs_pkey", "columns": ["id"], "unique": True},
                    {"name": "by_owner", "columns": ["owner", "state"], "include": ["due"]},
                    {"name": "by_due", "columns": ["due"]},
                ],
            }
        ],
        "operation": [
            {"table": "jobs", "kind": "update", "sets": ["state"], "weight": 2},
            {"table": "jobs", "kind": "update", "sets": ["due"]},
            {"table": "jobs", "kind": "insert"},
        ],
        "run": {"operations": 2500, "seed": 3},
    }


VARIANTS: dict[str, list[IndexChange]] = {
    "without": [IndexChange(kind="without", index="by_owner")],
    "narrow": [IndexChange(kind="narrow", index="by_owner", columns=("owner",))],
    "brin": [
        IndexChange(kind="brin", index="by_due"),
        IndexChange(kind="without", index="by_owner"),
    ],
    "fillfactor": [
        IndexChange(kind="fillfactor", index="by_owner", fillfactor=60),
        IndexChange(kind="fillfactor", index="jobs_pkey", fillfactor=100),
    ],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_exact(programs: ServerPrograms, name: str) -> None:
    """Error 0 in every figure of both cells, hence in what the variant changes."""
    proof = prove(parse_profile(_profile()), server=str(programs.bin_dir), changes=VARIANTS[name])
    assert [figure for _, figure in proof.beyond] == []
    unchanged, variant = proof.to_json()["cells"]
    assert unchanged["variant"] == "unchanged"
    for cell in (unchanged, variant):
        wrong = [key for key in KEYS if cell["error"][key] not in (0, None)]
        assert wrong == []
    difference = variant["difference"]
    assert difference["predicted"] == difference["measured"]
    assert any(difference["measured"].values()), "the change has an effect"


@pytest.mark.pg(">= 15")
@pytest.mark.each
def test_brin_lets_updates_be_hot_from_16(programs: ServerPrograms) -> None:
    """The server's own figures: 15 asks BRIN like any index, 16 does not."""
    proof = prove(parse_profile(_profile()), server=str(programs.bin_dir), changes=VARIANTS["brin"])
    measured = proof.cells[1].measured.hot_frac
    assert isinstance(measured, float)
    assert (measured > 0.8) == (programs.version.major >= 16)


def test_log_structured_is_a_server_without_protection(programs: ServerPrograms) -> None:
    """A profile with images and checksums, predicted; the same without, measured: equal."""
    profile = parse_profile(_profile(full_page_writes=True, data_checksums=True))
    server = str(programs.bin_dir)
    found = predict(profile, server=server, storage="log-structured").cells[0].predicted
    bare = parse_profile(
        _profile(full_page_writes=False, data_checksums=False, wal_log_hints=False)
    )
    measured = play(bare, server=server).measured
    assert beyond(found, measured) == []
    assert found.is_exact
    assert measured.wal_fpi == found.wal_fpi == 0
