"""
What stands above a result's tables and charts: its title, what it says, when and where it was made.

A result of any kind gives one (`views.heading`), so that pages and terminals know no kind.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """
    The words around a result.

    Attributes:
        kind: What it is, for the line above the title.
        title: Of the result.
        server: Its version.
        question: What it answers.
        answer: In one sentence; None where the findings are the answer.
        findings: What was found.
        warnings: What to beware of.
        alarms: The same for a page, with what the figures themselves warn of.
        assumed: What the terminal says of how it was obtained.
        complete: Whether nothing of it is missing.
        command: What repeats it, and `merged` what made the records that it was merged from.
        source: Where an experiment comes from.
        meta: When, where and how much: terms with their values, of those that are known.
        tool_version: Of the pgheadroom that made it.
    """

    kind: str
    title: str
    server: str
    question: str | None = None
    answer: str | None = None
    findings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    complete: bool = True
    command: str | None = None
    merged: tuple[str, ...] = ()
    source: str | None = None
    meta: tuple[tuple[str, str], ...] = ()
    tool_version: str | None = None
