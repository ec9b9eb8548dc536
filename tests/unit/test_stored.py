"""Records on object storage: whole or not at all, and never two trials for one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from s3fs import S3FileSystem
from test_compare_merge import _record as filled
from test_compare_merge import _request as asked
from test_record import _request, _sample

import object_store
from object_store import BUCKET
from pgheadroom import object_storage
from pgheadroom.errors import (
    ConnectionFailed,
    HeadroomError,
    InputError,
    LabError,
    PrivilegeMissing,
)
from pgheadroom.lab.compare import compare_records
from pgheadroom.lab.merge import merge
from pgheadroom.lab.record import Record
from pgheadroom.lab.stored import StoredRecord, record_at, records_at

WHERE = f"s3://{BUCKET}/lab/mine"
SERIES = {
    "schema_version": 1,
    "kind": "series",
    "cell": {"fillfactor": 80},
    "repetition": 1,
    "arm": "measured",
    "t_s": [1.0, 2.0],
    "tps": [5.0, None],
    "events": [],
}
ENVIRONMENT = {"schema_version": 1, "kind": "lab_environment", "server": "18.4", "settings": {}}


@pytest.fixture(scope="module")
def store() -> Iterator[S3FileSystem]:
    with object_store.started() as found:
        yield found


@pytest.fixture(autouse=True)
def _fresh(store: S3FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing in the bucket before, and no copy left after."""
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(copies))
    for name in store.find(BUCKET):
        store.rm_file(name)
    yield
    assert list(copies.iterdir()) == []


def _names(store: S3FileSystem) -> list[str]:
    return sorted(name.removeprefix(f"{BUCKET}/lab/mine/") for name in store.find(BUCKET))


def test_a_record_there_is_the_record_that_a_folder_would_be(
    store: S3FileSystem, tmp_path: Path
) -> None:
    """Request, environment, series and samples come back equal, from one object for each trial."""
    for where in (WHERE, str(tmp_path / "here")):
        with record_at(where) as place, Record.create(place, _request()) as record:
            record.write("environment.json", ENVIRONMENT)
            record.write("series/r001.json", SERIES)
            record.append(_sample(1))
            record.append(_sample(2))
    assert _names(store) == ["request.json", "trials/000001.jsonl", "trials/000002.jsonl"]
    with records_at([WHERE, str(tmp_path / "here")]) as places:
        there, here = map(Record.open, places)
        assert there.request == here.request
        assert there.samples == here.samples == [_sample(1), _sample(2)]
        assert there.read_environment() == here.read_environment() is not None
        assert there.read_series() == here.read_series() != []
        assert there.name == WHERE


def test_it_goes_on_where_it_was(store: S3FileSystem) -> None:
    """A second run of the same request finds the first one's trials; another request does not."""
    for number in (1, 2):
        with record_at(WHERE) as place, Record.create(place, _request()) as record:
            assert len(record.samples) == number - 1
            record.append(_sample(number))
            record.write("conduct.json", {"n": number})
    assert json.loads(store.cat_file(f"{BUCKET}/lab/mine/conduct.json")) == {"n": 2}
    with (
        pytest.raises(InputError, match=f"{WHERE} holds a record of another request"),
        record_at(WHERE) as place,
    ):
        Record.create(place, _request(seed=2))


def test_of_two_runs_the_second_stops(store: S3FileSystem) -> None:
    """Neither a trial nor a request of one run takes the place of another run's."""
    taken = partial(pytest.raises, LabError, match="another run is writing the record s3://")
    with (
        record_at(WHERE) as one,
        record_at(WHERE) as other,
        Record.create(one, _request()) as first,
    ):
        with taken():
            Record.create(other, _request(seed=2))
        with record_at(WHERE) as third, Record.create(third, _request()) as second:
            first.write("series/r001.json", SERIES)
            first.append(_sample(1))
            second.write("series/r001.json", SERIES | {"tps": [7.0, 7.0]})
            with taken():
                second.append(_sample(1))
        first.append(_sample(2))
    with record_at(WHERE) as place:
        record = Record.open(place)
        assert record.samples == [_sample(1), _sample(2)]
        assert [series.tps for series in record.read_series()] == [(5.0, None)]
    assert len(_names(store)) == 3


KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from test_record import _request, _sample
from pgheadroom.lab.record import Record
from pgheadroom.lab.stored import StoredRecord, record_at
def die(self, *_): os.kill(os.getpid(), signal.SIGKILL)
with record_at({where!r}) as place, Record.create(place, _request()) as record:
    record.append(_sample(1))
    if {before}:
        StoredRecord.add = die
    os.ftruncate = os.write = die
    record.append(_sample(2))
"""


@pytest.mark.parametrize(
    "before",
    [pytest.param(True, marks=pytest.mark.long(reason="what was not sent is not there")), False],
)
def test_a_killed_run_leaves_whole_trials(before: bool) -> None:
    """Killed before an object is made its trial has not run; after that it has, once."""
    code = KILLED.format(folder=str(Path(__file__).parent), where=WHERE, before=before)
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(Path(os.environ["PGHEADROOM_TMPDIR"]).iterdir())) == 1, "its copy"
    with record_at(WHERE) as place, Record.create(place, _request()) as record:
        assert len(record.samples) == (1 if before else 2)
        record.append(_sample(3))
    with record_at(WHERE) as place:
        numbers = [sample.repetition for sample in Record.open(place).samples]
    assert numbers == ([1, 3] if before else [1, 2, 3])


def test_an_answer_that_was_lost_is_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks again where an answer does not come: the object is then there, and ours."""
    with record_at(WHERE) as place, Record.create(place, _request()) as record:
        assert isinstance(place, StoredRecord)
        whole = place._store.create

        def twice(name: str, content: bytes) -> bool:
            assert whole(name, content)
            return whole(name, content)

        monkeypatch.setattr(place._store, "create", twice)
        record.append(_sample(1))
        assert record.samples == [_sample(1)]


def test_reading_changes_nothing_there(store: S3FileSystem) -> None:
    """What a report writes stays in its copy."""
    with record_at(WHERE) as place, Record.create(place, _request()) as record:
        record.append(_sample(1))
    before = _names(store)
    with record_at(WHERE) as place:
        Record.open(place).write("result.json", {"a": 1})
    assert _names(store) == before


def test_a_folder_that_was_copied_there_is_read(store: S3FileSystem, tmp_path: Path) -> None:
    """As Amazon's tools copy it, and it goes on there."""
    with Record.create(tmp_path / "here", _request()) as record:
        record.append(_sample(1))
    store.put(f"{tmp_path}/here/", f"{BUCKET}/lab/mine/", recursive=True)
    with record_at(WHERE) as place, Record.create(place, _request()) as record:
        record.append(_sample(2))
    with record_at(WHERE) as place:
        assert Record.open(place).samples == [_sample(1), _sample(2)]


def test_records_there_are_compared_and_merged(store: S3FileSystem, tmp_path: Path) -> None:
    """Also with one in a folder, and into another prefix; what they are called stands in both."""
    with record_at(f"{WHERE}/a") as place:
        filled(place, asked())
    filled(tmp_path / "b", asked(seed=2), hour=1)
    with records_at([f"{WHERE}/a", str(tmp_path / "b")]) as places:
        compared = compare_records(*map(Record.open, places))
        assert compared.command == f"pgheadroom lab compare {WHERE}/a {tmp_path / 'b'}"
        with record_at(f"{WHERE}/both") as into:
            merge(places, into)
    with records_at([f"{WHERE}/both", f"{WHERE}/a"]) as (place, first):
        both = Record.open(place)
        assert both.read_result().complete
        assert len(both.samples) == 2 * len(Record.open(first).samples)
        environment = both.read_environment()
        assert environment is not None
        assert list(environment.merged_from or {}) == [f"{WHERE}/a", str(tmp_path / "b")]
    with (
        pytest.raises(InputError, match="/a is given twice"),
        records_at([f"{WHERE}/a"] * 2) as places,
    ):
        merge(places, tmp_path / "twice")
    assert not any("samples.jsonl" in name for name in _names(store))


def _refused(where: str, kind: type[HeadroomError], *words: str, code: int) -> None:
    with pytest.raises(kind) as raised, record_at(where) as place:
        Record.open(place)
    assert raised.value.exit_code == code
    for word in (*words, where.rstrip("/")):
        assert word in str(raised.value)
    assert os.environ["PGHEADROOM_TMPDIR"] not in str(raised.value)


def test_what_cannot_be_had_is_said(store: S3FileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong name, a wrong place, no right, no store, no package: each names what to do."""
    _refused("s3://none/lab", InputError, "there is no bucket none", code=2)
    _refused(WHERE, InputError, "request.json does not exist", code=2)
    for url in ("s3://bucket", "s3://bucket/", "gs://bucket/lab", "s3://bucket/a//b"):
        _refused(url, InputError, "expected s3://BUCKET/PREFIX", code=2)
    store.pipe_file(f"{BUCKET}/lab/mine/other.txt", b"x")
    with (
        pytest.raises(InputError, match="lab/mine exists and is not a record"),
        record_at(WHERE) as place,
    ):
        Record.create(place, _request())
    with object_store.refusing():
        _refused(WHERE, PrivilegeMissing, "the store refuses", code=3)
    with monkeypatch.context() as alone:
        alone.delenv("AWS_ACCESS_KEY_ID")
        alone.delenv("AWS_SECRET_ACCESS_KEY")
        object_storage._session.cache_clear()
        _refused(WHERE, PrivilegeMissing, "no credentials were found", code=3)
    with monkeypatch.context() as alone:
        alone.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # discard: nobody has it
        object_storage._session.cache_clear()
        _refused(WHERE, ConnectionFailed, "does not answer", "AWS_ENDPOINT_URL", code=3)
    object_storage._session.cache_clear()
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(InputError, match=r"pip install 'pgheadroom\[s3\]'"), record_at(WHERE):
        pass


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}\n",
        b'{"trial": "../../up"}\n',
        b'{"kind": "other"}\n{"trial": "r001"}\n',
        b"\xff\n",
        b'[1]\n{"trial": "r001"}\n',
    ],
)
def test_a_damaged_trial_is_named(store: S3FileSystem, content: bytes) -> None:
    """What is in a bucket is anybody's: no half of it is believed, and no path leads out."""
    store.pipe_file(f"{BUCKET}/lab/mine/trials/000001.jsonl", content)
    _refused(WHERE, InputError, "trials/000001.jsonl is damaged", code=2)
