"""
What is exact on which version of PostgreSQL, told by the goldens: docs/versions.md.

    python tools/versions.py [--write]

A cell counts what was recorded on servers of a major version (golden/expected). That the twin
gives the same is what the core's golden tests demand of each of these files; what they except by
name (`NOT_REPRODUCED` in crates/pgheadroom-twin/tests/scenarios/mod.rs) is shown as such.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "versions.md"
EXPECTED = ROOT / "golden" / "expected"
TWIN = ROOT / "crates" / "pgheadroom-twin"
MAJORS = (15, 16, 17, 18, 19)

# Features by the first word of a file's name behind its kind; the first that fits.
FEATURES: tuple[tuple[str, str, str], ...] = (
    ("Where rows go: INSERT, COPY, the free space map", "scenario", "insert|copy|heap|fsm|row"),
    ("UPDATE, DELETE, HOT, upserts", "scenario", "update|upsert|select|abort"),
    ("Pruning and hint bits", "scenario", "prune|hints|read|visibility"),
    ("B-trees, their scans and dead entries", "scenario", "btree|index|scan|uniqueness|dead"),
    ("Hash indexes: splits, overflow pages, VACUUM", "scenario", "hash"),
    ("GIN: keys, posting trees, the pending list", "scenario", "gin"),
    ("BRIN: summaries, those of VACUUM too", "scenario", "brin"),
    ("Full-page images and hints in the WAL", "scenario", "image|wal"),
    ("VACUUM", "scenario", "vacuum"),
    ("Freezing by age, aggressive VACUUM", "scenario", "freeze|aggressive"),
    ("VACUUM FULL", "scenario", "rewrite"),
    ("Maintenance in a run: VACUUM, REINDEX, TRUNCATE, CLUSTER", "scenario", "maintenance"),
    ("Tables that have lived: pages that are not full", "scenario", "pages"),
    ("TOAST by the version's own compression", "scenario", "toast"),
    ("Row locks and multixacts", "scenario", "lock|multixact"),
    ("Foreign keys", "scenario", "fk"),
    ("Queues and their heads", "scenario", "queue|head"),
    ("Savepoints", "scenario", "savepoint"),
    ("Snapshots, cursors, horizons, pins", "scenario", "horizon|cursor|pin"),
    ("Waits, deadlocks, rechecks", "scenario", "wait|deadlock|recheck|unique"),
    ("REPEATABLE READ", "scenario", "repeatable"),
    ("Whole profiles of one client", "profile", ".*"),
    ("What random profiles once differed in", "found", ".*"),
    ("Runs of pgbench's own scripts", "run", ".*"),
    ("B-trees by themselves, up to 100,000 entries", "btree", ".*"),
    ("Heaps by themselves: VACUUM, freezing, cutting off", "heap", ".*"),
    ("Images by `wal_compression = pglz`", "compressed", "(?!lz4|zstd).*"),
    ("Images by lz4, values by lz4", "compressed", "lz4"),
    ("Images by zstd", "compressed", "zstd"),
    ("The eager scan, from the place that a server drew", "drawn", "eager"),
    ("TPC-C's transactions, one user", "tprocc", ".*"),
)
_ENTRY = re.compile(r'\(\s*&\[([^\]]*)\],\s*"([^"]*)",\s*&\[([^\]]*)\]', re.DOTALL)
_EXCEPT = re.compile(r"const NOT_REPRODUCED: .*? =\s*\[(.*?)\];\n", re.DOTALL)
_NOT_MODELLED = ("== modelled", "== no effect on pages")
"""Headings of the twin's tables whose lines may say which values they hold for."""


def feature_of(kind: str, name: str) -> str:
    """
    The feature that a golden file is about.

    Raises:
        LookupError: No line of `FEATURES` fits.
    """
    for title, of, words in FEATURES:
        if of == kind and re.match(rf"(?:{words})(?:-|$)", name):
            return title
    raise LookupError(f"golden file {kind}-{name}: no line of FEATURES in {__file__} fits")


def recorded() -> dict[tuple[str, str], dict[int, dict[str, set[str]]]]:
    """
    The golden files.

    Returns:
        By feature and kind, then by major version: names, with the versions of their servers.
    """
    found: dict[tuple[str, str], dict[int, dict[str, set[str]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(set))
    )
    for path in sorted(EXPECTED.glob("*/*.json")):
        kind, _, name = path.stem.partition("-")
        version = path.parent.name
        major = int(version[:2])
        found[feature_of(kind, name), kind][major][name].add(version)
    return found


def excepted(text: str | None = None) -> dict[str, dict[str, str]]:
    """By version: scenarios that the twin does not reproduce, and why; of the tests' own text."""
    text = text or (TWIN / "tests" / "scenarios" / "mod.rs").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = defaultdict(dict)
    listed = _EXCEPT.search(text)
    assert listed is not None
    for versions, reason, names in _ENTRY.findall(listed[1]):
        for version in re.findall(r'"([^"]+)"', versions):
            found[version] |= dict.fromkeys(re.findall(r'"([^"]+)"', names), reason)
    return found


def limited(table: str) -> list[str]:
    """Lines of a table of the twin's by which other values than those are not modelled."""
    text = (TWIN / "src" / "profile" / table).read_text(encoding="utf-8")
    parts = (text.split(f"{heading}\n", 1)[1].split("\n\n", 1)[0] for heading in _NOT_MODELLED)
    lines = (line for part in parts for line in part.split("\n"))
    return sorted(line for line in lines if " " in line)


def _cell(
    names: Mapping[str, set[str]], kind: str, reasons: Mapping[str, Mapping[str, str]]
) -> str:
    if not names:
        return "-"
    if kind == "compressed":
        return f"interval, {len(names)}"
    if kind == "drawn":
        return f"exact for one draw, {len(names)}"
    if kind == "tprocc":
        return f"counters, {len(names)}"
    missed = [
        name
        for name, versions in names.items()
        if kind == "scenario" and any(name in reasons.get(version, {}) for version in versions)
    ]
    if missed:
        shown = ", ".join(f"`{name}`" for name in missed)
        return f"exact, {len(names) - len(missed)}; not {shown}"
    return f"exact, {len(names)}"


def page() -> str:
    """The page of docs."""
    found, reasons = recorded(), excepted()
    versions: dict[int, set[str]] = defaultdict(set)
    for by_major in found.values():
        for major, names in by_major.items():
            versions[major].update(*names.values())
    lines = [
        "# Versions",
        "",
        "What the twin is compared with on servers of each version "
        "(`python tools/versions.py --write`, from `golden/expected` and the tests' exceptions).",
        "Each cell has how the recordings agree, and how many there are:",
        "",
        "- *exact*: to the unit; scenarios also in the place of every row version and index entry.",
        "- *interval*: to the unit, but for the bytes of images, which lie in the stated interval "
        "([limits](limits.md#columns-and-values)).",
        "- *exact for one draw*: to the unit, and page by page, for one of the places where the "
        "twin may begin; a server draws it, and nobody can ask which it was.",
        "- *counters*: counters and pages agree, records and bytes nearly "
        "([method](method/tprocc.md)).",
        "- `-`: nothing was recorded there; forecasts go by the rules that other versions showed.",
        "",
        "| feature | " + " | ".join(map(str, MAJORS)) + " |",
        "|---|" + "---|" * len(MAJORS),
        "| servers | " + " | ".join(", ".join(sorted(versions[m])) for m in MAJORS) + " |",
    ]
    for title, kind, _ in FEATURES:
        cells = [_cell(found[title, kind].get(major, {}), kind, reasons) for major in MAJORS]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
    for version, names_of in reasons.items():
        for name, reason in names_of.items():
            by_reason[name, reason].append(version)
    if by_reason:
        lines += ["", "## Not reproduced", ""]
    lines += [
        f"- `{name}` on {', '.join(of)}: {reason}." for (name, reason), of in by_reason.items()
    ]
    lines += [
        "",
        "## Refused on every version",
        "",
        "Of these settings and storage parameters other values than those are refused, before "
        "anything is played. [Wishes](wishes.md) has profiles with one feature each, and what "
        "becomes of them.",
        "",
        "- Settings: " + ", ".join(f"`{line}`" for line in limited("settings.txt")) + ".",
        "- Storage parameters: "
        + ", ".join(f"`{line}`" for line in limited("storage_parameters.txt"))
        + ".",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Show or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} anew")
    options = parser.parse_args(arguments)
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
