"""Tests of pages and pictures."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert


@pytest.fixture(autouse=True, scope="session")
def _each_picture_once() -> Iterator[None]:
    """Many tests draw the same chart, each drawing takes 0.15 s, and it is the same text."""
    draw = vl_convert.vegalite_to_svg

    @functools.cache
    def drawn(spec: str) -> str:
        return draw(json.loads(spec))

    def once(spec: Any) -> str:
        return drawn(json.dumps(spec))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", once)
        yield
