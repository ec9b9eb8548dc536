"""
What `read-writes` shows: pages and WAL of the first read.
"""

from __future__ import annotations

from pgheadroom.lab import presentation as forms
from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import (
    Sentence,
)
from pgheadroom.lab.base.answers import as_predicted
from pgheadroom.lab.reading import Result

FIGURES: tuple[forms.FigureForm, ...] = (
    forms.Against(
        title="What the first read writes",
        across="method",
        measures=("wal_bytes", "pages_dirtied"),
        only={"step": "first-read"},
        key=True,
    ),
)

_HINTS = ("checksums", "wal_log_hints")
_SETTINGS = (*_HINTS, "full_page_writes")


def answer(result: Result) -> str | None:
    """What the first read writes, with the first settings and with none that logs hints."""
    reads = [
        cell
        for cell in reading.cells(result)
        if cell.get("step") == "first-read" and reading.number(cell.get("wal_bytes")) is not None
    ]
    reads = [cell for cell in reads if cell.get("method") == reads[0].get("method")]
    exact = as_predicted(result, "counts")
    if not reads or exact is None:
        return None
    first = reads[0]
    silent = [
        cell
        for cell in reads[1:]
        if all(cell.get(name) == "off" for name in _HINTS)
        and cell.get("full_page_writes") == first.get("full_page_writes")
    ]
    said = Sentence()
    parts = [
        f"{said.figure(cell, 'pages_dirtied')} pages and {said.figure(cell, 'wal_bytes')} bytes of "
        f"WAL with {reading.at(cell, _SETTINGS)}"
        for cell in (first, *silent[:1])
    ]
    method = reading.label(reads[0].get("method"))
    exactly = f"{exact[:1].lower()}{exact[1:]}".removesuffix(".")
    return said.ended(
        f"the first read after {method} makes dirty, and logs, {'; '.join(parts)}; {exactly}"
    )
