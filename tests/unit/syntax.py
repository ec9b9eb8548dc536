"""Our sources as Python reads them, each once: many rules ask about all of them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """What stands in a file; not to be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))
