"""Files survive: what was written is read again as the same value, and written as the same text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemas import schemas
from values_of import ANYTHING, values_of

from lengths import examples
from pgheadroom import page_life
from pgheadroom.advise.advice import Advice
from pgheadroom.advise.fleet import FleetAdvice
from pgheadroom.doctor.fleet import FleetDiagnosis
from pgheadroom.doctor.values import Diagnosis
from pgheadroom.forms import FieldError, read, write
from pgheadroom.lab.design import Request
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.record import SecondsSeries, TrialSample
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.layout import Layout
from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.order.values import OrderReport
from pgheadroom.plan.record import AppliedRecord
from pgheadroom.plan.values import Plan
from pgheadroom.predict.values import Prediction
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.prove import Proof
from pgheadroom.settings.values import SettingsAdvice
from pgheadroom.verify.values import Verification
from pgheadroom.wal import Names, WalStats, WhatIf
from pgheadroom.watch import WatchLine

Json = dict[str, Any]
VALID = {name: Draft202012Validator(schema) for name, schema in schemas().items()}

NAMES = st.text(st.characters(categories=("L", "N", "Zs"), include_characters="_-"), min_size=1)
NAMES = NAMES.filter(lambda name: name.strip() and name.isprintable() and len(name.encode()) < 50)
FRACS = st.floats(0, 1)
SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from(["15", "16.14", "18", "18.4"]),
        "shared_buffers": st.sampled_from(["128kB", "80MB", "1GB", "3TB"]),
        "wal_level": st.sampled_from(["minimal", "replica", "logical"]),
        "data_checksums": st.booleans(),
        "checkpoint_interval_s": st.integers(30, 86400) | st.floats(30, 86400),
        "max_wal_size": st.sampled_from(["32MB", "1GB"]),
        "settings": st.just({"work_mem": "4MB", "vacuum_cost_delay": 2, "wal_recycle": True}),
    },
)
FINDS = st.sampled_from(["index", "seqscan", "bitmap"])
PICKS = st.one_of(
    st.fixed_dictionaries({"distribution": st.sampled_from(["sequential", "newest", "uniform"])}),
    st.fixed_dictionaries(
        {"distribution": st.just("zipfian"), "theta": st.floats(1.001, 9)},
        optional={"scatter": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"distribution": st.just("hot_set"), "rows_frac": st.floats(0, 0.9), "weight": FRACS}
    ),
    st.fixed_dictionaries({"distribution": st.just("stride"), "n": st.integers(1, 2**40)}),
)
ROWS = st.integers(1, 30) | st.tuples(st.integers(1, 9), st.integers(9, 40)).map(
    lambda ends: {"min": ends[0], "max": ends[1]}
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "changed_frac": FRACS,
        "grows_bytes": st.integers(0, 50).map(lambda most: {"min": 0, "max": most}),
    },
)


@st.composite
def profiles(draw: st.DrawFn) -> Json:
    """A profile of one table, with everything that a file may say."""
    name, key, number, text = draw(st.lists(NAMES, min_size=4, max_size=4, unique=True))
    string = {
        **{"name": text, "type": draw(st.sampled_from(["text", "varchar(90)"]))},
        **{"width": {"min_bytes": 3, "max_bytes": draw(st.integers(3, 90))}},
        "null_frac": draw(FRACS),
    }
    whole: Json = {"name": number, "type": draw(st.sampled_from(["int4", "bigint", "smallint"]))}
    if draw(st.booleans()):
        whole["values"] = draw(
            st.sampled_from([{"kind": "constant"}, {"kind": "random", "ndistinct": 7}])
        )
    indexes: list[Json] = [{"name": name + "1", "columns": [key], "unique": True}]
    if draw(st.booleans()):
        indexes.append({"name": name + "2", "columns": [number], "method": "brin"})
    if draw(st.booleans()):
        indexes.append({"name": name + "3", "expressions": ["lower(x)"], "fillfactor": 70})
    grows = string["type"] == "text"
    sets: Any = {text: draw(CHANGES) if grows else {}, number: {}}
    operations: list[Json] = [
        {
            **{"table": name, "kind": draw(st.sampled_from(["update", "upsert"]))},
            **{"sets": draw(st.sampled_from([sets, [number]])), "pick": draw(PICKS)},
            **{"rows_per_statement": draw(ROWS), "transaction": draw(NAMES)},
        },
        {"table": name, "kind": "insert", "abort_frac": draw(FRACS)},
        {"table": name, "kind": "select", "find": draw(FINDS)},
    ]
    table = {
        **{"name": name, "rows": draw(st.integers(40, 9000)), "indexes": indexes},
        "columns": [{"name": key, "type": "int8"}, whole, string],
        "reloptions": {"autovacuum_enabled": draw(st.booleans())},
    }
    run = draw(
        st.sampled_from(
            [
                {"operations": 40, "snapshot": [{"start_frac": 0.1, "length_frac": 0.5}]},
                {"duration_s": 5, "rate_per_s": 0.5, "seed": 2**63 - 1},
            ]
        )
    )
    return {
        **{"schema_version": 1, "server": draw(SERVERS), "run": run},
        **{"table": [table], "operation": operations[: draw(st.integers(1, 3))]},
    }


@settings(max_examples=examples(60))
@given(profiles())
def test_profiles(data: Json) -> None:
    """A profile says after saving what it said before, and nothing new is assumed of it."""
    assert VALID["profile"].is_valid(data)
    profile = parse_profile(data)
    saved = json.dumps(to_json(profile))
    assert VALID["profile"].is_valid(json.loads(saved))
    again = parse_profile(json.loads(saved))
    assert again == profile
    assert json.dumps(to_json(again)) == saved
    # A pick that was assumed as a whole is written out, but for what it does not do.
    new = set(again.assumed) - set(profile.assumed)
    assert all(path.endswith(".pick.scatter") for path in new)


COUNTS = st.integers(0, 40)
POINTERS = st.lists(st.integers(1, 291), max_size=20)
PLACES = st.fixed_dictionaries({"block": COUNTS, "item": COUNTS})
DETAILS: dict[str, Json] = {
    **{"start": {}, "looked_at": {}, "no_longer_visible": {}, "cut_off": {}, "of a later": {}},
    **{kind: {"item": COUNTS} for kind in ("insert", "delete", "lock")},
    **{kind: {"old": COUNTS, "new": COUNTS} for kind in ("hot_update", "cold_update")},
    "update_left": {"old": COUNTS, "to": PLACES},
    "update_arrived": {"from": PLACES, "new": COUNTS},
    "frozen": {"frozen_tuples": COUNTS},
    "reclaimed": {"items": POINTERS},
    "made_visible": {"all_frozen": st.booleans()},
    "pruned": {
        **{"redirected": st.lists(st.tuples(COUNTS, COUNTS).map(list), max_size=20)},
        **{"dead": POINTERS, "unused": POINTERS, "by_vacuum": st.booleans()},
        "freed_bytes": COUNTS,
    },
}
TOLD_ITEMS = st.one_of(
    st.fixed_dictionaries({"is": st.sampled_from(["unused", "dead"])}),
    st.fixed_dictionaries({"is": st.just("redirect"), "to": COUNTS}),
    st.fixed_dictionaries(
        {"is": st.just("normal"), "row": COUNTS, "bytes": COUNTS},
        optional={"next": COUNTS, "heap_only": st.booleans(), "replaced": st.booleans()},
    ),
)
TOLD_PAGES = st.fixed_dictionaries(
    {
        **{"items": st.lists(TOLD_ITEMS, max_size=9), "storage": POINTERS},
        **{"lower": COUNTS, "upper": COUNTS, "free_bytes": COUNTS},
        **{"is_full": st.booleans(), "all_visible": st.booleans()},
    }
)
TOLD_EVENTS = st.sampled_from(sorted(DETAILS)).flatmap(
    lambda kind: st.fixed_dictionaries(
        {"number": COUNTS, "transaction": COUNTS, "kind": st.just(kind), "page": TOLD_PAGES}
        | DETAILS[kind]
    )
)
TOLD = st.fixed_dictionaries(
    {
        **dict.fromkeys(("block", "first_count", "left_out", "prune_below_bytes"), COUNTS),
        "events": st.lists(TOLD_EVENTS, min_size=1, max_size=6),
    }
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(TOLD, st.data())
def test_page_lives(told: Json, data: st.DataObject) -> None:
    """The file says what the twin told, in its own names; what is incomplete is refused."""
    file = json.loads(json.dumps(page_life.read_life(json.dumps(told), "t").to_json()))
    assert VALID["page-life"].is_valid(file | {"server": "18.4"})
    for event, said in zip(told["events"], file["events"], strict=True):
        page, there = event["page"], said.pop("page")
        assert said.pop("text")
        assert said == {name: value for name, value in event.items() if name != "page"}
        assert [word.split()[0] for word in there["items"]] == [i["is"] for i in page["items"]]
        same = ("free_bytes", "is_full", "all_visible")
        assert [there[name] for name in same] == [page[name] for name in same]
        assert (there["pd_lower"], there["pd_upper"]) == (page["lower"], page["upper"])
    event = told["events"][0]
    holder, required = data.draw(
        st.sampled_from([(told, OF_LIFE), (event, OF_EVENT), (event["page"], OF_PAGE)])
    )
    del holder[data.draw(st.sampled_from(required))]
    with pytest.raises(FieldError, match="missing"):
        page_life.read_life(json.dumps(told), "t")


OF_LIFE = ("block", "events", "first_count", "left_out", "prune_below_bytes")
OF_EVENT = ("number", "transaction", "kind", "page")
"""What each has; the `items` that a VACUUM freed are a detail of its own, as a page's are not."""
OF_PAGE = ("items", "storage", "lower", "upper", "free_bytes", "is_full", "all_visible")


FORMS = {
    **{"advice": Advice, "plan": Plan, "applied": AppliedRecord, "verification": Verification},
    **{"prediction": Prediction, "proof": Proof, "layout": Layout},
    **{"migration-check": MigrationCheck, "doctor": Diagnosis},
    **{"wal-stats": WalStats, "wal-what-if": WhatIf, "wal-names": Names},
    **{"lab-request": Request, "lab-sample": TrialSample},
    **{"advice-fleet": FleetAdvice, "doctor-fleet": FleetDiagnosis},
    **{"settings": SettingsAdvice, "watch": WatchLine, "order": OrderReport},
}
KEPT = {"lab-environment": Environment, "lab-series": SecondsSeries, "lab-result": ExperimentResult}
"""Forms that keep all that a file says, also what they do not know."""
KINDS = {"lab-environment": "lab_environment", "lab-series": "series", "lab-result": "experiment"}


def _file(name: str, value: Any) -> Json:
    """The file that holds the value; a sample is a line, which nothing frames."""
    made: Json = write(value) if name == "lab-sample" else value.to_json()
    return made | {"digest": "x"} if name == "plan" else made


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_form(name: str, data: st.DataObject) -> None:
    """A value is its file, whatever stands in it: read again it is equal, and its text too."""
    value: Any = data.draw(values_of(FORMS[name]))
    text = json.dumps(_file(name, value))
    assert VALID[name].is_valid(json.loads(text))
    again = read(FORMS[name], json.loads(json.dumps(write(value))), exact=True)
    assert again == value
    assert json.dumps(write(again)) == json.dumps(write(value))


@pytest.mark.parametrize("name", KEPT)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_forms_that_keep_their_file(name: str, data: st.DataObject) -> None:
    """What was read is written as it stood, with what a later version may have added."""
    said = asdict(data.draw(values_of(KEPT[name])))
    file = json.loads(json.dumps(said | {"of a later version": data.draw(ANYTHING)}))
    value: Any = read(KEPT[name], file)
    framed_file = json.loads(json.dumps(value.to_json()))
    assert framed_file == {"schema_version": 1, "kind": KINDS[name], **file}
    assert VALID[name].is_valid(framed_file)
    assert read(KEPT[name], json.loads(json.dumps(write(value)))) == value


def test_no_schema_is_left_out() -> None:
    """Each kind of file has its property here."""
    assert set(VALID) == {"profile", "page-life", *FORMS, *KEPT}
