"""The extension's sources: they travel in the wheel, and versions are one header's business."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pgheadroom.extension import SOURCES, lacking
from pgheadroom.servers import ServerPrograms
from pgheadroom.types import PgVersion

ROOT = Path(__file__).parents[2]


def test_wheel_has_the_sources() -> None:
    """What maturin is told to take beside Python names the folder that Python looks in."""
    maturin = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    (pattern,) = [each["path"] for each in maturin["include"] if "wheel" in each["format"]]
    found = {path.relative_to(ROOT / "extension" / "clustered_heap") for path in _files()}
    folder = ROOT / pattern.removesuffix("/**/*")
    assert folder.samefile(SOURCES)
    assert {path.relative_to(folder) for path in folder.glob("**/*") if path.is_file()} == found
    assert {"Makefile", "LICENSE", "clustered_heap.control"} <= {path.name for path in found}


def _files() -> list[Path]:
    return [path for path in (ROOT / "extension" / "clustered_heap").rglob("*") if path.is_file()]


def test_one_header_knows_versions() -> None:
    """Everything else is written for all versions alike."""
    knowing = [
        path.name for path in _files() if re.search(r"PG_VERSION_NUM [<>=]", path.read_text())
    ]
    assert knowing == ["compat.h"]


def test_scripts_and_control_file_agree() -> None:
    """The version that is created by default has its script."""
    control = (SOURCES / "clustered_heap.control").read_text()
    version = re.search(r"default_version = '(.+)'", control)
    assert version is not None
    assert (SOURCES / f"clustered_heap--{version[1]}.sql").is_file()


def test_lacking_says_what(tmp_path: Path) -> None:
    """Another major version, and a server without development files, are told in words."""
    old = ServerPrograms(tmp_path, PgVersion.parse("14.1"), "folder")
    assert lacking(old) == "the extension is for PostgreSQL 15 to 19"
    bare = ServerPrograms(tmp_path, PgVersion.parse("18.4"), "folder")
    assert lacking(bare) == f"there is no pg_config in {tmp_path}"
