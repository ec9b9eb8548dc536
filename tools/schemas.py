"""
The JSON Schemas of our files, made from the values that read and write them.

    python tools/schemas.py            writes docs/schema
    python tools/schemas.py --check    says which are not current
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom.forms import json_schema
from pgheadroom.profile.reading import ProfileFile

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


def schemas() -> Mapping[str, dict[str, Any]]:
    """Each file's schema, by its name."""
    return {"profile": json_schema(ProfileFile, title="Profile", nulls=False)}


def main() -> int:
    """Write them, or name those that differ."""
    stale = []
    for name, schema in schemas().items():
        path = FOLDER / f"{name}.schema.json"
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    print("\n".join(stale), end="\n" if stale else "")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
