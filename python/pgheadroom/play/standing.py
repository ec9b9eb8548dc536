"""
How often a client of a run stands still while the others go on, out of pgbench's log.

    client 0   |-T-| |-T-| |---------------T---------------| |-T-|
    client 1   |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-|         during it: 5 of client 1

A backend that loses its processor in the middle of a statement keeps its snapshot, and nothing
that the others remove meanwhile can be pruned. How often that happens, and how far the others come,
is the machine's, and what else it has to do. Counted in the others' transactions it is a number
that the twin can use, whatever it costs in time.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.servers.pgbench import TransactionLog

_TIMES = 10
"""So many transactions of each other client during one say that it stood still; arbitrary."""


@dataclass(frozen=True, slots=True)
class Standing:
    """
    What share of a run's transactions stood still, and for how many of another client's each did.
    """

    share: float
    lengths: tuple[float, ...]


def standing(log: TransactionLog, clients: int) -> Standing | None:
    """
    Count the transactions that ended during another's.

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
    ends = log.ends_s
    begins = ends - log.latency_ms / 1000
    during = np.searchsorted(ends, ends, "left") - np.searchsorted(ends, begins, "right")
    still = during[during >= _TIMES * others]
    if still.size == 0:
        return Standing(0.0, ())
    lengths = np.sort(still) / others - 1
    return Standing(share=float(still.size / ends.size), lengths=tuple(lengths.tolist()))
