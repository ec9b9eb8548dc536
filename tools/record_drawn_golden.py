"""
Record what servers do where they draw something, for the twin's golden tests.

    python tools/record_drawn_golden.py 18.4 18 19

Each profile of golden/drawn is played as `prove` plays it. Written to
golden/expected/MAJOR.MINOR/drawn-*.json: the profile as the twin reads it, the WAL by kind of
record, the visibility maps, and those seeds of the twin which write the same WAL. What a server
drew nobody can ask it; the maps say whether one of these seeds has drawn the same.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from pgheadroom import _core
from pgheadroom.errors import LabError
from pgheadroom.play import play
from pgheadroom.profile import read_profile, to_json
from pgheadroom.servers import find_programs

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
SEEDS = 8192
"""Twice as many as there are places where a scan may begin: they come to each of them."""
KEPT_MOST = 60
"""With more seeds of the same WAL a run is played again: one that tells more is found soon."""
TRIES = 8


def record(path: Path, spec: str) -> Path:
    """Play one profile until its run tells enough, and write its file."""
    profile = read_profile(path)
    data = json.dumps(to_json(profile))
    by_wal: dict[str, list[int]] = {}
    version = str(find_programs(spec).version)
    for seed in range(SEEDS):
        wal = _text(_core.simulate(data, version, interleaving=seed).by_record)
        by_wal.setdefault(wal, []).append(seed)
    for _ in range(TRIES):
        played = play(profile, server=spec, with_places=True)
        if len(by_wal.get(_text(played.by_record), [])) <= KEPT_MOST:
            break
    else:
        raise LabError(f"{path.name}: {TRIES} runs on {version}, each like more than {KEPT_MOST}")
    assert played.places is not None
    content = {
        "origin": f"PostgreSQL {played.server}, tools/record_drawn_golden.py",
        "profile": to_json(profile),
        "transactions": played.transactions,
        "by_record": {name: list(sums) for name, sums in sorted(played.by_record.items())},
        "maps": {name: text for name, text in played.places.items() if name.endswith(":vm")},
        "seeds": by_wal.get(_text(played.by_record), []),
    }
    written = GOLDEN / "expected" / str(played.server) / f"drawn-{path.stem}.json"
    written.write_text(json.dumps(content, indent=1) + "\n")
    return written


def _text(by_record: Mapping[str, tuple[int, int, int]]) -> str:
    return json.dumps({name: list(sums) for name, sums in sorted(by_record.items())})


def main() -> None:
    """Record every profile of golden/drawn on each server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=["18", "19"])
    for spec in parser.parse_args().versions:
        for path in sorted((GOLDEN / "drawn").glob("*.toml")):
            print(f"recorded {record(path, spec)}", flush=True)


if __name__ == "__main__":
    main()
