"""
Record what servers measure of golden/profiles, compressed and found, for the twin's golden tests.

    python tools/record_profile_golden.py [--only NAME] 18 16 15

Each profile is played as `prove` plays it. Written to
golden/expected/MAJOR.MINOR/profile-*.json, compressed-*.json and found-*.json: the profile as the
twin reads it, and what the server measured, by table and in total.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pgheadroom.forms import write
from pgheadroom.play import play
from pgheadroom.profile import read_profile, to_json
from pgheadroom.servers import find_programs

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
KINDS = {"profiles": "profile", "compressed": "compressed", "found": "found"}
QUOTIENTS = ("hot_frac", "newpage_frac", "wal_bytes_per_update", "wal_nonfpi_bytes_per_update")


def record(path: Path, version: str) -> Path:
    """Play one profile and write its file."""
    profile = read_profile(path)
    played = play(profile, server=version)
    found = write(played.measured)
    measured = {key: value for key, value in found.items() if key not in QUOTIENTS}
    measured["by_table"] = {
        name: {key: value for key, value in table.items() if key not in QUOTIENTS}
        for name, table in found["by_table"].items()
    }
    content = {
        "origin": f"PostgreSQL {played.server}, tools/record_profile_golden.py",
        "profile": to_json(profile),
        "transactions": played.transactions,
        "measured": measured,
    }
    name = f"{KINDS[path.parent.name]}-{path.stem}.json"
    written = GOLDEN / "expected" / str(played.server) / name
    written.write_text(json.dumps(content, indent=1) + "\n")
    return written


def main() -> None:
    """Record every profile, or those whose folder and name contain `--only`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=["18", "16", "15"])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for spec in arguments.versions:
        version = str(find_programs(spec).version)
        for folder in KINDS:
            for path in sorted(
                [*(GOLDEN / folder).glob("*.toml"), *(GOLDEN / folder).glob("*.json")]
            ):
                if arguments.only in f"{folder}/{path.stem}":
                    print(f"recorded {record(path, version)}", flush=True)


if __name__ == "__main__":
    main()
