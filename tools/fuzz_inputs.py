"""
Damaged files through the real commands, each in a process of its own, simulation and all.

    make fuzz-inputs
    .venv/bin/python tools/fuzz_inputs.py --seed 7 --count 100

Every run has to end with one of the documented exit codes and without a trace; 70 is a bug.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz_entries import LAB_ENVIRONMENT, LAB_REQUEST, LAB_SAMPLE, entries, profiles, to_text
from mutations import Mutator

_CODES = frozenset({0, 1, 2, 3, 4, 5, 6})
_NOWHERE = "host=/nowhere user=u"
_COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "profile": (
        ("advise", "damaged.json", "--budget", "1s", "--plan", "made.json", "--html", "made.html"),
        ("check", "whole.sql", "--profile", "damaged.json"),
        ("layout", "damaged.json"),
        ("predict", "damaged.json", "--sample-pages", "64"),
    ),
    "plan": (
        ("apply", "damaged.json", _NOWHERE, "--dry-run"),
        ("verify", "damaged.json", _NOWHERE),
    ),
    "applied": (("apply", "whole-plan.json", _NOWHERE, "--undo", "--dry-run"),),
    "lab request": (("lab", "report", "record"),),
    "lab samples": (("lab", "report", "record"),),
    "statements": (("observe", _NOWHERE, "--statements", "damaged.json"),),
    "migration": (("check", "damaged.json", "--profile", "whole.json"),),
}
_PLACES = {
    "applied": "whole-plan.applied.json",
    "lab request": "record/request.json",
    "lab samples": "record/samples.jsonl",
}


def main() -> int:
    """Run and report; 1 if a command ended as none may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="of each way in")
    asked = parser.parse_args()
    bad = runs = 0
    with tempfile.TemporaryDirectory(prefix="pgh-fuzz-") as made:
        folder = Path(made)
        found = entries(folder)
        (folder / "whole.json").write_text(to_text(profiles()[0]))
        (folder / "whole.sql").write_text("CREATE INDEX i ON t (v); DROP INDEX t_pkey;")
        for entry in found:
            mutator = Mutator(asked.seed)
            for number in range(asked.count):
                _whole_record(folder)
                path = folder / _PLACES.get(entry.name, "damaged.json")
                text = entry.damaged(mutator) + "\n"
                path.write_text(text, encoding="utf-8", errors="surrogatepass")
                for command in _COMMANDS[entry.name]:
                    runs += 1
                    if (said := _trouble(command, folder)) is not None:
                        bad += 1
                        kept = Path(f"fuzz-{entry.name.replace(' ', '-')}-{asked.seed}-{number}")
                        kept.write_text(text, encoding="utf-8", errors="surrogatepass")
                        sys.stdout.write(f"{' '.join(command)} of {kept}:\n{said}\n")
    sys.stdout.write(f"seed {asked.seed}: {runs} runs, {bad} ended as none may\n")
    return 1 if bad else 0


def _whole_record(folder: Path) -> None:
    (folder / "record" / "result.json").unlink(missing_ok=True)
    for name, value in (
        ("request.json", LAB_REQUEST),
        ("environment.json", LAB_ENVIRONMENT),
        ("samples.jsonl", LAB_SAMPLE),
    ):
        (folder / "record" / name).write_text(to_text(value) + "\n")


def _trouble(command: tuple[str, ...], folder: Path) -> str | None:
    done = subprocess.run(
        [sys.executable, "-m", "pgheadroom", *command],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )
    if done.returncode in _CODES and "Traceback" not in done.stderr:
        return None
    details = [path.read_text() for path in folder.glob("pgheadroom-error-*.txt")]
    for path in folder.glob("pgheadroom-error-*.txt"):
        path.unlink()
    return f"exit code {done.returncode}\n{done.stderr[-2000:]}{''.join(details)}"


if __name__ == "__main__":
    sys.exit(main())
