"""How often clients stand still, out of pgbench's log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pgheadroom.play.standing import Standing, standing
from pgheadroom.servers.pgbench import TransactionLog

_Ran = tuple[int, float, float]
"""A client's transaction, from and to."""


def _log(ran: list[_Ran], failed: Sequence[tuple[int, float]] = ()) -> TransactionLog:
    """Of failed ones the client and the end."""
    ran = sorted(ran, key=lambda one: one[2])
    return TransactionLog(
        ends_s=np.array([end for _, _, end in ran]),
        latency_ms=np.array([1000 * (end - begin) for _, begin, end in ran]),
        script=np.zeros(len(ran), dtype=np.int64),
        client=np.array([client for client, _, _ in ran]),
        failed_ends_s=np.array([end for _, end in failed]),
        failed_client=np.array([client for client, _ in failed], dtype=np.int64),
    )


def _even(clients: int, count: int) -> list[_Ran]:
    """Clients that take turns, a transaction each second."""
    return [
        (client, n + client / clients, n + client / clients + 0.99)
        for n in range(count)
        for client in range(clients)
    ]


def test_clients_that_come_on_evenly_never_stand_still() -> None:
    """A transaction sees about one of each other client's end."""
    assert standing(_log(_even(4, 200)), 4) == Standing(share=0.0, lengths=())
    assert standing(_log(_even(1, 10)), 1) is None


def test_one_that_stands_still_counts_by_what_the_others_did() -> None:
    """However long it took: three clients did 30 transactions each meanwhile, but one of them."""
    others = [(client, begin, end) for client, begin, end in _even(3, 100) if begin < 99]
    found = standing(_log([*others, (3, 40.5, 70.6)]), 4)
    assert found is not None
    assert found.share == pytest.approx(1 / (len(others) + 1))
    assert found.lengths == (pytest.approx(29, abs=1),)


@pytest.mark.parametrize("has_failed", [False, True])
def test_what_lies_between_two_transactions_counts(has_failed: bool) -> None:
    """A client whose statement comes late stands still too, from the end of the one before."""
    late = [(3, 8.7), (3, 13.2)]
    ran = _even(3, 20)
    if has_failed:
        found = standing(_log(ran, late), 4)
    else:
        found = standing(_log(ran + [(client, end - 0.4, end) for client, end in late]), 4)
    assert found is not None
    assert found.share == pytest.approx(1 / (len(ran) + 2))
    assert found.lengths == (pytest.approx(3.5, abs=0.5),)


def test_a_machine_that_stands_still_as_a_whole_is_none() -> None:
    """Who waits while nobody goes on misses nothing."""
    halves = [
        (client, begin + 1000 * (begin > 50), end + 1000 * (end > 50))
        for client, begin, end in _even(4, 100)
    ]
    assert standing(_log(halves), 4) == Standing(share=0.0, lengths=())
