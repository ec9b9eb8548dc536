"""
Keys of the rows that are there, in a pgbench script: the oldest, rows of an age, any of the living.

The variables are `scripts.py`'s, the arithmetic is that of `workload/living.rs` in the twin: what
it says of a client's own rows and their numbers holds here too. Where no row is living nothing is
drawn; pgbench evaluates of a CASE only the branch that is taken.
"""

from __future__ import annotations

from pgheadroom.profile import Operation, Pick, Profile, TableProfile


def is_followed(profile: Profile, table: TableProfile) -> bool:
    """Whether any operation picks among the rows of a table that are there."""
    operations = profile.workload.operations
    return any(item.is_living and item.table == table.name for item in operations)


def lines(profile: Profile, n: int, operation: Operation, pick: Pick) -> list[str]:
    """
    What sets `k{n}`, the key that operation `n` works on, and moves the counters.

    Args:
        profile: The profile.
        n: The operation's number.
        operation: One of a living row.
        pick: Its pick.
    """
    table = profile.table(operation.table)
    t = profile.tables.index(table)
    deletes = operation.kind == "delete"
    made = [*_number(n, t, pick), f"\\set k{n} {_key(profile, table, n)}"]
    if not deletes or pick.distribution != "oldest":
        return made
    taken = f"case when :x{n} < 0 then 0 else 1 end"
    if pick.within_rows is None:
        return [*made, f"\\set f{t} :f{t} + {taken}"]
    block = pick.within_rows
    return [*made, f"\\set e{t} :e{t} + {taken}", f"\\set f{t} {block} * (:e{t} / {block})"]


def _number(n: int, t: int, pick: Pick) -> list[str]:
    """The row's number among the client's own, -1 where there is none."""
    number, rows = f"\\set x{n}", f":y{t} - :f{t} + 1"
    if pick.distribution == "oldest" and pick.within_rows is not None:
        block = pick.within_rows
        place = f"{block} * (:e{t} / {block}) + permute(:e{t} % {block}, {block}, 1)"
        # What is not inserted yet is waited for.
        return [f"{number} {place}", f"{number} case when :x{n} > :y{t} then -1 else :x{n} end"]
    match pick.distribution:
        case "oldest":
            found = f":f{t}"
        case "age":
            found = f":y{t} - random({pick.min_age_rows}, {pick.max_age_rows})"
        case "uniform":
            found = f":f{t} - 1 + random(1, {rows})"
        case "zipfian":
            found = f":y{t} + 1 - random_zipfian(1, {rows}, {pick.theta!r})"
        case _:
            found = f":y{t} + 1 - random_gaussian(1, {rows}, {pick.param!r})"
    drawn = f"{number} case when :f{t} > :y{t} then -1 else {found} end"
    if pick.distribution != "age":
        return [drawn]
    return [drawn, f"{number} case when :x{n} < :f{t} then -1 else :x{n} end"]


def _key(profile: Profile, table: TableProfile, n: int) -> str:
    """The key of the row of this number: a loaded one's, an inserted one's, or none's."""
    clients = profile.workload.run.clients
    loaded = table.rows // clients
    inserts = [
        item
        for item in profile.workload.operations
        if item.kind == "insert" and item.table == table.name
    ]
    most = max((item.rows_max for item in inserts), default=1)
    own = f"(:x{n} - {loaded})"
    place = f"(:client_id + {clients} * ({own} / {most})) * {most} + {own} % {most}"
    return (
        f"case when :x{n} < 0 then -1 "
        f"when :x{n} < {loaded} then :client_id + 1 + :x{n} * {clients} "
        f"else {table.rows} + 1 + {place} end"
    )
