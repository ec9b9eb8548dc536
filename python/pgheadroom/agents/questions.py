"""
The tools: what an agent can ask, bounded in time and in what comes back.

Each gives the JSON of the command of the same name. Lists of tables and findings are cut to what an
agent can read; `left_out` says how many there are beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Annotated, Any

from pydantic import Field

from pgheadroom import api
from pgheadroom.agents.granted import Granted
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.migration import check_migration, read_migration
from pgheadroom.profile import Profile
from pgheadroom.progress import Progress

ToolAnswer = dict[str, Any]

BUDGET_S_MAX = 120.0
"""A question may take so long; agents wait, and so does the person behind them. Arbitrary."""
OBSERVED_S_MAX = 300.0
_SQL_CHARACTERS_MAX = 1_000_000
_CELLS_MAX = 11
"""50 to 100 by fives: what `predict` makes of a profile without a wish."""

ProfileName = Annotated[str, Field(description="The name of a granted profile.")]
ConnectionName = Annotated[str, Field(description="The name of a granted connection.")]
TableName = Annotated[
    str | None, Field(description="Only this table, as name or schema.name.", max_length=200)
]
Limit = Annotated[int, Field(description="So many tables or findings at most.", ge=1, le=200)]
BudgetSeconds = Annotated[
    float, Field(description="Seconds that it may take.", gt=0, le=BUDGET_S_MAX)
]


class Questions:
    """
    The tools over what was granted, one at a time.

    Args:
        granted: Profiles and connections.
        samples: Rows may be read (at most 1,000 pages a table).
    """

    def __init__(self, granted: Granted, *, samples: bool) -> None:
        self._granted = granted
        self._samples = samples
        self._one = Lock()

    def all(self) -> tuple[Callable[..., ToolAnswer], ...]:
        """Each with the description that an agent reads."""
        return (self.sources, self.layout, self.predict, self.check, self.doctor, self.advise)

    def sources(self) -> ToolAnswer:
        """Names of the profiles and connections that the other tools take."""
        return {
            "profiles": sorted(self._granted.profiles),
            "connections": sorted(self._granted.connections),
        }

    def layout(self, source: str, table: TableName = None, limit: Limit = 10) -> ToolAnswer:
        """
        Where a row's bytes go, column by column, and the room that each fillfactor leaves.

        It tells how many rows and spare versions a page has. `source` is the name of a profile or
        of a connection.
        """
        with self._one:
            found = api.layout(self._source(source), table=table, sample=self._samples)
        return cut(found.to_json(), "tables", limit)

    def predict(
        self,
        profile: ProfileName,
        fillfactor: Annotated[
            list[Annotated[int, Field(ge=10, le=100)]] | None,
            Field(description="Percent, one cell each.", min_length=1, max_length=_CELLS_MAX),
        ] = None,
        table: TableName = None,
        budget_s: BudgetSeconds = 30.0,
    ) -> ToolAnswer:
        """
        HOT updates, pages and WAL of a profile at other fillfactors.

        By a page-level twin of PostgreSQL's storage; no server takes part. `fillfactor` and `table`
        say what is varied.
        """
        with self._one:
            found = api.predict(
                self._granted.profile(profile), fillfactor, table=table, progress=until(budget_s)
            )
        return found.to_json()

    def check(
        self,
        sql: Annotated[
            str, Field(description="The migration's statements.", max_length=_SQL_CHARACTERS_MAX)
        ],
        profile: ProfileName,
        table: TableName = None,
        budget_s: BudgetSeconds = 30.0,
    ) -> ToolAnswer:
        """
        What a migration would cost: HOT updates before and after it, what it locks and rewrites.

        The statements are read by PostgreSQL's grammar; none is executed.
        """
        with self._one:
            found = check_migration(
                self._granted.profile(profile),
                read_migration(sql),
                table=table,
                say=until(budget_s),
            )
        return found.to_json()

    def doctor(
        self,
        connection: ConnectionName,
        seconds: Annotated[
            float | None,
            Field(description="Watch so long for rates; None: one reading.", gt=0, le=60),
        ] = None,
        limit: Limit = 20,
    ) -> ToolAnswer:
        """
        What costs or harms on a live database, the worst first, with price and remedy.

        The remedies are for a person to carry out; nothing is changed.
        """
        with self._one:
            found = api.doctor(self._granted.connection(connection), seconds=seconds)
        return cut(found.to_json(), "findings", limit)

    def advise(
        self,
        source: Annotated[str, Field(description="The name of a profile, or of a connection.")],
        goal: Annotated[
            str, Field(description="balanced, wal, size or latency: what to save.", max_length=20)
        ] = "balanced",
        table: TableName = None,
        budget_s: BudgetSeconds = 30.0,
        observe_s: Annotated[
            float,
            Field(description="How long a connection is observed.", ge=1, le=OBSERVED_S_MAX),
        ] = 60.0,
        limit: Limit = 10,
    ) -> ToolAnswer:
        """
        A fillfactor for each table: CHANGE, KEEP or ABSTAIN, with the predicted curve.

        And why its updates miss HOT. A connection is observed first, for `observe_s`; that only
        reads.
        """
        only = () if table is None else (table,)
        with self._one:
            profile = self._source(source)
            if isinstance(profile, str):
                profile = api.observe(profile, seconds=observe_s, tables=only, sample=self._samples)
            found = api.advise(profile, tables=only, goal=goal, budget_s=budget_s)
        return cut(found.to_json(), "tables", limit)

    def _source(self, name: str) -> Profile | str:
        """A profile, or a connection string."""
        if name in self._granted.connections:
            return self._granted.connection(name)
        if name in self._granted.profiles:
            return self._granted.profile(name)
        there = ", ".join(sorted([*self._granted.profiles, *self._granted.connections]))
        raise InputError(
            f"no profile or connection of the name {name[:64]!r}: expected one of {there}"
        )


def cut(data: ToolAnswer, name: str, limit: int) -> ToolAnswer:
    """The answer with so many items of a list, and how many were left out."""
    items = data.get(name)
    if not isinstance(items, list) or len(items) <= limit:
        return data
    return {**data, name: items[:limit], "left_out": len(items) - limit}


def until(budget_s: float) -> Progress:
    """Ends what is going on when the time is used up: an error raised here does."""
    deadline = time.monotonic() + budget_s

    def check(done: int, total: int, what: str, /) -> None:
        if time.monotonic() > deadline:
            raise ParameterError(
                "budget_s",
                f"{budget_s:g}: used up ({done} of {total}, {what}); expected fewer fillfactors, "
                "one table, or more seconds",
            )

    return check
