"""Units, quoting, versions, intervals: the small values at the edges."""

from __future__ import annotations

import pytest

from pgheadroom.errors import InputError
from pgheadroom.quoting import conf_value, identifier, literal
from pgheadroom.types import Interval, PgVersion
from pgheadroom.units import (
    parse_duration_s,
    parse_setting_bytes,
    parse_setting_kb,
    setting_bytes,
    show_age,
    show_bytes,
    show_duration,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("80MB", 80 * 1024**2), ("8192B", 8192), ("1 GB", 1024**3), ("16kB", 16384)],
)
def test_setting_sizes_use_1024(text: str, value: int) -> None:
    """PostgreSQL's kB is 1,024 bytes; reading it as 1,000 would be 2 % wrong."""
    assert parse_setting_bytes(text) == value


@pytest.mark.parametrize("text", ["", "80", "80mb", "1.5GB", "-1kB", "MB"])
def test_setting_sizes_refuse_what_postgresql_spells_otherwise(text: str) -> None:
    """Units are case sensitive in PostgreSQL, and a bare number means different things."""
    with pytest.raises(InputError):
        parse_setting_bytes(text)


def test_a_bare_setting_may_be_of_kilobytes() -> None:
    """As PostgreSQL reads `work_mem`, and a profile's `server.settings`."""
    assert [parse_setting_kb(text) for text in ("4096", "4MB", " 64kB ")] == [4096, 4096, 64]
    with pytest.raises(InputError):
        parse_setting_kb("4 megabytes")


def test_setting_bytes_round_up() -> None:
    """A setting never becomes smaller than what was asked."""
    assert setting_bytes(1025) == "2kB"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("5min", 300), ("90", 90), ("1.5h", 5400), ("250ms", 0.25)]
)
def test_durations(text: str, seconds: float) -> None:
    """Both of the spellings that users know."""
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0s", "-5m", "5 parsecs", "m"])
def test_durations_refuse_nonsense(text: str) -> None:
    """A budget of nothing is a mistake, not a run without an end."""
    with pytest.raises(InputError):
        parse_duration_s(text)


def test_nothing_is_a_duration_where_that_makes_sense() -> None:
    """A budget may be 0; how long to observe may not."""
    assert parse_duration_s("0", may_be_zero=True) == parse_duration_s("0s", may_be_zero=True) == 0
    with pytest.raises(InputError, match="expected a number with one of the units"):
        parse_duration_s("none", may_be_zero=True)


def test_shown_sizes_and_durations() -> None:
    """What people read."""
    assert show_bytes(1536) == "1.5 KiB"
    assert show_bytes(12) == "12 B"
    assert show_duration(0.42) == "0.42 s"
    assert show_duration(3900) == "1 h 05 min"
    assert show_age(2 * 86_400 - 60) == "47 h 59 min"
    assert show_age(40 * 86_400) == "40 days"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("18.4", PgVersion(18, 4)),
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", PgVersion(15, 18)),
        ("PostgreSQL 16.14 on x86_64-pc-linux-gnu", PgVersion(16, 14)),
        ("19beta1", PgVersion(19, 0, "beta1")),
        ("postgres (PostgreSQL) 19rc1 (Debian 19~rc1-1)", PgVersion(19, 0, "rc1")),
        ("postgres (PostgreSQL) 20devel", PgVersion(20, 0, "devel")),
        ("18", PgVersion(18, 0)),
    ],
)
def test_versions_are_read(text: str, version: PgVersion) -> None:
    """As servers and people spell them."""
    assert PgVersion.parse(text) == version


def test_versions_order_and_numbers() -> None:
    """18.4 comes before 18.6, and a candidate before the release; 180004 is 18.4."""
    order = ["18.4", "18.6", "19beta2", "19rc1", "19.0", "19.1"]
    assert [str(version) for version in sorted(map(PgVersion.parse, order))] == order
    assert PgVersion(18, 6) >= PgVersion(18, 4)
    assert PgVersion.of_server(180004, "18.4 (Debian 18.4-1)") == PgVersion(18, 4)


def test_what_a_server_calls_itself() -> None:
    """A pre-release by its name; what forks write is not believed."""
    assert PgVersion.of_server(190000, "19rc1 (Debian 19~rc1-1)") == PgVersion(19, 0, "rc1")
    assert PgVersion.of_server(190000, "Fork 7.1") == PgVersion(19, 0)
    assert PgVersion.of_server(160004, "99beta1") == PgVersion(16, 4)
    assert str(PgVersion.parse("19rc1")) == "19rc1"
    with pytest.raises(InputError):
        PgVersion.parse("no version")


def test_quoting_keeps_hostile_names_inside() -> None:
    """A name with quotes cannot end its own quoting, in any of the languages."""
    assert identifier('a"; DROP TABLE x; --') == '"a""; DROP TABLE x; --"'
    assert literal("it's") == "'it''s'"
    assert literal("a\\b") == " E'a\\\\b'"
    assert conf_value("it's \\") == "'it''s \\\\'"


@pytest.mark.parametrize("quote", [identifier, literal, conf_value])
def test_quoting_refuses_nul(quote: object) -> None:
    """C strings end at NUL: what follows would be lost in silence."""
    assert callable(quote)
    with pytest.raises(InputError):
        quote("a\0b")


def test_settings_cannot_span_lines() -> None:
    """A line break in a value would become another setting."""
    with pytest.raises(InputError):
        conf_value("x'\nshared_preload_libraries = 'evil")


def test_intervals_are_ordered() -> None:
    """Bounds stand around the middle, and a level that is a probability."""
    with pytest.raises(ValueError, match="above its middle"):
        Interval(low=2, mid=1, high=3, level=0.95)
    with pytest.raises(ValueError, match="level"):
        Interval(low=1, mid=1, high=1, level=95)
    assert Interval(low=1, mid=2, high=3, level=0.9).excludes(3.5)
