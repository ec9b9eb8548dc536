"""
Damaged files end in a sentence, never in a trace.

What happened: of 350 mutated observed profiles 24 ended with a trace, and of the plans 63; the exit
code was 1, which CI reads as a finding. Each way in takes 300 mutations here, 10,000 others in
`make test-long`; `make fuzz-inputs` goes through the whole commands.
"""

from __future__ import annotations

import gc
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz_entries import entries, without_simulation
from mutations import Mutator

from pgheadroom.errors import HeadroomError

DRAWS = (
    pytest.param(300, 12, id="short"),
    pytest.param(10_000, 13, id="long", marks=pytest.mark.long),
)
"""How many mutations, and the seed that they are drawn by."""

NAMES = ("profile", "plan", "applied", "lab request", "lab samples", "statements", "migration")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: results are synced, for each mutation."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as made:
        yield Path(made)


@pytest.mark.parametrize(("mutations", "seed"), DRAWS)
@pytest.mark.parametrize("name", NAMES)
def test_damaged_input_ends_in_a_sentence(
    name: str, mutations: int, seed: int, folder: Path, tmp_path: Path
) -> None:
    """Only errors that a user is told; and some inputs are taken, or nothing would be tested."""
    with without_simulation():
        entry = next(entry for entry in entries(folder) if entry.name == name)
        mutator = Mutator(seed)
        taken, began_s = 0, time.process_time()
        count = mutations // 2 if name.startswith("lab") else mutations  # one record's two files
        gc.disable()  # a quarter of the time otherwise
        try:
            for number in range(count):
                text = entry.damaged(mutator)
                try:
                    entry.read(text)
                    taken += 1
                except HeadroomError:
                    pass
                except Exception:  # noqa: BLE001 - what this test is about
                    kept = tmp_path / "damaged"
                    kept.write_text(text, encoding="utf-8", errors="surrogatepass")
                    trace = traceback.format_exc()
                    pytest.fail(f"seed {seed}, mutation {number}, {kept}:\n{trace}")
                if number % 150 == 0:
                    gc.collect()
        finally:
            gc.enable()
    print(f"{name}: {time.process_time() - began_s:.1f} s of processor time, {taken} taken")
    assert count / 100 < taken < count * 0.99


def test_all_ways_in_are_tested(folder: Path) -> None:
    """A new one is not forgotten here."""
    with without_simulation():
        assert tuple(entry.name for entry in entries(folder)) == NAMES
