"""
The page on bloat: tables and indexes of many shapes, estimated, and then rewritten.

    python tools/bloat_page.py --server 18 --server 16 --server FOLDER [--queries FOLDER]

Each server makes every shape of `bloat_shapes.py`, is asked for the estimates, and then does VACUUM
FULL. The first server with pgstattuple stands in the long table; of each there is a line.
`--queries` is a clone of github.com/ioguix/pgsql-bloat-estimation, whose queries are asked as well;
none of their text is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bloat_shapes import SHAPES
from bloat_truth import SETTINGS, Found, Queries, measured

from pgheadroom.bloat.values import WIDTH_MAX
from pgheadroom.servers import Host, ServerPrograms, find_programs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "bloat.md"
HEAD = Path(__file__).with_name("bloat_head.txt")
_FILES = {"heap": "table/table_bloat.sql", "btree": "btree/btree_bloat.sql"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one server gave."""

    server: str
    has_pgstattuple: bool
    found: tuple[Found, ...]


def run_on(programs: ServerPrograms, queries: Queries) -> Run:
    """All shapes on a throw-away server."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            has = connection.execute(
                "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgstattuple'"
            ).fetchone() == (1,)
        found = []
        for each in measured(cluster, "postgres", queries=queries, has_pgstattuple=has):
            found.append(each)
            mark = " " if each.is_right else "!"
            print(f"{programs.version} {mark} {each.kind} {each.name}", file=sys.stderr)
        return Run(server=str(programs.version), has_pgstattuple=has, found=tuple(found))


def page(runs: Sequence[Run], commit: str | None) -> str:
    """The page's text."""
    shown = next((run for run in runs if run.has_pgstattuple), runs[0])
    head = HEAD.read_text(encoding="utf-8").format(
        shapes=len(SHAPES),
        relations=len(shown.found),
        width=f"{100 * WIDTH_MAX:.0f}",
        queries="none were asked"
        if commit is None
        else f"`ioguix/pgsql-bloat-estimation` at commit `{commit[:12]}`",
    )
    lines = [head, "## By server", ""]
    lines += ["Errors are of relations whose interval is at most ten points wide, in points.", ""]
    lines += [
        "| server | relations | truth inside | at most ten points wide | width, median | width, "
        "90 % | error of the middle, median | most | other queries' error, median | most |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_summary(run) for run in runs]
    lines += ["", f"## Each relation, on {shown.server}", ""]
    lines += [
        "`given back` is what VACUUM FULL gave back of the relation's pages, in percent.",
        "`free` is what pgstattuple calls free and dead (of a B-tree: 100 less `avg_leaf_density`, "
        "empty and deleted pages counted in), before and after that.",
        "",
        "| relation | | pages | estimate | given back | free before | after | other query |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(found) for found in shown.found]
    lines += ["", "## The shapes", "", "| table | what |", "|---|---|"]
    lines += [f"| `{shape.name}` | {shape.what} |" for shape in SHAPES]
    lines += ["", "## Where ten points do not suffice", ""]
    for found in shown.found:
        if found.reasons:
            lines.append(f"- `{found.name}` ({found.kind}): {'; '.join(found.reasons)}.")
    return "\n".join([*lines, ""])


def _summary(run: Run) -> str:
    widths = sorted(each.estimate_frac.high - each.estimate_frac.low for each in run.found)
    narrow = [each for each in run.found if not each.reasons]
    errors = [abs(each.estimate_frac.mid - each.truth_frac) for each in narrow]
    others = [
        abs(each.others_frac - each.truth_frac) for each in narrow if each.others_frac is not None
    ]
    cells = [
        run.server,
        str(len(run.found)),
        str(sum(each.is_right for each in run.found)),
        str(sum(round(width, 9) <= WIDTH_MAX for width in widths)),
        _points(median(widths)),
        _points(widths[int(0.9 * len(widths))]),
        _points(median(errors)),
        _points(max(errors)),
        _points(median(others)) if others else "",
        _points(max(others)) if others else "",
    ]
    return f"| {' | '.join(cells)} |"


def _points(frac: float) -> str:
    return f"{100 * frac:.1f}"


def _line(found: Found) -> str:
    low, high = found.estimate_frac.low, found.estimate_frac.high
    free = ("", "") if found.free_frac is None else tuple(map(_points, found.free_frac))
    cells = [
        f"`{found.name}`",
        {"heap": "table", "btree": "B-tree", "toast": "TOAST"}[found.kind],
        f"{found.pages:,}",
        f"{_points(low)} to {_points(high)}",
        _points(found.truth_frac) + ("" if found.is_right else " **outside**"),
        *free,
        "" if found.others_frac is None else _points(found.others_frac),
    ]
    return f"| {' | '.join(cells)} |".replace("-0.0 ", "0.0 ")


def _queries(folder: Path | None) -> tuple[Queries, str | None]:
    if folder is None:
        return Queries(), None

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", folder, *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    texts = {kind: git("show", f"HEAD:{name}") for kind, name in _FILES.items()}
    return Queries(texts=texts), git("rev-parse", "HEAD").strip()


def main() -> int:
    """Measure, and write the page; 1 where an interval does not have the truth in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    queries, commit = _queries(options.queries)
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - where there is room
    with TemporaryDirectory(prefix="pgh-bloat-", dir=place) as folder:
        Path(folder).chmod(0o755)
        os.environ.setdefault("PGHEADROOM_TMPDIR", folder)
        runs = [run_on(find_programs(spec), queries) for spec in options.server]
    if not options.check:
        PAGE.write_text(page(runs, commit), encoding="utf-8")
    return int(not all(found.is_right for run in runs for found in run.found))


if __name__ == "__main__":
    sys.exit(main())
