"""
The build backend of the package: maturin, with libclang for pg_query and counts for rustc.

The counts say how often each branch of the core is taken; they are used where they were made by
the rustc at hand (`tools/pgo.py`).

The crate `pg_query` makes its bindings with bindgen, which loads libclang. The wheel `libclang` has
the library, not the compiler's own headers (`stddef.h`), which come from the C compiler at hand.
Both are told to cargo in two variables; where they are set already, they stay.

`python tools/build/pgheadroom_build.py` writes all of it to `.cargo/config.toml`, for plain cargo.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import lzma
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
_CONFIG = Path(__file__).resolve().parents[2] / ".cargo" / "config.toml"


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


def rustc() -> tuple[str, str]:
    """Release and platform of the compiler at hand, such as 1.95.0 and x86_64-unknown-linux-gnu."""
    try:
        compiler = os.environ.get("RUSTC", "rustc")
        done = subprocess.run([compiler, "-vV"], capture_output=True, text=True, check=False)
    except OSError:
        return "", ""
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    return said.get("release", ""), said.get("host", "")


def counts_of(release: str, host: str) -> Path:
    """Where the counts for a compiler are, or would be: of xz, in base 64."""
    return Path(__file__).resolve().parent / f"pgo-{release}-{host}.xz.b64"


def flags() -> list[str]:
    """
    What rustc is told beside cargo's own: the counts, if there are some of this compiler.

    Names of functions hold the compiler's release, so others' counts would name none. They are
    unpacked beside cargo's configuration, under a name that changes with them: cargo does not look
    at the file, only at the flag.
    """
    packed = counts_of(*rustc())
    if not packed.is_file():
        return []
    counts = lzma.decompress(base64.b64decode(packed.read_bytes()))
    path = _CONFIG.with_name(f"pgo-{hashlib.sha256(counts).hexdigest()[:16]}.profdata")
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        whole = path.with_suffix(f".{os.getpid()}")
        whole.write_bytes(counts)
        whole.replace(path)
    # That a function has changed since is no news to who builds.
    return [f"-Cprofile-use={path}", "-Cllvm-args=-no-pgo-warn-mismatch"]


def _told() -> None:
    # A library of one's own comes with headers of its own.
    if "LIBCLANG_PATH" not in os.environ:
        for name, value in variables().items():
            os.environ.setdefault(name, value)
    # Cargo adds it to the flags of a user's configuration; its parts end at white space.
    told = flags()
    if told and not any(char.isspace() for flag in told for char in flag):
        os.environ.setdefault("CARGO_BUILD_RUSTFLAGS", " ".join(told))


def build_wheel(*args: Any, **named: Any) -> str:
    """As maturin does."""
    _told()
    return str(maturin.build_wheel(*args, **named))


def build_editable(*args: Any, **named: Any) -> str:
    """As maturin does."""
    _told()
    return str(maturin.build_editable(*args, **named))


def write_config(path: Path) -> None:
    """Write all of it where cargo reads it; cargo leaves those variables alone that are set."""
    # A basic string of TOML is one of JSON, and an array too.
    lines = [f"{name} = {json.dumps(value)}" for name, value in variables().items()]
    head = "# Made by tools/build/pgheadroom_build.py: libclang for the crate pg_query, and counts"
    told = [head, "# of branches for rustc.", "[env]", *lines]
    told += ["[build]", f"rustflags = {json.dumps(flags())}"]
    text = "\n".join([*told, ""])
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_config(_CONFIG)
    sys.exit(0)
