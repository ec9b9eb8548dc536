"""
Record what servers do in the scenarios, for the twin's golden tests.

    python tools/record_scenarios.py [--server 18 ...] [--texts FOLDER] [NAME ...]

Writes golden/expected/MAJOR.MINOR/scenario-NAME.json: counters, sizes, WAL by record type, and a
digest of the places of everything for each page of each fork. `--texts` also keeps the places
themselves, to look at the first difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pgheadroom import _core
from pgheadroom.forms import write
from pgheadroom.play import Played, play
from pgheadroom.play.settings import start_settings
from pgheadroom.profile import to_json
from pgheadroom.servers import find_programs

from scenario_script import Script  # isort: skip - beside this file
from scenarios import ROOT, Scenario, read_all  # isort: skip

EXPECTED = ROOT / "golden" / "expected"
SERVERS = ("15", "16", "18")
_PAGE_DIGITS = 8


def record(scenario: Scenario, server: str, texts: Path | None) -> None:
    """Play one scenario on one server and write what it did."""
    script = None
    if scenario.steps is not None:
        script = Script(scenario.profile, scenario.steps)
    played = play(scenario.profile, server=server, with_places=True, work=script)
    assert played.places is not None
    content = content_of(scenario, played, script)
    folder = EXPECTED / str(played.server)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"scenario-{scenario.name}.json").write_text(_lines(content))
    if texts is not None:
        target = texts / str(played.server)
        target.mkdir(parents=True, exist_ok=True)
        whole = "".join(
            f"== {name}\n" + "".join(pages) for name, pages in sorted(played.places.items())
        )
        (target / f"{scenario.name}.txt").write_text(whole)


def content_of(scenario: Scenario, played: Played, script: Script | None) -> dict[str, Any]:
    """The golden file's content."""
    assert played.places is not None
    content: dict[str, Any] = {
        "schema_version": 1,
        "kind": "scenario",
        "name": scenario.name,
        "origin": {
            "server": f"PostgreSQL {played.server}",
            "command": f"python tools/record_scenarios.py {scenario.name}",
            "settings": start_settings(scenario.profile),
        },
        "profile": to_json(scenario.profile),
    }
    if script is not None:
        copied = iter(script.copied)
        content["steps"] = [
            step | ({"line_bytes": next(copied)} if step["do"] == "copy" else {})
            for step in script.steps
        ]
    if script is not None and scenario.protocol is not None:
        content["protocol"] = scenario.protocol
        content["done"] = [done.as_json() for done in script.done if done.outcomes or done.waits]
    content["transactions"] = played.transactions
    content["tables"] = {
        name: {key: value for key, value in sums.items() if isinstance(value, int)}
        for name, sums in write(played.measured)["by_table"].items()
    }
    content["by_record"] = played.by_record
    content["places"] = {
        name: {
            "pages": len(pages),
            "digest": _core.places_digest("".join(pages)),
            "page_digests": "".join(_core.places_digest(page)[:_PAGE_DIGITS] for page in pages),
        }
        for name, pages in sorted(played.places.items())
    }
    return content


def _lines(content: dict[str, Any]) -> str:
    """JSON with one line for each small part, so that differences can be read."""
    parts = []
    for key, value in content.items():
        nested = key in ("tables", "by_record", "places")
        if nested or key in ("steps", "done"):
            items = (
                [f"{json.dumps(name)}: {json.dumps(inner)}" for name, inner in value.items()]
                if nested
                else [json.dumps(step) for step in value]
            )
            ends = "{}" if nested else "[]"
            text = f"{ends[0]}\n    " + ",\n    ".join(items) + f"\n  {ends[1]}"
        else:
            text = json.dumps(value)
        parts.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: list[str]) -> int:
    """Record scenarios on servers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("names", nargs="*", help="scenarios; without any, all")
    parser.add_argument("--server", action="append", help="version or folder; again for more")
    parser.add_argument("--texts", type=Path, help="keep the places' texts in this folder")
    options = parser.parse_args(arguments)
    servers = options.server or [
        *SERVERS,
        *map(str, sorted((ROOT / ".servers").glob("17*/package"))),
    ]
    for server in servers:
        programs = find_programs(server)
        for scenario in read_all(options.names):
            if scenario.only is None or programs.version.major in scenario.only:
                record(scenario, server, options.texts)
                print(f"{programs.version} {scenario.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
