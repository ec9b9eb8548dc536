"""Observe a database, predict over fillfactors what was seen, and plot it: CONN [PAGE.html]."""

from __future__ import annotations

import sys

import altair as alt

import pgheadroom as ph

page = sys.argv[2] if len(sys.argv) > 2 else "fillfactor.html"

seen = ph.observe(sys.argv[1], seconds=10)
foreseen = ph.predict(seen, range(50, 101, 5))
names = ("table", "fillfactor", "hot_frac", "hot_frac_low", "hot_frac_high", "wal_bytes")
rows = [row for row in foreseen.rows() if row["table"]] or foreseen.rows()
points = [{name: row[name] for name in names} for row in rows if row["hot_frac"] is not None]
print(*names, sep="\t")
for point in points:
    print(*point.values(), sep="\t")

base = alt.Chart(alt.Data(values=points)).encode(x="fillfactor:Q", color="table:N")
line = base.mark_line(point=True).encode(y=alt.Y("hot_frac:Q").axis(format="%").title("HOT"))
band = base.mark_area(opacity=0.3).encode(y="hot_frac_low:Q", y2="hot_frac_high:Q")
(band + line).save(page)
print(f"plotted: {page}")
