"""Plans as values and as text: round trips, names that would break out, files that were changed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.advise.foreseen import Point, Transition
from pgheadroom.advise.policy import make_policy
from pgheadroom.cli.apply_output import wrapped
from pgheadroom.errors import InputError
from pgheadroom.plan.measured import MeasuredInterval, UpdateShare
from pgheadroom.plan.reading import plan_text, read_plan
from pgheadroom.plan.record import new_record, read_record, record_path, save
from pgheadroom.plan.statements import TRAITS, rewrite, tool_of, undo_fillfactor
from pgheadroom.plan.steps import as_made, check_plan, make_step
from pgheadroom.plan.text import as_markdown, as_text
from pgheadroom.plan.values import (
    ColumnMark,
    Forecast,
    IndexMark,
    Plan,
    Step,
    TableMark,
    Target,
    Tool,
)
from pgheadroom.profile import read_profile
from pgheadroom.profile.within import ProfileWithin
from pgheadroom.types import Interval

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = 'a"b\n-- drop\r\n```\nDROP TABLE x; <b>`\u2028\x85é\\'
MARK = TableMark(
    schema="public",
    name="jobs",
    oid=16384,
    relfilenode=16385,
    columns=(ColumnMark(name="id", type="bigint"), ColumnMark(name="state", type="text")),
    indexes=(
        IndexMark(
            name="jobs_pkey",
            method="btree",
            is_unique=True,
            columns=("id",),
            include=(),
            expressions=None,
            predicate=None,
        ),
    ),
    reloptions={"autovacuum_enabled": "off"},
)
TARGET = Target(system_identifier="7", database_oid=5, database="shop", server_version="18.4")
MEASURED = MeasuredInterval(
    interval_s=60.0,
    fillfactor=100,
    rows=1000,
    heap_bytes=819_200,
    inserts=0,
    updates=500,
    deletes=0,
    hot_updates=250,
    newpage_updates=None,
    tuple_bytes=100.5,
    classes=(UpdateShare(columns=("state",), frac=1.0),),
    classes_source="log",
    wal_bytes_per_update=None,
    held_frac=0.0,
)


def point(fillfactor: int, hot: float) -> Point:
    around = Interval(low=hot - 0.01, mid=hot, high=hot + 0.01, level=0.9)
    return Point(
        fillfactor=fillfactor,
        hot_frac=around,
        newpage_frac=1 - hot,
        heap_bytes=9e5,
        index_bytes=1e5,
        wal_bytes_per_update=around,
        pages_modified_per_update=0.5,
        seq_scan_pages=100.0,
    )


def forecast(mark: TableMark = MARK) -> Forecast:
    return Forecast(
        table=mark,
        verdict="CHANGE",
        fillfactor=90,
        before=point(100, 0.5),
        after=point(90, 0.95),
        transition=Transition(
            verdict="converges",
            after_s=3600.0,
            after_updates_per_row=1.5,
            final_hot_frac=0.9,
            rewritten_hot_frac=0.95,
            final_heap_bytes=9e5,
        ),
        measured=MEASURED,
        reason="room is short",
    )


def step(number: int, tool: Tool = "ALTER TABLE", mark: TableMark = MARK) -> Step:
    return make_step(number, tool, forecast(mark), 0 if tool == "ALTER TABLE" else 10**9, TARGET)


def plan(*steps: Step) -> Plan:
    return Plan(
        tool_version="0.1.0",
        created_at="2026-11-22T03:00:00Z",
        observed_at=None,
        target=TARGET,
        policy=make_policy().stated(),
        rewrite="none",
        steps=steps,
        offers=(step(0, "VACUUM FULL"),),
        kept=(replace(forecast(), verdict="KEEP", transition=None),),
        notes=("a session holds the horizon",),
    )


def test_a_saved_plan_is_read_as_the_same(tmp_path: Path) -> None:
    """Through text, with intervals, nested values and odd names."""
    odd = replace(MARK, name=HOSTILE, oid=16999)
    made = plan(step(1), step(2, "pg_repack", odd), step(3, "VACUUM FULL"))
    path = tmp_path / "plan.json"
    path.write_text(plan_text(made), encoding="utf-8")
    assert read_plan(path) == made


def test_undo_puts_back_what_was_set_or_that_nothing_was() -> None:
    """100 that was written down is not the same as nothing."""
    assert undo_fillfactor(MARK) == 'ALTER TABLE "public"."jobs" RESET (fillfactor)'
    explicit = replace(MARK, reloptions={"fillfactor": "100"})
    assert undo_fillfactor(explicit) == 'ALTER TABLE "public"."jobs" SET (fillfactor = 100)'


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("kind",), "advice", "expected a plan of version 2"),
        (("schema_version",), 1, "Version 1 has no digest"),
        (("target", "database_oid"), "5; DROP", "target.database_oid: found '5; DROP'"),
        (("steps", 0, "sql"), "DROP TABLE jobs", "step 1 was changed by hand"),
        (("steps", 0, "undo"), "DROP TABLE jobs", "step 1 was changed by hand"),
        (("steps", 0, "fillfactor"), 5, "step 1 has fillfactor 5"),
        (("steps", 0, "fillfactor"), 80, "step 1 was changed by hand"),
        (("steps", 0, "run_by"), "you", "step 1 was changed by hand"),
        (("steps", 0, "table", "name"), "other", "step 1 was changed by hand"),
        (("steps", 0, "kind"), "rewrite", "step 1 was changed by hand"),
        (("steps", 0, "number"), 2, "step 1 has number 2"),
        (("steps", 0, "duration_s", "low"), 99.0, "is above its middle"),
        (("steps", 0, "duration_s", "low"), None, "found None, expected a number"),
        (("steps", 0, "tool"), "rm", "expected one of ALTER TABLE"),
        (("steps",), {}, "expected a list"),
        (("steps", 0), [], "expected a table of fields"),
        (("steps", 0, "more"), 1, "steps[0].more: unknown field"),
        (("steps", 0, "table", "reloptions", "fillfactor"), "1e2", "storage parameter"),
        (("kept", 0, "table", "reloptions", "fillfactor"), "1e2", "expected 10 to 100"),
        (("steps", 0, "copied_bytes"), 10**400, "expected a whole number"),
        (("steps", 0, "duration_s", "high"), 10**400, "expected a number"),
        (("steps", 0, "risk"), "\ud800", "expected a text"),
        (("steps", 0, "risk"), "none", "its digest is"),
        (("steps", 0, "lock"), "none", "its digest is"),
        (("created_at",), "now\x1b[2J", "expected a time in UTC"),
        (("target", "server_version"), "new", "no PostgreSQL version"),
        (("digest",), None, "its digest is 'None'"),
        (("digest",), "0" * 64, "was changed since it was written"),
    ],
)
def test_a_plan_that_was_changed_is_refused(
    tmp_path: Path, path: tuple[Any, ...], value: Any, message: str
) -> None:
    """What runs is what the plan's own fields make, and every field is of its kind."""
    data = json.loads(plan_text(plan(step(1))))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        read_plan(file)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kind": "plan", "schema_version": 1}', "[" * 9999]
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str) -> None:
    """Foreign bytes: a message, no traceback."""
    file = tmp_path / "plan.json"
    file.write_text(content)
    with pytest.raises(InputError):
        read_plan(file)
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "absent.json")


def test_a_profile_for_a_plan_has_no_kind(tmp_path: Path) -> None:
    """It was told "found kind None"."""
    file = tmp_path / "profile.json"
    file.write_text('{"schema_version": 1}')
    with pytest.raises(InputError, match="found no kind; expected a plan"):
        read_plan(file)


def test_no_name_leaves_its_comment_or_its_fence() -> None:
    """Line breaks of every kind, fences and markup are in the names."""
    odd = replace(MARK, name=HOSTILE, schema="s\n--")
    made = replace(
        plan(step(1, mark=odd), step(2, "pg_repack", odd)),
        target=Target(
            system_identifier=None, database_oid=5, database=HOSTILE, server_version="18.4"
        ),
        offers=(step(0, "VACUUM FULL", odd),),
    )
    statement = made.steps[0].sql
    assert statement is not None
    text = as_text(made)
    assert text.count(f"\n{statement};\n") == 1
    rest = text.replace(f"{statement};\n", "")
    for line in rest.splitlines():  # every kind of line break
        assert not line or line.startswith(("--", "SET lock_timeout"))
    markdown = as_markdown(made)
    inside, fence = False, ""
    outside: list[str] = []
    for line in markdown.split("\n"):
        if not inside and line.startswith("```"):
            inside, fence = True, line.rstrip("qlsh")
        elif inside and line == fence:
            inside = False
        elif not inside:
            outside.append(line)
    assert not inside
    assert not any("DROP TABLE" in line and line.lstrip().startswith("DROP") for line in outside)
    assert "<b>" not in "\n".join(line for line in outside if "``" not in line)


def test_the_text_says_what_a_reader_must_know() -> None:
    """Purpose, lock, undo beside the statement, estimates, risk, how to verify."""
    text = as_text(plan(step(1), step(2, "VACUUM FULL")))
    assert "SET lock_timeout = '2s';" in text
    lines = text.splitlines()
    at = lines.index('ALTER TABLE "public"."jobs" SET (fillfactor = 90);')
    assert lines[at + 1] == '-- Undo: ALTER TABLE "public"."jobs" RESET (fillfactor);'
    for said in ("SHARE UPDATE EXCLUSIVE", "ACCESS EXCLUSIVE", "estimated", "Risk:", "verify"):
        assert said in text
        assert said in as_markdown(plan(step(1), step(2, "VACUUM FULL")))
    assert "Not part of this plan" in text


def test_a_clients_command_is_quoted_for_the_shell() -> None:
    """pg_repack takes names as SQL writes them, in one argument of the shell, on one line."""
    import shlex

    odd = replace(MARK, name='it\'s "odd"; rm -rf /')
    target = replace(TARGET, database="my db")
    _, command = rewrite("pg_repack", odd, target)
    assert command is not None
    assert "superuser" not in command
    words = shlex.split(command)
    assert words[0] == "pg_repack"
    assert words[-1] == '--table="public"."it\'s ""odd""; rm -rf /"'
    assert "--dbname=my db" in words
    _, command = rewrite("pg_repack", odd, replace(target, is_superuser=False))
    assert command is not None
    assert [word for word in shlex.split(command) if word not in words] == ["--no-superuser-check"]


def test_marks_say_what_is_different() -> None:
    """Each part that a plan rests on, by name; a hidden text is no difference."""
    index = MARK.indexes[0]
    changed = replace(
        MARK,
        relfilenode=1,
        columns=(ColumnMark(name="id", type="integer"), ColumnMark(name="new", type="text")),
        indexes=(replace(index, columns=("id", "new")), replace(index, name="other")),
        reloptions={"fillfactor": "70"},
    )
    said = "\n".join(MARK.differs(changed))
    for part in (
        "relfilenode",
        "column 'state' is gone",
        "column 'new' is new",
        "type of column 'id'",
        "index 'jobs_pkey' is another one",
        "index 'other' is new",
        "autovacuum_enabled: found not set",
        "fillfactor: found 70, the plan has not set",
    ):
        assert part in said
    assert MARK.differs(MARK) == ()
    hidden = replace(MARK, indexes=(replace(index, expressions="hidden"),))
    shown = replace(MARK, indexes=(replace(index, expressions="lower(state)"),))
    assert hidden.differs(shown) == ()


def test_another_database_is_noticed() -> None:
    """By cluster where it could be read, OID, name and major version; a minor may differ."""
    target = plan().target
    assert target.differs(replace(target, server_version="18.6")) == ()
    assert target.differs(replace(target, system_identifier=None)) == ()
    for change in (
        {"system_identifier": "8"},
        {"database_oid": 6},
        {"database": "other"},
        {"server_version": "17.4"},
    ):
        assert len(target.differs(replace(target, **change))) == 1  # type: ignore[arg-type]


def test_a_record_belongs_to_its_plan(tmp_path: Path) -> None:
    """Another plan's record is not gone on with."""
    made = plan(step(1))
    path = record_path(tmp_path / "plan.json")
    assert path.name == "plan.applied.json"
    assert read_record(path, made) is None
    save(new_record(made), path)
    assert read_record(path, made) == new_record(made)
    with pytest.raises(InputError, match="record of another plan"):
        read_record(path, replace(made, created_at="2026-11-22T04:00:00Z"))
    path.write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        read_record(path, made)


def test_tools_are_named_as_users_write_them() -> None:
    """And an unknown one is refused with those that there are."""
    assert tool_of("vacuum-full") == "VACUUM FULL"
    with pytest.raises(InputError, match="expected one of none, auto, repack"):
        tool_of("cluster")
    check_plan(plan(step(1), step(2, "REPACK (CONCURRENTLY)")))
    check_plan(plan(step(1), step(2, "pg_squeeze")))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a file, containers too."""
    yield path
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from leaves(item, (*path, key))


def others(value: Any) -> list[Any]:
    """Values of the same kind, and of another one, that are not it."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, -value - 1, str(value)]
    if isinstance(value, float):
        return [value * 1.01 + 0.001, -value - 1.0, None]
    if isinstance(value, str):
        return [f"{value} ", value[:-1] + "\u202e", None]
    if isinstance(value, list):
        return [[*value, *value[:1]] if value else [1], value[:-1] if value else None]
    if isinstance(value, dict):
        return [{}, {**value, "more": 1}] if value else [{"more": 1}]
    return ["", 0]


def test_no_field_of_a_plan_can_be_edited(tmp_path: Path) -> None:
    """
    Every value of the file, to another of its kind and to another kind: refused.

    A fillfactor changed from 85 to 10 in field and statement passed, though the page said that
    edited plans are refused.
    """
    text = plan_text(plan(step(1), step(2, "VACUUM FULL")))
    file = tmp_path / "plan.json"
    tried = 0
    for path in leaves(json.loads(text)):
        if not path:
            continue
        data = json.loads(text)
        place = data
        for key in path[:-1]:
            place = place[key]
        value = place[path[-1]]
        for other in others(value):
            place[path[-1]] = other
            file.write_text(json.dumps(data))
            with pytest.raises(InputError):
                read_plan(file)
            tried += 1
    assert tried > 500
    both = text.replace("(fillfactor = 90)", "(fillfactor = 10)")
    both = both.replace('"fillfactor": 90', '"fillfactor": 10')
    file.write_text(both)
    with pytest.raises(InputError, match="its digest is"):
        read_plan(file)


def test_the_layout_of_a_file_is_no_edit(tmp_path: Path) -> None:
    """What another program writes with the same content is the same plan."""
    made = plan(step(1), step(2, "VACUUM FULL"))
    data = json.loads(plan_text(made))
    shuffled = dict(reversed(data.items()))
    shuffled["steps"][0]["forecast"]["measured"]["interval_s"] = 60
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(shuffled, ensure_ascii=True, indent=4))
    assert read_plan(file) == made


def with_digest(data: Any) -> str:
    """The file of somebody who works the digest out anew: it has no key."""
    return plan_text(Plan.from_json(data))


def test_a_plan_from_before_a_field_was_added_is_read_by_its_own_digest(tmp_path: Path) -> None:
    """What was added since has a default; left out, it changes no digest."""
    text = plan_text(plan(step(1)))
    assert '"is_settled"' not in text
    file = tmp_path / "plan.json"
    file.write_text(text)
    forecast = read_plan(file).steps[0].forecast
    assert forecast.after is not None
    assert forecast.after.is_settled
    moving = replace(forecast.after, is_settled=False, updates_per_row=32.0)
    known = replace(step(1), forecast=replace(forecast, after=moving))
    file.write_text(plan_text(plan(known)))
    again = read_plan(file).steps[0].forecast.after
    assert again is not None
    assert (again.is_settled, again.updates_per_row) == (False, 32.0)


def test_the_profile_of_a_plan_stays_as_it_was_written(tmp_path: Path) -> None:
    """It is read as any profile; what an earlier version did not write is not added to it."""
    profile = read_profile(EXAMPLES / "jobs.toml")
    made = replace(plan(step(1)), profile=ProfileWithin.of(profile))
    file = tmp_path / "plan.json"
    file.write_text(plan_text(made))
    found = read_plan(file).profile
    assert found is not None
    assert found.read() == profile

    data = json.loads(plan_text(made))
    del data["profile"]["server"]["wal_level"]
    text = with_digest(data)
    assert '"wal_level"' not in text
    file.write_text(text)
    again = read_plan(file)
    assert again.profile is not None
    assert again.profile.read() == profile
    assert plan_text(again) == text

    data["profile"]["table"][0]["rows"] = "many"
    file.write_text(with_digest(data))
    odd = read_plan(file)  # may be undone all the same
    assert odd.profile is not None
    with pytest.raises(InputError, match=r"table\[0\]\.rows: found 'many'"):
        odd.profile.read()


def test_who_makes_the_digest_anew_still_gets_no_text_through(tmp_path: Path) -> None:
    """Lies about locks and risks are not refused then, but what is shown is made anew."""
    data = json.loads(plan_text(plan(step(1), step(2, "VACUUM FULL"))))
    for n in (0, 1):
        for name in ("lock", "blocks", "risk", "undo_note", "duration_basis"):
            data["steps"][n][name] = "none\x1b[2J"
        data["steps"][n].update(verified=True, in_transaction=True, wal_bytes=0, disk_bytes=0)
    file = tmp_path / "plan.json"
    file.write_text(with_digest(data))
    shown = as_made(read_plan(file))
    assert [s.lock for s in shown.steps] == ["SHARE UPDATE EXCLUSIVE", "ACCESS EXCLUSIVE"]
    assert shown.steps == (step(1), step(2, "VACUUM FULL"))
    assert TRAITS["VACUUM FULL"].risk == shown.steps[1].risk


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # A step with one table's number and another's name ran on the name.
        ({("steps", 0, "name"): "other"}, "another fingerprint of the table with OID 16384"),
        ({("steps", 0, "oid"): 16999}, "another OID for jobs"),
        ({("steps", 0, "relfilenode"): 1}, "another fingerprint"),
        ({("steps", 1, "number"): 3}, "step 2 has number 3"),
        ({("steps", 1, "kind"): "set_fillfactor"}, "its kind is"),
        ({("offers", 0, "sql"): "DROP TABLE jobs"}, "an offered rewrite was changed by hand"),
    ],
)
def test_steps_that_contradict_each_other_are_refused(
    tmp_path: Path, changes: dict[tuple[Any, ...], Any], message: str
) -> None:
    """Whatever the digest says: each step is about its own table."""
    data = json.loads(plan_text(plan(step(1), step(2, "VACUUM FULL"))))
    for (part, n, name), value in changes.items():
        found = data[part][n]
        if name in found:
            found[name] = value
        else:
            found["table"][name] = found["forecast"]["table"][name] = value
            if name == "name":
                found["sql"] = found["sql"].replace("jobs", value)
                found["undo"] = found["undo"].replace("jobs", value)
    file = tmp_path / "plan.json"
    file.write_text(with_digest(data))
    with pytest.raises(InputError) as caught:
        read_plan(file)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("before", "is_known"),
    [("10", True), ("99", True), ("100", True)]
    + [(text, False) for text in ("9", "09", "101", "110", "999", "1000", "85\n", "\u0661\u0660")],
)
def test_a_setting_that_no_table_can_have_had_is_refused(before: str, is_known: bool) -> None:
    """PostgreSQL takes 10 to 100 (intRelOpts); the undo would put the other back, and fail."""
    made = plan(step(1, mark=replace(MARK, reloptions={"fillfactor": before})))
    if is_known:
        check_plan(made)
        return
    with pytest.raises(InputError, match="expected 10 to 100"):
        check_plan(made)


def test_one_table_is_not_set_twice() -> None:
    """The later setting would count, and the earlier one be undone to it."""
    with pytest.raises(InputError, match="does to jobs what another step does"):
        check_plan(plan(step(1), replace(step(1), number=2)))


def test_what_apply_shows_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of 160 characters were broken by the terminal, in the middle of words."""
    statement = f"  ALTER TABLE {'t' * 90} SET (fillfactor = 85);"
    prose = "  lock: " + "SELECT, INSERT, UPDATE and DELETE go on; " * 4
    monkeypatch.setenv("COLUMNS", "80")
    shown = wrapped([statement, prose.rstrip()], [statement])
    assert shown[0] == statement
    assert all(len(line) <= 80 for line in shown[1:])
    assert all(line.startswith("    ") for line in shown[2:])
    assert " ".join(line.strip() for line in shown[1:]) == prose.strip()
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert wrapped([statement, prose], [statement]) == [statement, prose]
