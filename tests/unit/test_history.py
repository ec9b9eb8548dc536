"""The file of a history: what comes back, what goes, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.errors import DiskFull, InputError
from pgheadroom.history import History, HistoryOrigin, KeptMoment, span_of
from pgheadroom.history.kept import KeptAnswer
from pgheadroom.history.rows import NotRows, packed, unpacked
from pgheadroom.report.history import day

ORIGIN = HistoryOrigin(system_identifier="1", database_oid=5, database="shop", server="18.4")
LIFE = "[null]"
DAY_S = 86_400.0
MIDNIGHT_S = 20_000 * DAY_S
WEEK_S = 7 * DAY_S

ROW = st.fixed_dictionaries(
    {"oid": st.integers(1, 6), "n": st.one_of(st.none(), st.integers(0, 3), st.text(max_size=3))}
)


@given(st.lists(ROW, max_size=12), st.one_of(st.none(), st.lists(ROW, max_size=12)))
def test_rows_come_back(rows: list[dict[str, object]], base: list[dict[str, object]]) -> None:
    """Whatever repeats, moves, goes or comes: the rows, in their order."""
    assert unpacked(packed(rows, base), base) == rows


def test_what_has_not_changed_costs_little() -> None:
    """Of 2,000 tables three change: the second moment is a small part of the first."""
    first = [{"oid": n, "n_tup_upd": n * 1237 % 1009, "name": f"t{n}"} for n in range(2000)]
    second = [row if row["oid"] not in (3, 700, 1999) else {**row, "n_tup_upd": 7} for row in first]
    assert len(packed(second, first)) < len(packed(first, None)) / 50
    assert json.loads('{"a": 1}') == unpacked(packed([{"a": Decimal("1.0")}], None), None)[0]


@given(st.binary(max_size=60))
def test_foreign_bytes_are_told(data: bytes) -> None:
    """Never a crash, whatever the file holds."""
    with pytest.raises(NotRows):
        unpacked(data, [{"a": 1}])


@pytest.mark.parametrize("items", [[[0, 2]], [[-1, 1]], [[0, 0]], ["x"], [[0]], {}, [[True, 1]]])
def test_places_beyond_the_base_are_told(items: object) -> None:
    import zlib

    with pytest.raises(NotRows):
        unpacked(zlib.compress(json.dumps(items).encode()), [{"a": 1}])


def keep(history: History, at_s: float, count: int, *, keep_s: float = WEEK_S) -> None:
    rows = tuple({"oid": n, "n_tup_upd": count if n == 1 else 0} for n in range(1, 50))
    history.add(
        at_s,
        LIFE,
        {"n_tup_upd": 1.0, "wal_bytes": None},
        {
            "observe/table_counters": KeptAnswer(rows=rows),
            "doctor/x": KeptAnswer(rows=(), failed="57014"),
        },
        keep_s=keep_s,
    )


def keep_many(history: History, count: int) -> None:
    for number in range(count):
        keep(history, MIDNIGHT_S + DAY_S + number * 300.0, number)


def filled(path: Path, moments: int, *, step_s: float = 300.0) -> None:
    with History.extend(path, ORIGIN) as history:
        for number in range(moments):
            keep(history, MIDNIGHT_S + number * step_s, number)


def test_moments_come_back_by_another_reader(tmp_path: Path) -> None:
    """Across groups of an hour, and over a writer that was started again."""
    path = tmp_path / "h.sqlite"
    filled(path, 30)
    with History.extend(path, ORIGIN) as history:
        keep(history, MIDNIGHT_S + 30 * 300, 30)
    with History.open(path) as history:
        moments = history.moments()
        assert [moment.at_s for moment in moments] == [MIDNIGHT_S + n * 300 for n in range(31)]
        assert len({moment.base for moment in moments}) == 4
        for number, moment in enumerate(moments):
            answers = history.answers(moment)
            assert answers["observe/table_counters"].rows[0] == {"oid": 1, "n_tup_upd": number}
            assert len(answers["observe/table_counters"].rows) == 49
            assert answers["doctor/x"].failed == "57014"


def test_what_is_old_goes_and_its_room_is_used_again(tmp_path: Path) -> None:
    """Five days at a day's keep: a day of moments, and a file that has stopped growing."""
    path = tmp_path / "h.sqlite"
    sizes = []
    with History.extend(path, ORIGIN) as history:
        for number in range(5 * 24):
            keep(history, MIDNIGHT_S + number * 3600.0, number, keep_s=DAY_S)
            sizes.append(path.stat().st_size)
        moments = history.moments()
    reach_s = moments[-1].at_s - moments[0].at_s
    assert DAY_S - 3600 <= reach_s <= DAY_S + 3600
    assert max(sizes[-48:]) <= 1.1 * max(sizes[: 2 * 24])


def test_a_writer_that_is_killed_leaves_whole_moments(tmp_path: Path) -> None:
    """At any time: what is there can be read, and the next writer goes on."""
    path = tmp_path / "h.sqlite"
    code = (
        "import sys; sys.path[:0] = [sys.argv[2]]\n"
        "from pathlib import Path; import test_history as t\n"
        "history = t.History.extend(Path(sys.argv[1]), t.ORIGIN)\n"
        "print('ready', flush=True)\n"
        "for n in range(10**6): t.keep(history, t.MIDNIGHT_S + 300.0 * n, n)\n"
    )
    for _ in range(3):
        here = str(Path(__file__).parent)
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), here], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while not path.exists() or path.stat().st_size < 30_000:
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with History.open(path) as history:
            for moment in history.moments():
                assert set(history.answers(moment)) == {"observe/table_counters", "doctor/x"}


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE moment (id)")
    connection.close()


def later(path: Path) -> None:
    filled(path, 2)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def damaged(path: Path) -> None:
    filled(path, 40)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 4096)


def cut(path: Path) -> None:
    filled(path, 40)
    os.truncate(path, path.stat().st_size // 2)


def without_origin(path: Path) -> None:
    filled(path, 2)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM origin")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, "no such file"),
        (lambda path: path.write_bytes(b"no history\n" * 200), "is no history"),
        (lambda path: path.mkdir(), "no such file"),
        (foreign, "but no history"),
        (later, "version 99"),
        (damaged, "is damaged"),
        (cut, "is damaged"),
        (without_origin, "nothing says whose it is"),
    ],
    ids=["none", "text", "folder", "foreign", "later", "damaged", "cut", "without origin"],
)
def test_what_is_no_history_is_told(make: object, said: str, tmp_path: Path) -> None:
    """By the reader, and by the writer, which changes nothing of it."""
    path = tmp_path / "h.sqlite"
    make(path)  # type: ignore[operator]
    with pytest.raises(InputError, match=said):
        History.open(path)
    if path.is_file():
        before = path.read_bytes()
        with pytest.raises(InputError, match=said):
            History.extend(path, ORIGIN)
        assert path.read_bytes() == before


def test_answers_of_another_form_are_told(tmp_path: Path) -> None:
    """A file that is SQLite's and ours, with values that are none."""
    path = tmp_path / "h.sqlite"
    filled(path, 3)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE answer SET body = x'00' WHERE moment = 2 AND body IS NOT NULL")
    connection.execute("UPDATE moment SET changes = '[1]' WHERE id = 3")
    connection.commit()
    connection.close()
    with History.open(path) as history:
        with pytest.raises(InputError, match="damaged"):
            history.moments()
        wrong = KeptMoment(number=2, at_s=0.0, base=1, life="", changes={})
        with pytest.raises(InputError, match="moment 2"):
            history.answers(wrong)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    filled(path, 2)
    for other in (
        HistoryOrigin(system_identifier="2", database_oid=5, database="shop", server="18.4"),
        HistoryOrigin(system_identifier="1", database_oid=6, database="bank", server="18.4"),
    ):
        with pytest.raises(InputError, match="history of another database, shop"):
            History.extend(path, other)
    renamed = HistoryOrigin(system_identifier="1", database_oid=5, database="new", server="18.4")
    with History.extend(path, renamed):
        pass


def test_no_room_is_told(tmp_path: Path) -> None:
    """What was there before stays, and the error says what to do."""
    path = tmp_path / "h.sqlite"
    filled(path, 10)
    with History.extend(path, ORIGIN) as history:
        pages = history._connection.execute("PRAGMA page_count").fetchone()[0]
        history._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DiskFull, match="no room"):
            keep_many(history, 200)
        assert len(history.moments()) >= 10
    with History.open(path) as history:
        for moment in history.moments():
            history.answers(moment)


def moments(*lives: str) -> list[KeptMoment]:
    """One each hour from midnight on."""
    return [
        KeptMoment(
            number=number,
            at_s=MIDNIGHT_S + 3600.0 * number,
            base=1,
            life=life,
            changes={"n_tup_upd": 7200.0, "n_tup_hot_upd": 3600.0, "wal_bytes": 3600.0 * 1024**2},
        )
        for number, life in enumerate(lives)
    ]


def hours(found: object) -> tuple[float, float]:
    return tuple(  # type: ignore[return-value]
        (moment.at_s - MIDNIGHT_S) / 3600
        for moment in (found.first, found.last)  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        (None, None, (10.0, 30.0)),
        ("12:00", None, (12.0, 30.0)),
        ("5:30", None, (30.0 - 0.0, 30.0)),
        ("11:30", "14:10", (12.0, 14.0)),
        (None, "2024-10-05 06:00", (10.0, 30.0)),
        ("2024-10-04T12:00:00+02:00", "2024-10-04 12:00", (10.0, 12.0)),
        ("2024-10-04 02:00", "2024-10-04 09:59", (2.0, 9.0)),
    ],
)
def test_times(begin: str | None, end: str | None, found: tuple[float, float]) -> None:
    """As people write them, UTC unless said; a time of day is the last one that there is."""
    all_of_it = moments(*["a"] * 10, *["b"] * 21)
    if begin == "5:30":
        with pytest.raises(InputError, match="1 moments between"):
            span_of(all_of_it, begin, end)
        return
    assert hours(span_of(all_of_it, begin, end)) == found


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("2024-10-04 08:00", "2024-10-04 12:00", "reset between 2024-10-04 09:00 and"),
        ("noon", None, "from 'noon': expected a time"),
        (None, "25:00", "to '25:00'"),
        ("2024-10-04 12:00", "2024-10-04 11:00", "is not before"),
        ("2030-01-01", None, "is not before"),
        ("2024-10-04 12:10", "2024-10-04 12:50", "0 moments between"),
    ],
)
def test_times_that_are_none(begin: str | None, end: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        span_of(moments(*["a"] * 10, *["b"] * 21), begin, end)


def test_one_moment_is_no_interval() -> None:
    with pytest.raises(InputError, match="has 1 moments"):
        span_of(moments("a"), None, None)


def test_a_day_that_tells_nothing_has_no_chart() -> None:
    """Two moments without one before them, or of a server whose counts went back."""
    nothing = [
        KeptMoment(number=n, at_s=MIDNIGHT_S + n, base=1, life="a", changes={}) for n in range(2)
    ]
    assert day(nothing, span_of(nothing, None, None)) is None


def test_the_day_as_a_chart() -> None:
    """Rates of the hours, gaps where counts were lost, and the interval's ends."""
    all_of_it = moments(*["a"] * 10, *["b"] * 21)
    span = span_of(all_of_it, "2024-10-04 12:00", "2024-10-04 14:00")
    chart = day(all_of_it, span)
    assert chart is not None
    rows = list(chart.spec["datasets"].values())
    marks = next(found for found in rows if "name" in found[0])
    assert [(each["at"], each["name"]) for each in marks] == [(12.0, "from"), (14.0, "to")]
    updates = next(found for found in rows if found[0].get("mid") == 2.0)
    assert {row["mid"] for row in updates} == {2.0}
    assert {row["part"] for row in updates} == {"0", "1"}
    covered = [
        (one["x"], other["x"]) for one, other in pairwise(updates) if one["part"] == other["part"]
    ]
    assert (9.0, 10.0) not in covered
    assert (8.0, 9.0) in covered
    assert max(row["x"] for row in updates) == 24.0
    assert next(found for found in rows if found[0].get("mid") == 0.5)
    assert "2024-10-04" in chart.title
