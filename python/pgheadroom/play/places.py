"""
Where everything of a profile's tables lies, read from the server's own relation files.

After a CHECKPOINT the files hold every page as it is. Each fork becomes one text a page
(`_core.relation_places`), the same that the twin tells of its pages: equal texts mean that every
row version, line pointer, map value and index entry is at the same place. Left out: pages of
BRIN indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom import _core, quoting

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers import Cluster

_FORKS = """
SELECT c.oid::bigint AS oid, c.relname::text AS name, c.relkind::text AS relkind,
       coalesce(m.amname::text, 'heap') AS method, coalesce(i.indnkeyatts::int, 0) AS key_columns,
       pg_relation_filepath(c.oid) AS path, c.reltoastrelid::bigint AS toast
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_am m ON m.oid = c.relam
WHERE c.oid = %(oid)s::oid OR i.indrelid = %(oid)s::oid ORDER BY c.relkind DESC, c.oid
"""


@dataclass(frozen=True, slots=True)
class Fork:
    """
    A fork of a relation.

    `name` is `relation:main`, `relation:fsm` or `relation:vm`; a TOAST relation is called
    `table.toast`, its index `table.toast.index`.
    """

    name: str
    kind: str
    key_columns: int
    path: Path


Places = dict[str, list[str]]
"""By fork: the text of each page."""


def find_forks(
    connection: psycopg.Connection[Any], cluster: Cluster, names: tuple[str, ...]
) -> tuple[Fork, ...]:
    """
    Find the files of the tables, their indexes and their TOAST relations.

    Args:
        connection: A session in the database, before the server stops.
        cluster: The server.
        names: The tables.
    """
    forks: list[Fork] = []
    for name in names:
        row = connection.execute(
            "SELECT %s::regclass::oid::bigint", (quoting.identifier(name),)
        ).fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        toast = _add(forks, connection, cluster, int(row[0]), prefix=None)
        if toast:
            _add(forks, connection, cluster, toast, prefix=f"{name}.toast")
    return tuple(forks)


def _add(
    forks: list[Fork],
    connection: psycopg.Connection[Any],
    cluster: Cluster,
    oid: int,
    prefix: str | None,
) -> int:
    """Add a table's forks and its indexes'; the number of its TOAST relation, 0 without."""
    toast = 0
    rows = connection.execute(_FORKS, {"oid": oid}).fetchall()
    for found, name, relkind, method, key_columns, filepath, its_toast in rows:
        is_index = relkind == "i"
        if found == oid:
            toast = int(its_toast)
        if method not in ("heap", "btree", "hash", "gin"):
            continue
        path = cluster.relation_path(filepath)
        shown = name if prefix is None else f"{prefix}.index" if is_index else prefix
        forks.append(Fork(f"{shown}:main", method, int(key_columns), path))
        if method == "hash":
            continue
        maps = ("fsm", "vm") if method != "gin" else ("fsm",)
        for fork in maps:
            forks.append(Fork(f"{shown}:{fork}", fork, 0, path.with_name(f"{path.name}_{fork}")))
    return toast


def read_places(forks: tuple[Fork, ...]) -> Places:
    """
    Read the files, all segments.

    A fork that does not exist is left out, and so is a TOAST relation without any row.

    Raises:
        SourceError: A page is not what it should be.
    """
    places: Places = {}
    for fork in forks:
        segments = [fork.path]
        while segments[-1].exists():
            segments.append(fork.path.with_name(f"{fork.path.name}.{len(segments)}"))
        content = b"".join(path.read_bytes() for path in segments[:-1])
        if len(segments) > 1 and (content or fork.name.endswith(":main")):
            places[fork.name] = _core.relation_places(
                fork.kind, content, key_columns=fork.key_columns
            )
    for name in [name for name, pages in places.items() if name.endswith(".toast:main")]:
        if not places[name]:
            toast = name.removesuffix(":main")
            for gone in [fork for fork in places if fork.startswith((f"{toast}:", f"{toast}."))]:
                del places[gone]
    return places
