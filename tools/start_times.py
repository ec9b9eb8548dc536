"""
How much processor time commands take to start, as `docs/method/speed.md` has it.

    python tools/start_times.py [--runs 5] [--wal FOLDER] [--server CONNINFO]

Each command runs in turns with the others, a process each, with small inputs that the repository
has: the least of its runs, in all and for its imports (whatever imports, wherever the statement
stands). Modules are compiled beforehand, as in an installation. The machine's load is told, for
these are its seconds: on a busy machine only what is measured in turns can be compared.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

MEASURED = """
import atexit, builtins, importlib, sys, time
depth, taken = 0, 0.0

def timed(call):
    def importing(*given, **named):
        global depth, taken
        began, depth = time.process_time(), depth + 1
        try:
            return call(*given, **named)
        finally:
            depth -= 1
            if not depth:
                taken += time.process_time() - began
    return importing

builtins.__import__ = timed(builtins.__import__)
importlib.import_module = timed(importlib.import_module)
told = lambda: sys.stderr.write(f"\\nstart: {taken:.3f} of {time.process_time():.3f}\\n")
atexit.register(told)
from pgheadroom.cli import main
main()
"""


def _small(folder: Path) -> Path:
    """The simplest example with a thousand rows and ten updates."""
    text = (ROOT / "examples" / "accounts.toml").read_text(encoding="utf-8")
    path = folder / "small.toml"
    path.write_text(text.replace("1_000_000", "1000").replace("200_000", "10"), encoding="utf-8")
    return path


def commands(folder: Path, wal: str | None, server: str | None) -> Mapping[str, list[str]]:
    """Command lines by what the page calls them."""
    observed = str(ROOT / "tests" / "unit" / "observed" / "ledger.json")
    record = min((ROOT / "experiments" / "record").glob("*/request.json")).parent
    (folder / "new.sql").write_text("CREATE TABLE apart (id int);", encoding="utf-8")
    small = str(_small(folder))
    made = {
        "`--help`": ["--help"],
        "`layout` of a profile": ["layout", small],
        "`predict` of 1,000 rows": ["predict", small],
        "`check` of a new table": ["check", str(folder / "new.sql"), "--profile", observed],
        "`advise` without simulation": ["advise", observed, "--budget", "0"],
        "`lab report` of a record": ["lab", "report", str(record), "-o", str(folder / "told.txt")],
    }
    if wal is not None:
        made["`wal stats`"] = ["wal", "stats", wal]
    if server is not None:
        made["`layout` of a server"] = ["layout", server]
        made["`observe --for 1s`"] = ["observe", server, "--for", "1s"]
    return made


def _once(arguments: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of imports, and in all."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    found = re.search(r"^start: ([\d.]+) of ([\d.]+)$", done.stderr, re.MULTILINE)
    if found is None or done.returncode > 1:
        sys.exit(f"{arguments}: {done.stderr}")
    return float(found[1]), float(found[2])


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--wal", help="a folder of segments")
    parser.add_argument("--server", help="a connection to a server with tables")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Whatever the environment says of compiled modules, here they are.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        chosen = commands(Path(folder), asked.wal, asked.server)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in chosen}
        before = os.getloadavg()[0]
        for number in range(asked.runs + 1):
            for name, arguments in chosen.items():
                taken = _once(arguments, environment)
                if number:  # the first one compiles
                    found[name].append(taken)
    print(f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after, least of {asked.runs} runs\n")
    print("| command | in all | imports | work |\n|---|---|---|---|")
    for name, taken in found.items():
        imports, whole = min(taken, key=lambda pair: pair[1])
        print(f"| {name} | {whole:.2f} s | {imports:.2f} s | {whole - imports:.2f} s |")


if __name__ == "__main__":
    main()
