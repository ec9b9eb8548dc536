"""
What pages of several servers have in common.
"""

from __future__ import annotations

from collections.abc import Iterable

from pgheadroom.report.heading import Heading


def heading(
    kind: str, versions: Iterable[str | None], *, answer: str, unseen: Iterable[str], tool: str
) -> Heading:
    """
    What stands above such a page.

    Args:
        kind: What was asked.
        versions: Of each server; None where there is no answer.
        answer: A line.
        unseen: What could not be seen.
        tool: The version of ours.
    """
    asked, said = tuple(versions), tuple(unseen)
    return Heading(
        kind=kind,
        title=f"{len(asked)} servers",
        server=", ".join(dict.fromkeys(filter(None, asked))) or "none",
        answer=f"{answer}.",
        warnings=said,
        alarms=said,
        tool_version=tool,
    )


def no_answer(name: str, error: str | None) -> str:
    """Of a server that did not answer: why, in a line."""
    return f"{name}: no answer: {next(iter((error or '').splitlines()), '')}"
