"""
Factors and options that several experiments take, each with its own default.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgheadroom.lab.design import Factor

IO = Factor(
    name="io",
    description="direct: not through the operating system's cache (16 and later); cached; "
    "auto: direct where the server can",
    default=("auto",),
    words=("auto", "direct", "cached"),
    single=True,
)


def window_s(default: int, *, of: str = "length of the throughput window in seconds") -> Factor:
    """How long a window is."""
    return Factor(
        name="window_s", description=of, default=(default,), bounds=(1, 86_400), single=True
    )


def protocol(default: str, *, how: str = "how pgbench sends statements") -> Factor:
    """One of pgbench's protocols."""
    words = ("simple", "extended", "prepared")
    return Factor(name="protocol", description=how, default=(default,), words=words, single=True)


def windows(description: str) -> Factor:
    """Which of the two windows of a trial are played."""
    words = ("both", "counters", "throughput")
    return Factor(
        name="measure", description=description, default=("both",), words=words, single=True
    )


def clients(*default: int, single: bool = False) -> Factor:
    """How many clients of pgbench there are."""
    return Factor(
        name="clients",
        description="pgbench clients",
        default=default,
        bounds=(1, 1000),
        single=single,
    )


def told(name: str, meanings: Mapping[str, str]) -> Factor:
    """Words that a factor's description explains one by one; all of them by default."""
    return Factor(
        name=name,
        description="; ".join(f"{word}: {meaning}" for word, meaning in meanings.items()),
        default=tuple(meanings),
        words=tuple(meanings),
    )
