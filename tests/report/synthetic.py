"""
Made-up results in the form of result.json, for the tests of the report.

No number here was measured: they come from the formulas below and a seeded generator, and every
result says so in its title. They have the shape of real results, not their values.
"""

from __future__ import annotations

import math
import random
from typing import Any

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><!--<script>",
    "</noscript><img src=x onerror=alert(2)>",
    "\u2028line\u2029separator\x1b[31m\x07red",
    "\u202eright to left override",
    "عربي שלום 日本語 🐘",
    "a|b`c*d\\e](http://example.org)",
    "=cmd|' /C calc'!A0",
    "x" * 400,
    "{{ 7 * 7 }} {% raw %}",
    "datum['x'].y[0]",
)


def interval(mid: float, relative: float, level: float = 0.9785) -> dict[str, float]:
    return {"low": mid * (1 - relative), "mid": mid, "high": mid * (1 + relative), "level": level}


def measure(name: str, unit: str | None, better: str | None, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "unit": unit,
        "better": better,
        "description": description,
        "evidence": "measured",
    }


def _result(name: str, **parts: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1,
        "kind": "experiment",
        "tool_version": "0.0.0",
        "name": name,
        "server": "18.4",
        "command": f"pgheadroom lab run {name} --scale 10 --seed 1",
        "seed": 1,
        "scale": 10,
        "started_at": "2026-01-02T03:04:05+00:00",
        "duration_s": 754.2,
        "complete": True,
        "warnings": [],
        "assumed": {"page size": "8192 bytes", "fsync": "on, of a disk that is not shared"},
        "environment": {
            "server_version": "PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit",
            "kernel": "Linux 6.1.0 (synthetic)",
            "cpu": "a made-up processor",
            "cores": 2,
            "memory_bytes": 25769803776,
            "filesystem": "ext4",
            "settings": {
                "shared_buffers": "128MB",
                "full_page_writes": "off",
                "autovacuum": "off",
                "data_checksums": "on",
                "wal_compression": "off",
            },
        },
        "comparisons": [],
        "controls": [],
        "references": [],
        "series": [],
    }
    return base | parts


def update_cost(*, indexes: int = 0, scale: int = 100) -> dict[str, Any]:
    """Made-up `update-cost`; with `indexes`, also the cells with 1 to that many more indexes."""
    rng = random.Random(1)
    document = {
        (64, 100, 0): (20142, 30003, 2720132),
        (64, 80, 0): (10006, 10000, 719690),
        (64, 80, 1): (10006, 10000, 1439716),
        (128, 100, 0): (20224, 30003, 3360132),
        (128, 80, 0): (10009, 10000, 719710),
        (128, 80, 1): (10009, 10000, 2079758),
    }
    cells = []
    for count in range(indexes + 1):
        for filler in (64, 128):
            for fillfactor in (100, 80):
                for bid in (0, 1):
                    cells.append(_update_cell(rng, document, filler, fillfactor, bid, count, scale))
    factors = [
        {"name": "filler_length", "description": "declared length of the filler column",
         "unit": "bytes", "levels": [64, 128]},
        {"name": "fillfactor", "description": "fillfactor of the table", "unit": "%",
         "levels": [100, 80]},
        {"name": "update_bid", "description": "what is added to bid: 0 leaves it as it is",
         "unit": None, "levels": [0, 1]},
    ]  # fmt: skip
    if indexes:
        factors.append(
            {"name": "indexes", "description": "additional indexes on columns that never change",
             "unit": None, "levels": list(range(indexes + 1))}
        )  # fmt: skip
    return _result(
        "update-cost",
        title="Cost of one UPDATE (synthetic)",
        question="What does an UPDATE of one row in a thousand write, and does it repeat the "
        "document's figures?",
        source="S1: a made-up copy for the tests of the report",
        scale=scale,
        factors=factors,
        measures=[
            measure("pages_dirtied", "pages", "lower", "pages that the Update node dirtied"),
            measure("wal_records", None, "lower", "WAL records of the Update node"),
            measure("wal_bytes", "bytes", "lower", "WAL bytes of the Update node"),
            measure("wal_fpi", None, "lower", "full-page images"),
            measure("update_ms", "ms", "lower", "time of the Update node, its child's taken off"),
            measure("execution_ms", "ms", "lower", "Execution Time as EXPLAIN prints it"),
            measure("n_tup_upd", "rows", None, "rows updated"),
            measure("hot_frac", None, "higher", "share of HOT updates"),
            measure("newpage_frac", None, "lower", "share of updates that went to another page"),
            measure("heap_pages_before", "pages", None, "heap before"),
            measure("heap_pages", "pages", "lower", "heap after"),
            measure("index_pages", "pages", "lower", "all indexes after"),
            measure("wal_bytes_per_update", "bytes", "lower", "WAL bytes over rows updated"),
        ],
        cells=cells,
        comparisons=[
            _comparison("update_ms", {"filler_length": 64, "update_bid": 0}, {"fillfactor": 80},
                        {"fillfactor": 100}, 0.41, 0.04, 10, "lower"),
            _comparison("update_ms", {"filler_length": 128, "update_bid": 0}, {"fillfactor": 80},
                        {"fillfactor": 100}, 0.97, 0.12, 4, "undecided",
                        "4 interleaved pairs, at least 5 are needed"),
        ],
        controls=[
            _comparison("update_ms", {"filler_length": 64, "fillfactor": 100, "update_bid": 0}, {},
                        {}, 1.004, 0.03, 10, "no difference shown"),
        ],
        references=_references(),
        findings=[
            "In 6 of the 6 cells that the document prints, pages and records agree exactly.",
            "WAL bytes agree exactly at fillfactor 100 and within 0.01 % at 80, where they vary "
            "with the random values.",
            "HOT updates at fillfactor 80 write 3.8 times less WAL than cold ones at 100.",
        ],
    )  # fmt: skip


def _update_cell(
    rng: random.Random,
    document: dict[tuple[int, int, int], tuple[int, int, int]],
    filler: int,
    fillfactor: int,
    bid: int,
    indexes: int,
    scale: int,
) -> dict[str, Any]:
    printed = document.get((filler, fillfactor, bid)) if scale == 100 and not indexes else None
    hot = fillfactor == 80
    rows = scale * 100
    pages = (10006 + filler // 21) * scale // 100 if hot else (20060 + filler) * scale // 100
    records = rows if hot else rows * (3 + indexes) + 3
    size = rows * (72 + bid * (filler + 8)) if hot else rows * (272 + 64 * indexes) + filler * 9000
    if printed:
        pages, records, size = printed
    time_ms = (40 if hot else 95 + 31 * indexes) * (1 + 0.02 * rng.random()) * scale / 100
    return {
        "filler_length": filler,
        "fillfactor": fillfactor,
        "update_bid": bid,
        "indexes": indexes,
        "pages_dirtied": pages,
        "pages_dirtied_interval": interval(pages, 0.0),
        "wal_records": records,
        "wal_bytes": size + (24 if hot else 0),
        "wal_bytes_interval": interval(size + (24 if hot else 0), 0.00004 if hot else 0.0),
        "wal_fpi": 0,
        "update_ms": time_ms,
        "update_ms_interval": interval(time_ms, 0.06),
        "execution_ms": time_ms + 400,
        "execution_ms_interval": interval(time_ms + 400, 0.03),
        "n_tup_upd": rows,
        "hot_frac": 1.0 if hot else 0.0,
        "newpage_frac": 0.0 if hot else 1.0,
        "heap_pages_before": 133334,
        "heap_pages": 133334 + (0 if hot else 135),
        "index_pages": 27422 + (0 if hot else 20),
        "wal_bytes_per_update": size / rows,
        "wal_bytes_per_update_interval": interval(size / rows, 0.002),
        "document_pages_dirtied": printed[0] if printed else None,
        "document_wal_records": printed[1] if printed else None,
        "document_wal_bytes": printed[2] if printed else None,
        "repetitions": 10,
    }


def _comparison(
    name: str,
    common: dict[str, Any],
    cell: dict[str, Any],
    against: dict[str, Any],
    ratio: float,
    relative: float,
    pairs: int,
    verdict: str,
    reason: str = "",
) -> dict[str, Any]:
    return {
        "measure": name,
        "cell": common | cell,
        "against": common | against,
        "ratio": interval(ratio, relative, 0.95),
        "pairs": pairs,
        "verdict": verdict,
        "reason": reason,
    }


def _references() -> list[dict[str, Any]]:
    columns = ["filler_length", "fillfactor", "update_bid", "pages_dirtied", "wal_records",
               "wal_bytes"]  # fmt: skip
    return [
        {
            "title": "PostgreSQL, as the document prints it",
            "source": "S1, first table",
            "columns": columns,
            "rows": [
                [64, 100, 0, 20142, 30003, 2720132],
                [64, 80, 0, 10006, 10000, 719690],
                [128, 100, 0, 20224, 30003, 3360132],
            ],
            "note": "Two of the eight cells have no figure in the document.",
        },
        {
            "title": "Redrock Postgres, as the document prints it",
            "source": "S1, second table",
            "columns": columns,
            "rows": [
                [64, 100, 0, 10079, 10077, 1457101],
                [128, 80, 1, 10088, 10086, 1558449],
            ],
            "note": None,
        },
    ]


def fillfactor(
    *, memories: tuple[str, ...] = ("fits", "twice", "ten times"), seconds: int = 120
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Made-up `fillfactor` with its series files."""
    rng = random.Random(2)
    cells, comparisons, controls, series = [], [], [], []
    for memory in memories:
        slow = {"fits": 1.0, "twice": 2.2, "ten times": 4.6}.get(memory, 1.5)
        for value in (100, 90, 80, 70):
            cell = _pgbench_cell(rng, memory, value, slow)
            cells.append(cell)
            if value != 100:
                comparisons += _pgbench_comparisons(rng, memory, value, slow)
            place = {"fillfactor": value, "memory": memory, "autovacuum": "default"}
            series.append(_series(rng, place, cell, seconds))
        for name in ("tps", "accounts_update_ms", "wal_bytes_per_tx"):
            same = {"fillfactor": 100, "memory": memory, "autovacuum": "default"}
            controls.append(
                _comparison(name, same, {}, {}, 1 + 0.01 * rng.random(), 0.03, 6,
                            "no difference shown")
            )  # fmt: skip
    result = _result(
        "fillfactor",
        title="Room on the page, under pgbench (synthetic)",
        question="What does a lower fillfactor change for an update-heavy table, in memory and "
        "beyond it?",
        source="S0: a made-up copy for the tests of the report",
        factors=[
            {"name": "fillfactor", "description": "fillfactor of pgbench_accounts", "unit": "%",
             "levels": [100, 90, 80, 70]},
            {"name": "memory", "description": "data against shared_buffers", "unit": None,
             "levels": list(memories)},
            {"name": "autovacuum", "description": "autovacuum settings", "unit": None,
             "levels": ["default"]},
        ],
        measures=_pgbench_measures(),
        cells=cells,
        comparisons=comparisons,
        controls=controls,
        findings=[
            "Fillfactor 90 changes TPS by a factor between 1.01 and 1.06; the interval excludes 1 "
            "only where the data is ten times memory.",
            "The share of HOT updates rises from 42 % at fillfactor 100 to 99 % at 80.",
            "At 70 the update is slower again by 4 % [2, 6] where the data fits.",
        ],
        warnings=["Checkpoints fell into 3 of 12 windows; WAL per transaction contains their "
                  "full-page images."],
    )  # fmt: skip
    for index, item in enumerate(series):
        result["series"].append(
            {"cell": item["cell"], "repetition": 1, "file": f"series/{index}.json"}
        )
    return result, series


def _pgbench_measures() -> list[dict[str, Any]]:
    return [
        measure("tps", "1/s", "higher", "transactions per second"),
        measure("accounts_update_ms", "ms", "lower", "mean time of the accounts UPDATE"),
        *(
            measure(f"latency_ms_{end}", "ms", "lower", f"latency per transaction, {end}")
            for end in ("p50", "p90", "p99", "max")
        ),
        measure("hot_frac", None, "higher", "share of HOT updates"),
        measure("newpage_frac", None, "lower", "share of updates that went to another page"),
        measure("heap_pages_before", "pages", None, "heap before"),
        measure("heap_pages", "pages", "lower", "heap after"),
        measure("index_pages_before", "pages", None, "index before"),
        measure("index_pages", "pages", "lower", "index after"),
        measure("heap_growth_pages_per_h", "pages/h", "lower", "growth of the heap"),
        measure("wal_bytes_per_tx", "bytes", "lower", "WAL per transaction"),
        measure("wal_fpi_per_tx", None, "lower", "full-page images per transaction"),
        measure("checkpoints", None, None, "checkpoints inside the window"),
        measure("autovacuums", None, None, "autovacuums inside the window"),
        measure("buffer_hit_frac", None, "higher", "shared buffer hits"),
    ]


def _pgbench_cell(rng: random.Random, memory: str, fillfactor: int, slow: float) -> dict[str, Any]:
    gain = {100: 1.0, 90: 1.05, 80: 1.04, 70: 0.96}[fillfactor]
    tps = 1900 / slow * gain * (1 + 0.01 * rng.random())
    update = 0.21 * slow / gain
    hot = {100: 0.42, 90: 0.91, 80: 0.989, 70: 0.997}[fillfactor]
    pages = round(16394 * 100 / fillfactor)
    values: dict[str, float] = {
        "tps": tps,
        "accounts_update_ms": update,
        "latency_ms_p50": 0.9 * slow / gain,
        "latency_ms_p90": 1.6 * slow / gain,
        "latency_ms_p99": 6.1 * slow / gain,
        "latency_ms_max": 240 * slow,
        "hot_frac": hot,
        "newpage_frac": 1 - hot,
        "wal_bytes_per_tx": 560 + 320 * (1 - hot) + 90 * slow,
        "wal_fpi_per_tx": 0.02 * slow,
        "heap_growth_pages_per_h": 9000 * (1 - hot),
        "buffer_hit_frac": 0.9999 if slow == 1 else 1 / slow,
    }
    cell: dict[str, Any] = {"fillfactor": fillfactor, "memory": memory, "autovacuum": "default"}
    for name, number in values.items():
        cell[name] = number
        exact = name.startswith("latency_ms_max")
        cell[f"{name}_interval"] = (
            None
            if exact
            else interval(number, min(0.03, abs(1 - number)) if "frac" in name else 0.03)
        )
    return cell | {
        "heap_pages_before": pages,
        "heap_pages": pages + round(900 * (1 - hot)),
        "index_pages_before": 2745,
        "index_pages": 2745 + round(300 * (1 - hot)),
        "checkpoints": 1 if slow > 2 else 0,
        "autovacuums": 2,
        "repetitions": 6,
    }


def _pgbench_comparisons(
    rng: random.Random, memory: str, fillfactor: int, slow: float
) -> list[dict[str, Any]]:
    gain = {90: 1.05, 80: 1.04, 70: 0.96}[fillfactor]
    common = {"memory": memory, "autovacuum": "default"}
    found = []
    for name, ratio in (
        ("tps", gain),
        ("accounts_update_ms", 1 / gain),
        ("wal_bytes_per_tx", {90: 0.82, 80: 0.79, 70: 0.785}[fillfactor]),
    ):
        noise = 0.02 * slow * (1 if name != "wal_bytes_per_tx" else 0.3)
        decided = abs(ratio - 1) > noise
        found.append(
            _comparison(
                name, common, {"fillfactor": fillfactor}, {"fillfactor": 100},
                ratio * (1 + 0.004 * rng.random()), noise, 6 if slow < 4 else 4,
                "undecided" if slow > 4 and name != "wal_bytes_per_tx"
                else ("higher" if ratio > 1 else "lower") if decided else "no difference shown",
                "4 interleaved pairs, at least 5 are needed" if slow > 4 else "",
            )
        )  # fmt: skip
    return found


def _series(
    rng: random.Random, place: dict[str, Any], cell: dict[str, Any], seconds: int
) -> dict[str, Any]:
    times = list(range(1, seconds + 1))
    checkpoint_s = seconds * 0.55 + 3 * (place["fillfactor"] % 9)
    dip = [0.55 if checkpoint_s < t < checkpoint_s + 6 else 1.0 for t in times]
    wave = [1 + 0.03 * math.sin(t / 5) + 0.04 * (rng.random() - 0.5) for t in times]
    tps = [cell["tps"] * a * b for a, b in zip(dip, wave, strict=True)]
    growth = cell["heap_pages"] - cell["heap_pages_before"]
    return {
        "schema_version": 1,
        "kind": "series",
        "cell": place,
        "repetition": 1,
        "t_s": times,
        "tps": tps,
        "latency_ms_mean": [2000 / value for value in tps],
        "latency_ms_max": [9000 / value * (1 + rng.random()) for value in tps],
        "wal_bytes_per_s": [
            value * cell["wal_bytes_per_tx"] * (4 if d < 1 else 1)
            for value, d in zip(tps, dip, strict=True)
        ],
        "heap_bytes": [
            8192 * (cell["heap_pages_before"] + growth * t / seconds) if t % 5 == 0 else None
            for t in times
        ],
        "index_bytes": [8192 * cell["index_pages"] if t % 5 == 0 else None for t in times],
        "events": [
            {"t_s": checkpoint_s, "kind": "checkpoint", "duration_s": 4.2,
             "text": "checkpoint complete: wrote 5123 buffers (made up)"},
            {"t_s": seconds * 0.3, "kind": "autovacuum", "duration_s": 1.4,
             "text": "automatic vacuum of table pgbench_accounts (made up)"},
            {"t_s": seconds * 0.31, "kind": "autoanalyze", "duration_s": None, "text": ""},
        ],
    }  # fmt: skip


def unknown(*, cells: int = 6) -> dict[str, Any]:
    """Made-up result of an experiment that no view knows; with many cells for size."""
    return _result(
        "something-new",
        title="An experiment without a view of its own (synthetic)",
        question="Does the generic view hold?",
        source="made up",
        factors=[
            {"name": "step", "description": "position", "unit": None, "levels": list(range(cells))},
            {"name": "mode", "description": "two ways", "unit": None, "levels": ["a", "b"]},
        ],
        measures=[
            measure("rows_per_s", "1/s", "higher", "speed"),
            {"name": "heap_pages", "unit": "pages", "better": "lower", "description": "size",
             "evidence": "predicted"},
        ],
        cells=[
            {"step": step, "mode": mode, "rows_per_s": 1000.0 + step,
             "rows_per_s_interval": interval(1000.0 + step, 0.1), "heap_pages": 10 * step}
            for step in range(cells // 2) for mode in ("a", "b")
        ],
        findings=[],
    )  # fmt: skip


def hostile() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Made-up result whose every name and text tries to break out of the report."""
    name, *_ = HOSTILE
    levels = [*HOSTILE]
    result = _result(
        name,
        title=HOSTILE[1],
        question=HOSTILE[2],
        source=HOSTILE[3],
        server=HOSTILE[4],
        command=f"pgheadroom lab run {HOSTILE[0]} {HOSTILE[3]}",
        factors=[{"name": HOSTILE[10], "description": name, "unit": name, "levels": levels},
                 {"name": name, "description": name, "unit": None, "levels": [name, HOSTILE[1]]}],
        measures=[
            {"name": text, "description": text, "unit": name, "evidence": name, "better": None}
            for text in HOSTILE
        ],
        cells=[
            {HOSTILE[10]: level, name: other, "repetitions": 3}
            | {text: index + 0.5 for index, text in enumerate(HOSTILE) if text != name
               and text != HOSTILE[10]}
            for level in levels for other in (name, HOSTILE[1])
        ],
        findings=list(HOSTILE),
        warnings=list(HOSTILE),
        assumed={text: text for text in HOSTILE},
        environment={text: text for text in HOSTILE} | {"settings": {t: t for t in HOSTILE}},
        comparisons=[_comparison(t, {t: t}, {name: 1}, {name: 2}, 1.1, 0.1, 5, t, t)
                     for t in HOSTILE],
        references=[{"title": t, "source": t, "columns": [t], "rows": [[t]], "note": t}
                    for t in HOSTILE],
    )  # fmt: skip
    series = [
        {"kind": "series", "cell": {HOSTILE[10]: level}, "repetition": 1, "t_s": [1, 2, 3],
         "tps": [1.0, None, 3.0], "events": [{"t_s": 2, "kind": level, "text": level}]}
        for level in levels
    ]  # fmt: skip
    return result, series
