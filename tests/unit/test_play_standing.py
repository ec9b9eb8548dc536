"""How often clients stand still, out of pgbench's log."""

from __future__ import annotations

import numpy as np
import pytest

from pgheadroom.play.standing import Standing, standing
from pgheadroom.servers.pgbench import TransactionLog


def _log(spans: list[tuple[float, float]]) -> TransactionLog:
    spans = sorted(spans, key=lambda span: span[1])
    return TransactionLog(
        ends_s=np.array([end for _, end in spans]),
        latency_ms=np.array([1000 * (end - begin) for begin, end in spans]),
        script=np.zeros(len(spans), dtype=np.int64),
        client=np.zeros(len(spans), dtype=np.int64),
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )


def _even(clients: int, count: int) -> list[tuple[float, float]]:
    """Clients that take turns, a transaction each second."""
    return [
        (n + client / clients, n + client / clients + 0.99)
        for n in range(count)
        for client in range(clients)
    ]


def test_clients_that_come_on_evenly_never_stand_still() -> None:
    """A transaction sees about one of each other client's end."""
    assert standing(_log(_even(4, 200)), 4) == Standing(share=0.0, lengths=())
    assert standing(_log(_even(1, 10)), 1) is None


def test_one_that_stands_still_counts_by_what_the_others_did() -> None:
    """However long it took: three clients did 30 transactions each meanwhile, but one of them."""
    others = [(begin, end) for begin, end in _even(3, 100) if begin < 99]
    still = (40.5, 70.6)
    found = standing(_log([*others, still]), 4)
    assert found is not None
    assert found.share == pytest.approx(1 / (len(others) + 1))
    assert found.lengths == (pytest.approx(29, abs=1),)


def test_a_machine_that_stands_still_as_a_whole_is_none() -> None:
    """Who waits while nobody goes on misses nothing."""
    halves = [
        (begin + 1000 * (begin > 50), end + 1000 * (end > 50)) for begin, end in _even(4, 100)
    ]
    assert standing(_log(halves), 4) == Standing(share=0.0, lengths=())
