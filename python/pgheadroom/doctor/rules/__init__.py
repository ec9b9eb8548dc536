"""
All rules: a module each here, which has it as `RULE`, and those of the TOML files.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module

from pgheadroom.doctor.plain import plain_rules
from pgheadroom.doctor.rule import Rule
from pgheadroom.errors import ParameterError


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """All of them, by name."""
    modules = [
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    ]
    rules = [*(module.RULE for module in modules), *plain_rules()]
    names = [rule.id for rule in rules]
    assert len(names) == len(set(names)), "two rules have one name"
    return tuple(sorted(rules, key=lambda rule: rule.id))


def rule_named(name: str) -> Rule:
    """
    The rule of that name.

    Raises:
        ParameterError: There is none.
    """
    for rule in all_rules():
        if rule.id == name:
            return rule
    listed = ", ".join(rule.id for rule in all_rules())
    raise ParameterError("explain", f"{name!r}: expected one of {listed}")
