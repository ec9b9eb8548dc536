"""The page docs/public-schemas.md, from the record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pgheadroom.files import write_atomically
from pgheadroom.units import percent
from public_schemas.manifest import Application
from public_schemas.record import FIGURES, Json, is_inside

_HOT_FAR = 0.1
_TIMES_FAR = 1.25
_UPDATES_MIN, _PAGES_MIN = 50, 20
"""What counts as far, and what is large enough to be told from chance; arbitrary."""
_WITHOUT = "the profile begins without"
_INTRO = """\
# Schemas of public applications

What `observe` gives of the database of a public application, and whether that can be predicted \
and proved.
Written by `make public-schemas` from `experiments/record/public-schemas`; not edited by hand.

How each application was played:

- Its schema and its statements are cut out of its own files at a pinned commit \
(`experiments/public-schemas`). Where a library puts statements together, so that they stand in \
no file, they are written here as the library makes them, and the section says so.
- The schema is loaded into a throw-away server with rows that we made up, and one client of \
pgbench runs the statements at a rate.
- `observe` watches for some seconds. `prove` then plays the observed profile on a server of its \
own and in the twin.

None of the applications' text is in this repository. Ours are the rows, the values for \
parameters, and how often a statement runs.

How to read a table:

- Its first line has what the application itself did while it was observed.
- A line for each server follows: what the twin predicts of the profile, a colon, and what the \
server measured of the profile.
- Where the first line differs from the others, the profile is not like the application. Where \
the two sides of a colon differ, the twin is not like PostgreSQL. **Bold** is what was measured \
outside of what was predicted.
- The application's tables have lived for a while when they are observed. In the profile pages \
have the room that was seen then; indexes are built anew.
- The application's pages are those at the end of the observation, and those of the profile at the \
end of a run that begins with them: a table that grows has grown once more.
"""


def write(known: Sequence[Application], record: Path, target: Path) -> None:
    """Write the page of what is in the record."""
    kept = {
        one.key: json.loads((record / f"{one.key}.json").read_text(encoding="utf-8"))
        for one in known
        if (record / f"{one.key}.json").exists()
    }
    write_atomically(target, text([one for one in known if one.key in kept], kept))


def text(known: Sequence[Application], kept: dict[str, Json]) -> str:
    """The page as Markdown."""
    lines = [_INTRO, "## Applications", ""]
    lines += [
        "| application | commit | licence | what is in it | tables | written to | figures inside |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for one in known:
        found = kept[one.key]
        inside, figures = _counted(found)
        commit = f"[{one.repository}](https://github.com/{one.repository}/tree/{one.commit})"
        lines.append(
            f"| [{one.name}](#{_anchor(one.name)}) | {commit} `{one.commit[:10]}` | {one.licence} "
            f"| {one.about} | {found['tables_of_schema']} | {len(found['tables'])} "
            f"| {inside} of {figures} |"
        )
    lines += ["", *_servers(kept), "", *_failed(known, kept)]
    for one in known:
        lines += list(_section(one, kept[one.key]))
    return "\n".join(lines).rstrip() + "\n"


def _anchor(name: str) -> str:
    return "".join(c for c in name.lower().replace(" ", "-") if c.isalnum() or c == "-")


def _servers(kept: dict[str, Json]) -> Iterator[str]:
    live = sorted({found["server"] for found in kept.values()})
    # Of a refusal only the branch is known that was asked for.
    played = {
        proof["server"] for found in kept.values() for proof in found["proofs"] if "tables" in proof
    }
    proved = sorted(played, reverse=True)
    yield (
        f"Applications ran on {', '.join(live)}; profiles were proved on {', '.join(proved)}. "
        "These figures are compared: the share of HOT updates and of updates to a new page, heap "
        "and index pages, all WAL, and WAL per update with images and without. Intervals state "
        "90 %, so that some figures are to be outside."
    )
    beside = sorted({found["beside"] for found in kept.values() if found["beside"]})
    if beside:
        yield f"Beside the runs: {'; '.join(beside)}."


def _failed(known: Sequence[Application], kept: dict[str, Json]) -> Iterator[str]:
    """What does not agree, of all applications: refusals, misses, profiles that are others."""
    yield "## What failed"
    yield ""
    refused = [
        f"- {one.name}, {proof['server']}: {' '.join(proof['said']) or 'without a word'}"
        for one in known
        for proof in kept[one.key]["proofs"]
        if "tables" not in proof
    ]
    left_out = [
        f"- {one.name}, {name}: not in the profile, {why}"
        for one in known
        for name, why in kept[one.key]["left_out"].items()
    ]
    yield from refused or ["- No proof was refused."]
    yield from left_out or ["- No table was left out of a profile."]
    missed = [
        f"- {one.name}, {server}, {table}, {key}: predicted {_shown(predicted)}, measured "
        f"{_shown(measured)}"
        for one in known
        for server, table, key, predicted, measured in _figures(kept[one.key])
        if is_inside(predicted, measured) is False
    ]
    yield from missed or ["- No figure was outside of what was predicted."]
    yield ""
    yield (
        "Where the profile, as a server plays it, is far from the application: HOT by more than "
        f"{100 * _HOT_FAR:.0f} points, other figures by more than {_TIMES_FAR} times, up or down "
        f"(tables with {_UPDATES_MIN} updates or more, pages from {_PAGES_MIN} on, with what the "
        "table grows by in the run):"
    )
    yield ""
    yield "| application | table | figure | application | profile | why |"
    yield "|---|---|---|---:|---:|---|"
    for one in known:
        yield from _far(one.name, kept[one.key])
    yield ""


def _far(name: str, found: Json) -> Iterator[str]:
    proof = next((one for one in found["proofs"] if "tables" in one), None)
    for table, seen in found["tables"].items():
        figures = None if proof is None else proof["tables"].get(table)
        if figures is None:
            continue
        updates, hot = seen["counters"]["n_tup_upd"], seen["counters"]["n_tup_hot_upd"]
        begin = f"| {name} | {table} "
        measured = {key: pair[1] for key, pair in figures.items()}
        if updates >= _UPDATES_MIN and measured["hot_frac"] is not None:
            own = hot / updates
            if abs(own - measured["hot_frac"]) > _HOT_FAR:
                yield f"{begin}| HOT | {_percent(own)} | {_percent(measured['hot_frac'])} | |"
            per_update = measured["wal_nonfpi_bytes_per_update"]
            if seen["wal_bytes"] and per_update:
                wal = (seen["wal_bytes"] - seen["wal_fpi_bytes"]) / updates
                if _is_far(wal, per_update):
                    why = _why_wal(seen, wal, per_update)
                    yield f"{begin}| WAL bytes an update | {wal:,.0f} | {per_update:,.0f} | {why} |"
        for key in ("heap_pages", "index_pages"):
            own = seen[key] * _growth(seen)
            if max(own, measured[key]) >= _PAGES_MIN and _is_far(own, measured[key]):
                shown = key.replace("_", " ")
                built = key == "index_pages" and own > measured[key]
                why = "those of the profile are built anew" if built else ""
                yield f"{begin}| {shown} | {own:,.0f} | {measured[key]:,} | {why} |"


def _growth(seen: Json) -> float:
    """What a run like the observed interval makes of a table's rows, as a factor from 1 on."""
    counters, rows = seen["counters"], seen["rows"]
    more = counters["n_tup_ins"] - counters["n_tup_del"]
    return 1 + max(more, 0) / rows if rows else 1.0


def _why_wal(seen: Json, own: float, other: float) -> str:
    """Whether it is what a profile may not have: others' locks, and dead rows to begin with."""
    updates = seen["counters"]["n_tup_upd"]
    locks, prunes = seen["wal_lock_bytes"] / updates, seen["wal_prune_bytes"] / updates
    if seen.get("is_referred_to"):  # records of a time without foreign keys do not say
        is_pruned = not _is_far(own - prunes, other)
        return f"{prunes:,.0f} of them prune dead rows, which {_WITHOUT}" if is_pruned else ""
    of_locks = f"{locks:,.0f} of them lock rows for foreign keys, which are not in the profile"
    if not _is_far(own - locks, other):
        return of_locks
    if _is_far(own - locks - prunes, other):
        return ""
    return f"{of_locks}; {prunes:,.0f} prune dead rows, which {_WITHOUT}"


def _is_far(own: float, other: float) -> bool:
    return max(own, other) > _TIMES_FAR * min(own, other)


def _figures(found: Json) -> Iterator[tuple[str, str, str, Any, Any]]:
    """Server, table, figure, predicted, measured."""
    for proof in found["proofs"]:
        for table, figures in proof.get("tables", {}).items():
            for key in FIGURES:
                predicted, measured = figures[key]
                yield proof["server"], table, key, predicted, measured


def _counted(found: Json) -> tuple[int, int]:
    judged = [
        inside
        for *_, predicted, measured in _figures(found)
        if (inside := is_inside(predicted, measured)) is not None
    ]
    return sum(judged), len(judged)


def _section(application: Application, found: Json) -> Iterator[str]:
    yield f"## {application.name}"
    yield ""
    yield f"{application.about[0].upper()}{application.about[1:]}."
    if application.own:
        yield application.own
    yield ""
    yield (
        "| table | rows | inserts, updates, deletes | played by | HOT | heap pages "
        "| index pages | WAL bytes an update, images aside |"
    )
    yield "|---|---:|---:|---|---:|---:|---:|---:|"
    for name, table in found["tables"].items():
        yield from _rows(name, table, found)
    yield ""
    yield from _said(found)


def _rows(name: str, table: Json, found: Json) -> Iterator[str]:
    """The application's own figures, then what is predicted and measured of its profile."""
    counters = table["counters"]
    writes = ", ".join(f"{counters[key]:,}" for key in ("n_tup_ins", "n_tup_upd", "n_tup_del"))
    updates, wal = counters["n_tup_upd"], "-"
    hot = _percent(counters["n_tup_hot_upd"] / updates) if updates else "-"
    if updates and table["wal_bytes"] is not None:
        wal = f"{(table['wal_bytes'] - table['wal_fpi_bytes']) / updates:,.0f}"
    yield (
        f"| {name} | {table['rows']:,} | {writes} | application, {found['server']} | {hot} "
        f"| {table['heap_pages']:,} | {table['index_pages']:,} | {wal} |"
    )
    for proof in found["proofs"]:
        if "tables" not in proof:
            yield f"| | | | {proof['server']}: refused | | | | |"
        elif name not in proof["tables"]:
            yield f"| | | | {proof['server']}: not in the profile's operations | | | | |"
        else:
            figures = proof["tables"][name]
            yield (
                f"| | | | {proof['server']} | {_shares(*figures['hot_frac'])} "
                f"| {_pair(figures['heap_pages'])} | {_pair(figures['index_pages'])} "
                f"| {_pair(figures['wal_nonfpi_bytes_per_update'])} |"
            )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _shares(predicted: Any, measured: float | None) -> str:
    if predicted is None or measured is None:
        return "-"
    if isinstance(predicted, dict):
        low, mid, high = (100 * predicted[at] for at in ("low", "mid", "high"))
        shown = f"{mid:.1f} [{low:.1f}, {high:.1f}]"
    else:
        shown = _percent(predicted)
    return _marked(f"{shown} : {_percent(measured)}", predicted, measured)


def _pair(pair: Sequence[Any]) -> str:
    """Predicted, and measured behind a colon."""
    predicted, measured = pair
    if predicted is None or measured is None:
        return "-"
    middle = predicted["mid"] if isinstance(predicted, dict) else predicted
    return _marked(f"{middle:,.0f} : {measured:,.0f}", predicted, measured)


def _marked(shown: str, predicted: Any, measured: float | None) -> str:
    return f"**{shown}**" if is_inside(predicted, measured) is False else shown


def _said(found: Json) -> Iterator[str]:
    """What failed, and what stands for what, in the program's words."""
    lines = [f"{name} is not in the profile: {why}" for name, why in found["left_out"].items()]
    for proof in found["proofs"]:
        if "tables" not in proof:
            said = " ".join(proof["said"]) or "without a word"
            lines.append(f"{proof['server']}: `prove` ended with {proof['exit_code']}: {said}")
        elif proof["without_row"]:
            lines.append(f"{proof['server']}: operations {proof['without_row']} often find no row")
    for name, table in found["tables"].items():
        for column, (declared, stands) in table["stand_ins"].items():
            lines.append(f"{name}.{column}, {declared}: stands as {stands}")
        lines += [f"{name}, {index}: {why}" for index, why in table["differs"].items()]
        if table["unattributed_frac"]:
            lines.append(
                f"{name}: {percent(table['unattributed_frac'], 1)} of its updates known to no "
                "source"
            )
    lost = {
        why: number
        for source in found["statements"][:1]
        for why, number in source["not_understood"].items()
    }
    lines += [f"{number:,} calls say nothing: {why}" for why, number in lost.items()]
    if lines:
        yield from (f"- {line}" for line in dict.fromkeys(lines))
        yield ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['mid']:,.4g} [{value['low']:,.4g}, {value['high']:,.4g}]"
    return f"{value:,.4g}"
