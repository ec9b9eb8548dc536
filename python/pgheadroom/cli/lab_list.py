"""
`pgheadroom lab list`: the experiments, and the servers at hand.
"""

from __future__ import annotations

from rich.console import Console

from pgheadroom.cli.terminal import Terminal
from pgheadroom.lab.design import Factor
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.experiments import ALL, get
from pgheadroom.servers import at_hand


def show_experiments(name: str | None) -> None:
    """Show all experiments and the servers at hand, or one experiment with all that it takes."""
    console = Terminal(highlight=False)
    for experiment in ALL if name is None else (get(name),):
        _describe(console, experiment, whole=name is not None)
    if name is None:
        found = ", ".join(
            f"{programs.version} ({programs.origin}: {programs.bin_dir})" for programs in at_hand()
        )
        console.print(f"Servers at hand: {found or 'none'}", markup=False, soft_wrap=True)


def _describe(console: Console, experiment: Experiment, *, whole: bool) -> None:
    console.print(f"{experiment.name}: {experiment.title}", style="bold", markup=False)
    console.print(f"  Question: {experiment.question}", markup=False)
    console.print(f"  Source: {experiment.source}", markup=False)
    console.print(f"  Time: {experiment.time_needed}", markup=False)
    measures = ", ".join(measure.name for measure in experiment.measures)
    console.print(f"  Measures: {measures}", markup=False)
    names = ", ".join(factor.name for factor in experiment.factors)
    console.print(f"  Factors: {names or experiment.open_factors}", markup=False)
    if whole:
        console.print(
            f"  --scale: {experiment.scale_meaning}; default {experiment.scale_default}",
            markup=False,
        )
        for title, factors in (("Factors", experiment.factors), ("Options", experiment.options)):
            console.print(f"  {title} (--set NAME=VALUE{_many(title)}):", markup=False)
            for factor in factors:
                console.print(f"    {_factor_line(factor)}", markup=False)
            if title == "Factors" and experiment.open_factors:
                console.print(f"    {experiment.open_factors}", markup=False)
    console.print()


def _many(title: str) -> str:
    return ",VALUE... or LOW..HIGH:STEP" if title == "Factors" else ""


def _factor_line(factor: Factor) -> str:
    default = (
        "only when set"
        if factor.default is None
        else "default " + ",".join(str(level) for level in factor.default)
    )
    return f"{factor.name}: {factor.description} ({factor.expected()}; {default})"
