"""
The view of simulated time in a prediction: what the server does by itself, windows, convergence.

Lines of a terminal are drawn with eight heights; the numbers beside them are what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pgheadroom import units
from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue
from pgheadroom.outcome import Value, middle
from pgheadroom.predict.clock import ByItself
from pgheadroom.predict.convergence import TakesEffect
from pgheadroom.predict.growth import GROWS_FRAC, VERDICTS, Growth, part_by_rows
from pgheadroom.predict.rewriting import RewrittenLater
from pgheadroom.predict.series import Series
from pgheadroom.predict.values import PredictedCell, Rewritten
from pgheadroom.report.table import Column, Table

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
_KINDS: tuple[tuple[Callable[[ByItself], Value], str, str], ...] = (
    (lambda it: it.autovacuums, "autovacuum", "autovacuums"),
    (lambda it: it.autoanalyzes, "autoanalyze", "autoanalyzes"),
    (lambda it: it.checkpoints, "checkpoint", "checkpoints"),
)
"""What the server does by itself: how often, and what one and several are called."""
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


def chosen(cells: Sequence[PredictedCell], most: int = _MOST_CELLS) -> list[int]:
    """Places of the cells that are shown where all would be too many: evenly, ends included."""
    if len(cells) <= most:
        return list(range(len(cells)))
    return [round(n * (len(cells) - 1) / (most - 1)) for n in range(most)]


def is_change(cells: Sequence[PredictedCell]) -> bool:
    """Whether the tables were loaded at another fillfactor and altered when the run began."""
    return any(cell.from_fillfactor is not None for cell in cells)


def question(cells: Sequence[PredictedCell]) -> str:
    """What the result answers."""
    if is_change(cells):
        return "How long until a new fillfactor takes effect on a table that is not rewritten?"
    return "What would this profile do at each fillfactor?"


def findings(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> list[str]:
    """What time brings, in sentences."""
    said = [
        _effect(cells[place], effect, labels[place])
        for place in chosen(cells)
        if (effect := cells[place].effect) is not None
    ]
    said += _growth(cells, labels)
    own = [cell.by_itself for cell in cells if cell.by_itself is not None]
    if own:
        counts = []
        for often, one, several in _KINDS:
            found = [middle(often(part)) for part in own]
            numbers = sorted({round(number) for number in found if number is not None})
            if numbers and numbers[-1] > 0:
                span = str(numbers[0])
                if numbers[-1] > numbers[0]:
                    span = f"{numbers[0]} to {numbers[-1]}"
                counts.append(f"{span} {one if numbers == [1] else several}")
        what = _listed(counts) if counts else "neither autovacuum nor a checkpoint"
        where = " (over all cells)" if len(own) > 1 and counts else ""
        said.append(
            f"In {units.show_duration(own[0].duration_s)} the server does by itself: {what}{where}."
        )
    return said


def _growth(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> list[str]:
    """Tables that have not found their size by the end, each once, with its worst cell."""
    worst: dict[str, tuple[int, Growth, CellValue]] = {}
    for label, cell in zip(labels, cells, strict=True):
        for table, growth in (cell.growth or {}).items():
            rank = VERDICTS.index(growth.verdict)
            if rank > (worst[table][0] if table in worst else 0):
                worst[table] = (rank, growth, label)
    said = []
    for table, (_, growth, label) in worst.items():
        where = f" at fillfactor {reading.label(label)}" if len(cells) > 1 else ""
        said.append(
            f"{reading.printable(table)}{where} {_growth_words(growth)}: the last "
            f"quarter of the run adds {_growth_parts(growth)}."
        )
    return said


def _growth_words(growth: Growth) -> str:
    """What a heap does, in a few words."""
    if growth.verdict != "converging":
        return _GROWTH_WORDS[growth.verdict]
    limit = growth.limit_pages or 0.0
    way = "is on its way to" if growth.heap_pages < (1 - GROWS_FRAC) * limit else "has come to"
    return f"{way} the size that a rewrite gives, {limit:.0f} pages"


def _growth_parts(growth: Growth) -> str:
    """What was added, and how much of it rows explain."""
    part = part_by_rows(growth.pages_added_frac, growth.by_rows_frac)
    rows = f", {part * 100:.0f} % of that by more rows" if part >= 0.005 else ""
    return f"{_percent(growth.pages_added_frac)} to its heap{rows}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]


def _effect(cell: PredictedCell, effect: TakesEffect, label: CellValue) -> str:
    start = f"From {reading.label(cell.from_fillfactor)} to {reading.label(label)}"
    final = effect.final_hot_frac
    if final is None:
        return f"{start}: there are no updates."
    after_s, per_row = effect.after_s or 0.0, effect.after_updates_per_row or 0.0
    said = {
        "at once": f"HOT is {_percent(final)} from the first window on",
        "converges": f"HOT comes to {_percent(final)} within {after_s:.0f} s "
        f"({per_row:.2g} updates a row)",
        "does not converge": f"HOT still moves at the end of the run, {_percent(final)} in its "
        "last quarter",
    }[effect.verdict]
    return f"{start} without a rewrite: {said}{_if_rewritten(cell, effect, final)}."


def _if_rewritten(cell: PredictedCell, effect: TakesEffect, final: float) -> str:
    """The share of HOT updates that rewriting gives, at the start and in the middle of the run."""
    ways = [("at the start", effect.rewritten_hot_frac)]
    if (later := cell.rewritten_later) is not None and later.effect is not None:
        ways.append((moment(later), later.effect.final_hot_frac))
    found = [(way, _percent(share)) for way, share in ways if share is not None]
    shares = {share for _, share in found}
    every = " or ".join(way for way, _ in found)
    if not found:
        return ""
    if shares == {_percent(final)}:
        return f", and the same if rewritten {every}"
    if len(shares) == 1:
        return f"; {shares.pop()} if rewritten {every}"
    return "; " + ", ".join(f"{share} if rewritten {way}" for way, share in found)


def moment(later: RewrittenLater) -> str:
    """When and how tables are rewritten in the middle of a run."""
    how = "by VACUUM FULL" if later.how == "full" else "online"
    at_s, until_s = later.at_s, later.until_s
    if at_s is None or until_s is None:
        return f"{how} at {_percent(later.at_frac)} of the run"
    if until_s > at_s:
        return f"{how} from {at_s:.0f} to {until_s:.0f} s"
    return f"{how} at {at_s:.0f} s"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def tables(
    cells: Sequence[PredictedCell], labels: Sequence[CellValue], *, brief: bool
) -> list[Table]:
    """What the server did, how a change took effect, and lines over time."""
    found = [_effects(cells, labels), _rewrites(cells, labels), _by_itself(cells, labels)]
    if brief:
        found.append(_lines(cells, labels))
    else:
        found += [_windows(cells[place], labels[place]) for place in chosen(cells)]
    return [table for table in found if table is not None and table.rows]


def _by_itself(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> Table | None:
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        part = cell.by_itself
        if part is not None:
            rows.append((label, *(often(part) for often, _, _ in _KINDS)))
    if not rows:
        return None
    lead = () if len(cells) == 1 else (_lead(),)  # one cell needs no name
    columns = (*lead, *(Column(key=title, title=title, digits=0) for _, _, title in _KINDS))
    return Table(
        title="What the server does by itself",
        columns=columns,
        rows=tuple(row[-len(columns) :] for row in rows),
        note="Ranges are from the least to the most of the runs.",
        section="time",
    )


def _effects(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> Table | None:
    """One line for each way: no rewrite, one at the start, one in the middle."""
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        if cell.rewritten is None:
            continue
        ways: list[tuple[str, PredictedCell | Rewritten | RewrittenLater]] = [
            ("not rewritten", cell),
            ("at the start", cell.rewritten),
        ]
        if cell.rewritten_later is not None:
            ways.append((moment(cell.rewritten_later), cell.rewritten_later))
        for way, part in ways:
            effect = part.effect
            said = (
                (None,) * 5
                if effect is None
                else (
                    _VERDICTS[effect.verdict],
                    effect.after_s,
                    effect.after_updates_per_row,
                    effect.pages_added_frac,
                    effect.final_hot_frac,
                )
            )
            rows.append((label, way, *said, part.predicted.heap_pages))
    if not rows:
        return None
    before = reading.label(cells[0].from_fillfactor)
    columns = (
        _lead(),
        Column(key="way", title="rewritten", style="words", lead=True),
        Column(key="verdict", title="the setting", style="words"),
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


def _rewrites(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> Table | None:
    """What rewriting in the middle of the run took."""
    rows = []
    for label, cell in zip(labels, cells, strict=True):
        for work in () if cell.rewritten_later is None else cell.rewritten_later.tables:
            rows.append(
                (
                    label,
                    reading.printable(work.table),
                    work.heap_pages_before,
                    work.heap_pages_after,
                    work.index_pages_before,
                    work.index_pages_after,
                    work.wal_bytes,
                )
            )
    later = cells[0].rewritten_later
    if later is None or not rows:
        return None
    columns = (
        _lead(),
        Column(key="table", title="table", style="words", lead=True),
        Column(key="heap_before", title="before", unit="pages", digits=0, group="heap"),
        Column(key="heap_after", title="after", unit="pages", digits=0, group="heap"),
        Column(key="index_before", title="before", unit="pages", digits=0, group="indexes"),
        Column(key="index_after", title="after", unit="pages", digits=0, group="indexes"),
        Column(key="wal_bytes", title="WAL of the rewrite", unit="bytes", digits=0),
    )
    model = " A model." if later.evidence == "model" else ""
    return Table(
        title=f"Rewritten {moment(later)}",
        columns=columns,
        rows=tuple(rows),
        note=f"How long that takes is the machine's; the clock does not stand still.{model}"
        if later.how == "full"
        else f"Clients go on; a snapshot is held meanwhile.{model}",
        section="time",
    )


def _lines(cells: Sequence[PredictedCell], labels: Sequence[CellValue]) -> Table | None:
    rows = []
    shown: list[tuple[str, Series | None]] = []
    for place in chosen(cells, _MOST_IN_TERMINAL):
        name = f"fillfactor {reading.label(labels[place])}" if len(cells) > 1 else "all tables"
        shown.append((name, cells[place].series))
        later = cells[place].rewritten_later
        if later is not None:
            shown.append((f"{name}, rewritten {moment(later)}", later.series))
    for name, series in shown:
        if series is None:
            continue
        for key, _ in FIGURES:
            numbers = series.middles(key)
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
    end = 0.0 if cells[0].series is None else cells[0].series.t_s[-1]
    columns = (
        Column(key="cell", title="cell", style="words", lead=True),
        Column(key="figure", title="figure", style="words", lead=True),
        Column(key="unit", title="unit", style="words"),
        Column(key="line", title=f"0 to {end:.0f} s", style="words"),
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


def _windows(cell: PredictedCell, label: CellValue) -> Table | None:
    series = cell.series
    if series is None:
        return None
    keys = [key for key, _ in FIGURES if any(series.numbers(key))]
    rows = tuple(
        (t, *(window.value(key) for key in keys))
        for t, window in zip(series.t_s, series.windows, strict=True)
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
