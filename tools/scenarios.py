"""
Scenarios: short histories of one client, each about one rule of the twin; read and checked.

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
_PLAIN = {
    "copy": {"table", "from", "to"},
    "vacuum": {"table", "freeze"},
    "rewrite": {"table"},
    "fillfactor": {"table", "percent"},
    "begin": set(),
    "commit": set(),
    "rollback": set(),
    "checkpoint": set(),
    "hold": set(),
    "release": set(),
    "reconnect": set(),
}
_KEYS = {"do", "keys"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """
    A scenario.

    `steps` is None where the profile's own operations are run; a step that is a statement has
    `operation`, the number of its operation in the profile, and `keys`, all written out.
    """

    name: str
    rule: str
    question: str
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
    majors = heading.get("only")
    return Scenario(
        name=path.stem,
        rule=heading["rule"],
        question=heading["question"],
        only=None if majors is None else tuple(int(major) for major in majors.split()),
        profile=parse_profile(data),
        steps=steps,
    )


def _step(path: Path, n: int, step: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """A step; a statement becomes one more operation of the profile."""
    kind = step.get("do")
    if kind in _PLAIN:
        if unknown := step.keys() - _PLAIN[kind] - {"do"}:
            raise InputError(f"{path}: step[{n}] ({kind}) has the unknown fields {unknown}")
        return dict(step)
    if kind not in STATEMENTS:
        raise InputError(f"{path}: step[{n}].do is {kind!r}, expected a statement or {[*_PLAIN]}")
    operation = {name: value for name, value in step.items() if name not in _KEYS}
    operation["kind"] = kind
    if kind != "insert":
        operation["pick"] = {"distribution": "sequential"}
    operations = data.setdefault("operation", [])
    operations.append(operation)
    keys = expand(step["keys"])
    return {"do": "statement", "operation": len(operations) - 1, "keys": keys}


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
