"""
`pgheadroom lab list`: the experiments, and the servers at hand.
"""

from __future__ import annotations

import textwrap

from rich.console import Console

from pgheadroom.cli.terminal import Terminal
from pgheadroom.lab.design import Factor
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import ALL, get
from pgheadroom.servers import at_hand


def show_experiments(name: str | None) -> None:
    """Show all experiments and the servers at hand, or one experiment with all that it takes."""
    console = Terminal(highlight=False)
    if name is not None:
        _describe(console, get(name))
        return
    width = max(len(experiment.name) for experiment in ALL)
    for experiment in ALL:
        console.print(f"{experiment.name:{width}}  {experiment.title}", markup=False)
    console.print("`pgheadroom lab list NAME` shows what one asks, measures and takes.")
    console.print("Servers at hand:" if (found := at_hand()) else "Servers at hand: none")
    for programs in found:
        console.print(
            f"  {programs.version} ({programs.origin}: {programs.bin_dir})",
            markup=False,
            soft_wrap=True,
        )


def _describe(console: Console, experiment: Experiment) -> None:
    console.print(f"{experiment.name}: {experiment.title}", style="bold", markup=False)
    measures = ", ".join(measure.name for measure in experiment.measures)
    lines = [
        (2, f"Question: {experiment.question}"),
        (2, f"Source: {experiment.source}"),
        (2, f"Time: {experiment.time_needed}"),
        (2, f"Measures: {measures}"),
        (2, f"--scale: {experiment.scale_meaning}; default {experiment.scale_default}"),
    ]
    for title, factors in (("Factors", experiment.factors), ("Options", experiment.options)):
        lines.append((2, f"{title} (--set NAME=VALUE{_many(title)}):"))
        lines += [(4, _factor_line(factor)) for factor in factors]
        if title == "Factors" and experiment.open_factors:
            lines.append((4, experiment.open_factors))
    for indent, text in lines:
        wrapped = textwrap.fill(
            text,
            console.width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent + 2),
            break_on_hyphens=False,
        )
        console.print(wrapped, markup=False, soft_wrap=True)


def _many(title: str) -> str:
    return ",VALUE... or LOW..HIGH:STEP" if title == "Factors" else ""


def _factor_line(factor: Factor) -> str:
    default = (
        "only when set"
        if factor.default is None
        else "default " + ",".join(str(level) for level in factor.default)
    )
    return f"{factor.name}: {factor.description} ({factor.expected()}; {default})"
