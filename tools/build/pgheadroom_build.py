"""
The build backend of the package: maturin, with libclang for the crate `pg_query`.

The crate makes its bindings with bindgen, which loads libclang. The wheel `libclang` has the
library, not the compiler's own headers (`stddef.h`), which come from the C compiler at hand. Both
are told to cargo in two variables; where they are set already, they stay.

`python tools/build/pgheadroom_build.py` writes them to `.cargo/config.toml`, for plain cargo.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
_CONFIG = Path(__file__).parents[2] / ".cargo" / "config.toml"


def libclang_folder() -> Path | None:
    """Where the wheel `libclang` has its library, None where it is not installed."""
    found = importlib.util.find_spec("clang")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        native = Path(folder) / "native"
        if any(native.glob("*clang*")):
            return native
    return None


def compiler_headers() -> Path | None:
    """The C compiler's own headers, None where it does not say."""
    asked = ["-print-file-name=include"]
    for compiler in (os.environ.get("CC", "cc"), "gcc", "clang"):
        try:
            done = subprocess.run(
                [*shlex.split(compiler), *asked], capture_output=True, text=True, check=False
            )
        except OSError:
            continue
        folder = Path(done.stdout.strip())
        if done.returncode == 0 and (folder / "stddef.h").is_file():
            return folder
    return None


def variables() -> dict[str, str]:
    """What cargo needs to know; empty where libclang has to be the system's."""
    folder = libclang_folder()
    if folder is None:
        return {}
    made = {"LIBCLANG_PATH": str(folder)}
    headers = compiler_headers()
    if headers is not None:
        made["BINDGEN_EXTRA_CLANG_ARGS"] = f"-I{headers}"
    return made


def _told() -> None:
    # A library of one's own comes with headers of its own.
    if "LIBCLANG_PATH" not in os.environ:
        for name, value in variables().items():
            os.environ.setdefault(name, value)


def build_wheel(*args: Any, **named: Any) -> str:
    """As maturin does."""
    _told()
    return str(maturin.build_wheel(*args, **named))


def build_editable(*args: Any, **named: Any) -> str:
    """As maturin does."""
    _told()
    return str(maturin.build_editable(*args, **named))


def write_config(path: Path) -> None:
    """Write the variables where cargo reads them; cargo leaves those alone that are set."""
    # A basic string of TOML is one of JSON.
    lines = [f"{name} = {json.dumps(value)}" for name, value in variables().items()]
    path.parent.mkdir(exist_ok=True)
    head = "# Made by tools/build/pgheadroom_build.py: libclang for the crate pg_query."
    path.write_text("\n".join([head, "[env]", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    write_config(_CONFIG)
    sys.exit(0)
