"""The record folder: nothing is lost, nothing half-written is believed."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.errors import InputError, LabError
from pgheadroom.lab.design import Request
from pgheadroom.lab.record import (
    Origin,
    Record,
    Sample,
    read_json,
    to_json_text,
    write_atomically,
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


def _sample(number: int) -> Sample:
    return Sample(
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
    assert "drawn_from" not in _sample(1).to_json()
    assert merged.to_json()["drawn_from"] == {"seed": 7, "repetition": 3}


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
        json.dumps(_sample(1).to_json() | {"cell": {"fillfactor": [80]}}),
        json.dumps(_sample(1).to_json() | {"measures": {"wal_bytes": "many"}}),
        json.dumps(_sample(1).to_json() | {"drawn_from": {"seed": 1}}),
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


def test_json_never_holds_nan(tmp_path: Path) -> None:
    """NaN is no JSON; better no file than one that others cannot read."""
    path = tmp_path / "x.json"
    write_atomically(path, "old")
    with pytest.raises(ValueError, match="JSON"):
        write_atomically(path, to_json_text({"x": math.nan}))
    assert path.read_text(encoding="utf-8") == "old"


def test_writing_leaves_no_partial_file(tmp_path: Path) -> None:
    """Replaced whole, nothing beside it."""
    write_atomically(tmp_path / "a", "1")
    write_atomically(tmp_path / "a", "2")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(InputError, match="cannot write"):
        write_atomically(tmp_path / "missing" / "a", "1")


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    """A path that a user gave keeps its kind: replacing the link would surprise."""
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """What is no regular file, /dev/stdout say, must never be replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_prepared_partial_file_is_not_followed(tmp_path: Path) -> None:
    """The temporary file is made anew under a name that nobody knows before."""
    write_atomically(tmp_path / "a", "1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~_umask()
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "a", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "1"


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_trial_that_is_there_twice_is_damage(tmp_path: Path) -> None:
    """It would count twice in a median."""
    folder = tmp_path / "record"
    with Record.create(folder, _request()) as record:
        record.append(_sample(1))
    path = folder / "samples.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(InputError, match=r"line 2 .*there twice"):
        Record.open(folder)
