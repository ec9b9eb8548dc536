"""Experiment clients-scale on a real server: data that fit are found in shared_buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab_run import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.place import memory_bytes
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms
from pgheadroom.units import percent

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(programs: ServerPrograms, folder: Path, *settings: str) -> dict[str, Any]:
    request = make_request(get("clients-scale"), list(settings), 1, 1, 1, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


@pytest.mark.long(reason="loads scale 8; the second knee is found at a smaller one")
def test_the_knee_is_where_data_exceed_shared_buffers(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """
    Scale 1 fits into 48 MB and is found there; of scale 8, 2.5 times as large, a good part is not.

    1,640 pages of accounts and 276 of their index are pgbench's at scale 1.
    """
    result = _run(newest, tmp_path / "record", "data_scale=1,8", "clients=1,2", "window_s=2")
    of = {(cell["data_scale"], cell["clients"]): cell for cell in result["cells"]}
    assert len(of) == 4
    assert of[1, 1]["data_frac"] == pytest.approx((1640 + 276) * 8192 / (48 * 1024**2))
    assert of[8, 1]["data_frac"] == pytest.approx(8 * of[1, 1]["data_frac"], rel=0.01)
    for clients in (1, 2):
        assert of[1, clients]["buffer_hit_frac"] > 0.99
        assert of[8, clients]["buffer_hit_frac"] < 0.9
    assert all(cell["tps"] > 0 for cell in of.values())
    assert len(result["series"]) == 6
    assert any("Windows of 2 s" in warning for warning in result["warnings"])
    assert {item["cell"]["clients"] for item in result["comparisons"]} == {2}


def test_the_second_knee_is_the_memory_that_the_system_caches_in(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """Known where the system caches, with how far the grid is from it; else there is none."""
    result = _run(newest, tmp_path / "c", "data_scale=1", "clients=1", "window_s=1", "io=cached")
    (cell,) = result["cells"]
    assert cell["memory_frac"] == pytest.approx((1640 + 276) * 8192 / memory_bytes())
    (said,) = [text for text in result["findings"] if "second knee" in text]
    assert f"lies beyond the grid: data_scale 1 is {percent(cell['memory_frac'], 1)} of it" in said
    direct = _run(newest, tmp_path / "d", "data_scale=1", "clients=1", "window_s=1", "io=direct")
    assert direct["cells"][0]["memory_frac"] is None
    assert not [text for text in direct["findings"] if "second knee" in text]


def test_a_server_of_ours_needs_a_size(newest: ServerPrograms, tmp_path: Path) -> None:
    """Zero stands for a borrowed server's own shared_buffers."""
    with pytest.raises(InputError, match="needs a size"):
        _run(newest, tmp_path / "record", "shared_buffers_mb=0")
