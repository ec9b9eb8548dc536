"""
The screen of `watch`: drawn anew at each reading and each key.

Rich draws, which every command has already; it takes no keys, and the dozen that there are need no
framework (Textual would be a further dependency, and a second event loop): `watch_keys` reads them.
The counters are read by a thread of their own, so that a server that does not answer leaves the
keys working.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from pgheadroom.cli.terminal import Terminal
from pgheadroom.cli.watch_keys import pressed, single_keys
from pgheadroom.quoting import printable
from pgheadroom.report import watch as watch_report
from pgheadroom.units import show_duration
from pgheadroom.watch import Order, Tick, chosen

if TYPE_CHECKING:
    from pgheadroom.watch import TableRate, Watcher

SORT_KEYS = {
    "u": "updates",
    "h": "hot",
    "p": "newpage",
    "i": "inserts",
    "e": "deletes",
    "d": "dead",
    "n": "name",
}
_HEADED = {
    "updates": "upd/s",
    "hot": "HOT %",
    "newpage": "new page %",
    "inserts": "ins/s",
    "deletes": "del/s",
    "dead": "dead rows",
    "name": "table",
}
_WAIT_S = 0.2  # for a key, before it is looked whether the window has another size
_NOTES_KEPT = 2
_SLOW_S = 5.0
"""From when on it is said that the server does not answer; arbitrary, a reading takes less."""


@dataclass
class ScreenState:
    """
    What the reader has chosen, and what was read last.

    Attributes:
        order: Which tables, in what order.
        every_s: How often is read.
        last: The last tick with a reading.
        whole: The same since the watch began.
        notes: What happened lately, each with when (our clock).
        is_whole: Tables since the watch began, not of the last interval.
        is_paused: What is shown stays.
        is_away: The last reading gave none.
        is_typing: A filter is being typed.
        before_typing: The filter before.
        first: How many tables are scrolled past.
        read_s: When the last answer came (monotonic).
    """

    order: Order
    every_s: float
    last: Tick | None = None
    whole: Tick | None = None
    notes: list[str] = field(default_factory=list)
    is_whole: bool = False
    is_paused: bool = False
    is_away: bool = False
    is_typing: bool = False
    before_typing: str = ""
    first: int = 0
    read_s: float = field(default_factory=time.monotonic)

    def take(self, tick: Tick, whole: Tick | None) -> None:
        """Show a new tick."""
        self.read_s = time.monotonic()
        stamp = time.strftime("%H:%M:%S", time.gmtime())
        for note in tick.notes:
            self.notes.append(f"{stamp} UTC {note}")
        # One that says the same again and again stands once, with its newest time.
        seen = {note[13:]: note for note in self.notes}
        self.notes = list(seen.values())[-_NOTES_KEPT:]
        if self.is_paused:
            return
        if tick.now is not None:
            self.last, self.whole = tick, whole
            self.is_away = False
        else:
            self.is_away = True
            if self.last is not None:
                self.last = replace(self.last, interval_s=None, tables=())

    @property
    def tables(self) -> tuple[TableRate, ...]:
        """Of the last interval, or since the watch began."""
        tick = self.whole if self.is_whole else self.last
        return () if tick is None else tick.tables

    def press(self, key: str, page: int) -> bool:
        """
        Do what a key says.

        Args:
            key: As `watch_keys` names it.
            page: Tables that are shown at once.

        Returns:
            Whether it goes on.
        """
        if self.is_typing:
            self._type(key)
        elif key == "q":
            return False
        elif key in SORT_KEYS:
            self.order = replace(self.order, by=SORT_KEYS[key])
            self.first = 0
        elif key == "r":
            self.order = replace(self.order, is_reversed=not self.order.is_reversed)
        elif key == "/":
            self.is_typing, self.before_typing = True, self.order.only
            self.order = replace(self.order, only="")
        elif key == "escape":
            self.order, self.first = replace(self.order, only=""), 0
        elif key == "a":
            self.is_whole = not self.is_whole
        elif key == " ":
            self.is_paused = not self.is_paused
        else:
            steps = {"up": -1, "down": 1, "page up": -page, "page down": page}
            steps["home"] = -self.first
            most = max(len(chosen(self.tables, self.order)) - 1, 0)
            self.first = min(max(self.first + steps.get(key, 0), 0), most)
        return True

    def _type(self, key: str) -> None:
        only = self.order.only
        self.first = 0
        if key in ("enter", "escape"):
            self.is_typing = False
            only = self.before_typing if key == "escape" else only
        elif key == "backspace":
            only = only[:-1]
        elif len(key) == 1:
            only += key
        self.order = replace(self.order, only=only)


def watch_on_screen(ticks: Iterator[Tick], watcher: Watcher, order: Order, every_s: float) -> None:
    """
    Show ticks until the reader has seen enough: q or Ctrl-C.

    Args:
        ticks: One whenever it is asked for.
        watcher: Who makes them.
        order: As the reader wants it at first.
        every_s: How often.
    """
    state = ScreenState(order, every_s)
    reading = Reader(ticks, watcher, every_s)
    console = Terminal(highlight=False)
    try:
        with (
            single_keys() as number,
            Live(
                console=console,
                screen=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            ) as live,
        ):
            reading.start()
            _loop(state, reading, live, console, number)
    except KeyboardInterrupt:
        pass  # one of the two ways to leave
    except EOFError:
        pass  # the terminal is gone
    finally:
        reading.stop()


def _loop(state: ScreenState, reading: Reader, live: Live, console: Terminal, number: int) -> None:
    shown: object = None
    while True:
        fresh = reading.take(state)
        slow = _silence(state)
        size = console.size
        if fresh or shown != (size, slow):
            live.update(drawn(state, console.width, console.height, slow), refresh=True)
            shown = (size, slow)
        for key in pressed(number, _WAIT_S):
            if not state.press(key, max(console.height - 10, 1)):
                return
            shown = None


def _silence(state: ScreenState) -> str:
    """What is said where no answer has come for long; whole seconds, so that it moves."""
    silent_s = time.monotonic() - state.read_s - state.every_s
    return f"no answer for {silent_s:.0f} s" if silent_s >= _SLOW_S else ""


def drawn(state: ScreenState, width: int, height: int, slow: str = "") -> Text | Table:
    """
    The screen.

    Args:
        state: What to show.
        width: Columns of the terminal.
        height: Its lines.
        slow: What is said of a server that does not answer.
    """
    lines = [Text(_first_line(state), style="bold")]
    if state.last is not None and not state.is_away:
        lines += [Text(line) for line in watch_report.above(state.last)]
    said = [*state.notes, *filter(None, (slow,))]
    lines += [Text(f"! {printable(line)}", style="yellow") for line in said]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    foot = Text(_foot(state, width), style="dim")
    tables = chosen(state.tables, state.order)
    room = max(height - len(lines) - 4, 1)
    state.first = min(state.first, max(len(tables) - 1, 0))
    whole = Table.grid(expand=True)
    whole.add_column(no_wrap=True)
    for line in lines:
        whole.add_row(line)
    whole.add_row("")
    whole.add_row(_table(state, tables[state.first : state.first + room]))
    for _ in range(room - max(min(len(tables) - state.first, room), 0)):
        whole.add_row("")
    whole.add_row(foot)
    return whole


def _first_line(state: ScreenState) -> str:
    if state.last is None or state.last.now is None:
        return "pgheadroom watch"
    shown = f"{watch_report.heading(state.last.now)}, every {show_duration(state.every_s)}"
    if state.is_away:
        return f"no answer; last: {shown}"
    return f"{shown}, paused" if state.is_paused else shown


def _foot(state: ScreenState, width: int) -> str:
    if state.is_typing:
        return f"filter: {printable(state.order.only)}_   Enter keeps it, Esc takes it back"
    over = "a last interval" if state.is_whole else "a since start"
    keys = f"q quit  u h p i e d n sort  r reverse  / filter  {over}  space pause"
    only = f"[{printable(state.order.only)}]  " if state.order.only else ""
    return f"{only}{keys}"[:width]


def _table(state: ScreenState, tables: list[TableRate]) -> Table:
    tick = state.whole if state.is_whole else state.last
    interval_s = None if tick is None else tick.interval_s
    over = "" if interval_s is None else f" ({show_duration(interval_s)})"
    table = Table(box=None, expand=True, pad_edge=False, header_style="reverse", padding=(0, 1))
    sorted_by = _HEADED[state.order.by]
    for name in watch_report.COLUMNS:
        head = f"{name}{over}" if name == "table" else name
        head += "" if name != sorted_by else "^" if state.order.is_reversed else "*"
        if name == "table":
            table.add_column(head, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            table.add_column(head, no_wrap=True, justify="right")
    for one in tables:
        table.add_row(*(Text(cell) for cell in watch_report.cells(one)))
    if not tables:
        table.add_row(Text(_why_empty(state)), *("" for _ in watch_report.COLUMNS[1:]))
    return table


def _why_empty(state: ScreenState) -> str:
    tick = state.whole if state.is_whole else state.last
    if tick is None or not tick.counts:
        return "(no rates yet)"
    return "(none of that name)" if state.order.only else "(nothing is counted yet)"


class Reader:
    """A thread that asks for a tick at each interval, and holds it until it is fetched."""

    def __init__(self, ticks: Iterator[Tick], watcher: Watcher, every_s: float) -> None:
        self._ticks = ticks
        self._watcher = watcher
        self._every_s = every_s
        self._found: queue.SimpleQueue[tuple[Tick, Tick | None] | BaseException]
        self._found = queue.SimpleQueue()
        self._ends = threading.Event()
        # A daemon: one that waits for a dead network does not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def take(self, state: ScreenState) -> bool:
        """Whether there was something new; an error of the thread is raised here."""
        fresh = False
        while not self._found.empty():
            found = self._found.get()
            if isinstance(found, BaseException):
                raise found
            state.take(*found)
            fresh = True
        return fresh

    def stop(self) -> None:
        """Wait until it has left the connection, unless that does not answer."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
            self._watcher.hang_up()
            self._thread.join(1.0)

    def _run(self) -> None:
        try:
            due_s = time.monotonic()
            while not self._ends.is_set():
                tick = next(self._ticks)
                self._found.put((tick, self._watcher.whole()))
                due_s = max(due_s + self._every_s, time.monotonic())
                self._ends.wait(due_s - time.monotonic())
        except BaseException as error:  # noqa: BLE001 - told by the thread that shows
            self._found.put(error)
