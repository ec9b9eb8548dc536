"""
A page's life as one self-contained HTML page: a timeline, and a picture after each event.

It opens from disk, loads nothing and runs no script; its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pgheadroom.lab import reading
from pgheadroom.page_life import PageLife, PageState
from pgheadroom.report.page import page
from pgheadroom.report.page_life import drawing as life_drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLinks:
    """
    A site around the page.

    Attributes:
        home: Address of the overview.
        profile: Address of the profile that was played.
    """

    home: str
    profile: str


def render(life: PageLife, *, command: str, server: str, place: SiteLinks | None = None) -> str:
    """
    Make the page.

    Args:
        life: What the twin noted.
        command: The command that makes it again.
        server: The minor version that the twin followed.
        place: Where it stands, if it does not stand alone.
    """
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    # Safe: drawings that are made of numbers alone.
    return page(
        "life.html.j2",
        "life.css",
        table=reading.printable(life.table),
        block=life.block,
        server=server,
        command=reading.printable(command),
        place=place,
        counts=_counts(life),
        warnings=reading.texts(life.warnings),
        limit=life.prune_below_bytes,
        left_out=life.left_out,
        timelines=[
            (css, Markup(life_drawing.timeline(life, **wide)))  # noqa: S704
            for css, wide in (("wide", {}), ("narrow", {"width": life_drawing.NARROW}))
        ],
        steps=_steps(life),
    )


def _steps(life: PageLife) -> list[dict[str, Any]]:
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    steps = []
    before: PageState | None = None
    for position, event in enumerate(life.events):
        gap = life.left_out if life.left_out and position == life.first_count else 0
        steps.append(
            {
                "number": event.number - 1,
                "transaction": event.transaction,
                "text": event.sentence,
                "kind": event.kind,
                "state": _state(event.page),
                "gap": gap,
                "svg": Markup(life_drawing.strip(event.page, before)),  # noqa: S704
            }
        )
        before = event.page
    return steps


def _state(page: PageState) -> str:
    marks = [f"{page.free_bytes} bytes free"]
    marks += ["full"] * page.is_full + ["all-visible"] * page.all_visible
    return ", ".join(marks)


def _counts(life: PageLife) -> list[tuple[str, int]]:
    """How often each thing happened, among the events that were kept."""
    count = life.count
    found = [
        ("Inserts", count("insert")),
        ("HOT updates", count("hot_update")),
        ("Cold updates, same page", count("cold_update")),
        ("Versions that left", count("update_left")),
        ("Versions that arrived", count("update_arrived")),
        ("Deletes", count("delete")),
        ("Prunings by readers", count("pruned", by_vacuum=False)),
        ("Prunings by VACUUM", count("pruned", by_vacuum=True)),
    ]
    return [(name, number) for name, number in found if number]
