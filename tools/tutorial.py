"""
Plays the commands of the README and of docs/tutorial.md, and writes the latter's output into it.

    python tools/tutorial.py [--only WORDS]

With `--only` those of the tutorial that contain these words, which have to stand on their own; the
others stay.

A command stands in a comment, and what it prints is put behind it:

    <!-- run: pgheadroom observe --for 30s -o profile.json -->
    ...
    <!-- end -->

The tutorial's run on a throw-away server, in one empty folder, with PGHOST and the like set, while
the demo's shop is under load; its log is there as server.log. A command that ends with another code
than its block says (`<!-- run 1: ... -->`; 0 without a number) stops everything, and the page stays
as it was.

Of the README each line of a block that begins with `pgheadroom` is played where the examples are.
Each line of the block that shows what the last of them prints has to be printed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pgheadroom.cli import demo_shop
from pgheadroom.files import write_atomically
from pgheadroom.servers import Host, find_programs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
WARM_S = 30.0
COLUMNS = "104"

_BLOCK = re.compile(r"(<!-- run(?: (\d))?: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_PROGRESS = re.compile(r"^\w+: (\d+ of \d+ s|\d+/\d+.*)$")


def main() -> None:
    """Play the page, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORDS")
    only = parser.parse_args().only
    text = PAGE.read_text(encoding="utf-8")
    if not any(only in match[3] for match in _BLOCK.finditer(text)):
        raise SystemExit(f"no command of {PAGE.name} contains {only!r}")
    if not only:
        _play_readme()
    with (
        tempfile.TemporaryDirectory(prefix="pgheadroom-tutorial-") as folder,
        Host(find_programs("18"), label="tutorial") as host,
        demo_shop.opened(host) as (shop, cluster),
        demo_shop.under_load(host, cluster),
    ):
        time.sleep(WARM_S)
        Path(folder, "server.log").symlink_to(shop.log)
        environment = _environment(cluster.client_env())
        shown = _BLOCK.sub(
            lambda match: _played(match, folder, environment) if only in match[3] else match[0],
            text,
        )
        shown = shown.replace(environment["PGHOST"], "/var/run/postgresql")
    write_atomically(PAGE, shown)


def _play_readme() -> None:
    """Play the README's commands, and compare what it shows of the last one."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    place, block = next(
        (place, block) for place, block in enumerate(blocks) if block.startswith("pgheadroom ")
    )
    printed = ""
    with tempfile.TemporaryDirectory(prefix="pgheadroom-tutorial-") as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        for command in block.splitlines():
            printed = _ran(command, 0, folder, _environment({}))
    lacking = set(filter(None, blocks[place + 1].splitlines())) - set(_lines(printed))
    if lacking:
        raise SystemExit("the README shows what is not printed:\n" + "\n".join(lacking))


def _environment(server: dict[str, str]) -> dict[str, str]:
    found = {key: value for key, value in server.items() if key.startswith("PG")}
    found.pop("PGAPPNAME", None)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | found | {"PGDATABASE": demo_shop.DATABASE, "COLUMNS": COLUMNS, "PATH": path}


def _played(match: re.Match[str], folder: str, environment: dict[str, str]) -> str:
    command = match[3]
    printed = _ran(command, int(match[2] or 0), folder, environment)
    body = "\n".join([f"$ {command}", *_lines(printed)])
    return f"{match[1]}\n```text\n{body}\n```\n\n{match[4]}"


def _ran(command: str, wanted: int, folder: str, environment: dict[str, str]) -> str:
    """What a command prints, if it ends with the code that is wanted."""
    sys.stderr.write(f"$ {command}\n")
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != wanted:
        raise SystemExit(
            f"{command!r} ended with {done.returncode}, expected {wanted}; it said:\n{done.stdout}"
        )
    return done.stdout


def _lines(printed: str) -> list[str]:
    return [line.rstrip() for line in printed.splitlines() if not _PROGRESS.match(line)]


if __name__ == "__main__":
    main()
