"""The kernel of our files' forms: what is refused with which words, what is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from pydantic import TypeAdapter

from pgheadroom.advise.advice import Advice
from pgheadroom.forms import (
    Expected,
    FieldError,
    Kept,
    NameList,
    Stored,
    Text,
    between,
    defaults,
    expected_of,
    in_file,
    json_schema,
    kept,
    read,
    write,
)
from pgheadroom.forms.declared import core_schema
from pgheadroom.lab.design import Request
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.presentation import Presentation
from pgheadroom.lab.record import SecondsSeries, TrialSample
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.layout.values import Layout
from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.outcome import Outcome
from pgheadroom.page_life import PageLife
from pgheadroom.plan.record import AppliedRecord
from pgheadroom.plan.values import Plan
from pgheadroom.predict.values import Prediction
from pgheadroom.profile.model import ProfileFile
from pgheadroom.prove import Proof
from pgheadroom.verify.values import Verification
from pgheadroom.wal.names import Names as WalNames
from pgheadroom.wal.values import WalStats
from pgheadroom.wal.what_if_values import WhatIf


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    low: Annotated[int, between(0, 9)] = field(metadata=in_file("min"))
    high: Annotated[int, between(0, 9)] = field(metadata=in_file("max"))


def _half(found: int) -> float:
    if found % 2:
        raise ValueError(f"found {found}, expected an even number")
    return found / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    name: Text
    kind: Literal["a", "b"] = "a"
    share: Annotated[float, between(0, 1)] | None = None
    width: Annotated[int | Range, Expected("a whole number, or { min, max }")] = 1
    ranges: tuple[Range, ...] = ()
    pair: tuple[int, str] | None = None
    names: NameList = field(default=(), metadata=in_file(unless_empty=True))
    by_name: Mapping[str, Range] = field(default_factory=dict)
    doubled: Annotated[float, Stored(int, _half, lambda half: round(half * 2))] = 1.0
    rest: Mapping[str, Any] = field(default_factory=dict)


DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]

WRONG: list[tuple[Any, str]] = [
    ([], "found [], expected a table of fields"),
    ({}, "name: missing, expected a string that is not empty"),
    ({"nam": "x"}, "nam: unknown field; did you mean name? known here: name, kind, share"),
    ({"name": " "}, "name: found ' ', expected a string that is not empty"),
    ({"name": "a\0"}, "name: found 'a\\x00', expected a string that is not empty"),
    ({"name": "\ud800"}, "name: found '\\ud800', expected a string that is not empty"),
    ({"name": 5}, "name: found 5, expected a string that is not empty"),
    ({"name": "x" * 10**6, "kind": "x" * 10**6}, f"kind: found '{'x' * 56}..., expected one of"),
    ({"name": "x", "kind": DEEP}, "kind: found [[[[[[[...]]]]]]], expected one of a, b"),
    ({"name": "x", "share": True}, "share: found True, expected a number from 0 to 1"),
    ({"name": "x", "share": "0.5"}, "share: found '0.5', expected a number from 0 to 1"),
    ({"name": "x", "share": float("nan")}, "share: found nan, expected a number from 0 to 1"),
    ({"name": "x", "share": 10**400}, "expected a number from 0 to 1"),
    ({"name": "x", "share": 10**5000}, "share: found a number of 16610 bits, expected a number"),
    ({"name": "x", "width": "5"}, "width: found '5', expected a whole number, or { min, max }"),
    ({"name": "x", "width": {"min": 1}}, "width.max: missing, expected a whole number from 0 to 9"),
    ({"name": "x", "width": []}, "width: found [], expected a whole number, or { min, max }"),
    ({"name": "x", "ranges": {}}, "ranges: found {}, expected a list"),
    (
        {"name": "x", "ranges": [{"min": 1, "max": 2}, {"min": 1, "max": 10}]},
        "ranges[1].max: found 10, expected a whole number from 0 to 9",
    ),
    ({"name": "x", "ranges": [5]}, "ranges[0]: found 5, expected a table of fields"),
    ({"name": "x", "pair": [1]}, "pair[1]: missing, expected a text"),
    ({"name": "x", "pair": [1, 2]}, "pair[1]: found 2, expected a text"),
    ({"name": "x", "names": ["a", 5]}, "names: found ['a', 5], expected a list of strings that"),
    (
        {"name": "x", "by_name": {"a.b": {"min": 1, "maxx": 2}}},
        "by_name.a.b.maxx: unknown field; did you mean max? known here: min, max",
    ),
    ({"name": "x", "by_name": {"\ud800": {}}}, "by_name: found '\\ud800', expected names of"),
    ({"name": "x", "\ud800": 1}, "found '\\ud800', expected names of fields that are text"),
    ({"name": "x", "doubled": 3}, "doubled: found 3, expected an even number"),
    ({"name": "x", "doubled": "3"}, "doubled: found '3', expected a whole number"),
]


@pytest.mark.parametrize(("data", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said(data: Any, said: str) -> None:
    """The path, what was found, what was expected; whatever stands there, and never much of it."""
    with pytest.raises(FieldError) as caught:
        read(Form, data)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 250
    str(caught.value).encode()


def test_a_misspelt_name_goes_before_what_is_missing_by_it() -> None:
    """Without it, "missing" would send people looking for what they have written."""
    with pytest.raises(FieldError, match=r"ranges\[0\]\.mn: unknown field; did you mean min"):
        read(Form, {"name": "x", "ranges": [{"mn": 1, "max": 2}]})


def test_the_place_of_the_value_leads_the_path() -> None:
    """A part of a file is named by where it stands."""
    with pytest.raises(FieldError, match=r"^here\[3\]\.name: missing") as caught:
        read(Form, {}, at="here[3]")
    assert caught.value.path == "here[3].name"


def test_a_million_mistakes_are_one_message() -> None:
    """The first; building the others would take a gigabyte."""
    with pytest.raises(FieldError, match=r"ranges\[0\]: found 0"):
        read(Form, {"name": "x", "ranges": [0] * 10**6})


def test_a_value_is_written_as_it_was_read() -> None:
    """Under the file's names, in the order of the fields; nothing is coerced on the way."""
    data = {
        "name": "x",
        "share": 1,
        "width": {"min": 1, "max": 2},
        "pair": [1, "b"],
        "by_name": {"k": {"min": 3, "max": 4}},
        "doubled": 4,
        "rest": {"any": [1, {"thing": None}]},
    }
    made = read(Form, data)
    assert (made.doubled, made.width, made.names) == (2.0, Range(low=1, high=2), ())
    written = write(made, nulls=False)
    assert written == data | {"kind": "a", "ranges": []}
    assert list(written) == [
        *("name", "kind", "share", "width", "ranges", "pair", "by_name", "doubled", "rest"),
    ]
    assert read(Form, json.loads(json.dumps(written))) == made
    assert write(read(Form, {"name": "x"}))["share"] is None


@kept
class Seen(Kept):
    name: str
    oid: int | None = None
    parent: str | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    seen: Seen
    size: int | None = None


def test_what_is_kept_has_its_nulls_whoever_made_it() -> None:
    """In a file without nulls too: one of our own making reads and is written as it is made."""
    made = Holding(seen=Seen(name="jobs"))
    data = write(made, nulls=False)
    assert data == {"seen": {"name": "jobs", "oid": None}}
    assert write(read(Holding, data, nulls=False), nulls=False) == data


def test_null_is_refused_where_files_have_none() -> None:
    """A profile has no null; an advice has."""
    assert read(Form, {"name": "x", "share": None}).share is None
    with pytest.raises(FieldError, match="share: found None, expected a number from 0 to 1"):
        read(Form, {"name": "x", "share": None}, nulls=False)


def test_what_a_form_says_of_itself() -> None:
    """Defaults by the file's names and in its spelling; words for a field; a closed schema."""
    assert defaults(Form)["doubled"] == 2
    assert "share" not in defaults(Form)
    assert expected_of(Range, "min") == "a whole number from 0 to 9"
    schema = json_schema(Form, title="Form")
    assert schema["required"] == ["name"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Range"]["additionalProperties"] is False


_LEFT_OUT = ("ref", "computed_fields", "collect_init_only", "frozen", "init", "strict", "metadata")
"""Of a core schema: what says nothing to a reader of files; words among metadata are kept."""


def _tree(node: Any, shared: Mapping[str, Any], above: tuple[str, ...] = ()) -> Any:
    """A core schema with every reference replaced, to where a dataclass comes again in itself."""
    if isinstance(node, list):
        return [_tree(item, shared, above) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "definitions":
        return _tree(node["schema"], {_name(item["ref"]): item for item in node["definitions"]})
    said = {key: item for key, item in node.get("metadata", {}).items() if key == "expected"}
    if node.get("type") == "definition-ref":
        name = _name(node["schema_ref"])
        return said | ({"again": name} if name in above else _tree(shared[name], shared, above))
    if "ref" in node:
        above = (*above, _name(node["ref"]))
    return said | {
        key: _loaded_by(item) if key == "function" else _tree(item, shared, above)
        for key, item in node.items()
        if key not in _LEFT_OUT and key != "default_factory_takes_data"
    }


def _name(reference: str) -> str:
    return reference.rpartition(":")[0]


def _loaded_by(function: Any) -> Any:
    """By name: a mark that an annotation makes is another one each time that it is read."""
    return {**function, "function": function["function"].__qualname__}


FORMS = [
    *(Form, Outcome, Presentation, Holding, Request, Environment, SecondsSeries, TrialSample),
    *(ExperimentResult, Layout, MigrationCheck, PageLife, AppliedRecord, Plan, Prediction),
    *(ProfileFile, Proof, Verification, WalNames, WalStats, WhatIf, Advice),
]


@pytest.mark.parametrize("kind", FORMS, ids=lambda kind: kind.__name__)
def test_declarations_are_read_as_pydantic_reads_them(kind: Any) -> None:
    """Its core schema is no public interface: a newer one says here what it makes otherwise."""
    made = _tree(core_schema(kind), {})
    assert made["type"] == "dataclass"
    assert made == _tree(TypeAdapter(kind).core_schema, {})


def test_what_no_form_can_hold_is_refused() -> None:
    """Where it is declared, and not as a file is read by it."""
    for hint in (set[int], list[int], bytes, tuple):
        with pytest.raises(TypeError, match="nothing that a form can hold"):
            core_schema(hint)
