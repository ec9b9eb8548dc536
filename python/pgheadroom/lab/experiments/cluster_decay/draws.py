"""
What `cluster-decay` draws, and what the twin makes of it.

`random()` after `setseed` is a generator that the twin has too, from 15 on. So it deletes the same
rows and inserts the same keys, and on plain heap each row lies where the server puts it: pages per
range are predicted to the unit, not on average. A page that is being written when VACUUM wants to
clean it is passed over, which the twin does not know of: now and then a state is off a little.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pgheadroom import _core
from pgheadroom.errors import UnsupportedServer
from pgheadroom.lab import driver
from pgheadroom.lab.design import Request, Trial
from pgheadroom.profile import Profile, read_profile, to_json
from pgheadroom.types import PgVersion

EXTENSION = "clustered_heap"
"""The engine that is our extension's access method, on the server."""
MODEL = "clustered"
"""The engine that is the twin's model of it: nothing runs."""

RANGE_KEYS = 1000
"""The document's `BETWEEN st AND st + 1000`."""

FIRST_MAJOR, LAST_MAJOR = 15, 19
"""Versions whose `random()` and heap the twin has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """
    What a round draws: arguments of `setseed` for DELETE and INSERT, and first keys of ranges.
    """

    delete_seed: float
    insert_seed: float
    starts: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """First keys of ranges before the first round, and each round's draws."""

    starts: Sequence[int]
    rounds: Sequence[Round]


def drawn(request: Request, trial: Trial, rows: int) -> Draws:
    """All draws of a trial; they belong to its block: each arm gets the same keys and ranges."""
    draws = random.Random(driver.seed_of(request, trial))  # noqa: S311
    span = max(rows - RANGE_KEYS, 1)

    def starts() -> list[int]:
        return [draws.randint(1, span) for _ in range(int(request.options["ranges"]))]

    first = starts()
    rounds = [
        Round(delete_seed=draws.uniform(-1, 1), insert_seed=draws.uniform(-1, 1), starts=starts())
        for _ in range(max(int(level) for level in request.levels["round"]))
    ]
    return Draws(starts=first, rounds=rounds)


def predicted(
    trial: Trial, draws: Draws, rows: int, version: PgVersion
) -> list[dict[str, float | None]]:
    """
    Measures that the twin predicts, by round: of the trial's engine, and of `clustered`.

    Of another version than the twin has, all are None.
    """
    if not FIRST_MAJOR <= version.major <= LAST_MAJOR:
        nothing = dict.fromkeys(
            ("predicted_pages_per_range", "predicted_heap_pages", "clustered_pages_per_range")
        )
        return [dict(nothing) for _ in range(len(draws.rounds) + 1)]
    in_order = trial.cell["engine"] == "sorted"
    clustered = _play(trial, draws, rows, version, engine=MODEL, in_order=in_order)
    own = clustered
    if trial.cell["engine"] != EXTENSION:
        own = _play(trial, draws, rows, version, engine="heap", in_order=in_order)
    return [
        {
            "predicted_pages_per_range": mine[0],
            "predicted_heap_pages": mine[2],
            "clustered_pages_per_range": other[0],
        }
        for mine, other in zip(own, clustered, strict=True)
    ]


def modelled(
    trial: Trial, draws: Draws, rows: int, version: PgVersion
) -> dict[int, dict[str, float | None]]:
    """
    What the trial of the engine `clustered` gives, by round: the twin's states, and no times.

    Raises:
        UnsupportedServer: A version that the twin does not have.
    """
    if not FIRST_MAJOR <= version.major <= LAST_MAJOR:
        raise UnsupportedServer(
            f"engine={MODEL} is the twin's, which has PostgreSQL {FIRST_MAJOR} to {LAST_MAJOR}, "
            f"not {version}"
        )
    names = ("pages_per_range", "correlation", "heap_pages", "index_pages", "live_rows")
    states = _play(trial, draws, rows, version, engine=MODEL, in_order=False)
    return {number: dict(zip(names, state, strict=True)) for number, state in enumerate(states)}


@cache
def _program() -> Profile:
    """The document's table, of the document's number of rows."""
    return read_profile(Path(__file__).with_name("churn.toml"))


def row_characters() -> int:
    """Of a row's text, as the program has it."""
    (table,) = _program().tables
    length = table.column("d").type_length
    assert length is not None, "bpchar(n)"
    return length


def _play(
    trial: Trial, draws: Draws, rows: int, version: PgVersion, *, engine: str, in_order: bool
) -> list[tuple[float | None, float | None, int, int, int]]:
    (table,) = _program().tables
    table = replace(table, rows=rows, fillfactor=int(trial.cell["fillfactor"]))
    return _core.cluster_decay(
        json.dumps(to_json(replace(_program(), tables=(table,)))),
        str(version),
        draws.starts,
        [(item.delete_seed, item.insert_seed, item.starts) for item in draws.rounds],
        range_span=RANGE_KEYS,
        churn_frac=int(trial.cell["churn_pct"]) / 100,
        engine=engine,
        is_sorted=in_order,
    )
