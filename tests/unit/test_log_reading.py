"""Statements out of server logs: by time and database, with what cannot be known said."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.sources.log_reading import LogWatch, logged_of, read_log
from pgheadroom.sources.recording import RecordedAnswer, Recording
from pgheadroom.sources.statements import writes_of

LOG_LINES = [
    ("statement: UPDATE t SET a = 1", True),
    ("duration: 0.123 ms  statement: UPDATE t SET a = 2", True),
    ("execute <unnamed>: UPDATE t\nSET b = $1", True),
    ("duration: 1.5 ms  execute S_1/C_2: UPDATE t SET b = $1", True),
    ("duration: 1.5 ms  parse <unnamed>: UPDATE t SET c = $1", False),
    ("duration: 1.5 ms  bind <unnamed>: UPDATE t SET c = $1", False),
    ("duration: 1.5 ms", False),
    ("checkpoint starting: time", False),
]
EXPECTED = {"UPDATE t SET a = 0": 2, "UPDATE t SET b = ''": 2}
PREFIX = "%m [%p] %q%u@%d "


def csvlog(database: str, at: str = "2026-11-20 10:00:00.000 UTC") -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for message, _ in LOG_LINES:
        stream.write(f"{at},")  # the server quotes texts, not the time
        writer.writerow(["me", database, *[""] * 8, "LOG", "00000", message, *[""] * 12])
    return stream.getvalue()


def jsonlog(database: str, at: str = "2026-11-20 10:00:00.000 UTC") -> str:
    return "".join(
        json.dumps(
            {"timestamp": at, "dbname": database, "error_severity": "LOG", "message": message}
        )
        + "\n"
        for message, _ in LOG_LINES
    )


def stderr_log(database: str, at: str = "2026-11-20 10:00:00.000 UTC") -> str:
    return "".join(
        f"{at} [17] me@{database} LOG:  {message}".replace("\n", "\n\t")
        + f"\n{at} [17] me@{database} DETAIL:  parameters: $1 = 'x'\n"
        for message, _ in LOG_LINES
    )


def recording(from_s: float, to_s: float, **settings: Any) -> Recording:
    """As much of a recording as a log's reading needs."""
    logged = {
        "line_prefix": PREFIX,
        "zone": "Etc/UTC",
        "zone_offset_s": 0,
        "encoding": "UTF8",
        "messages": "C",
        "statements": "mod",
        "min_duration": "-1",
        "min_duration_sample": "-1",
        "transaction_sample_rate": 0.0,
        "file_name": None,
    } | settings
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("identity", "shape", {"database": "db"}),
        ("log_settings", "shape", logged),
        ("instant", "start", {"at_epoch_s": from_s}),
        ("instant", "end", {"at_epoch_s": to_s}),
    ]
    return Recording(tuple(RecordedAnswer(query=q, moment=m, rows=(row,)) for q, m, row in rows))


NOON_S = 1_795_176_000.0
"""2026-11-20 12:00:00 UTC."""


def at(seconds: int) -> str:
    return f"2026-11-20 12:{seconds // 60:02d}:{seconds % 60:02d}.000 UTC"


@pytest.mark.parametrize("form", [csvlog, jsonlog, stderr_log])
def test_each_log_format_gives_the_executed_statements(form: Any, tmp_path: Path) -> None:
    """Parse and bind lines stand beside their execute line: counting them would triple it."""
    path = tmp_path / "server.log"
    path.write_text(form("db"))
    assert dict(read_log(path, "db").counts) == EXPECTED


@pytest.mark.parametrize("form", [csvlog, jsonlog, stderr_log])
def test_other_databases_statements_are_left_out(form: Any, tmp_path: Path) -> None:
    """A server's log is that of all its databases, and a table's name may be in several."""
    path = tmp_path / "server.log"
    path.write_text(form("other"))
    with pytest.raises(InputError, match="no executed statement of this database"):
        read_log(path, "db")


def test_a_stderr_log_that_begins_with_many_commas_is_no_csvlog(tmp_path: Path) -> None:
    """A log that began with an INSERT of many columns was read as csvlog, and found empty."""
    columns = ", ".join(f"c{n}" for n in range(30))
    path = tmp_path / "server.log"
    head = "2026-11-20 10:00:00.000 UTC [17] me@db LOG:  "
    path.write_text(f"{head}statement: INSERT INTO t ({columns}) VALUES (1)\n{stderr_log('db')}")
    assert EXPECTED.items() <= dict(read_log(path, "db").counts).items()


@pytest.mark.parametrize("form", [csvlog, jsonlog, stderr_log])
def test_only_the_interval_is_counted(form: Any, tmp_path: Path) -> None:
    """What was written before the interval and while it was read told of another workload."""
    path = tmp_path / "server.log"
    path.write_text("".join(form("db", at(second)) for second in range(100)))
    told: list[str] = []
    (found,) = LogWatch([path]).read(recording(NOON_S + 20, NOON_S + 29), told.append)
    assert dict(found.counts) == {text: number * 10 for text, number in EXPECTED.items()}
    assert (found.notes, found.lost, told) == ((), {}, [])
    watch, asked = LogWatch([path]), recording(NOON_S + 100, NOON_S + 200)
    watch.at("start", asked)
    with path.open("a") as file:
        file.write(form("db", at(150)) + form("other", at(150)) + form("db", at(250)))
    watch.at("end", asked)
    with path.open("a") as file:
        file.write(form("db", at(160)))
    (found,) = watch.read(asked, told.append)
    assert dict(found.counts) == EXPECTED


def test_a_large_log_is_not_read_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of an interval is looked for by time: of 12 MB at most some megabytes are read."""
    path = tmp_path / "server.log"
    filler = "".join(stderr_log("db", at(second)) for second in range(3000))
    assert len(filler) > 3_500_000
    path.write_text(filler)
    fed: list[int] = []
    scan = _core.LogScan

    class Counting:
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self._scan = scan(*arguments, **named)
            self.found, self.end_file = self._scan.found, self._scan.end_file

        def feed(self, chunk: bytes) -> None:
            fed.append(len(chunk))
            self._scan.feed(chunk)

    monkeypatch.setattr("pgheadroom.sources.log_reading._SEARCH_BYTES", 100_000)
    with monkeypatch.context() as patched:
        patched.setattr(_core, "LogScan", Counting)
        (found,) = LogWatch([path]).read(recording(NOON_S + 1500, NOON_S + 1509), print)
    assert dict(found.counts) == {text: number * 10 for text, number in EXPECTED.items()}
    assert sum(fed) < 600_000


def test_the_bound_is_kept_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log may be written faster than anybody wants to read it."""
    monkeypatch.setattr("pgheadroom.sources.log_reading._READ_BYTES_MAX", 5_000)
    path = tmp_path / "server.log"
    path.write_text("".join(stderr_log("db", at(second)) for second in range(1000)))
    (found,) = LogWatch([path]).read(recording(NOON_S, NOON_S + 1000), lambda _: None)
    assert 0 < found.seen < 50
    assert "MB of the log were not read" in found.notes[0]


def test_times_in_the_logs_zone(tmp_path: Path) -> None:
    """12:30 in Kolkata, and the hour of Berlin that comes twice, are the right moments."""
    path = tmp_path / "server.log"
    path.write_text(stderr_log("db", "2026-11-20 17:30:10.000 IST"))
    asked = recording(NOON_S, NOON_S + 60, zone="Asia/Kolkata", zone_offset_s=19_800)
    (found,) = LogWatch([path]).read(asked, print)
    assert dict(found.counts) == EXPECTED
    twice_s = 1_792_891_800.0  # 2026-10-25 01:30:00 UTC, 02:30:00 CET
    path.write_text(
        stderr_log("db", "2026-10-25 02:30:10.000 CEST")
        + stderr_log("db", "2026-10-25 02:30:10.000 CET")
    )
    asked = recording(twice_s, twice_s + 60, zone="Europe/Berlin", zone_offset_s=3600)
    (found,) = LogWatch([path]).read(asked, print)
    assert dict(found.counts) == EXPECTED
    # A zone that this machine has no data of: the server has said its offset.
    (found,) = LogWatch([path]).read(
        recording(twice_s, twice_s + 60, zone="Mars/Base", zone_offset_s=3600), print
    )
    assert sum(found.counts.values()) >= sum(EXPECTED.values())


def test_prefixes_that_lack_something_say_what_is_needed(tmp_path: Path) -> None:
    """Without %m or %d the place in the file selects alone, and other databases count too."""
    path = tmp_path / "server.log"
    path.write_text("")
    watch, asked = LogWatch([path]), recording(NOON_S, NOON_S + 9, line_prefix="[%p] ")
    watch.at("start", asked)
    path.write_text("[17] LOG:  statement: UPDATE t SET a = 1\n")
    watch.at("end", asked)
    (found,) = watch.read(asked, print)
    assert dict(found.counts) == {"UPDATE t SET a = 0": 1}
    assert "have no time" in found.notes[0]
    assert PREFIX in found.notes[0]
    assert "do not name their database" in found.notes[1]
    with pytest.raises(InputError, match=r"lines have no time.*%m \[%p\] %q%u@%d "):
        LogWatch([path]).read(asked, print)


def test_a_log_of_another_prefix_or_without_statements_says_so(tmp_path: Path) -> None:
    """An interval is not lost for its log: the profile comes, and the log's report says why."""
    path = tmp_path / "server.log"
    path.write_text(stderr_log("db", at(1)))
    (found,) = LogWatch([path]).read(recording(NOON_S, NOON_S + 9, line_prefix="%t:%u@%d:"), print)
    assert found.seen == 0
    assert any("do not begin with the server's log_line_prefix" in note for note in found.notes)
    assert any("holds no executed statement" in note for note in found.notes)
    path.write_text(stderr_log("other", at(1)))
    (found,) = LogWatch([path]).read(
        recording(NOON_S, NOON_S + 9, statements="none", min_duration="250ms"), print
    )
    assert "4 are of other databases" in found.notes[0]
    assert found.notes[1] == "the log has only statements that took 250ms or longer"


def test_names_of_a_latin_database_are_read(tmp_path: Path) -> None:
    """A server writes statements in the encoding of their database."""
    path = tmp_path / "server.log"
    text = stderr_log("db", at(1)).replace("UPDATE t", "UPDATE stra\N{LATIN SMALL LETTER SHARP S}e")
    path.write_bytes(text.encode("latin-1"))
    (found,) = LogWatch([path]).read(recording(NOON_S, NOON_S + 9, encoding="LATIN1"), print)
    assert "UPDATE stra\N{LATIN SMALL LETTER SHARP S}e SET a = 0" in found.counts


def test_an_old_recording_has_no_settings_of_the_log() -> None:
    """Files of an earlier version's script lack the query: the prefix is guessed."""
    assert logged_of(None, around_s=NOON_S).prefix is None


LITERALS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda d: f"{d:f}"),
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=12).map(
        lambda text: "'" + text.replace("'", "''") + "'"
    ),
    st.text("ab\\'$;-", max_size=6).map(lambda text: f"$q${text.replace('$', '')}$q$"),
)
SHAPES = st.sampled_from(
    [
        "UPDATE t SET a = {0}, b = {1} WHERE id = {2}",
        "DELETE FROM t WHERE a IN ({0}, {1}, {2})",
        "INSERT INTO t (a, b) VALUES ({0}, {1}), ({2}, {0})",
        "UPDATE t SET a = a + {0} /* it is */ WHERE b BETWEEN {1} AND {2} -- end",
    ]
)


_LIST = re.compile(r"\(\$(?:, \$)*\)(?:, \(\$(?:, \$)*\))*")


def _same(text: str) -> str:
    """As the grammar finds constants; a list of them is as one, as the scanner leaves it."""
    (found,) = _core.normalized_statements(text) or ()
    return _LIST.sub("($)", re.sub(r"\$\d+", "$", found))


@settings(derandomize=True, deadline=None, max_examples=examples(150))
@given(shape=SHAPES, values=st.lists(LITERALS, min_size=3, max_size=3))
def test_what_the_scanner_leaves_is_the_same_statement_to_the_grammar(
    tmp_path_factory: pytest.TempPathFactory, shape: str, values: list[str]
) -> None:
    """The log has its own scanner, for speed; equal statements are the grammar's to say."""
    statement = shape.format(*values)
    path = tmp_path_factory.mktemp("log") / "server.log"
    path.write_text(f"2026-11-20 10:00:00.000 UTC [17] me@db LOG:  statement: {statement}\n")
    (left,) = read_log(path, "db").counts
    assert _same(left) == _same(statement)
    assert writes_of(left) == writes_of(statement) != ()
