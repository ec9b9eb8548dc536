"""
What is kept of an application's run: a file of JSON, from which the page is written.

    observed   by table that was written to: what its counters and its log said, what stands for
               its types and indexes
    proofs     by server: each figure predicted and measured, or the words of a refusal
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from public_schemas.live import command
from public_schemas.manifest import Application

Json = dict[str, Any]
BLOCK_BYTES = 8192

FIGURES = (
    "hot_frac",
    "newpage_frac",
    "heap_pages",
    "index_pages",
    "wal_bytes",
    "wal_bytes_per_update",
    "wal_nonfpi_bytes_per_update",
)
"""What is compared: how many transactions come at a rate is drawn by each player for itself."""
_COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_tup_newpage_upd")


def observed_part(application: Application, found: Json, profile: Path) -> Json:
    """What is kept of an observation, without anything of its machine."""
    data = json.loads(profile.read_text(encoding="utf-8"))
    server = data["server"]["observed"]
    return {
        "application": application.name,
        "repository": application.repository,
        "commit": application.commit,
        "licence": application.licence,
        "server": found["server"],
        "interval_s": server["interval_s"],
        "tables_of_schema": len(data["table"]) + len(server["left_out"]),
        "left_out": {item["name"]: item["why"] for item in server["left_out"]},
        "partitioned": [item["name"] for item in server["partitioned"]],
        "statements": [
            {key: one[key] for key in ("source", "calls", "not_understood")}
            for one in server["statements"]
        ],
        "tables": {
            table["name"]: _table(table) | {"is_referred_to": table["name"] in _parents(data)}
            for table in data["table"]
            if _is_written(table)
        },
    }


def _parents(data: Json) -> set[str]:
    """Tables that foreign keys of the profile refer to."""
    keys = (key for table in data["table"] for key in table.get("foreign_keys", ()))
    return {key["references"] for key in keys}


def _is_written(table: Json) -> bool:
    return any(table["observed"]["counters"][name] for name in _COUNTERS)


def _table(table: Json) -> Json:
    observed = table["observed"]
    updates = observed["updates"]
    wal = observed.get("wal") or {}
    seen = {column["name"]: column for column in observed["columns"]}
    return {
        "rows": table["rows"],
        "counters": {name: observed["counters"][name] for name in _COUNTERS},
        "wal_bytes": wal.get("bytes"),
        "wal_fpi_bytes": wal.get("fpi_bytes"),
        "wal_lock_bytes": _bytes_of(wal, "lock"),
        "wal_prune_bytes": _bytes_of(wal, "prune_on_access"),
        "heap_pages": observed["main_bytes"] // BLOCK_BYTES,
        "index_pages": sum(one.get("main_bytes") or 0 for one in observed["indexes"])
        // BLOCK_BYTES,
        "ends_hot": [index["name"] for index in observed["indexes"] if index["ends_hot"]],
        "stand_ins": {
            name: [column["declared"], column["substituted"]]
            for name, column in seen.items()
            if column.get("substituted")
        },
        "differs": observed.get("differs") or {},
        "updates": [
            {key: one[key] for key in ("kind", "columns", "calls", "rows", "frac")}
            for one in updates["classes"]
        ],
        "unattributed_frac": updates.get("unattributed_frac"),
        "assumed": updates.get("assumed") or [],
    }


def _bytes_of(wal: Json, cause: str) -> int:
    return int((wal.get("by_cause") or {}).get(cause, {}).get("bytes", 0))


def proof_part(profile: Path, server: str, written: Mapping[str, Json], scratch: Path) -> Json:
    """Prove a profile on a server, and keep what was predicted and measured, or why it was not."""
    output = scratch / f"{profile.stem}-{server}.json"
    output.unlink(missing_ok=True)
    code, said = command(
        "prove", str(profile), "--server", server, "--format", "json", "-o", str(output)
    )
    said = [line for line in said if not line.startswith(("server: ", "twin: "))]
    if code != 0 or not output.exists():
        return {"server": server, "exit_code": code, "said": said}
    proof = json.loads(output.read_text(encoding="utf-8"))
    (cell,) = proof["cells"]
    tables = {
        name: {
            key: [
                _number(cell["predicted"]["by_table"][name][key]),
                cell["measured"]["by_table"][name][key],
            ]
            for key in FIGURES
        }
        for name in written
        if name in cell["predicted"]["by_table"]
    }
    return {
        "server": proof["server"],
        "exit_code": code,
        "said": said,
        "approximations": proof["assumed"].get("twin.approximations", []),
        "without_row": sorted(cell["predicted"].get("operations_without_row") or ()),
        "tables": tables,
    }


def _number(value: Any) -> Any:
    """Rounded to six digits: more says nothing, and the file is read by people."""
    if isinstance(value, dict):
        return {key: float(f"{value[key]:.6g}") for key in ("low", "mid", "high")}
    return value if value is None else float(f"{value:.6g}")


def is_inside(predicted: Any, measured: float | None) -> bool | None:
    """Whether what was measured is what was predicted; None where one of them is not there."""
    if predicted is None or measured is None:
        return None
    if isinstance(predicted, dict):
        slack = 1e-5 * abs(measured)  # the record's rounding
        return bool(predicted["low"] - slack <= measured <= predicted["high"] + slack)
    return bool(abs(predicted - measured) <= 1e-5 * abs(measured))
