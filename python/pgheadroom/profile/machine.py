"""
The machine of a run: how long sessions of several clients take for what they do, and by what.

    |=statement=|..pause..|=statement=~~~waits~~~wake=|..pause..|=COMMIT=|..between..|=statement=|

Means, in microseconds, and how many processors there are. What a profile does not say is drawn:
each run of the twin is on a machine of its own then, from a quiet to a busy one. `prove` measures
statements and the pauses between and within transactions, counts the processors that it may use,
and plays with that instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pgheadroom.forms import between

_US_MOST = 1e9
_WORK_LEAST_US = 0.001
_PROCESSORS_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTimes:
    """
    Mean times of a client's session, in microseconds, and processors; None: not known.

    Attributes:
        statement_us: At work on an UPDATE of a row by its key whose transaction goes on; what other
            statements take follows from it.
        commit_us: At work on the COMMIT of a transaction that has written, its flush included.
        pause_us: Between two statements of a transaction: the way to the client and back, and what
            it does meanwhile.
        between_us: The same between two transactions.
        wake_us: From the end of a transaction until a session goes on that has waited for it.
        processors: How many the sessions and the clients' program have.
    """

    statement_us: Annotated[float, between(_WORK_LEAST_US, _US_MOST)] | None = None
    commit_us: Annotated[float, between(_WORK_LEAST_US, _US_MOST)] | None = None
    pause_us: Annotated[float, between(0, _US_MOST)] | None = None
    between_us: Annotated[float, between(0, _US_MOST)] | None = None
    wake_us: Annotated[float, between(0, _US_MOST)] | None = None
    processors: Annotated[int, between(1, _PROCESSORS_MOST)] | None = None
