"""
Examining several databases side by side; one that does not answer is a row that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import pgheadroom
from pgheadroom.doctor.live import examine_live
from pgheadroom.doctor.rules import all_rules
from pgheadroom.doctor.values import SEVERITIES, Diagnosis, Finding, Severity
from pgheadroom.fleet import FleetServer, Pause, ask_all
from pgheadroom.forms import Filed
from pgheadroom.progress import Say, unsaid_of
from pgheadroom.tabular import Row, Tabular


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDiagnosis:
    """
    One of them.

    Attributes:
        name: As it was asked for.
        error: Why there is no answer; None: there is one.
        diagnosis: What was found there.
    """

    name: str
    error: str | None
    diagnosis: Diagnosis | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDiagnosis(Filed, Tabular):
    """
    What was found on several servers, in the order in which they were named.

    Attributes:
        tool_version: Of ours.
        servers: Each.
    """

    KIND = "doctor_fleet"

    tool_version: str
    servers: tuple[ServerDiagnosis, ...]

    @property
    def cut_off(self) -> bool:
        """Whether a server, or a rule on one, was not looked at that should have been."""
        return any(one.diagnosis is None or one.diagnosis.cut_off for one in self.servers)

    def at_least(self, severity: Severity) -> int:
        """How many findings are so severe, or worse."""
        return sum(one.diagnosis.at_least(severity) for one in self.servers if one.diagnosis)

    def findings(self) -> list[tuple[str, Finding]]:
        """All of them, the worst first, each with its server; else as the server has them."""
        found = [
            (one.name, finding)
            for one in self.servers
            if one.diagnosis is not None
            for finding in one.diagnosis.findings
        ]
        return sorted(found, key=lambda each: -SEVERITIES.index(each[1].severity))

    def rows(self) -> list[Row]:
        """A row a finding."""
        return [
            {"server": one.name, **row}
            for one in self.servers
            if one.diagnosis is not None
            for row in one.diagnosis.rows()
        ]

    def summary(self) -> str:
        """What it is, in a line."""
        silent = sum(one.diagnosis is None for one in self.servers)
        counts = ", ".join(
            f"{count} {severity}{'' if count == 1 or severity == 'info' else 's'}"
            for severity in reversed(SEVERITIES)
            if (count := sum(each.severity == severity for _, each in self.findings()))
        )
        head = f"{counts or 'no finding'} on {len(self.servers) - silent} servers"
        return f"{head}, {silent} did not answer" if silent else head


def _examined(
    server: FleetServer, pause: Pause, *, interval_s: float | None, say: Callable[[str], Say]
) -> Diagnosis:
    return examine_live(
        server.conninfo,
        server.parameters,
        interval_s=interval_s,
        say=say(server.name),
        sleep=pause,
    )


def examine_fleet(
    servers: Sequence[FleetServer],
    *,
    interval_s: float | None = None,
    say: Callable[[str], Say] = unsaid_of,
    then: Callable[[Diagnosis], Diagnosis] = lambda found: found,
    executor: Executor | None = None,
) -> FleetDiagnosis:
    """
    Examine several databases side by side, only reading.

    Args:
        servers: Each of them.
        interval_s: Between two readings of counters; None: one reading.
        say: For a server's name: who is told what happens there.
        then: What becomes of each answer, such as what somebody has accepted.
        executor: Asks from elsewhere (see `ask_all`), where nothing is said meanwhile.
    """
    all_rules()  # loaded once, and not by several threads
    saying = say if executor is None else unsaid_of
    question = partial(_examined, interval_s=interval_s, say=saying)
    return FleetDiagnosis(
        tool_version=pgheadroom.__version__,
        servers=tuple(
            ServerDiagnosis(
                name=answer.server.name,
                error=answer.error,
                diagnosis=None if answer.value is None else then(answer.value),
            )
            for answer in ask_all(question, servers, executor=executor)
        ),
    )
