"""
Names of a package that are loaded with their module when they are asked for (PEP 562).

A command then loads the parts of a package that it works with, and no others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def on_demand(
    package: str, homes: Mapping[str, str], *, below: str | None = None
) -> Callable[[str], object]:
    """
    The `__getattr__` of a package.

    Args:
        package: Its own name.
        homes: Names that it has, with their modules.
        below: The package that these are parts of, where that is another one.

    Returns:
        A function that finds a name, and keeps it in the package; it raises AttributeError for
        another.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{below or package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
