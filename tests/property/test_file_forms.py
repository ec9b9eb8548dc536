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

from pgheadroom.advise.advice import Advice
from pgheadroom.forms import read, write
from pgheadroom.lab.design import Request
from pgheadroom.lab.environment_form import Environment
from pgheadroom.lab.record import SecondsSeries, TrialSample, framed
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.layout import Layout
from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.plan.record import Record
from pgheadroom.plan.values import Plan
from pgheadroom.predict.run import Prediction
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.prove import Proof
from pgheadroom.verify.values import Verification
from pgheadroom.wal import Names, WalStats, WhatIf

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
        {"table": name, "kind": "select", "find": draw(st.sampled_from(["index", "seqscan"]))},
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


@settings(max_examples=60)
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


FORMS = {
    **{"advice": Advice, "plan": Plan, "applied": Record, "verification": Verification},
    **{"prediction": Prediction, "proof": Proof, "layout": Layout},
    **{"migration-check": MigrationCheck},
    **{"wal-stats": WalStats, "wal-what-if": WhatIf, "wal-names": Names},
    **{"lab-request": Request, "lab-sample": TrialSample},
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
    framed_file = json.loads(json.dumps(framed(KINDS[name], value)))
    assert framed_file == {"schema_version": 1, "kind": KINDS[name], **file}
    assert VALID[name].is_valid(framed_file)
    assert read(KEPT[name], json.loads(json.dumps(write(value)))) == value
