"""
How the clients of a run come on beside each other, out of pgbench's log.

    stretch      0          1          2            each of as many transactions of all clients
    client 0   *****      ********   **
    client 1   ******     ***        *********

The processors favour one client for seconds and then another, on an idle machine too, and each
works on keys of its own. So which pages become empty, and when, depends on it.
"""

from __future__ import annotations

from pgheadroom.servers.pgbench import TransactionLog

ClientsCourse = tuple[tuple[int, ...], ...]
"""By stretch: the transactions of each client in it."""

_STRETCHES_MAX = 100
_EACH_MIN = 25
"""Transactions of a client in a stretch, on average; with fewer chance would be taken for pace."""


def course(log: TransactionLog, clients: int) -> ClientsCourse:
    """
    Count each client's transactions by stretch of the run.

    Args:
        log: Every transaction of the run.
        clients: How many ran side by side.

    Returns:
        Of shape (stretches, clients); none with one client, too few transactions, or where clients
        end after different numbers of them, as in a run of so many seconds or with failures: the
        twin's have as many as another.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    stretches = min(_STRETCHES_MAX, log.client.size // (_EACH_MIN * clients))
    if clients < 2 or stretches < 2 or len(set(np.bincount(log.client, minlength=clients))) > 1:
        return ()
    parts = np.array_split(log.client, stretches)
    counts = (np.bincount(part, minlength=clients) for part in parts)
    return tuple(tuple(int(count) for count in part) for part in counts)


def farthest_apart(course: ClientsCourse) -> float:
    """The most that one client was ahead of another at the end of a stretch, of its own share."""
    clients = len(course[0])
    so_far = [0] * clients
    most = 0
    for stretch in course:
        so_far = [done + count for done, count in zip(so_far, stretch, strict=True)]
        most = max(most, max(so_far) - min(so_far))
    return most * clients / sum(so_far)
