"""
Experiment cluster-decay on real servers, at a tenth of the document's rows.

Pages per range depend on the share of rows that churn, not on the table's size: the expectations
below are arithmetic, and hold at a million rows as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_decay import decay, without_others
from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS_PER_PAGE = 21  # (8192 - 24) / (384 + 4): a row of 350 characters is 384 bytes, MAXALIGNed


def _run(programs: ServerPrograms, folder: Path, *settings: str) -> dict[str, Any]:
    return decay(str(programs.bin_dir), folder, *settings, name=str(programs.version))


def _by(result: dict[str, Any], **levels: object) -> dict[str, Any]:
    (cell,) = [
        cell
        for cell in result["cells"]
        if all(cell[name] == level for name, level in levels.items())
    ]
    return dict(cell)


def _check_foreseen(result: dict[str, Any]) -> None:
    """
    Near the server's pages, in every state.

    Equal but for pages that were being written while VACUUM wanted to clean them, which it then
    passes over; that is up to the background writer.
    """
    for cell in result["cells"]:
        near = pytest.approx(cell["pages_per_range"], rel=0.015)
        assert cell["predicted_pages_per_range"] == near, cell["round"]
        assert cell["predicted_heap_pages"] == pytest.approx(cell["heap_pages"], abs=3)


@pytest.mark.pg(">= 15")
def test_the_twin_has_the_servers_pages(
    programs: ServerPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With the server's random numbers every row lies where the server puts it: equal to the unit.

    Nobody else may hold a page then: no background writer, no checkpoint in a round.
    """
    without_others(monkeypatch)
    result = _run(programs, tmp_path / "record", "round=0..4", "ranges=20")
    assert len(result["cells"]) == 10
    for cell in result["cells"]:
        assert cell["predicted_pages_per_range"] == cell["pages_per_range"], cell
        assert cell["predicted_heap_pages"] == cell["heap_pages"], cell
    said = [text for text in result["findings"] if "equal to the measured ones in all 5" in text]
    assert len(said) == 2


@pytest.mark.pg(">= 15")
def test_order_decays_as_rows_are_replaced(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    Freshly clustered, 1,001 keys lie on 1,001 / 21 pages and a part; each round moves 2 % of them.

    A round replaces about 20 rows of a range by rows on pages elsewhere, nearly each on a page of
    its own, so that pages grow by about 20 a round; the table itself does not grow, since VACUUM
    gives the room of the deleted rows back.
    """
    result = _run(programs, tmp_path / "record", "engine=heap", "round=0..3", "ranges=10")
    assert result["complete"]
    fresh, worn = _by(result, round=0), _by(result, round=3)
    assert 1001 / ROWS_PER_PAGE <= fresh["pages_per_range"] <= 1001 / ROWS_PER_PAGE + 1.5
    assert 50 < worn["pages_per_range"] - fresh["pages_per_range"] < 65
    assert fresh["correlation"] == pytest.approx(1, abs=0.001)
    assert 0.9 < worn["correlation"] < 0.99
    assert worn["heap_pages"] <= fresh["heap_pages"] * 1.01
    assert fresh["heap_pages"] == -(-100_000 // ROWS_PER_PAGE)
    assert worn["recluster_ms"] > 0
    # Every row of the table and of its index is logged again, apart from page holes.
    assert worn["recluster_wal_bytes"] > 0.9 * 100_000 * 380
    assert fresh["delete_ms"] is None
    assert 1700 < worn["deleted_rows"] < 2300
    assert any("pages after round 0" in text for text in result["findings"])
    _check_foreseen(result)
    assert any("The twin's pages of a range are equal" in text for text in result["findings"])
    # The engine that keeps inserts in order, a model: no more than its overflow pages beside.
    assert worn["clustered_pages_per_range"] < fresh["pages_per_range"] * 1.15


@pytest.mark.long(reason="ten seconds; the other engines' decay stays")
def test_sorted_inserts_lie_closer(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Rows that come in key order share pages with their neighbours, so a range pays less.

    Both arms draw the same keys. Without deletes to reuse the difference would be larger still:
    free room is where the deleted rows were, all over the table.
    """
    result = _run(newest, tmp_path / "record", "round=0,3", "ranges=10", "churn_pct=5")
    heap, by_key = _by(result, engine="heap", round=3), _by(result, engine="sorted", round=3)
    assert by_key["pages_per_range"] < 0.95 * heap["pages_per_range"]
    assert by_key["live_rows"] == pytest.approx(heap["live_rows"], rel=0.02)
    assert len(result["comparisons"]) == 8
    _check_foreseen(result)


@pytest.mark.long(reason="seven seconds; the decay by a B-tree stays")
def test_a_brin_index_reads_whole_ranges_of_pages(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    A BRIN index is a few pages and reads 128 heap pages at least; churn ends its use.

    A new row with any key widens its page range's summary: after a round nearly every summary
    covers nearly every key, and a range SELECT reads the table.
    """
    result = _run(newest, tmp_path / "record", "engine=heap", "index=brin", "round=0,1", "ranges=5")
    fresh, worn = _by(result, round=0), _by(result, round=1)
    assert fresh["index_pages"] < 10
    assert 128 <= fresh["buffers_per_range"] < 3 * 128
    assert worn["buffers_per_range"] > 0.8 * worn["heap_pages"]
    assert worn["recluster_ms"] is None
    _check_foreseen(result)


def test_placed_rows_need_a_btree(newest: ServerPrograms, tmp_path: Path) -> None:
    """Nothing is placed by BRIN, which has no order; `all` leaves the engines of ours out."""
    assert get("cluster-decay").factors[0].parse("all") == ("heap", "sorted")
    for engine in ("clustered_heap", "clustered"):
        with pytest.raises(InputError, match=f"engine={engine} keeps rows"):
            _run(newest, tmp_path / "record", f"engine={engine}", "index=brin", "round=0,1")
