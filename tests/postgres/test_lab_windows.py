"""Experiments that go by windows, on a real server: images after a checkpoint, a held snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab.checkpoints import checkpoint, checkpoints_begun
from pgheadroom.lab.experiments import get
from pgheadroom.lab.opening import place_for
from pgheadroom.lab.place import Shape
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(name: str, programs: ServerPrograms, folder: Path, *settings: str) -> dict[str, Any]:
    request = make_request(get(name), list(settings), 1, 1, 1, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


def test_images_follow_the_checkpoint(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    As many images as pages are touched first, by arithmetic, and again after the next checkpoint.

    1,000 uniform updates of 2,041 pages: the count's standard deviation is at most sqrt(250), so
    0.06 images per update is four of them. Without full_page_writes there are none.
    """
    result = _run(
        "fpi-sawtooth",
        newest,
        tmp_path / "record",
        "fillfactor=80",
        "full_page_writes=on,off",
        "window=1..6",
    )
    of = {(cell["full_page_writes"], cell["window"]): cell for cell in result["cells"]}
    assert len(of) == 12
    for window in range(1, 7):
        on, off = of["on", window], of["off", window]
        expected = on["predicted_wal_fpi_per_update"]
        assert on["wal_fpi_per_update"] == pytest.approx(expected, abs=0.06)
        assert off["wal_fpi_per_update"] < 0.01
        assert on["hot_frac"] == 1
    assert of["on", 1]["predicted_wal_fpi_per_update"] == pytest.approx(0.79, abs=0.01)
    # The second half begins with a checkpoint: the tooth of the saw.
    assert of["on", 4]["wal_bytes_per_update"] > 2 * of["on", 3]["wal_bytes_per_update"]
    assert of["on", 3]["mean_wal_bytes_per_update"] > of["on", 3]["wal_bytes_per_update"]


@pytest.mark.long(reason="twenty windows; tests/postgres/test_play.py holds a snapshot")
def test_a_held_snapshot_ends_hot_and_growth_stays(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Pages with room for a few versions fill up, since nothing may be pruned; then all is HOT again.

    Ten updates a page and window exhaust the room of fillfactor 80, 12 rows a page, in the second
    window of the snapshot.
    """
    result = _run(
        "long-transaction",
        newest,
        tmp_path / "record",
        "window=1..5",
        "updates=20000",
        "open=2",
        "close=4",
    )
    of = {(cell["snapshot"], cell["window"]): cell for cell in result["cells"]}
    assert all(of["none", window]["hot_frac"] == 1 for window in range(1, 6))
    assert of["held", 1]["hot_frac"] == 1
    assert of["held", 3]["hot_frac"] < 0.6
    assert of["held", 5]["hot_frac"] > 0.99
    assert of["held", 3]["heap_pages"] > 1.1 * of["none", 3]["heap_pages"]
    assert of["held", 5]["heap_pages"] == of["held", 4]["heap_pages"]
    assert of["held", 3]["index_pages"] > of["none", 3]["index_pages"]
    spans = [
        (cell[f"predicted_{name}_interval"], cell[name])
        for cell in result["cells"]
        for name in ("hot_frac", "wal_bytes_per_update", "heap_pages")
    ]
    assert sum(span["low"] <= value <= span["high"] for span, value in spans) >= 27
    assert abs(of["held", 3]["predicted_hot_frac"] - of["held", 3]["hot_frac"]) < 0.01


def test_windows_must_be_in_order(newest: ServerPrograms, tmp_path: Path) -> None:
    """A snapshot cannot end before it begins."""
    with pytest.raises(InputError, match="is not after"):
        _run("long-transaction", newest, tmp_path / "record", "open=5", "close=5")


def test_a_checkpoint_is_counted_when_it_returns(newest: ServerPrograms) -> None:
    """
    Each by itself and at once: a window that begins then is not charged with it.

    Of 200 that were only asked for, 48 were not counted yet when CHECKPOINT had returned.
    """
    shape = Shape(name="empty", load=lambda _: None, bytes_expected=16 * 1024**2)
    with (
        place_for(str(newest.bin_dir)) as place,
        place.running(shape, {}) as server,
        server.connect() as connection,
    ):
        counts = []
        for _ in range(200):
            checkpoint(connection, server.version)
            counts.append(checkpoints_begun(connection, server.version))
    assert counts == list(range(counts[0], counts[0] + 200))
