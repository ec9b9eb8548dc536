"""
Independent pieces of work and the executors that run them.

Pieces that measure on this machine run one at a time in the calling thread (`InlineExecutor`),
since two of them side by side would disturb each other and Ctrl-C must unwind the piece itself.
A process pool or a cluster gives the same interface. Where some pieces are for one executor and
some for another, each has a lane.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

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


class DistantExecutor(Executor):
    """An executor of other processes, which may come and all leave."""

    @abstractmethod
    def room(self) -> int:
        """
        How many pieces may be there at once: so many that nobody waits for one.

        Raises:
            HeadroomError: There is nobody any more to run any.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane(Generic[PieceT]):
    """
    Pieces for one executor.

    Attributes:
        pieces: Taken lazily, so that a caller that stops early has started no more than needed.
        executor: Where to run; in the calling thread when None.
        in_flight: Says how many pieces are submitted at once; asked again and again while the lane
            has pieces, with a tick several times a second, and what it raises ends all.
    """

    pieces: Iterator[PieceT]
    executor: Executor | None = None
    in_flight: Callable[[], int] = lambda: 1


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
        in_flight: How many pieces are submitted at once; a `DistantExecutor` says that itself.
        tick: Called several times a second while pieces run elsewhere, to show how far they are.

    Raises:
        Exception: Whatever a piece raised; pieces not yet started are then cancelled.
    """
    if isinstance(executor, DistantExecutor):
        room, tick = executor.room, tick or _nothing  # with each tick it is asked for its room
    else:
        room = partial(int, in_flight)
    lane = Lane(pieces=iter(pieces), executor=executor, in_flight=room)
    yield from run_lanes(function, [lane], tick=tick)


def run_lanes(
    function: Callable[[PieceT], ResultT],
    lanes: Sequence[Lane[PieceT]],
    *,
    tick: Callable[[], None] | None = None,
) -> Iterator[tuple[PieceT, ResultT]]:
    """
    Run the pieces of several lanes side by side, each with its result as it finishes.

    Args:
        function: What to do with a piece; importable where an executor is not in this process.
        lanes: Each takes its own pieces when it has room for one.
        tick: Called several times a second while pieces run elsewhere.

    Raises:
        Exception: Whatever a piece raised, once those that have ended too are yielded; pieces not
            yet started are then cancelled.
    """
    inline = InlineExecutor()
    waiting: dict[Future[ResultT], tuple[int, PieceT]] = {}
    ended: set[int] = set()
    try:
        while True:
            for number, lane in enumerate(lanes):
                own = sum(other == number for other, _ in waiting.values())
                if not own and number in ended:
                    continue
                for _ in range(lane.in_flight() - own):
                    piece = None if number in ended else next(lane.pieces, None)
                    if piece is None:
                        ended.add(number)
                        break
                    waiting[(lane.executor or inline).submit(function, piece)] = (number, piece)
            if not waiting:
                return
            done, _ = wait(
                waiting, timeout=None if tick is None else _TICK_S, return_when=FIRST_COMPLETED
            )
            if tick is not None:
                tick()
            # What has ended beside one that failed is not lost.
            for future in sorted(done, key=_failed):
                _, piece = waiting.pop(future)
                yield piece, future.result()
    finally:
        for future in waiting:
            future.cancel()


def _nothing() -> None:
    """For somebody who shows no progress."""


def _failed(future: Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None
