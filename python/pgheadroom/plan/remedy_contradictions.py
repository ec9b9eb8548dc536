"""
Whether steps can all be carried out: none undoes another, nor needs what another takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from pgheadroom.plan.remedies import RemedyStep

_DONE = {"vacuum": "vacuumed", "analyze": "analyzed"}


def contradiction(steps: Sequence[RemedyStep]) -> str | None:
    """
    Say why two of the steps cannot both be carried out.

    Args:
        steps: Of one plan.

    Returns:
        The first pair's reason in words; None where there is none.
    """
    for one, other in combinations(steps, 2):
        why = _between(one, other) or _between(other, one)
        if why is not None:
            return f"steps {one.number} and {other.number} contradict each other: {why}"
    return None


def _between(one: RemedyStep, other: RemedyStep) -> str | None:
    if one.setting is not None or other.setting is not None:
        same = one.setting and other.setting and one.setting.name == other.setting.name
        return f"{one.about} is set twice" if same else None
    if one.kind == "drop_index":
        gone = one.index
        assert gone is not None, "a drop is of an index"
        if other.keeps is not None and other.keeps.relation.oid == gone.relation.oid:
            return f"{one.about} goes, and is to serve in place of another"
        if other.index is not None and other.index.relation.oid == gone.relation.oid:
            return f"{one.about} goes, and the other one acts on it too"
    of_one_table = one.table and other.table and one.table.oid == other.table.oid
    # What goes before is not written anew.
    beside = ("set_storage", "drop_index")
    if one.kind == "cluster_table" and of_one_table and other.kind not in beside:
        assert one.table is not None, "seen above"
        return f"clustering {one.table.called} writes it and its indexes anew"
    if one.index is not None and other.index is not None:
        if (one.index.relation.schema, one.index.relation.name) == (
            other.index.relation.schema,
            other.index.relation.name,
        ):
            return f"both act on {one.about}"
        return None
    if one.table is None or other.table is None or one.table.oid != other.table.oid:
        return None
    if one.kind == "rewrite_table" and other.kind in ("rebuild_index", "rewrite_table", "vacuum"):
        return f"the rewrite of {one.table.called} does what the other one does"
    if one.kind == other.kind and one.kind in ("vacuum", "analyze"):
        return f"{one.table.called} is {_DONE[one.kind]} twice"
    if one.kind == "rewrite_table" and one.tool != "pg_squeeze" and other.kind == "analyze":
        return f"the rewrite of {one.table.called} analyzes it"
    if one.options is not None and other.options is not None:
        both = one.options.keys() & other.options.keys()
        return f"{', '.join(sorted(both))} of {one.table.called} is set twice" if both else None
    return None
