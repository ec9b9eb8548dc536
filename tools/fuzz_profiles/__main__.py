"""
Random profiles through both players, until there were so many or time is up.

    make fuzz SEED=1 COUNT=2000
    make fuzz CLIENTS=4 COUNT=300 MINUTES=60
    PYTHONPATH=tools .venv/bin/python -m fuzz_profiles --seed 1 --only 17

What was found before (golden/found) goes first; Ctrl-C ends the series with its report. Exit code
1 if a figure stated exactly was not the server's, or a profile was neither played nor refused.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz_profiles.generator import generate
from fuzz_profiles.smaller import smallest
from fuzz_profiles.trial import Trial, carry_out

FOUND = Path(__file__).parents[2] / "golden" / "found"


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="profiles")
    parser.add_argument("--minutes", type=float, default=None, help="and then no more")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first profile")
    parser.add_argument("--only", type=int, default=None, help="this number alone, shown")
    parser.add_argument(
        "--having", default="", help="only profiles with one of these fields: order,isolation"
    )
    parser.add_argument(
        "--alone", action="store_true", help="intervals of predictions without the server's run too"
    )
    parser.add_argument("--versions", default="18,16", help="of servers, one of them a profile")
    parser.add_argument("--keep", type=Path, default=FOUND, help="folder for what is found")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pgh-fuzz-") as folder:
        return _Series(asked, Path(folder)).run()


class _Series:
    """Profiles one after the other, and what became of them."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked = asked
        self.folder = folder
        self.endings: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.alone_held: Counter[str] = Counter()
        self.alone_missed: Counter[str] = Counter()

    def run(self) -> int:
        asked = self.asked
        numbers = range(asked.first, asked.first + asked.count)
        if asked.only is not None:
            numbers = range(asked.only, asked.only + 1)
            profile = self.profile(asked.only)
            sys.stdout.write(json.dumps(profile, indent=2) + "\n")
        else:
            for path in sorted(FOUND.glob("*.json")):
                self.note(path.stem, json.loads(path.read_text()), is_known=True)
        with contextlib.suppress(KeyboardInterrupt):
            self.go_through(numbers)
        self.report()
        return 1 if self.endings["unequal"] + self.endings["failed"] else 0

    def go_through(self, numbers: range) -> None:
        """Play them until time is up."""
        minutes = self.asked.minutes
        started = time.monotonic()
        for number in numbers:
            if minutes is not None and time.monotonic() - started > 60 * minutes:
                return
            profile = self.profile(number)
            if not is_asked_for(profile, self.asked.having):
                continue
            self.note(f"{self.asked.seed}-{number}", profile)
            if number % 50 == 49:
                sys.stderr.write(f"{number + 1}: {dict(self.endings)}\n")

    def profile(self, number: int) -> dict[str, Any]:
        asked = self.asked
        return generate(asked.seed, number, asked.clients, asked.versions.split(","))

    def note(self, name: str, profile: dict[str, Any], *, is_known: bool = False) -> None:
        trial = carry_out(profile, self.folder, alone=self.asked.alone and not is_known)
        if not is_known or trial.ending != "equal":  # those mended before are no part of the count
            self.endings[trial.ending] += 1
            self.held += trial.held
            self.missed += trial.missed
            self.alone_held += trial.alone_held
            self.alone_missed += trial.alone_missed
        if trial.ending == "refused":
            self.reasons[_kind(trial.said)] += 1
        elif trial.ending != "equal":
            said = trial.said or "; ".join(trial.differing[:6])
            sys.stdout.write(f"{name}: {trial.ending}: {said[:600]}\n")
            sys.stdout.flush()
            if not is_known and self.asked.only is None:
                self.keep(name, profile, trial)

    def keep(self, name: str, profile: dict[str, Any], first: Trial) -> None:
        """
        Write down the smallest profile that ends so; several clients' whole.

        Their order is another one in each run: that a smaller one ends well says nothing.
        """
        path = self.asked.keep / f"{name}.json"
        self.asked.keep.mkdir(parents=True, exist_ok=True)
        if self.asked.clients > 1:
            path.write_text(json.dumps(profile, indent=1) + "\n")
            sys.stdout.write(f"    kept whole as {path.name}\n")
            sys.stdout.flush()
            return

        def still(candidate: dict[str, Any]) -> bool:
            return carry_out(candidate, self.folder).ending == first.ending

        made = smallest(profile, still)
        path.write_text(json.dumps(made, indent=1) + "\n")
        again = carry_out(made, self.folder)
        said = again.said or "; ".join(again.differing[:6])
        sys.stdout.write(f"    kept as {path.name}: {said[:600]}\n")
        sys.stdout.flush()

    def report(self) -> None:
        asked = self.asked
        played = self.endings["equal"] + self.endings["unequal"]
        sys.stdout.write(
            f"seed {asked.seed}, {asked.clients} client{'s' * (asked.clients > 1)}: "
            f"{played} played, of them {self.endings['unequal']} unequal in figures stated "
            f"exactly; {self.endings['refused']} refused, {self.endings['failed']} failed\n"
        )
        for reason, count in self.reasons.most_common(12):
            sys.stdout.write(f"    {count} refused: {reason}\n")
        _write("intervals held", self.held, self.missed)
        _write("intervals held without the run", self.alone_held, self.alone_missed)


def is_asked_for(profile: dict[str, Any], having: str) -> bool:
    """Whether a section of it, however deep, has one of these fields (all of them are: `""`)."""
    fields = {field for field in having.split(",") if field}
    return not fields or any(not fields.isdisjoint(part) for part in _sections(profile))


def _sections(part: Any) -> Iterator[dict[str, Any]]:
    """A profile and the sections within it."""
    if isinstance(part, dict):
        yield part
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inside:
        yield from _sections(one)


def _write(what: str, held: Counter[str], missed: Counter[str]) -> None:
    """How many intervals held, by figure and of all."""
    if not (held or missed):
        return
    for key in sorted(set(held) | set(missed)):
        sys.stdout.write(f"    {key}: {held[key]} of {held[key] + missed[key]} {what}\n")
    count = held.total() + missed.total()
    sys.stdout.write(f"    all: {held.total()} of {count} {what} ({held.total() / count:.1%})\n")


def _kind(said: str) -> str:
    """A refusal without what is of one profile alone: names, numbers."""
    first = said.splitlines()[0] if said else ""
    kept = (word for word in first.split() if not any(sign.isdigit() for sign in word))
    return " ".join(kept)[:110]


if __name__ == "__main__":
    sys.exit(main())
