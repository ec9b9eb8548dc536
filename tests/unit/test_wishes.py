"""docs/wishes.md is what becomes of the profiles today."""

from __future__ import annotations

from wishes import PAGE, page


def test_the_page_is_true() -> None:
    """A feature that is played now, or refused in other words, is written down."""
    assert PAGE.read_text(encoding="utf-8") == page()
