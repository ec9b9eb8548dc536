"""
What a sample of a table's rows says: a row of the query `sample` under the names of the output.
"""

from __future__ import annotations

from typing import Any

from pgheadroom.forms import read
from pgheadroom.sources.recording import AnswerRow
from pgheadroom.types import ObservedSample

PERCENTILES = ("p05", "p25", "p50", "p75", "p95")
"""Of row lengths; the query draws the same ones."""


def sample_summary(sample: AnswerRow | None) -> ObservedSample | None:
    """
    What a sample said of the rows; None without one, or without a row.

    Raises:
        FieldError: The row holds what no sample gives.
    """
    if sample is None or not sample.get("rows"):
        return None
    count = float(sample["rows"])
    mean = float(sample["tuple_sum"]) / count
    variance = max(float(sample["tuple_squares"]) / count - mean * mean, 0.0)
    lengths: dict[str, Any] = {
        "mean": round(mean, 2),
        "deviation": round(variance**0.5, 2),
        "min": sample["tuple_low"],
        "max": sample["tuple_high"],
        "evidence": "sampled" if sample["is_exact_length"] else "estimated: TOAST not read",
    }
    made: dict[str, Any] = {
        "pages": sample["pages"],
        "drawn_percent": sample["drawn_percent"],
        "rows": sample["rows"],
        "tuple_bytes": lengths,
        "since_xids": sample["since_xids"],
        "recent_rows": sample["recent_rows"],
        "page_moments": sample["page_moments"],
        # Rows by age: [k, rows, bytes of them], age from 2^k to 2^(k+1) transactions.
        "ages": sample["ages"],
    }
    if sample.get("tuple_percentiles") is not None:  # not in files of an earlier version's script
        lengths |= dict(zip(PERCENTILES, sample["tuple_percentiles"], strict=True))
        # Rounded to 8 and with its line pointer, as it lies on a page.
        made["page_bytes_mean"] = round(float(sample["used_sum"]) / count, 2)
    return read(ObservedSample, made, at="sample")
