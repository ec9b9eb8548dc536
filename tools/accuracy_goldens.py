"""The twin beside what servers did with golden/profiles and golden/scenarios, as proofs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pgheadroom import _core
from pgheadroom.accuracy import error
from pgheadroom.errors import TwinError
from pgheadroom.outcome import SUMMED, Outcome, put_together
from pgheadroom.predict.cells import fillfactor_of
from pgheadroom.predict.twin import whole
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.prove import Proof, ProofCell
from pgheadroom.types import PgVersion

EXPECTED = Path(__file__).parents[1] / "golden" / "expected"


def proofs() -> Iterator[tuple[tuple[str, str], Proof]]:
    """
    A proof for each recorded profile, by its name and the server's version.

    Scripted scenarios are left out: the core's own tests play them, and compare them place by
    place. Nothing is played on a server here; the twin is asked anew each time.
    """
    for kind in ("profile", "scenario"):
        for path in sorted(EXPECTED.glob(f"*/{kind}-*.json")):
            recorded = json.loads(path.read_text(encoding="utf-8"))
            if "steps" not in recorded:
                name = path.stem.removeprefix(f"{kind}-")
                try:
                    made = _proof(recorded, path.parent.name)
                except TwinError:
                    continue  # refused in words: no figure
                yield (f"{kind} {name}", path.parent.name), made


def _proof(recorded: Mapping[str, Any], server: str) -> Proof:
    profile: Profile = parse_profile(recorded["profile"])
    simulated = _core.simulate(json.dumps(recorded["profile"]), server)
    predicted = whole(simulated)
    measured = _measured(recorded)
    cell = ProofCell(
        fillfactor=fillfactor_of(profile),
        predicted=predicted,
        measured=measured,
        error=error(predicted, measured),
    )
    return Proof(server=PgVersion.parse(server), assumed={}, cells=(cell,))


def _measured(recorded: Mapping[str, Any]) -> Outcome:
    """The whole of what the server did: its tables, and the clients' Transaction records."""
    if "tables" in recorded:
        tables = recorded["tables"]
        ends = [v for k, v in recorded["by_record"].items() if k.startswith("Transaction/")]
        clients = {
            "wal_records": sum(number for number, _, _ in ends),
            "wal_bytes": sum(size for _, size, _ in ends),
        }
    else:
        tables = recorded["measured"]["by_table"]
        clients = {
            key: recorded["measured"][key] - sum(table[key] for table in tables.values())
            for key in ("wal_records", "wal_bytes")
        }
    known = {
        name: {key: table.get(key) for key in (*SUMMED, "brin_pages")}
        for name, table in tables.items()
    }
    return put_together(known, clients)
