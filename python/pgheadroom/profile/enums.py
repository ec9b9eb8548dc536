"""
Enums of a profile: their labels, how often each stands, and what updates make of them.
"""

from __future__ import annotations

from pgheadroom.forms import FieldError, fail
from pgheadroom.profile.change import Change
from pgheadroom.profile.tables import ColumnProfile

LABELS_MAX = 1000
"""Arbitrary; PostgreSQL's own limit is that of OIDs."""
_SUM_TOLERANCE = 1e-6


def check_labels(column: ColumnProfile, path: str) -> None:
    """
    Refuse an enum without labels, labels of another type, and shares that are not theirs.

    Raises:
        FieldError: Names the field to change.
    """
    labels, values = column.labels, column.values
    if column.base_type != "enum":
        for place, found in (
            ("labels", labels),
            ("values.shares", values.shares),
            ("values.new", values.new),
        ):
            if found:
                told = list(found) if isinstance(found, tuple) else found
                fail(f"{path}.{place}", told, f"none, for {column.type} is no enum")
        return
    if not labels:
        raise FieldError(
            f"{path}.labels", "missing, expected the labels of the enum in their order"
        )
    if len(set(labels)) < len(labels) or len(labels) > LABELS_MAX:
        fail(f"{path}.labels", list(labels), f"each label once, at most {LABELS_MAX}")
    if values.new is not None and values.new not in labels:
        fail(f"{path}.values.new", values.new, f"one of {', '.join(labels)}")
    if values.kind not in ("constant", "random"):
        fail(f"{path}.values.kind", values.kind, "constant or random, for this column is an enum")
    if not values.shares:
        return
    if values.kind != "random":
        fail(f"{path}.values.shares", list(values.shares), "none, but for values of kind random")
    if len(values.shares) != len(labels) or abs(sum(values.shares) - 1) > _SUM_TOLERANCE:
        expected = f"one share for each of {len(labels)} labels, together 1"
        fail(f"{path}.values.shares", list(values.shares), expected)
    if values.ndistinct != len(labels):
        expected = f"none beside shares, or {len(labels)}, the number of labels"
        fail(f"{path}.values.ndistinct", values.ndistinct, expected)


def check_target(change: Change, path: str, column: ColumnProfile) -> None:
    """
    Refuse a label that a column does not have.

    Raises:
        FieldError: Names the field to change.
    """
    if change.to is None or change.to in column.labels:
        return
    labels = ", ".join(column.labels)
    expected = f"one of {labels}" if labels else f"nothing, for {column.type} is no enum"
    fail(f"{path}.{column.name}.to", change.to, expected)
