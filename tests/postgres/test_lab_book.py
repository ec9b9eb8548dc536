"""Experiments of the book's chapters on a real server: what is predicted is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.cli.lab import make_request
from pgheadroom.errors import InputError
from pgheadroom.lab.experiments import get
from pgheadroom.lab.run import run
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")


def _run(name: str, programs: ServerPrograms, folder: Path, *settings: str) -> dict[str, Any]:
    request = make_request(get(name), list(settings), 1, 1, 1, str(programs.version))
    return run(request, folder, server=str(programs.bin_dir), command="test", report=lambda _: None)


def test_the_first_read_pays_for_the_load(newest: ServerPrograms, tmp_path: Path) -> None:
    """
    Pages, records, images and bytes of both reads are as predicted, and where they should be.

    Without logged hints a read of fresh rows dirties their pages and writes no WAL; removing what
    an UPDATE left behind is logged even then. VACUUM has done it all before.
    """
    result = _run(
        "read-writes",
        newest,
        tmp_path / "record",
        "method=copy,insert-vacuum,update",
        "wal_log_hints=off",
    )
    assert [text for text in result["findings"] if text.startswith("Not as predicted")] == []
    assert result["findings"][0] == "48 of 48 counts are exactly as predicted."
    first = {
        (cell["method"], cell["checksums"]): cell
        for cell in result["cells"]
        if cell["step"] == "first-read"
    }
    pages = 1235  # 100,000 rows, 81 a page
    assert first["copy", "on"]["wal_fpi"] == first["copy", "off"]["pages_dirtied"] == pages
    assert first["copy", "off"]["wal_bytes"] == 0
    assert first["insert-vacuum", "on"]["pages_dirtied"] == 0
    assert first["update", "off"]["wal_fpi"] == pages
    assert first["update", "on"]["wal_records"] == 2 * pages + 124


def test_checksums_are_chosen_on_our_servers_only(newest: ServerPrograms) -> None:
    """A server by connection has the checksums it has, and its checkpoints are not ours."""
    request = make_request(get("read-writes"), [], 1, 1, 1, "postgresql://somewhere/")
    with pytest.raises(InputError, match="this server is not ours"):
        get("read-writes").check(request, newest.version, throw_away=False)
