"""The arithmetic of `watch`, its keys and its screen: what needs no server."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.cli.terminal import Terminal
from pgheadroom.cli.watch_keys import keys_in
from pgheadroom.cli.watch_screen import ScreenState, drawn
from pgheadroom.report.watch import text_lines
from pgheadroom.watch import (
    SORTS,
    HorizonHolder,
    Order,
    RunningVacuum,
    ServerReading,
    TableCounts,
    Tick,
    chosen,
    exposition,
)
from pgheadroom.watch.rates import ticked

COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_hot_upd", "n_tup_newpage_upd", "n_tup_del")


def counters(oid: int, name: str, *counts: int) -> TableCounts:
    return TableCounts(
        oid=oid,
        schema="public",
        name=name,
        n_live_tup=10,
        n_dead_tup=5,
        **dict(zip(COUNTERS, counts, strict=True)),
    )


def snapshot(at_s: float, *tables: TableCounts) -> ServerReading:
    """A reading of a server whose clock and ours agree."""
    return ServerReading(
        at_s=1e9 + at_s,
        sent_s=at_s,
        received_s=at_s + 0.001,
        tables_at_s=1e9 + at_s,
        started_s=1e9 - 100,
        server="18.4",
        database="shop",
        in_recovery=False,
        monitors=True,
        wal_bytes=int(1000 * at_s),
        wal_fpi=0,
        wal_reset_s=1.0,
        num_timed=0,
        num_requested=0,
        checkpoints_reset_s=1.0,
        is_checkpointing=False,
        tables={table.oid: table for table in tables},
        tables_reset_s=None,
        vacuums=(),
        holders=(),
    )


BEFORE = snapshot(0.0, counters(1, "t", 100, 1000, 500, 250, 10))
AFTER = snapshot(2.0, counters(1, "t", 100, 1200, 650, 290, 10))


def test_rates_are_of_the_interval() -> None:
    tick = ticked(BEFORE, AFTER)
    (table,) = tick.tables
    assert tick.interval_s == 2.0
    assert table.updates_per_s == 100.0
    assert table.hot_frac == 0.75
    assert table.newpage_frac == 0.2
    assert tick.wal_bytes_per_s == 1000.0


@pytest.mark.parametrize("step_s", [-3600.0, -1.9, 0.5, 3600.0])
def test_a_clock_that_was_set_gives_no_rate(step_s: float) -> None:
    """The server's clock is set between two readings, ahead or back: 2 s are 2 s no more."""
    set_ = replace(AFTER, at_s=AFTER.at_s + step_s, tables_at_s=AFTER.tables_at_s + step_s)
    tick = ticked(BEFORE, set_)
    assert not tick.counts
    assert tick.tables == ()
    assert tick.wal_bytes_per_s is None
    assert "clock was set" in tick.notes[0]


def test_an_answer_that_came_late_is_still_of_its_moment() -> None:
    """A pooler held the statement for a second: the server's clock says when it was read."""
    late = replace(AFTER, sent_s=1.0, received_s=2.5)
    assert ticked(BEFORE, late).interval_s == 2.0


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 5), min_size=2, max_size=6))
def test_no_rate_is_negative(counts: list[tuple[int, ...]]) -> None:
    """Whatever counters do: a tick tells none, or ones that add up to what was counted."""
    readings = [snapshot(2.0 * n, counters(1, "t", *each)) for n, each in enumerate(counts)]
    for before, now in itertools.pairwise(readings):
        tick = ticked(before, now)
        earlier, later = before.tables[1], now.tables[1]
        if not tick.counts:
            assert any(getattr(later, name) < getattr(earlier, name) for name in COUNTERS)
            assert tick.notes
        for table in tick.tables:
            for name in COUNTERS:
                assert getattr(table, name) == getattr(later, name) - getattr(earlier, name) >= 0


def test_another_server_behind_the_same_name() -> None:
    """A proxy leads to another one, or a standby was promoted: none of its counts are rates."""
    for change in (
        {"started_s": 5.0},
        {"server": "19.0"},
        {"in_recovery": True},
        {"database": "other"},
    ):
        tick = ticked(BEFORE, replace(AFTER, **change))  # type: ignore[arg-type]
        assert not tick.counts
        assert "rates begin anew" in tick.notes[0]


def test_orders() -> None:
    """The first of each order is what its reader looks for, and equal ones stand by name."""
    before = snapshot(0.0)
    now = snapshot(
        2.0,
        counters(1, "hot", 1, 100, 99, 1, 0),
        counters(2, "cold", 0, 50, 5, 45, 3),
        counters(3, "log", 900, 0, 0, 0, 0),
        counters(4, "idle", 1, 0, 0, 0, 0),
    )
    tables = ticked(before, now).tables
    first = {by: chosen(tables, Order(by=by))[0].name for by in SORTS}
    assert first == {
        "updates": "hot",
        "hot": "cold",
        "newpage": "cold",
        "inserts": "log",
        "deletes": "cold",
        "dead": "cold",
        "name": "cold",
    }
    assert next(one.name for one in chosen(tables, Order(by="name", is_reversed=True))) == "log"
    assert [one.name for one in chosen(tables, Order(only="PUBLIC.id"))] == ["idle"]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[A\x1b[6~u", ["up", "page down", "u"]),
        (b"\x1bOB", ["down"]),
        (b"\x1b[1;5C", []),
        ("ö/\r".encode(), ["ö", "/", "enter"]),
        (b"\x7f\x08\x00\xff", ["backspace", "backspace"]),
        (b"\x1b[", []),
    ],
)
def test_keys(data: bytes, keys: list[str]) -> None:
    assert list(keys_in(data)) == keys


@given(st.binary(max_size=40))
def test_any_bytes_are_keys_or_none(data: bytes) -> None:
    """A terminal sends what it likes; each key is a name or one character that can be shown."""
    for key in keys_in(data):
        assert key.isprintable()


VACUUM = RunningVacuum(
    pid=7,
    database="shop",
    schema="sales",
    name="orders_with_a_rather_long_name_as_applications_have_them",
    is_toast=True,
    phase="vacuuming indexes",
    heap_blks_total=1_000_000,
    heap_blks_scanned=999_999,
    index_vacuum_count=2,
    dead_items=5,
    indexes_total=3,
    indexes_processed=1,
    is_auto=True,
    for_s=4000.0,
)
HOLDER = HorizonHolder(
    kind="session",
    name="4711",
    what="idle in transaction a \x1b[31mreport",
    database="shop",
    is_here=True,
    is_catalog=False,
    age_xids=12_345_678,
    for_s=7200.0,
)


def busy() -> ScreenState:
    """A screen with much on it: names that act on terminals, more tables than room."""
    many = [counters(n, f"t{n}\x1b]0;x\x07\n", n, 10 * n, 5 * n, n, n) for n in range(1, 60)]
    many.append(counters(99, "a" * 63, *[10**12] * 5))
    tick = ticked(snapshot(0.0), snapshot(2.0, *many))
    assert tick.now is not None
    now = replace(tick.now, vacuums=(VACUUM,) * 5, holders=(HOLDER, HOLDER), is_checkpointing=True)
    state = ScreenState(Order(), 2.0)
    state.take(replace(tick, now=now, notes=("one " * 50,)), tick)
    return state


def screen(state: ScreenState, width: int, height: int) -> list[str]:
    stream = io.StringIO()
    console = Terminal(file=stream, width=width, height=height, highlight=False)
    console.print(drawn(state, width, height))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 50), (40, 12)])
def test_the_screen_fits(width: int, height: int) -> None:
    """No line is longer than the terminal, none is too much, and nothing foreign acts."""
    lines = screen(busy(), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert all(character.isprintable() for line in lines for character in line)
    if width >= 80:
        text = "\n".join(lines)
        assert "a" * 15 in text
        assert "500 G" in text
        assert "horizon: 12,345,678 transactions back, 2 h 00 min (1 more): session 4711" in text
        assert "vacuum: and 2 more" in text
        assert lines[-1].startswith("q quit")


def test_keys_change_what_is_shown() -> None:
    state = busy()
    assert next(one.name for one in chosen(state.tables, state.order)) == "a" * 63
    for key in "/t5\r":
        assert state.press("enter" if key == "\r" else key, 10)
    shown = "\n".join(screen(state, 80, 40))
    assert "t50" in shown
    assert "aaaa" not in shown
    assert "[t5]" in shown
    assert state.press("escape", 10)
    assert state.press("page down", 10)
    assert "aaaa" not in "\n".join(screen(state, 80, 24))
    for _ in range(20):
        assert state.press("page down", 10)
    assert state.press("down", 10)
    assert "no rates" not in "\n".join(screen(state, 80, 24))
    assert state.press(" ", 10)
    state.take(Tick(now=None, notes=("the server is gone",)), None)
    assert not state.press("q", 10)


def test_a_server_that_is_gone_leaves_no_figures() -> None:
    """Rates of a server that does not answer would be taken for those of now."""
    state = busy()
    state.take(Tick(now=None, notes=("no connection: refused",)), None)
    text = "\n".join(screen(state, 80, 24))
    assert text.startswith("no answer; last: shop, PostgreSQL 18.4")
    assert "no connection: refused" in text
    assert "WAL" not in text
    assert "t59" not in text


def test_a_share_is_never_shown_as_the_whole() -> None:
    """99.99 % HOT is not 100.0, and one update in a minute is not none."""
    tick = ticked(snapshot(0.0), snapshot(60.0, counters(1, "t", 0, 100_000, 99_999, 1, 1)))
    text = "\n".join(text_lines(tick, Order(), 20))
    assert "99.9" in text
    assert "100.0" not in text
    assert "<0.1" in text


def test_bytes_that_are_no_text_in_prometheus() -> None:
    """A name of SQL_ASCII bytes: the file stays UTF-8."""
    found = exposition([("a", snapshot(0.0, counters(1, "caf\udce9", 1, 1, 1, 1, 1)))])
    assert 'relname="caf\\udce9"' in found.encode().decode()


def test_notes_that_repeat_stand_once() -> None:
    state = ScreenState(Order(), 2.0)
    for _ in range(5):
        state.take(Tick(now=None, notes=("no connection: refused; trying again",)), None)
    assert len(state.notes) == 1
    assert state.notes[0].endswith(" UTC no connection: refused; trying again")
