"""
docs/advice-accuracy.md and its picture, from the record alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import vl_convert

from bench_advice.ask import FAILED
from bench_advice.goal import GOALS, LOSS_FRAC, Goal
from bench_advice.record import Record
from bench_advice.rules import FORMULAS, RULES
from bench_advice.score import ADVICE, LEAVE, Scored, noise, score, summarise
from bench_advice.workloads import Workload
from pgheadroom.files import write_atomically
from pgheadroom.report import charts
from pgheadroom.report.advice import figures as advice_figures
from pgheadroom.units import percent

TARGET_FRAC = 0.25
"""Of the best formula's median regret: what the advice's may be at most."""


def write(record: Record, workloads: Sequence[Workload], page: Path, picture: Path) -> None:
    """Write the page and its picture."""
    scored = {goal.name: _scored(record, workloads, goal) for goal in GOALS}
    write_atomically(page, _page(record, workloads, scored, picture, page))
    first = scored[GOALS[0].name]
    regrets = {rule: [item.regret(rule) for item in first] for rule in _rules(first)}
    chart = advice_figures.regrets(regrets)
    spec = charts.resolved(chart.spec) | {"background": charts.LIGHT["--paper"], "padding": 12}
    picture.parent.mkdir(exist_ok=True)
    write_atomically(picture, vl_convert.vegalite_to_svg(spec) + "\n")


def _scored(record: Record, workloads: Sequence[Workload], goal: Goal) -> list[Scored]:
    found = [score(record, workload, goal) for workload in workloads]
    return [item for item in found if item is not None]


def _rules(scored: Sequence[Scored]) -> list[str]:
    """Rules that chose for every workload: the advice may not have been asked yet."""
    names = [ADVICE, *RULES, LEAVE]
    return [name for name in names if scored and all(name in item.chosen for item in scored)]


def _page(
    record: Record,
    workloads: Sequence[Workload],
    scored: dict[str, list[Scored]],
    picture: Path,
    page: Path,
) -> str:
    lines = [
        "# Is the advice good?",
        "",
        "What the advice, the formulas of others and fixed numbers cost on workloads whose best "
        "fillfactor was measured.",
        "Workloads, goal and stopping rule were fixed beforehand: "
        "[experiments/advice](../experiments/advice/README.md).",
        "Written by `make bench-advice` from the record there; not edited by hand.",
        "",
        "A cell is one checkpoint cycle, some two updates a row after the load. The advice is for "
        "the long run, gives room a price beside the goal's (a heap that grows by 10 % has to save "
        "1 %), and takes half of what full-page images save for error "
        "([method](method/advise.md)): where these differ, the regret below is what that costs.",
        "The price of room, and from which part on images alone are a reason, were set with these "
        "results in sight, so for them this is no independent test.",
        "",
        *_state(record, workloads, scored[GOALS[0].name]),
    ]
    for number, goal in enumerate(GOALS):
        found = scored[goal.name]
        if not found:
            continue
        lines += [f"## Goal `{goal.name}`: {goal.about}", "", *_summary(found)]
        if number == 0:
            where = picture.relative_to(page.parent)
            lines += [f"![Regret of each rule]({where})", ""]
        lines += [*_verdicts(found), *_by_family(found)]
    if scored[GOALS[0].name]:
        lines += _each(scored)
    return "\n".join(lines).rstrip() + "\n"


def _state(record: Record, workloads: Sequence[Workload], scored: Sequence[Scored]) -> list[str]:
    servers = sorted({line["server"] for line in record.lines("cells")})
    cells = sum(len(record.cells(workload)) for workload in workloads)
    said = [
        f"PostgreSQL {', '.join(servers)}; {cells} cells; {len(scored)} of {len(workloads)} "
        "workloads are complete and scored."
    ]
    if len(scored) < len(workloads):
        done = {item.workload.name for item in scored}
        missing = [item.name for item in workloads if item.name not in done]
        said.append(f"Not complete: {', '.join(missing)}.")
    repeats = [abs(value) for value in noise(record, workloads, GOALS[0])]
    if repeats:
        equal = sum(1 for value in repeats if value == 0)
        rest = f", the others' costs up to {_percent(max(repeats))} apart"
        said.append(
            f"Noise: {len(repeats)} cells measured twice, {equal} of them with the same cost to "
            f"the byte{rest if equal < len(repeats) else ''}."
        )
    keep = sum(1 for item in scored if item.keep_is_right)
    index = sum(1 for item in scored if item.workload.intent == "index")
    said.append(
        f"Leaving the setting is right (at most {percent(LOSS_FRAC)} above the least cost) in "
        f"{keep} "
        f"workloads; an index takes HOT away in {index}."
    )
    return [*said, ""]


def _summary(scored: Sequence[Scored]) -> list[str]:
    lines = [
        "| rule | median regret | 90th percentile | worst | mean | harm | setting left |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for rule in _rules(scored):
        found = summarise(scored, rule)
        lines.append(
            f"| {rule} | {_percent(found.median)} | {_percent(found.p90)} "
            f"| {_percent(found.worst)} | {_percent(found.mean)} | {found.harmed} "
            f"| {found.silent} |"
        )
    return [
        *lines,
        "",
        "Regret: cost at the rule's fillfactor over the least measured, minus 1. "
        f"Harm: workloads where it costs more than {percent(LOSS_FRAC)} more than the setting in "
        "force.",
        "",
    ]


def _verdicts(scored: Sequence[Scored]) -> list[str]:
    """Whether the targets are met, in figures."""
    if ADVICE not in _rules(scored):
        return ["The advice has not been asked yet.", ""]
    ours = summarise(scored, ADVICE)
    formula = min(FORMULAS, key=lambda name: summarise(scored, name).median)
    theirs = summarise(scored, formula).median
    counts = {
        verdict: sum(1 for item in scored if item.verdict == verdict)
        for verdict in ("CHANGE", "KEEP", "ABSTAIN")
    }
    share = "" if not theirs else f", {percent(ours.median / theirs)} of it"
    met = ours.median <= TARGET_FRAC * theirs
    abstained = counts["ABSTAIN"] / len(scored)
    failed = [item.workload.name for item in scored if item.verdict == FAILED]
    return [
        *([f"`advise` failed, which counts as KEEP: {', '.join(failed)}."] if failed else []),
        f"Advice: {counts['CHANGE']} CHANGE, {counts['KEEP']} KEEP, {counts['ABSTAIN']} ABSTAIN "
        f"({percent(abstained)}; target: under 20 %, {_met(abstained < 0.2)}).",
        f"Median regret {_percent(ours.median)}, the best formula's ({formula}) "
        f"{_percent(theirs)}{share}; target: at most a quarter, {_met(met)}.",
        f"Harm in {ours.harmed} workloads; target: none, {_met(ours.harmed == 0)}.",
        "",
    ]


def _met(value: bool) -> str:
    return "met" if value else "missed"


def _by_family(scored: Sequence[Scored]) -> list[str]:
    """Mean regrets by family, for where a rule fails."""
    rules = _rules(scored)
    lines = [
        "Mean regret by family:",
        "",
        f"| family | workloads | {' | '.join(rules)} |",
        f"|---|---:|{'---:|' * len(rules)}",
    ]
    for family in dict.fromkeys(item.workload.family for item in scored):
        members = [item for item in scored if item.workload.family == family]
        means = [_percent(summarise(members, rule).mean) for rule in rules]
        lines.append(f"| {family} | {len(members)} | {' | '.join(means)} |")
    return [*lines, ""]


def _each(scored: dict[str, list[Scored]]) -> list[str]:
    lines = ["## Every workload", ""]
    for goal in GOALS:
        rules = [rule for rule in _rules(scored[goal.name]) if rule != LEAVE]
        lines += [
            f"Goal `{goal.name}`. Current: the setting in force and its regret; best: the highest "
            "fillfactor within 0.5 % of the least cost; then each rule's fillfactor and regret.",
            "",
            f"| workload | current | best | {' | '.join(rules)} |",
            f"|---|---|---:|{'---|' * len(rules)}",
        ]
        for item in scored[goal.name]:
            cells = [_choice(item, rule) for rule in rules]
            lines.append(
                f"| {item.workload.name} | {_choice(item, LEAVE)} | {item.best} "
                f"| {' | '.join(cells)} |"
            )
        lines.append("")
    return lines


def _choice(item: Scored, rule: str) -> str:
    said = f"{item.chosen[rule]}: {_percent(item.regret(rule))}"
    if rule == ADVICE and item.verdict != "CHANGE":
        said = f"{item.verdict} {said}"
    return f"**{said}**" if item.loss(rule) > LOSS_FRAC else said


def _percent(frac: float) -> str:
    return f"{100 * frac:.2f} %" if frac < 0.1 else f"{100 * frac:.1f} %"
