"""
Build the extension for every server at hand that has headers and PGXS: `make extension`.

    python tools/build_extension.py build/extension

Each is built under its own flags in a folder of its own, and a warning fails. Nothing is
installed: `pgheadroom extension install BIN_DIR` does that.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pgheadroom.errors import LabError
from pgheadroom.extension import build, lacking
from pgheadroom.servers import at_hand
from pgheadroom.servers.programs import fetched


def main(folder: Path) -> int:
    """Exit code 1 if one that has all it needs is not built, or if there is none."""
    built = failed = 0
    for programs in [*at_hand(), *fetched()]:
        problem = lacking(programs)
        if problem is not None:
            print(f"{programs}: not built, {problem}")
            continue
        try:
            made = build(programs, folder / str(programs.version), warnings_are_errors=True)
        except LabError as error:
            failed += 1
            print(f"{programs}: {error}", file=sys.stderr)
            continue
        built += 1
        print(f"{programs}: {made.files[0].source}")
    return int(failed > 0 or built == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
