"""
Where a site's experiments come from: the documents that they ask after, with their addresses.

An experiment names its source as `S0: words` (chapters, a date); S0 to S4 are the documents that
the laboratory began with. What begins otherwise is shown as it is, without an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pgheadroom.lab import reading
from pgheadroom.lab.result import ExperimentResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """
    A source.

    Attributes:
        title: What it is.
        address: Where it is read; None of a book.
    """

    title: str
    address: str | None = None


DOCUMENTS = {
    "S0": Document(
        title="What is fillfactor and how does it affect PostgreSQL performance? (Cybertec, 2020)",
        address="https://www.cybertec-postgresql.com/en/"
        "what-is-fillfactor-and-how-does-it-affect-postgresql-performance/",
    ),
    "S1": Document(
        title="Comparative analysis of PostgreSQL update performance (Rockdata, May 2026)",
        address="https://www.rockdata.net/blog/update-performance-evaluation/",
    ),
    "S2": Document(
        title="Maintaining cluster order on insert (the patch of May 2007 on the PostgreSQL lists; "
        "the figures are of a reply to it)",
        address="https://www.postgresql.org/message-id/464D96D6.1030608@enterprisedb.com",
    ),
    "S3": Document(title="PostgreSQL 9.6 High Performance, a book"),
    "S4": Document(
        title="PostgreSQL's fillfactor and its effect: HammerDB's TPROC-C on Aurora "
        "(AWS, in Korean)",
        address="https://aws.amazon.com/ko/blogs/tech/postgresql_fillfactor",
    ),
}
"""The documents that the laboratory's questions come from."""

_SPOKEN = re.compile(r"(S\d): ")
_CHAPTERS = re.compile(r"chapters? \d[\d, and]*\d|chapter \d")


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSource:
    """
    A source and the records that answer it.

    Attributes:
        document: What it is.
        records: Of each its place among the site's records, and the chapters it asks after.
    """

    document: Document
    records: tuple[tuple[int, str | None], ...]


def cited(results: Iterable[ExperimentResult]) -> list[CitedSource]:
    """The sources of records, each once; documents with an address or a title of ours first."""
    found: dict[Document, list[tuple[int, str | None]]] = {}
    for place, result in enumerate(results):
        said = reading.text(result.source)
        if said is None:
            continue
        spoken = _SPOKEN.match(said)
        document = DOCUMENTS.get(spoken[1]) if spoken else None
        chapters = None if document is None else _CHAPTERS.search(said)
        part = None if chapters is None else chapters[0]
        found.setdefault(document or Document(title=said), []).append((place, part))
    known = list(DOCUMENTS.values())
    order = sorted(
        found, key=lambda item: (known.index(item) if item in known else len(known), item.title)
    )
    return [CitedSource(document=item, records=tuple(found[item])) for item in order]
