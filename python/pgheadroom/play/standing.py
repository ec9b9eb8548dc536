"""
How often a client of a run stands still while the others go on, out of pgbench's log.

    client 0   |-T-| |-T-| |---------------T---------------| |-T-|
    client 1   |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-|         meanwhile: 6 of client 1
                         |-------------------------------|

A backend that loses its processor in the middle of a statement keeps its snapshot, and nothing
that the others remove meanwhile can be pruned. How often that happens, and how far the others come,
is the machine's, and what else it has to do. Counted in the others' transactions it is a number
that the twin can use, whatever it costs in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgheadroom.play.session_times import Looks, present_s
from pgheadroom.servers.pgbench import TransactionLog
from pgheadroom.types import Span

_SURELY = 5
"""
A statement that has gone on for so many of the client's transactions stands still; arbitrary. The
twin knows it (`TOLD_BY_LOOKS`, run/standing.rs): where shorter times lie nobody looked.
"""
_NORMAL = 1.28
"""Of an interval of 80 %."""
_TIMES = 2
"""
So many transactions of each other client between the ends of two say that it stood still. Pauses
that are drawn come to that too: the twin makes up for what is missing (`run/standing.rs`).
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """
    What share of a run's transactions stood still, and for how many of another client's each did.

    `inside` has which part of that time lay within statements, at least and at most; None: nobody
    looked, or too seldom.
    """

    share: float
    lengths: tuple[float, ...]
    inside: Span | None = None


def standing(log: TransactionLog, clients: int) -> Standing | None:
    """
    Count the transactions of others that ended between the ends of a client's last one and its own.

    Args:
        log: Every transaction of the run.
        clients: How many ran side by side.

    Returns:
        None with one client.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    others = clients - 1
    if others == 0:
        return None
    ends_s = np.concatenate((log.ends_s, log.failed_ends_s))
    began_s = np.concatenate((log.ends_s - log.latency_ms / 1000, log.failed_ends_s))
    client = np.concatenate((log.client, log.failed_client))
    by_client = np.lexsort((ends_s, client))
    before, after = by_client[:-1], by_client[1:]
    is_next = client[before] == client[after]
    began_s[after[is_next]] = ends_s[before[is_next]]
    all_ends_s = np.sort(ends_s)
    until, since = (
        np.searchsorted(all_ends_s, ends_s, "left"),
        np.searchsorted(all_ends_s, began_s, "right"),
    )
    meanwhile = until - since
    still = meanwhile[meanwhile >= _TIMES * others]
    if still.size == 0:
        return Standing(0.0, ())
    lengths = np.sort(still) / others - 1
    return Standing(share=float(still.size / ends_s.size), lengths=tuple(lengths.tolist()))


def inside(found: Standing, looks: Looks, log: TransactionLog) -> Span | None:
    """
    Which part of the time that clients stood still lay within statements, at least and at most.

    A look at the sessions that finds one at work on a statement for much longer than its
    transactions take has met such a time, unless the session was seen to wait before. How many
    looks meet one, within statements or between them, follows from the log. Looks that meet the
    same time are no more than one.

    Args:
        found: How often clients stood still.
        looks: What was seen of the sessions.
        log: Every transaction of the run.
    """
    transactions = log.ends_s.size + log.failed_ends_s.size
    of_one_s = present_s(log) / transactions
    within = sum(age_s > _SURELY * of_one_s for age_s in looks.at_work_for_s)
    beyond = [length - _SURELY for length in found.lengths if length > _SURELY]
    share = found.share / max(1, len(found.lengths))  # of each
    expected = sum(beyond) * share * looks.sessions
    times = min(expected, len(beyond) * share * transactions)
    if times < 1:
        return None
    return _part(times * min(1.0, within / expected), times)


def _part(hits: float, of: float) -> Span:
    """What share of all is likely where so many of a sample are: Wilson's interval."""
    square = _NORMAL**2
    mid = (hits + square / 2) / (of + square)
    half = _NORMAL * math.sqrt(hits * (of - hits) / of + square / 4) / (of + square)
    return max(0.0, mid - half), min(1.0, mid + half)
