"""
Scenarios: short histories, each about one rule of the twin; read and checked.

golden/scenarios/NAME.toml is a profile, or a profile's server and tables with [[step]] instead of
operations (see golden/scenarios/README.md). Its first lines are comments that say what it asks
and which rule it is about.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.profile import Profile, parse_profile

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "golden" / "scenarios"
STATEMENTS = ("insert", "update", "delete", "select", "lock", "upsert")
STRENGTHS = ("key share", "share", "no key update", "update")
ISOLATIONS = ("read committed", "repeatable read")
PROTOCOLS = (
    "aborts",
    "dead entries",
    "deadlocks",
    "foreign keys",
    "horizons",
    "isolation levels",
    "lock waits",
    "multixacts",
    "pins",
    "queue heads",
    "rechecks",
    "savepoints",
    "unique waits",
    "vacuum",
)
_PLAIN = {
    "copy": {"table", "from", "to"},
    "vacuum": {"table", "freeze", "parallel"},
    "rewrite": {"table"},
    "fillfactor": {"table", "percent"},
    "begin": {"isolation"},
    "commit": set(),
    "rollback": set(),
    "savepoint": {"name"},
    "rollback_to": {"name"},
    "release_savepoint": {"name"},
    "fetch": {"rows"},
    "close": set(),
    "checkpoint": set(),
    "hold": set(),
    "release": set(),
    "reconnect": set(),
}
# What the statement's operation does not have: how it is given, and of a lock its words.
_GIVEN = {"keys", "prepared", "cursor", "strength", "locked"}
# Of every step with sessions: whose it is, and what is expected of it.
_SESSION = {"session", "waits", "fails", "seeks_deadlocks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    A scenario.

    `steps` is None where the profile's own operations are run; a step that is a statement has
    `operation`, the number of its operation in the profile, and `keys`, all written out.
    `protocol` is one of `PROTOCOLS` where steps are of several sessions.
    """

    name: str
    rule: str
    question: str
    protocol: str | None
    only: tuple[int, ...] | None
    profile: Profile
    steps: tuple[dict[str, Any], ...] | None


def read_all(names: list[str] | None = None) -> Iterator[Scenario]:
    """The scenarios of these names, in order; without any, all."""
    for path in sorted(FOLDER.glob("*.toml")):
        if not names or path.stem in names:
            yield read(path)


def read(path: Path) -> Scenario:
    """
    Read one.

    Raises:
        InputError: Its heading lacks something, or a field is wrong.
    """
    text = path.read_text(encoding="utf-8")
    heading = {match[1]: match[2] for match in re.finditer(r"^# (\w+): (.+)$", text, re.MULTILINE)}
    for wanted in ("rule", "question"):
        if wanted not in heading:
            raise InputError(f"{path} has no line '# {wanted}: ...'")
    data = tomllib.loads(text)
    steps = None
    if "step" in data:
        steps = tuple(_step(path, n, step, data) for n, step in enumerate(data.pop("step")))
        # A profile has an operation; one that no step names stays without effect.
        data.setdefault("operation", [{"table": data["table"][0]["name"], "kind": "insert"}])
        data["run"] = {"operations": 1}
    protocol = heading.get("protocol")
    if (protocol is not None) != any("session" in step for step in steps or ()):
        raise InputError(f"{path}: a line '# protocol: ...' belongs to steps with sessions")
    if protocol not in (None, *PROTOCOLS):
        raise InputError(f"{path}: the protocol is {protocol!r}, expected one of {PROTOCOLS}")
    majors = heading.get("only")
    return Scenario(
        name=path.stem,
        rule=heading["rule"],
        question=heading["question"],
        protocol=protocol,
        only=None if majors is None else tuple(int(major) for major in majors.split()),
        profile=parse_profile(data),
        steps=steps,
    )


def _step(path: Path, n: int, step: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """A step; a statement becomes one more operation of the profile."""
    kind = step.get("do")
    common = {name: step[name] for name in step if name in _SESSION}
    rest = {name: value for name, value in step.items() if name not in _SESSION | {"do"}}
    if kind in _PLAIN:
        if unknown := rest.keys() - _PLAIN[kind]:
            raise InputError(f"{path}: step[{n}] ({kind}) has the unknown fields {unknown}")
        if rest.get("isolation", ISOLATIONS[0]) not in ISOLATIONS:
            raise InputError(f"{path}: step[{n}].isolation is none of {ISOLATIONS}")
        return dict(step)
    if kind not in STATEMENTS:
        raise InputError(f"{path}: step[{n}].do is {kind!r}, expected a statement or {[*_PLAIN]}")
    if rest.get("strength", "update") not in STRENGTHS:
        raise InputError(f"{path}: step[{n}].strength is none of {STRENGTHS}")
    given = {name: rest.pop(name) for name in [*rest] if name in _GIVEN}
    operation = {"table": data["table"][0]["name"], **rest, "kind": kind}
    if kind != "insert":
        operation.setdefault("pick", {"distribution": "sequential"})
    operations = data.setdefault("operation", [])
    operations.append(operation)
    given["keys"] = expand(given.get("keys", [0]))
    return {"do": "statement", "operation": len(operations) - 1, **given, **common}


def expand(keys: list[int] | dict[str, int]) -> list[int]:
    """All keys: a list, every `by`th of a range, or `count` pseudo-random ones of 1 to `random`."""
    if isinstance(keys, list):
        return keys
    if "random" in keys:
        state, drawn = keys["seed"], []
        for _ in range(keys["count"]):
            state = (state * 1103515245 + 12345) % 2147483648
            drawn.append(1 + (state // 65536) % keys["random"])
        return drawn
    by = keys.get("by", 1)
    return list(range(keys["from"], keys["to"] + (1 if by > 0 else -1), by))
