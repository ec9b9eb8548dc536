"""
Schemas of public applications: fetch, load, run, observe, prove, and write the page.

    python -m public_schemas [NAME ...] [--clones FOLDER] [--again] [--page]

What is in the record already is not done again, but with `--again`. `--page` plays nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from pgheadroom.errors import HeadroomError
from pgheadroom.files import write_atomically
from pgheadroom.servers.signals import terminate_cleanly
from public_schemas import live, page, sources
from public_schemas.manifest import Application, applications
from public_schemas.record import Json, observed_part, proof_part

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "experiments" / "public-schemas"
RECORD = ROOT / "experiments" / "record" / "public-schemas"
BUILD = ROOT / "build" / "public-schemas"
SERVERS = ("18", "16")


def main() -> None:
    """Do what is asked; without a name, all applications."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="with OWNER/NAME in it")
    parser.add_argument("--again", action="store_true", help="also what is in the record")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--beside", default="", metavar="WORDS", help="what else runs meanwhile")
    options = parser.parse_args()
    known = applications(MANIFESTS)
    keys = {one.key for one in known}
    if unknown := sorted(set(options.names) - keys):
        parser.error(f"no application {unknown[0]!r}; there are {', '.join(sorted(keys))}")
    chosen = [one for one in known if not options.names or one.key in options.names]
    failed = False
    if not options.page:
        for folder in (BUILD, RECORD):
            folder.mkdir(parents=True, exist_ok=True)
        with terminate_cleanly():
            for one in chosen:
                if options.again or not _path(one).exists():
                    failed |= not _play(one, options.clones, options.beside)
    page.write(known, RECORD, ROOT / "docs" / "public-schemas.md")
    sys.exit(1 if failed else 0)


def _path(application: Application) -> Path:
    return RECORD / f"{application.key}.json"


def _play(application: Application, clones: Path | None, beside: str) -> bool:
    """One application through the whole loop; what fails is said, and the others go on."""
    begin = time.monotonic()
    profile = BUILD / f"{application.key}.json"
    try:
        texts = sources.texts(application, BUILD / "sources", clones)
        programs = live.server_for_applications()
        _say(f"{application.name}: observe on {programs.version}")
        found = live.observed(application, texts, programs, profile)
        kept = observed_part(application, found, profile)
        kept["observe_said"] = found["said"]
        proofs = []
        for server in SERVERS:
            _say(f"{application.name}: prove on {server}")
            proofs.append(proof_part(profile, server, kept["tables"], BUILD))
    except HeadroomError as error:
        _say(f"{application.name}: {error}")
        return False
    kept |= {"proofs": proofs, "beside": beside}
    write_atomically(_path(application), _text(kept))
    _say(f"{application.name}: {time.monotonic() - begin:.0f} s")
    return True


def _text(kept: Json) -> str:
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
