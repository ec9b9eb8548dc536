"""
Write docs/accuracy.md: the twin beside real servers, every run and every miss.

    tools/accuracy.py [--server SPEC]... [--record FOLDER]

Plays each run of `RUNS` on each server (default: those at hand) and in the twin, keeps the proofs
in a record folder, and writes the page and its pictures from what lies there. A proof that is
there already is not made again, so that a stopped call goes on and a new server only adds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import accuracy_goldens
import vl_convert
from accuracy_reasons import reason_for

from pgheadroom.accuracy import BOUNDS, Figure
from pgheadroom.errors import TwinError
from pgheadroom.files import write_atomically
from pgheadroom.forms import read, unframed
from pgheadroom.outcome import SHARES, middle
from pgheadroom.predict.fillfactors import fillfactor_label
from pgheadroom.profile import read_profile
from pgheadroom.prove import Proof, ProofCell, prove
from pgheadroom.report import charts
from pgheadroom.report.proof import accuracy as accuracy_figures
from pgheadroom.report.proof import figures as proof_figures
from pgheadroom.report.proof import words as proof_words
from pgheadroom.servers import ServerPrograms, at_hand, find_programs
from pgheadroom.servers.signals import terminate_cleanly
from pgheadroom.types import PgVersion

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RECORD = ROOT / "experiments" / "record" / "accuracy"
PAGE = DOCS / "accuracy.md"
PICTURES = DOCS / "accuracy"
UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class Run:
    """A profile, and the fillfactors to play it at; None: its own."""

    name: str
    profile: str
    fillfactors: tuple[int, ...] | None = None


STATISTICAL = (
    "two-clients",
    "eight-clients-full",
    "indexed-column",
    "indexed-column-eight",
    "hot-set",
    "hot-set-eight",
    "zipfian-mild",
    "zipfian-scattered",
    "gaussian",
    "growing-rows",
    "inserts",
    "inserts-eight",
    "aborts",
    "queue-clients",
    "upserts",
    "lock-and-update",
    "long-transactions",
    "read-mostly",
    "deletes",
    "two-tables",
    "tpcb-four",
    "tpcb-eight",
    "simple-update-four",
    "autovacuum-mix",
    "autovacuum-indexed",
    "checkpoints-by-wal",
    "two-snapshots",
    "snapshot-hot-set",
)
"""Two to eight clients, and what waits for a clock; the profile's file says what each is about."""

RUNS = (
    Run("pgbench", "experiments/accuracy/pgbench.toml", (100, 90, 80, 70)),
    Run("accounts", "examples/accounts.toml"),
    Run("heartbeat", "examples/heartbeat.toml"),
    Run("pgbench-short", "examples/pgbench.toml"),
    Run("queue", "examples/queue.toml"),
    Run("wide-rows", "examples/wide-rows.toml"),
    Run("every-field", "examples/every-field.toml"),
    Run("clients-uniform", "experiments/accuracy/clients-uniform.toml"),
    Run("clients-zipfian", "experiments/accuracy/clients-zipfian.toml"),
    Run("clients-eight", "experiments/accuracy/clients-eight.toml"),
    Run("clients-mix", "experiments/accuracy/clients-mix.toml"),
    Run("autovacuum", "experiments/accuracy/autovacuum.toml"),
    Run("checkpoints", "experiments/accuracy/checkpoints.toml"),
    Run("snapshot", "experiments/accuracy/snapshot.toml"),
    Run("duration", "experiments/accuracy/duration.toml"),
    Run("rate", "experiments/accuracy/rate.toml"),
    *(Run(name, f"experiments/accuracy/{name}.toml") for name in STATISTICAL),
)


@dataclass(frozen=True)
class Refusal:
    """What the twin does not play: on which server, and why, in its words."""

    server: str
    reason: str


def main() -> None:
    """Play what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--server", action="append", default=[], metavar="SPEC")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FOLDER")
    options = parser.parse_args()
    servers = [find_programs(spec) for spec in options.server] or at_hand()
    options.record.mkdir(parents=True, exist_ok=True)
    with terminate_cleanly():
        for programs in servers:
            for run in RUNS:
                _play(run, programs, options.record)
    proofs, goldens = dict(_read(options.record)), dict(accuracy_goldens.proofs())
    write_atomically(PAGE, page(proofs, goldens))
    _draw(proofs, goldens)
    sys.stderr.write(f"{PAGE}\n")


def _play(run: Run, programs: ServerPrograms, folder: Path) -> None:
    path = folder / f"{run.name}-{programs.version}.json"
    if path.exists():
        return
    sys.stderr.write(f"{run.name} on {programs}\n")
    profile = read_profile(ROOT / run.profile)
    try:
        proof = prove(profile, run.fillfactors, server=str(programs.bin_dir)).to_json()
    except TwinError as error:
        proof = {"kind": "refusal", "server": str(programs.version), "reason": str(error)}
    # Where the programs lay is nobody's business, and would differ from machine to machine.
    if "assumed" in proof:
        proof["assumed"]["server.version"] = f"{programs.version}, as asked for"
    write_atomically(path, json.dumps(proof, indent=1) + "\n")


def _read(folder: Path) -> Iterator[tuple[tuple[str, str], Proof | Refusal]]:
    """The proofs of a record by run and version, runs in their order, newest server first."""
    for run in RUNS:
        paths = folder.glob(f"{run.name}-[0-9]*.json")
        found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        for proof in sorted(found, key=lambda item: PgVersion.parse(item["server"]), reverse=True):
            own = unframed(proof)
            if proof["kind"] == "refusal":
                yield (run.name, proof["server"]), Refusal(**own)
            else:
                yield (run.name, proof["server"]), read(Proof, own, exact=True)


def page(
    proofs: Mapping[tuple[str, str], Proof | Refusal], goldens: Mapping[tuple[str, str], Proof]
) -> str:
    """The whole page."""
    played = {key: proof for key, proof in proofs.items() if isinstance(proof, Proof)}
    servers = sorted({server for _, server in played}, key=PgVersion.parse, reverse=True)
    lines = [
        "# Accuracy",
        "",
        "What the twin predicted and what PostgreSQL did with the same profile, figure by figure.",
        "Written by `make accuracy` from the proofs in `experiments/record/accuracy`; "
        "not edited by hand.",
        "",
        *_summary(played, servers),
        *_pictures(played),
        *_runs(proofs),
        *_recorded(goldens),
        *_misses({**played, **goldens}),
        *_refusals(proofs),
        *_bounds(),
        *_advice(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _figures(proof: Proof) -> list[tuple[ProofCell, Figure]]:
    """Every figure that both players have, of every cell and every table."""
    return [
        (cell, figure)
        for cell in proof.cells
        for figure in cell.figures
        if figure.verdict != "not compared"
    ]


def _summary(played: Mapping[tuple[str, str], Proof], servers: Sequence[str]) -> list[str]:
    figures = [figure for proof in played.values() for _, figure in _figures(proof)]
    same = sum(1 for figure in figures if figure.verdict == "exact")
    held = [figure.holds for figure in figures if figure.holds is not None]
    said = [
        f"Servers: {', '.join(servers)}.",
        f"{len(played)} proofs, {len(figures)} figures, {same} of them equal to the unit.",
    ]
    if held:
        said.append(
            f"{sum(held)} of {len(held)} intervals of stated 90 % hold what was measured "
            f"({100 * sum(held) / len(held):.0f} %)."
        )
    else:
        said.append("No run of these has an interval: each is deterministic.")
    return [*said, ""]


def _pictures(played: Mapping[tuple[str, str], Proof]) -> list[str]:
    server = next((server for name, server in played if name == "pgbench"), None)
    lines = ["![Predicted against measured](accuracy/all.svg)", ""]
    if server is not None:
        lines += [
            f"pgbench (tpcb-like, scale 1, one client, 100,000 transactions) on {server}; line: "
            "the twin, points: the server.",
            "",
        ]
        lines += [f"![{title}](accuracy/{name}.svg)\n" for name, title in _CURVES]
    return lines


_CURVES = (("versions", "Where the new row versions went"), ("wal", "WAL per update"))


def _runs(proofs: Mapping[tuple[str, str], Proof | Refusal]) -> list[str]:
    lines = [
        "## Runs",
        "",
        "| run | profile | server | cells | figures | equal | largest error |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    paths = {run.name: run.profile for run in RUNS}
    for (name, server), proof in proofs.items():
        start = f"| {name} | [{paths[name]}](../{paths[name]}) | {server} "
        if isinstance(proof, Refusal):
            lines.append(f"{start}| - | - | - | not played, see below |")
            continue
        figures = _figures(proof)
        same = sum(1 for _, figure in figures if figure.verdict == "exact")
        cells = len(proof.cells)
        lines.append(f"{start}| {cells} | {len(figures)} | {same} | {_largest(figures)} |")
    return [*lines, ""]


def _recorded(goldens: Mapping[tuple[str, str], Proof]) -> list[str]:
    lines = [
        "## Recorded profiles and scenarios",
        "",
        "One client each, played on servers once (`golden/expected`) and by the twin now; each is "
        "about one rule or one kind of operation. Scenarios that are scripts are not counted here: "
        "the core's tests play them, and compare every line pointer, map and index entry.",
        "",
        "| server | profiles | figures | equal | largest error |",
        "|---|---:|---:|---:|---|",
    ]
    for server in sorted({server for _, server in goldens}, key=PgVersion.parse, reverse=True):
        figures = [
            item for (_, on), proof in goldens.items() if on == server for item in _figures(proof)
        ]
        count = sum(1 for _, on in goldens if on == server)
        same = sum(1 for _, figure in figures if figure.verdict == "exact")
        lines.append(f"| {server} | {count} | {len(figures)} | {same} | {_largest(figures)} |")
    return [*lines, ""]


def _largest(figures: Sequence[tuple[ProofCell, Figure]]) -> str:
    errors = [(abs(number), figure) for _, figure in figures if (number := middle(figure.error))]
    if not errors:
        return "0"
    _, figure = max(errors, key=lambda item: item[0])
    return f"{figure.key}: {proof_words.error_text(figure.key, figure.error)}"


def _misses(played: Mapping[tuple[str, str], Proof]) -> list[str]:
    lines = ["## Misses", ""]
    rows = []
    used: dict[str, str] = {}
    for (name, server), proof in played.items():
        for cell, figure in _figures(proof):
            if figure.missed:
                column = proof_words.column_of(figure.key)
                reason = reason_for(name, server, figure.key)
                if reason is not None:
                    used[reason.name] = reason.text
                why = UNEXPLAINED if reason is None else reason.name
                rows.append(
                    f"| {name} | {server} | {fillfactor_label(cell.fillfactor)} "
                    f"| {figure.table or 'all tables'} | {figure.key} "
                    f"| {column.write(figure.predicted)} | {column.write(figure.measured)} "
                    f"| {proof_words.error_text(figure.key, figure.error)} | {why} |"
                )
    if not rows:
        return [*lines, "None in these runs.", ""]
    heads = "run | server | fillfactor | table | figure | predicted | measured | error | why"
    lines += [f"| {heads} |", "|---|---|---|---|---|---:|---:|---|---|", *rows, ""]
    return [*lines, *(f"- **{name}** {used[name]}" for name in sorted(used)), ""]


def _refusals(proofs: Mapping[tuple[str, str], Proof | Refusal]) -> list[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for (name, server), proof in proofs.items():
        if isinstance(proof, Refusal):
            rows.setdefault((name, proof.reason), []).append(server)
    if not rows:
        return []
    lines = ["## Not played", "", "Profiles that the twin refuses so far, in its words:", ""]
    lines += [f"- {name} ({', '.join(on)}): {reason}" for (name, reason), on in rows.items()]
    return [*lines, "", "See [limits](limits.md) for what else is not modelled.", ""]


def _bounds() -> list[str]:
    lines = [
        "## Bounds",
        "",
        "A figure that the twin states as a number may not differ at all, in any table.",
        "One that it states as an interval (several clients, autovacuum, checkpoints) may differ, "
        "for all tables of a profile together, by this much; `prove --fail-over` checks it:",
        "",
        "| figure | bound |",
        "|---|---|",
    ]
    for key, bound in BOUNDS.items():
        unit = "point" if key in SHARES else "%"
        lines.append(f"| {key} | {bound * 100:g} {unit} |")
    return [*lines, ""]


def _advice() -> list[str]:
    """Where the other half of the proof stands; `make bench-advice` makes it."""
    return [
        "## Advice",
        "",
        "How much more than the measured best the advice costs that rests on the twin, beside "
        "the formulas of others: [the proof](advice-accuracy.md), by `make bench-advice`.",
        "",
        "![Regret of each rule](accuracy/advice.svg)",
        "",
    ]


def _draw(
    proofs: Mapping[tuple[str, str], Proof | Refusal], goldens: Mapping[tuple[str, str], Proof]
) -> None:
    PICTURES.mkdir(exist_ok=True)
    played = {key: proof for key, proof in proofs.items() if isinstance(proof, Proof)}
    everything = {**played, **goldens}
    _write("all", accuracy_figures.scatter({f"{n}, {s}": p for (n, s), p in everything.items()}))
    proof = next((proof for (name, _), proof in played.items() if name == "pgbench"), None)
    if proof is not None:
        drawn = {chart.title: chart for chart in proof_figures.charts(proof)}
        for name, title in _CURVES:
            if title in drawn:
                _write(name, drawn[title])


def _write(name: str, chart: charts.Chart) -> None:
    spec = charts.resolved(chart.spec) | {"background": charts.LIGHT["--paper"], "padding": 12}
    write_atomically(PICTURES / f"{name}.svg", small(vl_convert.vegalite_to_svg(spec)) + "\n")


def small(svg: str) -> str:
    """
    A picture without what is said of each of thousands of marks, to a tenth of a pixel.

    Marks that then look alike at one place are one. The page's table has the figures.
    """
    svg = re.sub(r' (?:aria-label|role|aria-roledescription|aria-hidden)="[^"]*"', "", svg)
    svg = re.sub(r"-?\d+\.\d{2,}", lambda match: f"{float(match[0]):.1f}", svg)
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        if match[0] in seen:
            return ""
        seen.add(match[0])
        return match[0]

    return re.sub(r'<path transform="[^>]*/>', once, svg)


if __name__ == "__main__":
    main()
