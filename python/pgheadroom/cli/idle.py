"""
Options that would do nothing where they stand are refused, with what would do.

Whoever gives an option believes that it matters: an answer that has silently left it out is an
answer to another question.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgheadroom.errors import InputError


def refuse(options: Mapping[str, object], *, where: str, instead: str) -> None:
    """
    Refuse options that were given.

    Args:
        options: Their values by name; None, False and an empty list stand for not given.
        where: In what case they do nothing, as `with --print-sql`.
        instead: What would do.

    Raises:
        InputError: One of them was given.
    """
    for name, value in options.items():
        if value is not None and value is not False and value not in ((), []):
            raise InputError(f"{name} does nothing {where}: {instead}")
