"""
The one seam for parallel work: independent pieces go through a `concurrent.futures.Executor`.

Pieces that measure on this machine run one at a time in the calling thread (`InlineExecutor`),
since two of them side by side would disturb each other and Ctrl-C must unwind the piece itself.
A process pool or a cluster gives the same interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any, TypeVar

_TICK_S = 0.2  # short enough for a bar that moves; arbitrary

PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")


class InlineExecutor(Executor):
    """An executor that runs each piece at once in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the call and return its finished future; interrupts pass through to the caller."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future carries it, as every executor does
            future.set_exception(error)
        return future


def run_pieces(
    function: Callable[[PieceT], ResultT],
    pieces: Iterable[PieceT],
    *,
    executor: Executor | None = None,
    in_flight: int = 1,
    tick: Callable[[], None] | None = None,
) -> Iterator[tuple[PieceT, ResultT]]:
    """
    Run independent pieces and yield each with its result as it finishes.

    Args:
        function: What to do with a piece; importable where the executor is not in this process.
        pieces: Taken lazily, so that a caller that stops early has started no more than needed.
        executor: Where to run; in the calling thread when None.
        in_flight: How many pieces are submitted at once.
        tick: Called several times a second while pieces run elsewhere, to show how far they are.

    Raises:
        Exception: Whatever a piece raised; pieces not yet started are then cancelled.
    """
    chosen = executor or InlineExecutor()
    waiting: dict[Future[ResultT], PieceT] = {}
    source = iter(pieces)
    exhausted = False
    try:
        while True:
            while not exhausted and len(waiting) < in_flight:
                piece = next(source, None)
                if piece is None:
                    exhausted = True
                else:
                    waiting[chosen.submit(function, piece)] = piece
            if not waiting:
                return
            done, _ = wait(
                waiting, timeout=None if tick is None else _TICK_S, return_when=FIRST_COMPLETED
            )
            if tick is not None:
                tick()
            for future in done:
                yield waiting.pop(future), future.result()
    finally:
        for future in waiting:
            future.cancel()
