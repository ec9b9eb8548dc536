"""`tools/record_anew.py`: what a new release is held against, and what it says of it."""

from __future__ import annotations

import pytest
from record_anew import differences, recorded_before

from pgheadroom.errors import InputError
from pgheadroom.types import PgVersion

RECORDED = [PgVersion.parse(text) for text in ("18.4", "18.6", "19rc1")]


@pytest.mark.parametrize(
    ("server", "base"),
    [("19.0", "19rc1"), ("19rc1", "19rc1"), ("18.7", "18.6"), ("18.5", "18.4"), ("18.6", "18.6")],
)
def test_a_server_is_held_against_the_newest_recorded_up_to_it(server: str, base: str) -> None:
    """A release is held against its candidate, and never against a later minor."""
    assert str(recorded_before(PgVersion.parse(server), RECORDED)) == base


@pytest.mark.parametrize("server", ["20.0", "18.3", "19beta2"])
def test_a_server_before_all_recordings_is_refused(server: str) -> None:
    """Nothing could be compared, so nothing is said to be the same."""
    with pytest.raises(InputError, match="nothing of"):
        recorded_before(PgVersion.parse(server), RECORDED)


def test_differences_name_their_place() -> None:
    """Also what only one of both has; the origin, which names the server, differs always."""
    before = {"origin": "a", "by_record": {"Heap/INSERT": [1, 2], "Heap2/VISIBLE": [3, 4]}, "n": 1}
    after = {"origin": "b", "by_record": {"Heap/INSERT": [1, 3]}, "n": 1}
    assert list(differences(before, after)) == [
        "by_record.Heap/INSERT: [1, 2] -> [1, 3]",
        "by_record.Heap2/VISIBLE: [3, 4] -> null",
    ]
    assert list(differences(before, before | {"origin": "c"})) == []
