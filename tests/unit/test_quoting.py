"""Foreign text on its way to people: nothing in it acts."""

from __future__ import annotations

import io
import unicodedata

import pytest

from pgheadroom.cli import app, output
from pgheadroom.cli.terminal import Terminal
from pgheadroom.lab import reading
from pgheadroom.quoting import (
    called,
    printable,
    printable_lines,
    shown_identifier,
    shown_relation,
)

ACTS = "\x1b[2J\x07\r\b\x9b31m\u202e\u2066\u200b\u2028\x85\x00\x7f\ud800\U000e0041"


def acting(text: str) -> list[str]:
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def test_what_acts_is_escaped_and_the_rest_stays() -> None:
    """Escape sequences, C1 controls, bidi and format characters, line breaks of every kind."""
    shown = printable(f"a{ACTS}b")
    assert not acting(shown)
    assert "\\x1b[2J" in shown
    assert "\\u202e" in shown
    for text in ("Ünï_名前", "plain text, 100 %", "no\u00a0break", "→ 🙂"):
        assert printable(text) == text
        assert reading.printable(text) == text
    assert printable("a\nb\tc") == "a\\nb\\tc"
    assert printable_lines("a\nb\x1bc") == "a\nb\\x1bc"


def test_one_function_guards_every_way_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences of a console, errors, and what the other forms print on a terminal."""
    stream = io.StringIO()
    Terminal(file=stream, width=200).print(f"* {ACTS}", markup=False)
    assert acting(stream.getvalue()) == ["\n"]
    app._say(f"pgheadroom: {ACTS}\nsecond line")
    assert acting(capsys.readouterr().err) == ["\n", "\n"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    output.write_out(f'{{"name": "{ACTS[:-2]}"}}\n')
    assert acting(capsys.readouterr().out) == ["\n"]


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("orders", '"orders"'),
        ('a"b', '"a""b"'),
        ("ä€", '"ä€"'),
        ("a\nb", 'U&"a\\+00000ab"'),
        ('a\\\n"', 'U&"a\\\\\\+00000a"""'),
    ],
)
def test_identifiers_show_what_is_in_them(name: str, quoted: str) -> None:
    """A name that could move a cursor is written by code points, which PostgreSQL reads as it."""
    assert shown_identifier(name) == quoted


def test_lines_of_libpq_are_indented() -> None:
    r"""Its messages have a second line with a tab before it, which was shown as \t."""
    assert printable_lines("no connection\n\tIs it running?") == "no connection\n  Is it running?"


def test_a_relation_is_called_by_its_schema_where_that_says_something() -> None:
    """People leave `public` out; a statement names it, and takes nothing as it acts."""
    assert [called(schema, "jobs") for schema in ("public", "app")] == ["jobs", "app.jobs"]
    assert shown_relation("public", 'a"b') == '"public"."a""b"'
    assert shown_relation("app", "\x1b") == '"app".U&"\\+00001b"'
