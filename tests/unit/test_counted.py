"""Time left of the twin's work (`cli/predict.py`): what came before it does not count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pgheadroom.cli import output, predict
from pgheadroom.progress import RunState


def test_what_a_server_took_before_the_twin_is_not_held_against_it(monkeypatch: Any) -> None:
    now = 0.0
    shown: list[RunState] = []

    @contextmanager
    def bar(_label: str) -> Iterator[Any]:
        yield shown.append

    monkeypatch.setattr(predict.time, "monotonic", lambda: now)
    monkeypatch.setattr(output, "progress", bar)
    with predict.counted("twin") as report:
        now = 600.0  # the server's ten minutes
        report(100, 1100, "")
        now = 601.0
        report(200, 1100, "")
        assert shown[-1].left_s == pytest.approx(9)
        now = 610.0
        report(1100, 1100, "")
        now = 610.5
        report(10, 8010, "")
        now = 611.5
        report(1010, 8010, "")
    assert shown[-1].left_s == pytest.approx(7)
    assert all(step.left_s < 60 for step in shown)
