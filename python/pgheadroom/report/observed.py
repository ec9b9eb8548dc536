"""
Several profiles of live databases: the servers as rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.fleet import ServerAnswer
from pgheadroom.lab.result import CellValue
from pgheadroom.profile import Profile
from pgheadroom.report.table import Column, Table


def servers_table(answers: Sequence[ServerAnswer[Profile]], files: Mapping[str, str]) -> Table:
    """A row a server: how much is updated there, and where its profile lies."""
    columns = (
        Column(key="server", title="server", style="words", lead=True),
        Column(key="version", title="PostgreSQL", style="words"),
        Column(key="tables", title="tables"),
        Column(key="interval_s", title="seconds", digits=0),
        Column(key="updates", title="updates"),
        Column(key="hot", title="HOT", style="share"),
        Column(key="file", title="profile", style="words"),
    )
    rows = tuple(_row(answer, files.get(answer.server.name)) for answer in answers)
    return Table(title="Servers", columns=columns, rows=rows)


def _row(answer: ServerAnswer[Profile], file: str | None) -> tuple[CellValue, ...]:
    profile = answer.value
    if profile is None:
        return (answer.server.name, None, None, None, None, None, "no answer")
    found = profile.server.observed
    assert found is not None, "observe writes what it observed"
    counters = [table.observed.counters for table in profile.tables if table.observed is not None]
    updates = sum(each.n_tup_upd or 0 for each in counters)
    hot = sum(each.n_tup_hot_upd or 0 for each in counters)
    return (
        answer.server.name,
        str(profile.server.version),
        len(profile.tables),
        found.interval_s,
        updates,
        hot / updates if updates else None,
        file,
    )
