"""
`pgheadroom doctor --plan`: what was found, as steps for `apply`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli.idle import refuse
from pgheadroom.cli.plan_files import write_plan

if TYPE_CHECKING:
    from pgheadroom.doctor import Diagnosis
    from pgheadroom.progress import Say


PlanOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plan",
        help="Write the remedies that can be verified as steps with their undo here, for `apply` "
        "(JSON); a name that ends in .md has them for a change request, in .sql for psql; again "
        "for more.",
    ),
]
RewriteToolOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="Tables in the plan: auto (what lets clients go on, where the server has it), none, "
        "or repack, pg_squeeze, pg_repack, vacuum-full (default: auto).",
    ),
]
SettingsOption = Annotated[
    bool, typer.Option("--settings", help="Settings of the server are steps too (ALTER SYSTEM).")
]
StandbyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--standby",
        metavar="CONN",
        help="A standby, to the same database, whose reads count before an index is dropped; "
        "again for each.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAsked:
    """
    What plan is wanted.

    Attributes:
        paths: Where it goes.
        rewrite: How tables are rewritten.
        settings: The server's settings too.
        standbys: Connections to these.
        interval_s: To watch; None: one reading.
    """

    paths: tuple[Path, ...]
    rewrite: str
    settings: bool
    standbys: tuple[str, ...]
    interval_s: float | None


def asked_of(
    paths: list[Path] | None,
    rewrite: str | None,
    *,
    settings: bool,
    standbys: list[str] | None,
    interval_s: float | None,
) -> PlanAsked | None:
    """
    What the options ask for; None without a plan.

    Raises:
        InputError: One that is of a plan, and there is none; or no such way to rewrite.
    """
    if not paths:
        refuse(
            {"--rewrite": rewrite, "--settings": settings, "--standby": standbys},
            where="without a plan",
            instead="--plan FILE writes one",
        )
        return None
    from pgheadroom.plan.statements import check_rewrite

    check_rewrite(rewrite or "auto")
    return PlanAsked(
        paths=tuple(paths),
        rewrite=rewrite or "auto",
        settings=settings,
        standbys=tuple(standbys or ()),
        interval_s=interval_s,
    )


def planned(
    target: str,
    parameters: dict[str, str],
    asked: PlanAsked,
    then: Callable[[Diagnosis], Diagnosis],
    say: Say,
) -> Diagnosis:
    """
    Examine a database, and write the plan of what counts.

    Args:
        target: A connection.
        parameters: Of it.
        asked: What plan.
        then: Sets findings aside.
        say: Told what happens.
    """
    from pgheadroom.doctor.live_plan import examine_and_plan
    from pgheadroom.doctor.planning import PlanWish

    found, plan = examine_and_plan(
        target,
        parameters,
        PlanWish(rewrite=asked.rewrite, settings=asked.settings),
        standbys=asked.standbys,
        interval_s=asked.interval_s,
        then=then,
        say=say,
    )
    if plan is None:
        return found
    write_plan(plan, asked.paths, none="no remedy can be a step")
    if asked.interval_s is None and any(
        claim.measure == "wal_bytes_per_entry"
        for step in plan.remedies or ()
        for claim in step.claims
    ):
        sys.stderr.write(
            "plan: made without an interval, so verify cannot judge what less is logged; "
            "--for 5m watches one\n"
        )
    return found
