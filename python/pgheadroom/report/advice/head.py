"""
What goes first in an advice: where it is from, how many verdicts, what could not be seen.

The writers (terminal, Markdown, page) differ in form alone; what is said is decided here and in
`overview.py` and `detail.py`.
"""

from __future__ import annotations

import re

from pgheadroom.advise.advice import Advice, Observation, StatedPolicy
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.lab import reading
from pgheadroom.quoting import called
from pgheadroom.units import show_duration

MOST_NAMED = 8
"""Tables that are named where the others are counted."""


def title(advice: Advice) -> str:
    """What was advised, and where."""
    seen = advice.observation
    where = "a masked profile" if seen.masked else reading.printable(seen.database or "a database")
    return f"Advice for {where}, PostgreSQL {reading.printable(seen.server_version)}"


def full_name(table: TableAdvice) -> str:
    """The table as people write it, with the schema unless it is `public`; safe to print."""
    return reading.printable(called(table.schema, table.name))


def summary(advice: Advice) -> list[str]:
    """How many tables have which verdict, over which interval."""
    count = {
        verdict: sum(table.verdict == verdict for table in advice.tables)
        for verdict in ("CHANGE", "KEEP", "ABSTAIN")
    }
    seen = advice.observation
    when = f" from {observed_at(seen)}" if seen.observed_at else ""
    total = len(advice.tables)
    said = [
        f"{total} table{'' if total == 1 else 's'} seen for {show_duration(seen.interval_s)}"
        f"{when}: {count['CHANGE']} to change, {count['KEEP']} to keep, "
        f"{count['ABSTAIN']} without an answer."
    ]
    said += budget(advice)
    policy = advice.policy
    growth = policy.max_growth_frac
    limit = "" if growth is None else f", heap may grow by {growth * 100:.4g} %"
    said.append(
        f"Goal {policy.goal}{limit}; a change has to save "
        f"{policy.min_gain_frac * 100:.4g} % of the cost{_room_price(policy)}."
    )
    return said


def _room_price(policy: StatedPolicy) -> str:
    """What a larger heap has to save beside; a file of an earlier version has no such price."""
    price = policy.gain_per_growth
    return f", and {price * 10:.4g} % more for each 10 % that the heap grows" if price else ""


def budget(advice: Advice) -> list[str]:
    """What the time for simulations was enough for; nothing where it was not needed."""
    found = advice.budget
    if not found.worth or found.played is None or found.cpu_s is None:
        return []
    worth, left, played = found.worth, found.not_weighed or (), found.played
    allowed = f"{show_duration(found.cpu_s)} of processor time"
    if not left:
        noun = "table was" if played == 1 else "tables were"
        rest = "counters and rules decide" if found.cut_off else "counters decide"
        return [f"{played} {noun} played (in at most {allowed}); {rest} the rest."]
    names = ", ".join(map(reading.printable, left[:MOST_NAMED]))
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    verb = "is" if len(left) == 1 else "are"
    cut = [name for name in found.cut_off or () if name in left]
    was = "was" if len(cut) == 1 else "were"
    begun = f"; {', '.join(map(reading.printable, cut))} {was} begun and cut off" if cut else ""
    return [
        f"Played {played} of {worth} tables in {allowed}, by the WAL at stake; {len(left)} {verb} "
        f"not weighed ({names}{more}{begun}): --budget gives more, --table one of them."
    ]


def observed_at(seen: Observation) -> str | None:
    """When the observation was made, to the minute; as it stands where its form is another."""
    found = reading.text(seen.observed_at)
    match = re.fullmatch(r"(\S{10})[T ](\d\d:\d\d)[\d:.]*(?:\+00(?::?00)?|Z)", found or "")
    return f"{match[1]} {match[2]} UTC" if match else found


def unseen(seen: Observation) -> list[str]:
    """What could not be seen, and with which rights it was looked."""
    levels = ", ".join(map(reading.printable, seen.levels)) or "only what everyone sees"
    return [
        f"Access: {levels}.",
        *(f"Broken: {reading.printable(line)}" for line in seen.broken),
        *(f"Changed meanwhile: {reading.printable(line)}" for line in seen.changed or ()),
        *_left_out(seen),
        *(f"Not seen: {reading.printable(line)}" for line in seen.missing),
    ]


def _left_out(seen: Observation) -> list[str]:
    """Tables that the profile does not have; what was dropped is told among what changed."""
    told = [
        line for line in seen.left_out or () if not line.endswith(": dropped inside the interval")
    ]
    more = len(told) - MOST_NAMED
    lines = [f"Left out: {reading.printable(line)}" for line in told[:MOST_NAMED]]
    return [*lines, f"Left out: {more} more tables"] if more > 0 else lines
