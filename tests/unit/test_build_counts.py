"""The counts of branches that the core is compiled with: there, readable, of one compiler."""

from __future__ import annotations

import base64
import importlib.util
import lzma
import os
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "build" / "pgheadroom_build.py"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build backend, with counts of a compiler 9.9.9 beside it and a folder of its own."""
    spec = importlib.util.spec_from_file_location("a_build_backend", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts = tmp_path / "counts"
    counts.write_bytes(base64.encodebytes(lzma.compress(b"counted")))
    absent = tmp_path / "absent"
    monkeypatch.setattr(module, "_CONFIG", tmp_path / "a folder" / "config.toml")
    found = {("9.9.9", "x86_64-unknown-linux-gnu"): counts}
    monkeypatch.setattr(module, "counts_of", lambda *compiler: found.get(compiler, absent))
    return module


def test_counts_of_this_compiler_are_unpacked_once(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "rustc", lambda: ("9.9.9", "x86_64-unknown-linux-gnu"))
    build.write_config(build._CONFIG)
    flags = tomllib.loads(build._CONFIG.read_text())["build"]["rustflags"]
    path = Path(flags[0].removeprefix("-Cprofile-use="))
    assert path.read_bytes() == b"counted"
    assert build.flags() == flags
    assert sorted(left.name for left in path.parent.iterdir()) == ["config.toml", path.name]


@pytest.mark.parametrize("release", ["", "1.2.3"])
def test_another_compiler_is_told_nothing(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    monkeypatch.setattr(build, "rustc", lambda: (release, "x86_64-unknown-linux-gnu"))
    build.write_config(build._CONFIG)
    assert tomllib.loads(build._CONFIG.read_text())["build"]["rustflags"] == []


def test_cargo_is_told_what_it_can_take(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "rustc", lambda: ("9.9.9", "x86_64-unknown-linux-gnu"))
    told = {"LIBCLANG_PATH": "/nowhere"}
    monkeypatch.setattr(os, "environ", told)
    build._told()
    assert "CARGO_BUILD_RUSTFLAGS" not in told  # the folder's name has a blank
    monkeypatch.setattr(build, "_CONFIG", tmp_path / "folder" / "config.toml")
    build._told()
    assert told["CARGO_BUILD_RUSTFLAGS"].split() == build.flags()


def test_the_compiler_at_hand_is_asked(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    release, host = build.rustc()
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", release)
    assert host.count("-") >= 2
    monkeypatch.setenv("RUSTC", "/nowhere/rustc")
    assert build.rustc() == ("", "")


def test_the_recorded_counts_are_a_profile_of_llvm() -> None:
    recorded = sorted(TOOL.parent.glob("pgo-*"))
    assert recorded
    for path in recorded:
        counts = lzma.decompress(base64.b64decode(path.read_bytes()))
        assert counts[:8] == b"\xfflprofi\x81"  # InstrProf's magic, on a little-endian machine
        # The module's and the benchmarks' core under one name, or half of it would be of no use.
        assert len(set(re.findall(rb"pgheadroom_twin\.[0-9a-f]{16}", counts))) == 1
