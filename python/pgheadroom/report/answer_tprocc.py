"""
The answer of `tprocc`: the first level below the reference, at the most users, in one sentence.
"""

from __future__ import annotations

from pgheadroom.report import reading
from pgheadroom.report.answer_words import Compared, Sentence, comparisons, tally
from pgheadroom.report.reading import Result

_MEASURES = {
    "nopm": "new orders per minute are",
    "hot_frac": "the HOT share of all updates is",
    "wal_nonfpi_bytes_per_tx": "WAL per transaction without images is",
}


def tprocc(result: Result) -> str | None:
    """Throughput, HOT, WAL and size of one comparison, fixed before anything was measured."""
    found = {
        measure: [item for item in comparisons(result, measure) if "fillfactor" in item.changed]
        for measure in _MEASURES
    }
    known = next((items for items in found.values() if items), None)
    if known is None:
        return None
    chosen = max(known, key=lambda item: (_users(item), -known.index(item)))
    said = Sentence()
    parts = []
    for measure, words in _MEASURES.items():
        for item in found[measure]:
            if (item.cell, item.against) == (chosen.cell, chosen.against):
                parts.append(f"{words} {said.compared(item)}")
    varying = [factor.name for factor in reading.varying(result) if factor.name != "fillfactor"]
    where = reading.at(chosen.cell, varying)
    text = (
        f"at fillfactor {reading.label(chosen.cell.get('fillfactor'))} against "
        f"{reading.label(chosen.against.get('fillfactor'))}{f' ({where})' if where else ''} "
        f"{', '.join(parts)}"
    )
    orders = found["nopm"]
    if len(orders) > 1:
        text += f"; of all {len(orders)} comparisons of new orders per minute {tally(orders)}"
    return said.ended(text)


def _users(item: Compared) -> float:
    return float(reading.number(item.cell.get("users")) or 0)
