"""
`pgheadroom lab run`: a request out of the command line, and its run with progress.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from pgheadroom.cli import output
from pgheadroom.errors import InputError
from pgheadroom.input_file import exists, read_text
from pgheadroom.lab.design import Request, parse_settings
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import get
from pgheadroom.lab.run import run as run_experiment
from pgheadroom.lab.stored import RecordPlace, folder_of
from pgheadroom.redaction import command_line
from pgheadroom.servers import is_connection
from pgheadroom.servers.conninfo import without_password
from pgheadroom.units import show_duration

_SCRIPT_BYTES_MAX = 16 * 1024**2  # the record holds it; arbitrary


def make_request(
    experiment: Experiment,
    settings: list[str],
    scale: int | None,
    repetitions: int | None,
    seed: int,
    server: str,
) -> Request:
    """A request out of what the command line says, with the experiment's defaults."""
    names = [setting.partition("=")[0] for setting in settings]
    levels, options = parse_settings(
        settings,
        experiment.factors_for(names),
        experiment.options,
        name=experiment.name,
        open_factors=experiment.open_factors,
    )
    # The record holds the files themselves: one may change before a run goes on. One that cannot
    # be read is named by the experiment's own check.
    for name in ("script", "schema", "profile"):
        path = Path(str(options.get(name, "")))
        if name in options and exists(path):
            with contextlib.suppress(InputError):
                options[f"{name}_text"] = read_text(
                    path, bytes_max=_SCRIPT_BYTES_MAX, expected=f"a {name}"
                )
    chosen_scale = experiment.scale_default if scale is None else scale
    return Request(
        experiment=experiment.name,
        server=without_password(server) if is_connection(server) else server,
        scale=chosen_scale,
        seed=seed,
        repetitions=repetitions or experiment.repetitions_default(chosen_scale),
        levels=levels,
        options=options,
    )


def run_into(
    request: Request,
    place: RecordPlace,
    *,
    server: str,
    budget_s: float | None = None,
    scheduler: str | None = None,
    labels: Sequence[str] = (),
) -> None:
    """Run a request into a record with progress on standard error."""
    experiment = get(request.experiment)
    trials = len(experiment.trials(request))
    estimate_s = trials * experiment.trial_s(request)
    going_on = (folder_of(place) / "request.json").exists()
    sys.stderr.write(
        f"{experiment.name} on PostgreSQL {request.server}: {len(request.cells())} cells, "
        f"{trials} trials, about {show_duration(estimate_s)}"
        f"{'; going on with' if going_on else '; record'} {place}\n"
    )
    arguments = [argument.replace(server, request.server) for argument in sys.argv[1:]]
    try:
        with output.progress(experiment.name) as report:
            run_experiment(
                request,
                place,
                server=server,
                command=command_line(arguments),
                report=report,
                budget_s=budget_s,
                scheduler=scheduler,
                labels=labels,
            )
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write("Stopped. The same command goes on where it stopped.\n")
        raise
