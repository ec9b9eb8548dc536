"""
Play what the record lacks, score, write the page.

    python -m bench_advice [observe | measure | advise | page | manifest | profiles FOLDER]

Without a word: observe, measure, advise, measure what the advice names, page. A stopped call goes
on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from bench_advice import cell, live, page
from bench_advice.ask import ask_or_fail
from bench_advice.goal import GOALS, candidates
from bench_advice.record import Record
from bench_advice.rules import RULES, counters_of
from bench_advice.score import advice_of
from bench_advice.workloads import Workload, manifest, workloads
from pgheadroom.errors import HeadroomError
from pgheadroom.files import write_atomically
from pgheadroom.servers import ServerPrograms, find_programs
from pgheadroom.servers.signals import terminate_cleanly

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "advice"
DOCS = ROOT / "docs"


def main() -> None:
    """Do what is asked, all without a word."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("folder", nargs="?", type=Path, help="for profiles")
    parser.add_argument("--server", default="18", metavar="SPEC")
    parser.add_argument("--record", type=Path, default=FOLDER / "record", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these workloads")
    parser.add_argument("--again", action="store_true", help="ask for advice anew")
    options = parser.parse_args()
    chosen = [w for w in workloads() if not options.only or w.name in options.only.split(",")]
    if options.what == "profiles":
        if options.folder is None:
            parser.error("profiles: expected a folder")
        _write_profiles(options.folder, chosen)
        return
    if options.what == "manifest":
        write_atomically(FOLDER / "manifest.json", json.dumps(manifest(), indent=1) + "\n")
        return
    record, programs = Record(options.record), find_programs(options.server)
    try:
        with terminate_cleanly():
            if options.what in ("observe", "all"):
                observe(record, programs, chosen)
            if options.what in ("measure", "all"):
                measure(record, programs, chosen)
            if options.what in ("advise", "all"):
                advise(record, chosen, again=options.again)
                measure(record, programs, chosen)
        if options.what in ("page", "all", "advise"):
            page.write(record, chosen, DOCS / "advice-accuracy.md", DOCS / "accuracy/advice.svg")
    except HeadroomError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)


def _write_profiles(folder: Path, chosen: Iterable[Workload]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for workload in chosen:
        text = json.dumps(workload.data, indent=1)
        write_atomically(folder / f"{workload.name}.json", text + "\n")


def observe(record: Record, programs: ServerPrograms, chosen: Iterable[Workload]) -> None:
    """Observe the workloads that were not yet."""
    missing = [workload for workload in chosen if record.observed(workload) is None]
    if not missing:
        return
    settings = live.settings_for_live()
    with cell.host_for(programs) as host, cell.place(host, "live", settings) as place:
        for number, workload in enumerate(missing, start=1):
            _say(f"observe {number} of {len(missing)}: {workload.name}")
            record.write_observed(workload, live.observed(place, workload, host.scratch))


def advise(record: Record, chosen: Iterable[Workload], *, again: bool) -> None:
    """Ask for advice on the observed profiles, under each goal, where there is none yet."""
    todo = [
        (workload, goal)
        for goal in GOALS
        for workload in chosen
        if record.observed(workload) is not None
        if again or advice_of(record, workload, goal) is None
    ]
    for number, (workload, goal) in enumerate(todo, start=1):
        _say(f"advise {number} of {len(todo)}: {workload.name}, {goal.name}")
        record.append("advice", ask_or_fail(workload, record.observed_path(workload), goal))


def wanted(record: Record, workload: Workload) -> tuple[int, ...]:
    """Fillfactors that a workload is measured at, as far as they are known yet."""
    found = list(candidates(workload))
    seen = record.observed(workload)
    if seen is not None:
        counters = counters_of(seen["table"][0])
        found += [value for rule in RULES.values() if (value := rule(counters)) is not None]
    found += [
        line["fillfactor"]
        for line in record.lines("advice")
        if line["sha256"] == workload.sha256 and line["fillfactor"] is not None
    ]
    return tuple(dict.fromkeys(found))


def measure(record: Record, programs: ServerPrograms, chosen: Iterable[Workload]) -> None:
    """Measure the cells that are missing, then each current one once more."""
    cells = [
        (rank, workload, fillfactor)
        for workload in chosen
        for rank, fillfactor in enumerate(wanted(record, workload))
        if fillfactor not in record.cells(workload)
    ]
    # Every workload's first before any one's second: what is stopped is of use already.
    cells.sort(key=lambda item: item[0])
    todo = [("cells", workload, fillfactor) for _, workload, fillfactor in cells]
    todo += [
        ("repeats", workload, workload.fillfactor)
        for workload in chosen
        if workload.fillfactor not in record.cells(workload, "repeats")
    ]
    if not todo:
        return
    began = time.monotonic()
    settings = cell.settings_for_cells(todo[0][1])
    with cell.host_for(programs) as host, cell.place(host, "cells", settings) as place:
        for number, (name, workload, fillfactor) in enumerate(todo):
            left_s = (time.monotonic() - began) / max(number, 1) * (len(todo) - number)
            _say(
                f"{name} {number + 1} of {len(todo)}: {workload.name} at {fillfactor}"
                + (f", about {left_s / 60:.0f} min left" if number else "")
            )
            measured = place.measure(workload, fillfactor)
            record.append(
                name,
                {
                    "workload": workload.name,
                    "sha256": workload.sha256,
                    "server": str(programs.version),
                    "fillfactor": fillfactor,
                    "measured": measured,
                },
            )


def _say(text: str) -> None:
    sys.stderr.write(f"bench-advice: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
