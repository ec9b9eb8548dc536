"""
A history's day as a chart: updates, their HOT share and WAL, with the interval that was chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pgheadroom.history import HistorySpan, KeptMoment
from pgheadroom.report.charts import Chart, ChartRow, Panel, stacked

_DAY_S = 86_400.0
_MIB = 1024**2


def day(moments: Sequence[KeptMoment], span: HistorySpan) -> Chart | None:
    """
    The day in which an interval lies; None where no moment of it tells anything.

    Args:
        moments: All of the history.
        span: The interval, whose ends are marked.
    """
    midnight_s = span.first.at_s - span.first.at_s % _DAY_S
    end_s = max(midnight_s + _DAY_S, span.last.at_s)
    shown = [moment for moment in moments if midnight_s <= moment.at_s <= end_s]
    date = time.strftime("%Y-%m-%d", time.gmtime(midnight_s))
    marks = [
        ((moment.at_s - midnight_s) / 3600, name)
        for moment, name in ((span.first, "from"), (span.last, "to"))
    ]

    def panel(title: str, rows: list[ChartRow], *, share: bool = False) -> Panel:
        return Panel(
            title=title,
            rows=rows,
            form="curve",
            x_title=f"hour of {date}, UTC",
            marks=marks,
            share=share,
        )

    panels = [
        panel("updates a second", list(_rates(shown, midnight_s, "n_tup_upd", 1.0))),
        panel("HOT share", list(_shares(shown, midnight_s)), share=True),
        panel("WAL, MiB a second", list(_rates(shown, midnight_s, "wal_bytes", _MIB))),
    ]
    panels = [one for one in panels if one.rows]
    if not panels:
        return None
    words = f"The day of the history; the counters used are those of {span.said()}."
    return Chart(
        title=f"The server on {date}",
        caption=f"{words} Between two moments the mean of the time between them; nothing is drawn "
        "where statistics were reset.",
        spec=stacked(panels),
        alt=words,
        section="time",
    )


def _rates(
    moments: Sequence[KeptMoment], midnight_s: float, name: str, unit: float
) -> Iterator[ChartRow]:
    def rate(before: KeptMoment, after: KeptMoment) -> float | None:
        change = _change(before, after, name)
        return None if change is None else change / (after.at_s - before.at_s) / unit

    return _steps(moments, midnight_s, rate)


def _shares(moments: Sequence[KeptMoment], midnight_s: float) -> Iterator[ChartRow]:
    def share(before: KeptMoment, after: KeptMoment) -> float | None:
        updates = _change(before, after, "n_tup_upd")
        hot = _change(before, after, "n_tup_hot_upd")
        return hot / updates if updates and hot is not None else None

    return _steps(moments, midnight_s, share)


def _steps(
    moments: Sequence[KeptMoment],
    midnight_s: float,
    value: Callable[[KeptMoment, KeptMoment], float | None],
) -> Iterator[ChartRow]:
    """The mean between two moments from the one to the other; a curve ends where there is none."""
    part = 0
    for before, after in pairwise(moments):
        mean = value(before, after)
        if mean is None:
            part += 1
            continue
        for moment in (before, after):
            yield {
                "x": (moment.at_s - midnight_s) / 3600,
                "mid": mean,
                "group": "",
                "part": str(part),
            }


def _change(before: KeptMoment, after: KeptMoment, name: str) -> float | None:
    """What happened between two moments; None where that cannot be told."""
    if before.life != after.life or after.at_s <= before.at_s:
        return None
    return after.changes.get(name)
