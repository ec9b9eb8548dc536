"""Extensions that are older than the files beside the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import shown_identifier

# The scripts of those alone that differ are looked through.
_SQL = """
SELECT a.name::text AS name, a.installed_version, a.default_version,
       (SELECT u.path FROM pg_extension_update_paths(a.name) u
        WHERE u.source = a.installed_version AND u.target = a.default_version) AS path
FROM pg_available_extensions a
WHERE a.installed_version <> a.default_version
"""


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        here, there, path = (row[name] for name in ("installed_version", "default_version", "path"))
        text = f"The extension is of version {here} here, its files of {there}"
        if path is None:
            text += ", and no script leads from the one to the other"
        yield RULE.finding(
            "info",
            str(row["name"]),
            f"{text}.",
            remedy=_remedy(row),
            installed_version=here,
            default_version=there,
            has_path=path is not None,
        )


def _remedy(row: QueryRow) -> Remedy:
    if row["path"] is None:
        return Remedy(
            text="ALTER EXTENSION ... UPDATE fails. Where the files are older than what is "
            "installed (a package that was taken back, a new server), install the newer ones. "
            "Else its own instructions say how: mostly DROP and CREATE EXTENSION, with what "
            "depends on it made anew.",
        )
    return Remedy(
        sql=(f"ALTER EXTENSION {shown_identifier(row['name'])} UPDATE",),
        text="Update it, in each database. There is no way back but by a script of its own.",
        lock="that of its objects, for a moment",
    )


RULE = Rule(
    id="extension-outdated",
    question="Are extensions as new as what is installed?",
    book=("B1.4",),
    sql={15: _SQL},
    decide=_decide,
    threshold="The installed version is not the one that the server's files would install.",
    severity="info: views lack columns that the version has, and scripts fail.",
    price="no price: nothing measures it",
    remedy="ALTER EXTENSION ... UPDATE, where scripts lead to that version "
    "(pg_extension_update_paths); else it says that none does.",
    blind="Other databases. A version that somebody keeps on purpose.",
    link="https://www.postgresql.org/docs/current/sql-alterextension.html",
)
