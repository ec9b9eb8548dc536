"""The README and the list of commands: short, whole, and with the figures that the pages have."""

from __future__ import annotations

import re
from pathlib import Path

from pgheadroom.cli.commands import COMMANDS
from pgheadroom.lab import experiments

ROOT = Path(__file__).parents[2]


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def test_the_readme_is_read_in_one_go() -> None:
    """What is longer has a page of its own."""
    assert len(_page("README.md").splitlines()) < 150


def test_the_readme_has_the_accuracy_of_the_page() -> None:
    """Proofs, figures and intervals are those that `make accuracy` wrote last."""
    page = _page("docs/accuracy.md")
    proofs = re.search(r"^\d+ proofs, .*$", page, re.MULTILINE)
    intervals = re.search(r"^(\d+ of \d+ intervals of stated \d+ % hold .*) \(", page, re.MULTILINE)
    assert proofs
    assert intervals
    (line,) = [line for line in _page("README.md").splitlines() if " proofs with " in line]
    assert _numbers(line.partition(":")[2])[:3] == _numbers(proofs[0])
    assert intervals[1].removesuffix(".") in line


def test_the_readme_has_the_regret_of_the_page() -> None:
    """Of the advice, and of 90 everywhere: median, mean, 90th percentile, harm."""
    section = _page("docs/advice-accuracy.md").partition("## Goal `balanced`")[2]
    rows = {
        cells[0]: cells
        for line in section.partition("\n## ")[0].splitlines()
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    (line,) = [line for line in _page("README.md").splitlines() if "Its regret" in line]
    advice, ninety = line.split("Setting 90 everywhere")
    for row, text in (("pgheadroom advise", advice), ("always 90", ninety)):
        _, median, percentile, _, mean, harm, _ = rows[row]
        assert all(figure in text for figure in (median, percentile, mean)), row
        assert (f"harms {harm}" if int(harm) else "harms none") in text


def test_the_list_of_commands_is_whole() -> None:
    """Every command and every experiment has its line, and none that is gone."""
    blocks = "".join(re.findall(r"^```\n(.*?)^```$", _page("docs/commands.md"), re.M | re.S))
    named = set(re.findall(r"^pgheadroom ([a-z-]+)", blocks, re.MULTILINE))
    assert named == set(COMMANDS)
    ran = set(re.findall(r"^pgheadroom lab run ([a-z-]+)", blocks, re.MULTILINE))
    assert ran == {experiment.name for experiment in experiments.ALL}
