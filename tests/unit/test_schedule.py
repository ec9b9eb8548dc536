"""The seam for parallel work behaves the same in this thread and in a pool."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from pgheadroom.schedule import Lane, run_lanes, run_pieces


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


def test_lanes_take_their_own_pieces() -> None:
    """Each has as many in flight as it has room for, which may change, and all come back once."""
    with ThreadPoolExecutor(2) as quick, ThreadPoolExecutor(1) as slow:
        rooms = iter([2, 1] * 100)
        lanes = [
            Lane(pieces=iter(range(10)), executor=quick, in_flight=lambda: next(rooms)),
            Lane(pieces=iter(range(100, 105)), executor=slow),
            Lane(pieces=iter(())),
        ]
        found = list(run_lanes(_double, lanes))
    assert sorted(found) == [(piece, 2 * piece) for piece in (*range(10), *range(100, 105))]


def test_what_ended_beside_a_failure_is_kept() -> None:
    """A result that is there when another piece has failed is not thrown away."""
    failed: Future[int] = Future()
    failed.set_exception(ValueError("piece"))
    ended: Future[int] = Future()
    ended.set_result(7)

    class Ended(Executor):
        def submit(self, _: Any, /, *args: Any, **__: Any) -> Future[Any]:
            return failed if args == (1,) else ended

    results = run_pieces(_double, [1, 2], executor=Ended(), in_flight=2)
    assert next(results) == (2, 7)
    with pytest.raises(ValueError, match="piece"):
        next(results)
