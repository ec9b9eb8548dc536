"""The seam for parallel work behaves the same in this thread and in a pool."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgheadroom.schedule import run_pieces


def _double(piece: int) -> int:
    if piece < 0:
        raise ValueError(f"piece {piece}")
    return 2 * piece


def test_pieces_run_in_order_and_lazily() -> None:
    """One at a time: a piece is taken only when the one before is done, so a stop wastes none."""
    taken: list[int] = []

    def pieces() -> Iterator[int]:
        for piece in (1, 2, 3):
            taken.append(piece)
            yield piece

    results = run_pieces(_double, pieces())
    assert next(results) == (1, 2)
    assert taken == [1]
    assert list(results) == [(2, 4), (3, 6)]


def test_a_pool_gives_the_same_results() -> None:
    """Whatever executor runs the pieces, each comes back with its own result."""
    with ThreadPoolExecutor(2) as pool:
        found = dict(run_pieces(_double, range(1, 20), executor=pool, in_flight=4))
    assert found == {piece: 2 * piece for piece in range(1, 20)}


@pytest.mark.parametrize("in_flight", [1, 3])
def test_an_error_reaches_the_caller(in_flight: int) -> None:
    """A failing piece ends the run with its own exception."""
    with pytest.raises(ValueError, match="piece -1"):
        list(run_pieces(_double, [1, -1, 2], in_flight=in_flight))


def test_ctrl_c_passes_through_the_inline_executor() -> None:
    """An interrupt unwinds the piece that runs, so that it can clean up, and ends the run."""

    def interrupted(_: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_pieces(interrupted, [1]))
