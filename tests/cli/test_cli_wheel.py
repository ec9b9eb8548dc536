"""
The wheel in an empty environment: what a user installs has all that it needs, and no cargo.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long("builds the core once more and installs every dependency")
def test_the_wheel_starts_without_cargo(tmp_path: Path) -> None:
    """It predicts a profile, and proves it on the server that it brings."""
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--release", "--locked", "--out", tmp_path], cwd=ROOT, check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    done = subprocess.run(
        [ROOT / "tools" / "try-wheel", wheel], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
