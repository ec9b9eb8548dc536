"""
Whatever a database's names hold, a plan's files say what the plan says, and nothing else.

A name may be any text but NUL: line breaks of every kind, ends of comments and fences, markup,
escape sequences, characters that turn the direction of writing. The files are pasted into psql,
shells, reviews and terminals.
"""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lengths import examples

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from test_plan import MARK, forecast, plan

from pgheadroom.migration.ddl import read_migration
from pgheadroom.plan.reading import plan_text
from pgheadroom.plan.steps import make_step
from pgheadroom.plan.text import LOCK_TIMEOUT, as_markdown, as_text
from pgheadroom.plan.values import Plan, Target, Tool
from pgheadroom.quoting import printable_json, shell_word, shown_identifier, shown_literal
from pgheadroom.sources.statements import located

_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PIECES = (
    "*/", "/*", "--", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029", "\x1b[2J", "\x9b",
    "\x7f", "\u202e", "\u2066", "\u200b", "\U000e0041", '"', "'", "`", "```", "\\", "\\!", ";",
    "$$", "$x$", "<b>", "</details>", "<!--", "-->", "&lt;", "|", "~~", "](x)", "#",
    "DROP TABLE x;", "%n",
    ":v", ' "; DROP TABLE x; --', "U&", "é", "\N{PILE OF POO}", "{{", "}}", " ",
)  # fmt: skip
NAMES = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6).map("".join),
).map(lambda text: text.encode()[:63].decode(errors="ignore"))  # NAMEDATALEN


def _plan(schema: str, name: str, database: str, said: str) -> Plan:
    """Both kinds of step, a client's command and an offer, of one table; free texts beside."""
    mark = replace(MARK, schema=schema, name=name)
    target = Target(
        system_identifier=said, database_oid=5, database=database, server_version="18.4"
    )
    known = replace(forecast(mark), reason=said)
    tools: tuple[Tool, ...] = ("ALTER TABLE", "VACUUM FULL", "pg_squeeze", "pg_repack")
    steps = tuple(
        make_step(n, tool, known, 0 if tool == "ALTER TABLE" else 10**9, target)
        for n, tool in enumerate(tools, 1)
    )
    offer = make_step(0, "REPACK (CONCURRENTLY)", known, 10**9, target)
    made = replace(plan(), steps=steps, offers=(offer,), target=target, notes=(said,))
    return replace(made, observed_at=said, tool_version=said, created_at=said)


def _acting(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in _ACTING]


@settings(derandomize=True, deadline=None, max_examples=examples(100))
@given(schema=NAMES, name=NAMES, database=NAMES, said=NAMES)
@example(schema="a\nb", name='x";\nDROP TABLE y; --', database="d\n", said="*/\nDROP TABLE z;\n--")
def test_the_script_has_exactly_the_plans_statements(
    schema: str, name: str, database: str, said: str
) -> None:
    """By PostgreSQL's own grammar, of the very table; every other line is a comment or empty."""
    made = _plan(schema, name, database, said)
    text = as_text(made)
    assert _acting(text) == []
    expected = [f"SET lock_timeout = '{LOCK_TIMEOUT}'"]
    expected += [step.sql for step in made.steps if step.sql is not None]
    assert [found.text for found in located(text)] == expected
    (action,) = read_migration(text)[1].actions
    table = getattr(action, "table", None)
    assert (table.schema, table.name) == (schema, name)
    for line in text.splitlines():
        assert line == "" or line.startswith("-- ") or line.removesuffix(";") in expected


@settings(derandomize=True, deadline=None, max_examples=examples(100))
@given(schema=NAMES, name=NAMES, database=NAMES, said=NAMES)
def test_markdown_and_json_hold_nothing_that_acts(
    schema: str, name: str, database: str, said: str
) -> None:
    """Text of a name is text: no markup, no line of its own, no fence that ends early."""
    made = _plan(schema, name, database, said)
    markdown = as_markdown(made)
    assert _acting(markdown) == []
    statements = {f"{step.sql};" for step in made.steps if step.sql is not None}
    statements |= {f"{step.undo};" for step in made.steps if step.undo is not None}
    statements |= {step.command for step in made.steps if step.command is not None}
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            assert line in statements or line == fence
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("sql").removesuffix("sh")
        else:
            assert line == "" or line.startswith(("#", "- ", *_OURS)), line
    assert fence == ""
    written = plan_text(made)
    assert _acting(written) == []
    assert json.loads(written)["steps"][0]["table"]["name"] == name


_OURS = ("Leave room on", "no new index", "Undo: ", "A rewrite would", "`pgheadroom ", "`--undo`")


@settings(derandomize=True, deadline=None, max_examples=examples(100))
@given(text=NAMES)
def test_what_is_quoted_to_be_seen_is_the_same_value(text: str) -> None:
    """JSON is the same value; nothing that is quoted acts."""
    assert json.loads(printable_json(json.dumps({text: [text]}, ensure_ascii=False))) == {
        text: [text]
    }
    for quoted in (shown_identifier(text), shown_literal(text), shell_word(text)):
        assert _acting(quoted) == []
        assert "\n" not in quoted


@pytest.mark.parametrize("place", range(0, len(_PIECES), 12))
def test_a_shell_reads_the_word_that_was_meant(place: int) -> None:
    """By bash itself, for every piece alone and all of them together."""
    words = [*_PIECES[place : place + 12], "".join(_PIECES)]
    command = " ".join(map(shell_word, words))
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert done.stdout.decode().split("\0")[:-1] == words
