"""
How a setting is changed, by where it is set: a statement that does not reach it would do nothing.
"""

from __future__ import annotations

from pgheadroom.doctor.rule import QueryRow
from pgheadroom.doctor.values import Remedy
from pgheadroom.quoting import shown_literal

BEFORE_FILES = ("command line", "environment variable")
"""Sources of a setting that no file, and so no ALTER SYSTEM, goes before."""
_AUTO = "postgresql.auto.conf"
_RELOAD = "SELECT pg_reload_conf()"
_LATER = "Sessions that begin then have it."


def change_of(row: QueryRow, to: str, text: str, cost: str | None) -> Remedy:
    """
    The remedy for a setting.

    Args:
        row: Its row of pg_settings, `object` its name; and `database`, `role`, quoted.
        to: Its value then; empty: what it is without being set.
        text: Why.
        cost: Of the change.
    """
    name, source = str(row["object"]), str(row["source"])
    old = f"{name} = {shown_literal(str(row['setting']))}"
    scope = {
        "global": "ALTER ROLE ALL",
        "database": f"ALTER DATABASE {row['database']}",
        "user": f"ALTER ROLE {row['role']}",
        "database user": f"ALTER ROLE {row['role']} IN DATABASE {row['database']}",
    }.get(source)
    if scope is not None:
        return Remedy(
            sql=(f"{scope} RESET {name}",),
            text=f"{text} {_LATER}",
            cost=cost,
            undo=f"{scope} SET {old}",
        )
    if source in BEFORE_FILES:
        return Remedy(
            text=f"{text} It is set by the server's {source}, which goes before its "
            "files: take it out there, and restart.",
            cost=cost,
        )
    file = row["sourcefile"]
    is_auto = file is not None and str(file).endswith(_AUTO)
    after: tuple[str, ...] = (_RELOAD,)
    if row["context"] == "postmaster":
        after, text = (), f"{text} It needs a restart."
    elif row["context"] in ("backend", "superuser-backend"):
        text = f"{text} {_LATER}"
    if to:  # goes before whatever file has it
        return Remedy(
            sql=(
                f"ALTER SYSTEM SET {name} = {to if to in ('on', 'off') else shown_literal(to)}",
                *after,
            ),
            text=text,
            cost=cost,
            # A role that may not see which file it is takes back by value.
            undo=f"ALTER SYSTEM SET {old}"
            if is_auto or (file is None and source == "configuration file")
            else f"ALTER SYSTEM RESET {name}",
        )
    if is_auto:
        return Remedy(
            sql=(f"ALTER SYSTEM RESET {name}", *after),
            text=text,
            cost=cost,
            undo=f"ALTER SYSTEM SET {old}",
        )
    where = "the file that sets it (pg_settings.sourcefile, for pg_read_all_settings)"
    if file is not None:
        where = f"line {row['sourceline']} of {file}"
    ending = "then SELECT pg_reload_conf()." if after else ""
    return Remedy(text=f"{text} It is set in {where}: take it out there, {ending}", cost=cost)
