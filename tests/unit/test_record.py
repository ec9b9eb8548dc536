"""The record folder: nothing is lost, nothing half-written is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.errors import InputError, LabError
from pgheadroom.forms import write
from pgheadroom.lab.design import Request
from pgheadroom.lab.record import (
    Origin,
    Record,
    TrialSample,
    read_json,
)


def _request(seed: int = 1) -> Request:
    return Request(
        experiment="update-cost",
        server="18",
        scale=1,
        seed=seed,
        repetitions=1,
        levels={"fillfactor": (100, 80)},
    )


def _sample(number: int) -> TrialSample:
    return TrialSample(
        trial=f"r{number:03d}",
        cell={"fillfactor": 80},
        repetition=number,
        arm="measured",
        started_at="2026-11-20T00:00:00+00:00",
        duration_s=1.0,
        measures={"wal_bytes": 719.5, "missing": None},
        assumed={"io": "cached"},
    )


def test_samples_survive_and_the_run_goes_on(tmp_path: Path) -> None:
    """What was appended is there when the same request opens the folder again."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.append(_sample(1))
    with Record.create(folder, _request()) as record:
        assert record.samples == [_sample(1)]
        record.append(_sample(2))
    assert Record.open(folder).samples == [_sample(1), _sample(2)]


def test_what_a_merged_sample_drew_survives_and_others_do_not_mention_it(tmp_path: Path) -> None:
    """Records without the field, as all were once, read as before."""
    merged = replace(_sample(2), drawn_from=Origin(seed=7, repetition=3))
    with Record.create(tmp_path / "record", _request()) as record:
        record.append(_sample(1))
        record.append(merged)
    assert Record.open(tmp_path / "record").samples == [_sample(1), merged]
    assert "drawn_from" not in write(_sample(1))
    assert write(merged)["drawn_from"] == {"seed": 7, "repetition": 3}


def test_a_torn_last_line_is_dropped_and_written_again(tmp_path: Path) -> None:
    """A kill in the middle of a write costs that trial only, and does not glue two lines."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.append(_sample(1))
    with (folder / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"trial": "r002", "cell": {"fi')
    assert Record.open(folder).samples == [_sample(1)]
    with Record.create(folder, _request()) as record:
        record.append(_sample(2))
    assert Record.open(folder).samples == [_sample(1), _sample(2)]


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "{}",
        "[1]",
        "null",
        '{"trial": 1, "cell": 3}',
        json.dumps(write(_sample(1)) | {"cell": {"fillfactor": [80]}}),
        json.dumps(write(_sample(1)) | {"measures": {"wal_bytes": "many"}}),
        json.dumps(write(_sample(1)) | {"drawn_from": {"seed": 1}}),
    ],
)
def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path, line: str) -> None:
    """Damage inside is never skipped in silence: a missing sample would change a median."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.append(_sample(1))
    path = folder / "samples.jsonl"
    path.write_text(line + "\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 1"):
        Record.create(folder, _request())
    assert path.read_bytes() == before


def test_another_request_is_refused(tmp_path: Path) -> None:
    """Samples of two plans must not mix; the difference is named."""
    folder = tmp_path / "record"
    Record.create(folder, _request()).close()
    with pytest.raises(InputError, match="seed is 1 there and 2 here"):
        Record.create(folder, _request(seed=2))


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    """Somebody's files are not ours to write beside."""
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match="is not a record"):
        Record.create(tmp_path, _request())
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_two_writers_of_one_record_exclude_each_other(tmp_path: Path) -> None:
    """Two runs into one folder would interleave their samples."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()), pytest.raises(LabError, match="another run"):
        Record.create(folder, _request())
    Record.create(folder, _request()).close()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("findings", 4, "findings: found 4, expected a list"),
        ("title", "a\0b", "title: found 'a.*expected a text"),
        ("factors", [{"nam": "x"}], r"factors\[0\]\.nam: unknown field; did you mean name"),
        ("measures", [{"name": "x", "better": "more"}], r"measures\[0\]\.better: found 'more'"),
        ("comparisons", [{"measure": "x"}], r"comparisons\[0\]\.cell: missing"),
        ("cells", [3], r"cells\[0\]: found 3"),
    ],
)
def test_a_damaged_result_says_where(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    """What the report relies on is checked where the file is read; other keys are kept."""
    whole = {
        **{"schema_version": 1, "kind": "experiment", "name": "n", "title": "t", "server": "18.4"},
        **{"complete": True, "cells": [], "findings": [], "warnings": [], "of later": 1},
    }
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.write("result.json", whole)
        assert record.read_result() == whole
        record.write("result.json", whole | {name: value})
        with pytest.raises(InputError, match=rf"result\.json is damaged: {message}"):
            record.read_result()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "damaged"),
        ("{", "damaged"),
        ("[]", "of kind 'list'"),
        ('{"kind": "profile"}', "of kind 'profile'"),
        ('{"kind": "experiment", "schema_version": 99}', "schema_version 99"),
        ("[" * 100_000, "damaged"),
    ],
)
def test_foreign_json_is_refused_with_what_was_found(
    tmp_path: Path, content: str, message: str
) -> None:
    """Whatever the file holds, the answer is one clear sentence."""
    path = tmp_path / "result.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_json(path, kind="experiment")


def test_a_missing_file_says_what_writes_it(tmp_path: Path) -> None:
    """The commonest mistake, a wrong folder."""
    with pytest.raises(InputError, match="lab run"):
        Record.open(tmp_path)


def test_a_trial_that_is_there_twice_is_damage(tmp_path: Path) -> None:
    """It would count twice in a median."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.append(_sample(1))
    path = folder / "samples.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(InputError, match=r"line 2 .*there twice"):
        Record.open(folder)
