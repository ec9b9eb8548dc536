"""
The view of simulated time in a prediction: what the server does by itself, windows, convergence.

Lines of a terminal are drawn with eight heights; the numbers beside them are what they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom import units
from pgheadroom.lab import reading
from pgheadroom.predict.growth import GROWS_FRAC, VERDICTS, part_by_rows
from pgheadroom.report.table import Column, Table

Cell = Mapping[str, Any]

FIGURES: tuple[tuple[str, str], ...] = (
    ("hot_frac", "HOT updates, share of all updates"),
    ("heap_pages", "heap, pages"),
    ("wal_bytes_per_update", "all WAL per update, bytes, full-page images included"),
    ("pages_modified", "pages named by each window's WAL"),
)
"""What is followed over time, and its heading."""

_SHORT: Mapping[str, str] = {
    "hot_frac": "HOT updates",
    "heap_pages": "heap",
    "wal_bytes_per_update": "all WAL per update",
    "pages_modified": "modified",
}
_UNITS: Mapping[str, str] = {
    "hot_frac": "%",
    "heap_pages": "pages",
    "wal_bytes_per_update": "bytes",
    "pages_modified": "pages",
}
_KINDS = (
    ("autovacuums", "autovacuum", "autovacuums"),
    ("autoanalyzes", "autoanalyze", "autoanalyzes"),
    ("checkpoints", "checkpoint", "checkpoints"),
)
_GROWTH_WORDS: Mapping[str, str] = {
    "with its rows": "grows with its rows and as long as they do",
    "slowing": "still grows, more slowly than before",
    "undecided": "still grows, and a longer run would tell whether it stops",
    "without bound": "grows without bound, as fast at the end as before",
}
_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_CELLS = 6
_MOST_IN_TERMINAL = 3
_WIDTH = 18  # what a terminal of 80 columns leaves it
_VERDICTS: Mapping[str, str] = {
    "at once": "takes effect at once",
    "converges": "takes effect",
    "does not converge": "does not settle within the run",
    "no updates": "no updates",
}


def chosen(cells: Sequence[Cell], most: int = _MOST_CELLS) -> list[int]:
    """Places of the cells that are shown where all would be too many: evenly, ends included."""
    if len(cells) <= most:
        return list(range(len(cells)))
    return [round(n * (len(cells) - 1) / (most - 1)) for n in range(most)]


def is_change(cells: Sequence[Cell]) -> bool:
    """Whether the tables were loaded at another fillfactor and altered when the run began."""
    return any(cell.get("from_fillfactor") is not None for cell in cells)


def question(cells: Sequence[Cell]) -> str:
    """What the result answers."""
    if is_change(cells):
        return "How long until a new fillfactor takes effect on a table that is not rewritten?"
    return "What would this profile do at each fillfactor?"


def findings(cells: Sequence[Cell], labels: Sequence[object]) -> list[str]:
    """What time brings, in sentences."""
    said = [
        _effect(cells[place], effect, labels[place])
        for place in chosen(cells)
        if (effect := reading.mapping(cells[place].get("effect")))
    ]
    said += _growth(cells, labels)
    own = [part for cell in cells if (part := reading.mapping(cell.get("by_itself")))]
    if own:
        counts = []
        for key, one, several in _KINDS:
            found = [reading.middle(reading.figure(part.get(key))) for part in own]
            numbers = sorted({round(number) for number in found if number is not None})
            if numbers and numbers[-1] > 0:
                span = str(numbers[0])
                if numbers[-1] > numbers[0]:
                    span = f"{numbers[0]} to {numbers[-1]}"
                counts.append(f"{span} {one if numbers == [1] else several}")
        duration = reading.number(own[0].get("duration_s")) or 0.0
        what = _listed(counts) if counts else "neither autovacuum nor a checkpoint"
        where = " (over all cells)" if len(own) > 1 and counts else ""
        said.append(f"In {units.show_duration(duration)} the server does by itself: {what}{where}.")
    return said


def _growth(cells: Sequence[Cell], labels: Sequence[object]) -> list[str]:
    """Tables that have not found their size by the end, each once, with its worst cell."""
    worst: dict[str, tuple[int, Mapping[str, Any], object]] = {}
    for label, cell in zip(labels, cells, strict=True):
        for table, found in reading.mapping(cell.get("growth")).items():
            growth = reading.mapping(found)
            rank = VERDICTS.index(growth["verdict"]) if growth.get("verdict") in VERDICTS else 0
            if rank > worst.get(table, (0, {}, None))[0]:
                worst[table] = (rank, growth, label)
    said = []
    for table, (rank, growth, label) in worst.items():
        where = f" at fillfactor {reading.label(label)}" if len(cells) > 1 else ""
        said.append(
            f"{reading.printable(table)}{where} {_growth_words(VERDICTS[rank], growth)}: the last "
            f"quarter of the run adds {_growth_parts(growth)}."
        )
    return said


def _growth_words(verdict: str, growth: Mapping[str, Any]) -> str:
    """What a heap does, in a few words."""
    if verdict != "converging":
        return _GROWTH_WORDS[verdict]
    limit = reading.number(growth.get("limit_pages")) or 0.0
    pages = reading.number(growth.get("heap_pages")) or 0.0
    way = "is on its way to" if pages < (1 - GROWS_FRAC) * limit else "has come to"
    return f"{way} the size that a rewrite gives, {limit:.0f} pages"


def _growth_parts(growth: Mapping[str, Any]) -> str:
    """What was added, and how much of it rows explain."""
    added = reading.number(growth.get("pages_added_frac")) or 0.0
    part = part_by_rows(added, reading.number(growth.get("by_rows_frac")) or 0.0)
    rows = f", {part * 100:.0f} % of that by more rows" if part >= 0.005 else ""
    return f"{_percent(added)} to its heap{rows}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]


def _effect(cell: Cell, effect: Mapping[str, Any], label: object) -> str:
    start = f"From {reading.label(cell.get('from_fillfactor'))} to {reading.label(label)}"
    final = reading.number(effect.get("final_hot_frac"))
    if final is None:
        return f"{start}: there are no updates."
    after_s = reading.number(effect.get("after_s")) or 0.0
    per_row = reading.number(effect.get("after_updates_per_row")) or 0.0
    said = {
        "at once": f"HOT is {_percent(final)} from the first window on",
        "converges": f"HOT comes to {_percent(final)} within {after_s:.0f} s "
        f"({per_row:.2g} updates a row)",
        "does not converge": f"HOT still moves at the end of the run, {_percent(final)} in its "
        "last quarter",
    }[str(effect.get("verdict"))]
    return f"{start} without a rewrite: {said}{_if_rewritten(cell, effect, final)}."


def _if_rewritten(cell: Cell, effect: Mapping[str, Any], final: float) -> str:
    """The share of HOT updates that rewriting gives, at the start and in the middle of the run."""
    later = reading.mapping(cell.get("rewritten_later"))
    found = [
        (way, _percent(share))
        for way, share in (
            ("at the start", reading.number(effect.get("rewritten_hot_frac"))),
            (
                moment(later),
                reading.number(reading.mapping(later.get("effect")).get("final_hot_frac")),
            ),
        )
        if share is not None
    ]
    shares = {share for _, share in found}
    ways = " or ".join(way for way, _ in found)
    if not found:
        return ""
    if shares == {_percent(final)}:
        return f", and the same if rewritten {ways}"
    if len(shares) == 1:
        return f"; {shares.pop()} if rewritten {ways}"
    return "; " + ", ".join(f"{share} if rewritten {way}" for way, share in found)


def moment(later: Mapping[str, Any]) -> str:
    """When and how tables are rewritten in the middle of a run."""
    how = "by VACUUM FULL" if later.get("how") == "full" else "online"
    at_s, until_s = reading.number(later.get("at_s")), reading.number(later.get("until_s"))
    if at_s is None or until_s is None:
        return f"{how} at {_percent(reading.number(later.get('at_frac')) or 0.0)} of the run"
    if until_s > at_s:
        return f"{how} from {at_s:.0f} to {until_s:.0f} s"
    return f"{how} at {at_s:.0f} s"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def tables(cells: Sequence[Cell], labels: Sequence[object], *, brief: bool) -> list[Table]:
    """What the server did, how a change took effect, and lines over time."""
    found = [_effects(cells, labels), _rewrites(cells, labels), _by_itself(cells, labels)]
    if brief:
        found.append(_lines(cells, labels))
    else:
        found += [_windows(cells[place], labels[place]) for place in chosen(cells)]
    return [table for table in found if table is not None and table.rows]


def _by_itself(cells: Sequence[Cell], labels: Sequence[object]) -> Table | None:
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        part = reading.mapping(cell.get("by_itself"))
        if part:
            rows.append((label, *(reading.figure(part.get(key)) for key, _, _ in _KINDS)))
    if not rows:
        return None
    lead = () if len(cells) == 1 else (_lead(),)  # one cell needs no name
    columns = (*lead, *(Column(key=key, title=title, digits=0) for key, _, title in _KINDS))
    return Table(
        title="What the server does by itself",
        columns=columns,
        rows=tuple(row[-len(columns) :] for row in rows),
        note="Ranges are from the least to the most of the runs.",
        section="time",
    )


def _effects(cells: Sequence[Cell], labels: Sequence[object]) -> Table | None:
    """One line for each way: no rewrite, one at the start, one in the middle."""
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        rewritten = reading.mapping(cell.get("rewritten"))
        if not rewritten:
            continue
        ways = [("not rewritten", cell), ("at the start", rewritten)]
        later = reading.mapping(cell.get("rewritten_later"))
        if later:
            ways.append((moment(later), later))
        for way, part in ways:
            effect = reading.mapping(part.get("effect"))
            predicted = reading.mapping(part.get("predicted"))
            rows.append(
                (
                    label,
                    way,
                    _VERDICTS.get(str(effect.get("verdict", ""))),
                    reading.number(effect.get("after_s")),
                    reading.number(effect.get("after_updates_per_row")),
                    reading.number(effect.get("pages_added_frac")),
                    reading.number(effect.get("final_hot_frac")),
                    reading.figure(predicted.get("heap_pages")),
                )
            )
    if not rows:
        return None
    before = reading.label(cells[0].get("from_fillfactor"))
    columns = (
        _lead(),
        Column(key="way", title="rewritten", align="left", style="text", lead=True),
        Column(key="verdict", title="the setting", align="left", style="text"),
        Column(key="after_s", title="after", unit="s", digits=0),
        Column(key="after_updates_per_row", title="updates a row", digits=2),
        Column(key="added", title="last quarter adds", unit="%", style="share"),
        Column(key="final", title="HOT at the end", unit="%", style="share"),
        Column(key="pages", title="heap at the end", unit="pages", digits=0),
    )
    return Table(
        title=f"Loaded at {before}, altered when the run begins",
        columns=columns,
        rows=tuple(rows),
        note="Not rewritten: pages stay as they are. At the start: loaded at the new fillfactor.",
        section="time",
    )


def _rewrites(cells: Sequence[Cell], labels: Sequence[object]) -> Table | None:
    """What rewriting in the middle of the run took."""
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        later = reading.mapping(cell.get("rewritten_later"))
        for work in reading.mappings(later.get("tables")):
            keys = ("heap_pages_before", "heap_pages_after", "index_pages_before",
                    "index_pages_after", "wal_bytes")  # fmt: skip
            found = (reading.figure(work.get(key)) for key in keys)
            rows.append((label, reading.printable(work.get("table")), *found))
    if not rows:
        return None
    later = reading.mapping(cells[0].get("rewritten_later"))
    columns = (
        _lead(),
        Column(key="table", title="table", align="left", style="text", lead=True),
        Column(key="heap_before", title="before", unit="pages", digits=0, group="heap"),
        Column(key="heap_after", title="after", unit="pages", digits=0, group="heap"),
        Column(key="index_before", title="before", unit="pages", digits=0, group="indexes"),
        Column(key="index_after", title="after", unit="pages", digits=0, group="indexes"),
        Column(key="wal_bytes", title="WAL of the rewrite", unit="bytes", digits=0),
    )
    model = " A model." if later.get("evidence") == "model" else ""
    return Table(
        title=f"Rewritten {moment(later)}",
        columns=columns,
        rows=tuple(rows),
        note=f"How long that takes is the machine's; the clock does not stand still.{model}"
        if later.get("how") == "full"
        else f"Clients go on; a snapshot is held meanwhile.{model}",
        section="time",
    )


def _lines(cells: Sequence[Cell], labels: Sequence[object]) -> Table | None:
    rows = []
    shown: list[tuple[str, Mapping[str, Any]]] = []
    for place in chosen(cells, _MOST_IN_TERMINAL):
        name = f"fillfactor {reading.label(labels[place])}" if len(cells) > 1 else "all tables"
        shown.append((name, cells[place]))
        later = reading.mapping(cells[place].get("rewritten_later"))
        if later:
            shown.append((f"{name}, rewritten {moment(later)}", later))
    for name, part in shown:
        series = reading.mapping(part.get("series"))
        for key, _ in FIGURES:
            numbers = [reading.middle(reading.figure(item)) for item in series.get(key, ())]
            known = [number for number in numbers if number is not None]
            if not any(known):
                continue
            column = _figure(key)
            rows.append(
                (
                    name,
                    _SHORT[key],
                    _UNITS[key],
                    sparkline(numbers),
                    *(column.write(n).main for n in (known[0], known[-1], min(known), max(known))),
                )
            )
    if not rows:
        return None
    end = reading.number(list(reading.mapping(cells[0].get("series")).get("t_s", (0,)))[-1])
    columns = (
        Column(key="cell", title="cell", align="left", style="text", lead=True),
        Column(key="figure", title="figure", align="left", style="text", lead=True),
        Column(key="unit", title="unit", align="left", style="text"),
        Column(key="line", title=f"0 to {end or 0:.0f} s", align="left", style="text"),
        *(Column(key=key, title=key, style="text") for key in ("first", "last", "least", "most")),
    )
    left = len(cells) - len(chosen(cells, _MOST_IN_TERMINAL))
    return Table(
        title="Over simulated time",
        columns=columns,
        rows=tuple(rows),
        note=f"{left} more fillfactors; --format json has all." if left else None,
        headed=True,
    )


def sparkline(numbers: Sequence[float | None], width: int = _WIDTH) -> str:
    """A line of eight heights from the least to the most; what is missing is blank."""
    if len(numbers) > width:
        numbers = _joined(numbers, width)
    known = [number for number in numbers if number is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = high - low

    def block(number: float | None) -> str:
        if number is None:
            return " "
        share = (number - low) / span if span > 1e-9 * max(1.0, abs(high)) else 0.5
        return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]

    return "".join(map(block, numbers))


def _joined(numbers: Sequence[float | None], width: int) -> list[float | None]:
    """As many means of neighbours."""
    found: list[float | None] = []
    for n in range(width):
        start, end = n * len(numbers) // width, (n + 1) * len(numbers) // width
        part = [number for number in numbers[start:end] if number is not None]
        found.append(sum(part) / len(part) if part else None)
    return found


def _windows(cell: Cell, label: object) -> Table | None:
    series = reading.mapping(cell.get("series"))
    times = series.get("t_s", ())
    keys = [key for key, _ in FIGURES if any(_middle(item) for item in series.get(key, ()))]
    rows = tuple(
        (t, *(reading.figure(series[key][n]) for key in keys)) for n, t in enumerate(times)
    )
    columns = (
        Column(key="t_s", title="until", unit="s", digits=0, lead=True),
        *(_figure(key) for key in keys),
    )
    title = f"Window by window at fillfactor {reading.label(label)}"
    return Table(title=title, columns=columns, rows=rows, section="time") if rows else None


def _lead() -> Column:
    return Column(key="fillfactor", title="fillfactor", unit="%", lead=True)


def _figure(key: str) -> Column:
    share = key.endswith("_frac")
    return Column(
        key=key,
        title=_SHORT[key],
        unit=_UNITS[key],
        style="share" if share else "number",
        digits=1 if share else 0,
    )


def _middle(found: object) -> float | None:
    return reading.middle(reading.figure(found))
