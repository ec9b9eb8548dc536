"""
When the clients' transactions of a run ended; each end takes 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pgheadroom.servers.pgbench import FloatArray


class Ended:
    """
    Ends of transactions, in order.

    Args:
        ends_s: In epoch seconds, in any order.
    """

    def __init__(self, ends_s: Sequence[float] | FloatArray) -> None:
        import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

        self._ends_s = np.sort(np.asarray(ends_s, dtype=np.float64))

    @classmethod
    def of(cls, *parts: FloatArray) -> Self:
        """Those of several arrays together."""
        import numpy as np  # noqa: PLC0415 - as above

        return cls(np.concatenate(parts))

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self._ends_s.size > 0

    def share(self, moment_s: float) -> float:
        """Which share of them had ended by a moment, in epoch seconds."""
        return int(self._ends_s.searchsorted(moment_s, "right")) / self._ends_s.size
