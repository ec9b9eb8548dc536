"""
Options of `predict` that have tables rewritten in the middle of the run.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.errors import InputError

if TYPE_CHECKING:
    from pgheadroom.predict import RewriteAsked


class RewriteHow(StrEnum):
    """Ways to rewrite a table, as `--rewrite-how` spells them."""

    FULL = "full"
    ONLINE = "online"


RewriteOption = Annotated[
    float | None,
    typer.Option(
        "--rewrite",
        metavar="FRACTION",
        help="With --from-fillfactor: rewrite the tables at this part of the run too (0.3: when "
        "3 of 10 transactions are done), beside no rewrite and one at the start.",
    ),
]
RewriteHowOption = Annotated[
    RewriteHow,
    typer.Option(
        "--rewrite-how",
        help="full: VACUUM FULL, as servers do it; online: beside the clients, as pg_repack, "
        "pg_squeeze and REPACK (CONCURRENTLY) do, a model.",
    ),
]
RewriteForOption = Annotated[
    float | None,
    typer.Option(
        "--rewrite-for",
        metavar="SECONDS",
        help="How long an online rewrite copies (default: 100 MB a second).",
    ),
]


def rewrite_of(
    at_frac: float | None, how: RewriteHow, takes_s: float | None, from_fillfactor: int | None
) -> RewriteAsked | None:
    """
    The rewrite that is asked for; None without one.

    Raises:
        InputError: One of the options without those that it goes with.
    """
    if at_frac is None:
        if how is not RewriteHow.FULL or takes_s is not None:
            raise InputError(
                "--rewrite-how and --rewrite-for go with --rewrite, which says when: expected a "
                "part of the run such as 0.3"
            )
        return None
    if from_fillfactor is None:
        raise InputError(
            f"--rewrite {at_frac:g} goes with --from-fillfactor, at which the tables were loaded"
        )
    from pgheadroom.predict import RewriteAsked

    return RewriteAsked(at_frac=at_frac, how=how.value, takes_s=takes_s)
