"""
A page's life: what the twin noted about one page of a table, read and put into words.

The data behind `predict --page`. Each event has the transaction it belongs to and the page after
it: line pointers in order, and where their tuples lie. How that is drawn is the report's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pgheadroom.forms import Filed, Kept, Stored, in_file, kept, read

PAGE_BYTES = 8192
HEADER_BYTES = 24  # SizeOfPageHeaderData, src/include/storage/bufpage.h
_MOST_NAMED = 8  # line pointers named in a sentence before it says how many more; arbitrary

EventWords = tuple[str, ...]
ItemKind = Literal["unused", "redirect", "dead", "normal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    A line pointer and what it points to.

    Attributes:
        kind: Its state, as in PostgreSQL's `lp_flags`.
        to: Where a redirect leads.
        row: Which row a tuple is a version of; a number of the twin's own.
        lp_len: Length of a tuple, not rounded.
        next: The next version on this page, if there is one.
        heap_only: Whether no index entry points to the tuple.
        replaced: Whether somebody has replaced or deleted it, committed or not.
    """

    kind: ItemKind = field(metadata=in_file("is"))
    to: int | None = None
    row: int | None = None
    lp_len: int = field(default=0, metadata=in_file("bytes"))
    next: int | None = None
    heap_only: bool = False
    replaced: bool = False

    @property
    def stored_bytes(self) -> int:
        """Bytes that the tuple takes on the page, which are a multiple of 8."""
        return -(-self.lp_len // 8) * 8


def item_text(item: Item) -> str:
    """A line pointer in a word: `unused`, `dead`, `redirect 5`, `normal 97 heap-only`."""
    if item.kind == "redirect":
        return f"redirect {item.to}"
    if item.kind != "normal":
        return item.kind
    return f"normal {item.lp_len}" + (" heap-only" if item.heap_only else "")


def _texts(items: Sequence[Item]) -> list[str]:
    return [item_text(item) for item in items]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """
    A page at a moment.

    Attributes:
        pd_lower: End of the line pointers.
        pd_upper: Start of the tuples.
        free_bytes: What a new tuple may use.
        is_full: Whether an update found no room (`PD_PAGE_FULL`).
        all_visible: Whether VACUUM noted that everyone sees everything (`PD_ALL_VISIBLE`).
        items: Line pointers; number 1 comes first. In a file each is a word.
        storage: Tuples by line pointer, from the page's end downwards; not in files.
    """

    pd_lower: int
    pd_upper: int
    free_bytes: int
    is_full: bool
    all_visible: bool
    items: Annotated[tuple[Item, ...], Stored(EventWords, dump=_texts)]
    storage: tuple[int, ...] = field(metadata=in_file(only=lambda _: False))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvent:
    """
    Something that happened to the page.

    Attributes:
        number: Counted from 1 over all events of the page, those left out too.
        transaction: Counted from 1 over the run; 0 before it.
        kind: What happened; `sentence` says it in words.
        details: What the kind has: line pointers, bytes, places on other pages.
        page: The page afterwards.
    """

    number: int
    transaction: int
    kind: str
    details: Mapping[str, Any]
    page: PageState

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        return _sentence(self.kind, self.details)


def _told(events: Sequence[PageEvent]) -> list[dict[str, Any]]:
    """Events in a file: details beside the number, and what happened in words."""
    return [
        {"number": event.number, "transaction": event.transaction, "kind": event.kind}
        | {**event.details, "text": event.sentence, "page": event.page}
        for event in events
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLife(Filed):
    """
    What happened to a page during a run.

    Attributes:
        table: The table's name.
        block: The page's number, from 0.
        first_count: How many events come before the gap.
        left_out: Events left out for lack of room.
        prune_below_bytes: A reader prunes the page when less than this is free.
        events: The first is the page as it was when the run began. If some were left out, they
            were between the first `first_count` and the rest.
        warnings: What is to be read first of the run.
    """

    KIND = "page-life"

    table: str
    block: int
    first_count: int
    left_out: int
    prune_below_bytes: int
    events: Annotated[tuple[PageEvent, ...], Stored(tuple[dict[str, Any], ...], dump=_told)]
    warnings: tuple[str, ...] = field(default=(), metadata=in_file(unless_empty=True))

    @property
    def event_count(self) -> int:
        """Events after the start, those left out too."""
        return len(self.events) - 1 + self.left_out

    def count(self, kind: str, **details: Any) -> int:
        """How often that happened with these details, among the events that are here."""
        return sum(
            event.kind == kind
            and all(event.details[key] == value for key, value in details.items())
            for event in self.events
        )

    @property
    def end(self) -> PageState:
        """The page when the run ended."""
        return self.events[-1].page


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToldPage:
    """A page as the twin tells it."""

    items: tuple[Item, ...]
    storage: tuple[int, ...]
    lower: int
    upper: int
    free_bytes: int
    is_full: bool
    all_visible: bool


@kept
class _ToldEvent(Kept):
    """An event as the twin tells it: what its kind has stands beside these."""

    number: int
    transaction: int
    kind: str
    page: _ToldPage


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToldLife:
    """What `Simulated.page_life_json` holds."""

    block: int
    first_count: int
    left_out: int
    prune_below_bytes: int
    events: tuple[_ToldEvent, ...]


def read_life(text: str, table: str) -> PageLife:
    """
    Read what `Simulated.page_life_json` holds.

    Args:
        text: The JSON text.
        table: The table's name, which it does not repeat.

    Raises:
        FieldError: A field is missing, unknown or of another type.
    """
    told = read(_ToldLife, json.loads(text))
    return PageLife(
        table=table,
        block=told.block,
        events=tuple(_event(event) for event in told.events),
        first_count=told.first_count,
        left_out=told.left_out,
        prune_below_bytes=told.prune_below_bytes,
    )


def _event(told: _ToldEvent) -> PageEvent:
    own = {"number", "transaction", "kind", "page"}
    page = told.page
    return PageEvent(
        number=told.number,
        transaction=told.transaction,
        kind=told.kind,
        details={name: value for name, value in told.items() if name not in own},
        page=PageState(
            items=page.items,
            storage=page.storage,
            pd_lower=page.lower,
            pd_upper=page.upper,
            free_bytes=page.free_bytes,
            is_full=page.is_full,
            all_visible=page.all_visible,
        ),
    )


def _named(items: Sequence[int]) -> str:
    """Line pointers in a sentence."""
    named = ", ".join(map(str, items[:_MOST_NAMED]))
    more = len(items) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _place(place: Mapping[str, int]) -> str:
    """A tuple of another page as PostgreSQL's ctid."""
    return f"({place['block']},{place['item']})"


def _pruned(details: Mapping[str, Any]) -> str:
    parts = []
    redirected = [f"{root}->{to}" for root, to in details["redirected"]]
    if redirected:
        more = len(redirected) - _MOST_NAMED
        parts.append(
            f"{len(redirected)} redirected ({', '.join(redirected[:_MOST_NAMED])}"
            + (f" and {more} more)" if more > 0 else ")")
        )
    parts += [
        f"{len(details[kind])} {kind} ({_named(details[kind])})"
        for kind in ("dead", "unused")
        if details[kind]
    ]
    who = "VACUUM pruned" if details["by_vacuum"] else "pruned"
    return f"{who}: {', '.join(parts)}; {details['freed_bytes']} bytes freed"


def _sentence(kind: str, details: Mapping[str, Any]) -> str:
    if kind == "pruned":
        return _pruned(details)
    if kind == "update_left":
        return (
            f"update leaves: {details['old']} -> {_place(details['to'])}, no room here; marked full"
        )
    if kind == "update_arrived":
        return f"update arrives: {_place(details['from'])} -> {details['new']}"
    if kind == "frozen":
        return f"VACUUM froze {details['frozen_tuples']} tuples"
    if kind == "reclaimed":
        items = details["items"]
        return f"VACUUM freed {len(items)} dead line pointers ({_named(items)})"
    if kind == "made_visible":
        return "VACUUM set all-visible" + (" and all-frozen" if details["all_frozen"] else "")
    if kind in ("insert", "delete", "lock"):
        return f"{kind} {details['item']}"
    if kind in ("hot_update", "cold_update"):
        words = "HOT update" if kind == "hot_update" else "cold update, same page"
        return f"{words}: {details['old']} -> {details['new']}"
    return {
        "start": "the run begins",
        "looked_at": "a reader found nothing to prune; no longer marked full",
        "no_longer_visible": "no longer all-visible",
        "cut_off": "VACUUM cut the page off",
    }.get(kind, kind.replace("_", " "))
