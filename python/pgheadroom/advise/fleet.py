"""
Advice for several servers, as a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.advise.advice import Advice, Verdicts
from pgheadroom.forms import Filed
from pgheadroom.tabular import Row, Tabular, even


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAdvice:
    """
    One of them.

    Attributes:
        name: As it was asked for: a connection, a service, a profile.
        error: Why there is no answer; None: there is one.
        advice: What is advised there.
    """

    name: str
    error: str | None
    advice: Advice | None

    @property
    def verdicts(self) -> Verdicts | None:
        """Tables by their verdict."""
        if self.advice is None:
            return None
        found = [table.verdict for table in self.advice.tables]
        return Verdicts(
            change=found.count("CHANGE"), keep=found.count("KEEP"), abstain=found.count("ABSTAIN")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAdvice(Filed, Tabular):
    """
    What is advised on several servers, in the order in which they were named.

    Attributes:
        tool_version: Of ours.
        servers: Each.
    """

    KIND = "advice_fleet"

    tool_version: str
    servers: tuple[ServerAdvice, ...]

    @property
    def cut_off(self) -> bool:
        """Whether one did not answer."""
        return any(one.advice is None for one in self.servers)

    def rows(self) -> list[Row]:
        """A row a table."""
        return even(
            [
                {"server": one.name, **row}
                for one in self.servers
                if one.advice is not None
                for row in one.advice.rows()
            ]
        )

    def summary(self) -> str:
        """What it is, in a line."""
        found = [one.verdicts for one in self.servers if one.verdicts is not None]
        change = sum(each.change for each in found)
        tables = sum(each.change + each.keep + each.abstain for each in found)
        silent = len(self.servers) - len(found)
        head = f"Advice for {tables} tables on {len(found)} servers: {change} to change"
        return f"{head}; {silent} did not answer" if silent else head
