"""Runs of the experiment cluster-decay, and servers on which nobody else holds a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.cluster_decay import measure
from pgheadroom.lab.place import Place
from pgheadroom.lab.run import run


def decay(server: str, folder: Path, *settings: str, name: str | None = None) -> dict[str, Any]:
    """The result of one repetition; `name` is what the request calls the server."""
    experiment = get("cluster-decay")
    levels, options = parse_settings(
        settings, experiment.factors, experiment.options, name=experiment.name
    )
    request = Request(
        experiment=experiment.name,
        server=name or server,
        scale=1,
        seed=1,
        repetitions=1,
        levels=levels,
        options=options,
    )
    return run(request, folder, server=server, command="test", report=lambda _: None)


def without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """No background writer, and no checkpoint in a round."""
    found = measure.settings

    def quiet(request: Request, place: Place) -> dict[str, str]:
        return {
            **found(request, place),
            "bgwriter_lru_maxpages": "0",
            "max_wal_size": "10GB",
            "shared_buffers": "128MB",
        }

    monkeypatch.setattr(measure, "settings", quiet)
