"""How clients come on beside each other, out of pgbench's log."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.play.course import course, farthest_apart
from pgheadroom.servers.pgbench import TransactionLog


def _log(clients: list[int]) -> TransactionLog:
    count = len(clients)
    return TransactionLog(
        ends_s=np.arange(count, dtype=float),
        latency_ms=np.ones(count),
        script=np.zeros(count, dtype=np.int64),
        client=np.array(clients, dtype=np.int64),
        failed_ends_s=np.array([]),
        failed_client=np.array([], dtype=np.int64),
    )


@given(st.integers(1, 600), st.integers(0, 2**32))
def test_every_transaction_is_in_one_stretch(each: int, seed: int) -> None:
    """Sums over stretches are each client's transactions, and stretches are as long as another."""
    clients = [0, 1, 2, 3] * each
    Random(seed).shuffle(clients)
    found = course(_log(clients), 4)
    if not found:
        assert each < 50  # two stretches of 25 transactions of each client
        return
    assert [sum(counts) for counts in zip(*found, strict=True)] == [each] * 4
    sums = [sum(stretch) for stretch in found]
    assert max(sums) - min(sums) <= 1
    assert len(found) <= 100


def test_clients_of_different_length_have_no_course() -> None:
    """The twin's clients end after as many transactions as another."""
    assert course(_log([0, 1] * 500), 2)
    assert course(_log([0, 1] * 500 + [1]), 2) == ()


def test_one_client_has_no_course() -> None:
    """Nobody is beside it."""
    assert course(_log([0] * 5000), 1) == ()


def test_how_far_one_is_ahead() -> None:
    """In its own transactions: one that does all of its first is ahead by all of them."""
    first_one = course(_log([0] * 500 + [1] * 500), 2)
    assert farthest_apart(first_one) == pytest.approx(1.0)
    in_turns = course(_log([0, 1] * 500), 2)
    assert farthest_apart(in_turns) == pytest.approx(0.0, abs=0.01)
