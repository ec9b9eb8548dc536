"""Enums of a live table: predicates without the names of their types."""

from __future__ import annotations

import pytest

from pgheadroom.observe.enums import without_types


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("status = 'todo'::job", "status = 'todo'"),
        ("status = 'it''s'::job", "status = 'it''s'"),
        ("kind = 'a'::job_kind AND status <> ''::job", "kind = 'a' AND status <> ''"),
        ("status = ANY (ARRAY['a'::job, 'b''s'::job])", "status IN ('a', 'b''s')"),
        ("status <> ALL (ARRAY['a'::job])", "status NOT IN ('a')"),
        ("status <> ANY (ARRAY['a'::job])", "status <> ANY (ARRAY['a'])"),
        # What stands inside of a literal is no cast.
        ("note = 'x''::job' AND status = 'a'::job", "note = 'x''::job' AND status = 'a'"),
        ("note = '''a''::job'", "note = '''a''::job'"),
        ("note = '::job'", "note = '::job'"),
        # Types of others, whose names begin or end alike, stay.
        ("note = 'a'::job_text", "note = 'a'::job_text"),
        ("note = 'a'::job.text", "note = 'a'::job.text"),
        ("s = 'a'::\"My Job\"", "s = 'a'"),
        # The type has to be named.
        ("status = ANY ('{a,b}'::job[])", None),
        ("(n)::text::job = status", None),
        ("status = ANY (ARRAY['a'::job, (note)::job])", None),
    ],
)
def test_types_of_enums_are_not_named(text: str, bare: str | None) -> None:
    """A profile's enum is of another name than the live one's."""
    assert without_types(text, {"job", "job_kind", '"My Job"'}) == bare
