"""Observe a database, predict over fillfactors what was seen, and plot it: CONN [PAGE.html]."""

from __future__ import annotations

import sys

import altair as alt

import pgheadroom as ph

conninfo = sys.argv[1]
page = sys.argv[2] if len(sys.argv) > 2 else "fillfactor.html"

seen = ph.observe(conninfo, seconds=10)
advice = ph.advise(seen)
points = [
    {
        "table": table.table,
        "fillfactor": point.fillfactor,
        "HOT": getattr(point.hot_frac, "mid", point.hot_frac),
    }
    for table in advice.tables
    for point in table.curve
]
print(advice.summary())
for row in advice.rows():
    print(row["table"], row["verdict"], row["fillfactor"], "->", row["advised_fillfactor"])

chart = alt.Chart(alt.Data(values=points)).mark_line(point=True)
chart.encode(x="fillfactor:Q", y=alt.Y("HOT:Q").axis(format="%"), color="table:N").save(page)
print(f"plotted: {page}")
