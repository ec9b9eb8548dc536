"""
What others would set: formulas on counters, and fixed numbers.

Re-implemented from what each tool's rule says, not from its text; each sees the counters of the
same observation as our advice. None means silence: the setting stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_PGTOOLS_UPDATES_MIN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a formula reads of a table; `fillfactor` is the one in force."""

    n_tup_ins: int
    n_tup_upd: int
    n_tup_hot_upd: int
    fillfactor: int

    @property
    def hot_frac(self) -> float | None:
        """Share of HOT among the updates; None without any."""
        return self.n_tup_hot_upd / self.n_tup_upd if self.n_tup_upd else None


def counters_of(table: Mapping[str, Any]) -> Counters:
    """The counters of the interval in an observed table, as `observe` writes it."""
    found = table["observed"]["counters"]
    return Counters(
        n_tup_ins=found["n_tup_ins"] or 0,
        n_tup_upd=found["n_tup_upd"] or 0,
        n_tup_hot_upd=found["n_tup_hot_upd"] or 0,
        fillfactor=table["fillfactor"],
    )


def _round(value: float) -> int:
    """Half away from 0, as PostgreSQL's round() of numeric does."""
    return math.floor(value + 0.5)


def pg_gather(counters: Counters) -> int | None:
    """
    100 - 20 u / (u + i) (1 - hot), not below 80.

    Source: jobinau/pg_gather, dev/Calculations.md, query 16 (2026-06).
    """
    hot = counters.hot_frac
    if hot is None:
        return None
    updates, inserts = counters.n_tup_upd, counters.n_tup_ins
    return max(_round(100 - 20 * updates / (updates + inserts) * (1 - hot)), 80)


def pgtools(counters: Counters) -> int | None:
    """
    80 below 30 % HOT, 90 below 50 %, else silent; at least 100 updates.

    Source: iqtoolkit pgtools, hot_update_optimization_checklist_json.sql (2026-04).
    """
    hot = counters.hot_frac
    if hot is None or counters.n_tup_upd < _PGTOOLS_UPDATES_MIN:
        return None
    if hot < 0.3:
        return 80
    return 90 if hot < 0.5 else None


def rin_nas(counters: Counters) -> int | None:
    """
    100 - max(1, round(sqrt(1.5 (100 - hot %))) - 5), for tables without a fillfactor.

    Source: rin-nas/postgresql-patterns-library, DBA/pg_tables_fillfactor_tuning.sql.
    """
    hot = counters.hot_frac
    if hot is None or counters.fillfactor != 100:
        return None
    return 100 - max(1, _round(math.sqrt(1.5 * (100 - 100 * hot))) - 5)


RULES: Mapping[str, Callable[[Counters], int | None]] = {
    "pg_gather": pg_gather,
    "pgtools": pgtools,
    "rin-nas": rin_nas,
    "always 100": lambda _: 100,
    "always 90": lambda _: 90,
}
"""By the name that the page shows; the first three are the formulas."""

FORMULAS = ("pg_gather", "pgtools", "rin-nas")
