"""
The statements of an advice, with their undo, as they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.advise.advice import Observation
from pgheadroom.advise.foreseen import moves_hot
from pgheadroom.advise.table_advice import Remark, TableAdvice
from pgheadroom.lab import reading
from pgheadroom.report.advice import sql as advice_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Something to copy: what it is for, and its lines."""

    title: str
    lines: tuple[str, ...]
    language: str = "sql"


def remark_statements(remark: Remark) -> list[Statements]:
    """What would act on a remark, and its undo."""
    return [
        Statements(
            title=f"For the remark on {remark.kind.replace('_', ' ')}",
            lines=(
                *printed_lines(item.get("sql", "")),
                *(f"-- undo: {line}" for line in printed_lines(item.get("undo", ""))),
            ),
        )
        for item in remark.statements
    ]


def printed_lines(text: str) -> list[str]:
    """Foreign text line by line, without what would move a cursor."""
    return [reading.printable(line) for line in text.split("\n") if line.strip()]


def printed_line(text: str) -> str:
    """Foreign text as one line that is safe to print."""
    return reading.printable(text)


def hot_moves(table: TableAdvice) -> bool:
    """Whether the advised setting changes the share of HOT updates."""
    return moves_hot(table.point(table.fillfactor), table.point(table.advised_fillfactor))


def gains_by_rewrite(table: TableAdvice) -> bool:
    """Not where new pages alone show the effect at once."""
    way = table.transition
    return way is None or way.verdict != "at once" or not hot_moves(table)


def statements(table: TableAdvice, seen: Observation) -> list[Statements]:
    """Of a table: the setting, its undo, and a rewrite where that is what gains."""
    found = []
    if (both := advice_sql.setting(table)) is not None:
        masked = ("-- The profile is masked: put the real names in.",) if seen.masked else ()
        do, undo = both
        found.append(
            Statements(
                title="SQL",
                lines=(
                    *masked,
                    "SET lock_timeout = '5s';  -- SHARE UPDATE EXCLUSIVE, a moment",
                    do,
                ),
            )
        )
        found.append(Statements(title="Undo", lines=(undo,)))
        if gains_by_rewrite(table):
            rewrite = advice_sql.rewrite(
                table, seen.server_version, seen.modules, is_superuser=seen.is_superuser
            )
            language = "sh" if rewrite.text.startswith("pg_repack") else "sql"
            found.append(
                Statements(title="At once, by a rewrite", lines=(rewrite.text,), language=language)
            )
    for remark in table.remarks:
        found += remark_statements(remark)
    return found
