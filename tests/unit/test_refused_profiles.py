"""
Profiles that no server or no pgbench takes, found by a generator: a clear refusal, before any work.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import HeadroomError, InputError
from pgheadroom.play import play
from pgheadroom.play.scripts import SCRIPTS_MAX, VARIABLES_MAX, scripts
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile, read_profile

FOLDER = Path(__file__).parent / "refused"


@pytest.mark.parametrize(
    ("name", "message", "exit_code"),
    [
        ("int2-key-overflow", "transaction 768: 32768 is out of range for type int2", 5),
        (
            "taken-key-message",
            r"users, transaction \d+: a row with the key 50\d\d is there already",
            5,
        ),
        ("brin-bool", r"table\[0\].indexes\[1\].columns\[0\]: found 'b', expected no bool", 2),
    ],
)
def test_no_server_plays_it(name: str, message: str, exit_code: int) -> None:
    """In PostgreSQL's words, with the field or the statement; never as a bug of ours."""
    with pytest.raises(HeadroomError, match=message) as refused:
        predict(read_profile(FOLDER / f"{name}.toml"), server="18.4")
    assert refused.value.exit_code == exit_code


def test_a_bitmap_that_work_mem_does_not_hold_is_refused() -> None:
    """64 kB hold 1,024 pages (`tbm_calculate_entries`); of one more the server forgets rows."""
    table: dict[str, Any] = {
        "name": "t",
        "rows": 6144,
        "fillfactor": 10,
        "columns": [{"name": "id", "type": "int4"}, {"name": "f", "type": "bpchar(84)"}],
        "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
    }
    read: dict[str, Any] = {
        "table": "t",
        "kind": "select",
        "find": "bitmap",
        "pick": {"distribution": "sequential"},
    }
    data: dict[str, Any] = {
        "schema_version": 1,
        "server": {"settings": {"work_mem": "64kB"}},
        "table": [table],
        "operation": [read | {"rows_per_statement": 6144}],
        "run": {"operations": 1},
    }
    cell = predict(parse_profile(data), server="18.4").cells[0]
    assert cell.predicted.heap_pages == 1024
    table["rows"] = read["rows_per_statement"] = 6145
    data["operation"] = [read]
    with pytest.raises(HeadroomError, match="a bitmap of 1025 pages does not fit") as refused:
        predict(parse_profile(data), server="18.4")
    assert refused.value.exit_code == 5


def test_a_precision_that_is_not_played_is_said() -> None:
    """timestamp(3) is played to the microsecond, which may make a difference to HOT."""
    profile = read_profile(FOLDER / "timestamp-precision.toml")
    assert "precision is not played" in str(profile.assumed_on(18)["table[0].columns[1].type"])


def _profile(operations: int, columns: int) -> Profile:
    names = [f"c{n}" for n in range(columns)]
    update: dict[str, Any] = {
        "table": "t",
        "kind": "update",
        "sets": {name: {"changed_frac": 0.5} for name in names},
    }
    return parse_profile(
        {
            "schema_version": 1,
            "table": [
                {
                    "name": "t",
                    "rows": 10,
                    "columns": [{"name": name, "type": "int4"} for name in ("id", *names)],
                    "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
                }
            ],
            "operation": [update] * operations,
            "run": {"operations": 10},
        }
    )


@pytest.mark.parametrize("refusing", [play, predict])
def test_more_than_pgbench_takes_is_refused_before_a_server_starts(
    refusing: Callable[[Profile], object],
) -> None:
    """128 scripts, 255 parameters a statement: a forecast that no server shows is none."""
    assert len(scripts(_profile(SCRIPTS_MAX, 1))) == SCRIPTS_MAX
    with pytest.raises(InputError, match="found 129 transactions, expected at most 128"):
        refusing(_profile(SCRIPTS_MAX + 1, 1))
    assert len(scripts(_profile(1, VARIABLES_MAX - 1))) == 1
    with pytest.raises(InputError, match="found 256 parameters in its statement"):
        refusing(_profile(1, VARIABLES_MAX))
