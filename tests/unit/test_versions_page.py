"""docs/versions.md is what the goldens say."""

from __future__ import annotations

import pytest
from scenarios import read_all
from versions import MAJORS, PAGE, excepted, feature_of, page, recorded


def test_the_page_is_true() -> None:
    """A golden that comes or goes, or an exception of the core's tests, is written down."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_scenario_is_recorded_on_every_version() -> None:
    """Where one is left out, what is said of that version rests on nothing."""
    on: dict[int, set[str]] = {major: set() for major in MAJORS}
    for (_, kind), by_major in recorded().items():
        if kind == "scenario":
            for major, names in by_major.items():
                on[major].update(names)
    for scenario in read_all():
        wanted = set(scenario.only or MAJORS) & set(MAJORS)
        assert {major for major in MAJORS if scenario.name in on[major]} == wanted, scenario.name


def test_exceptions_are_of_scenarios_that_are_recorded() -> None:
    """A name that no scenario has would hide that one is reproduced."""
    names = {scenario.name for scenario in read_all()}
    assert {name for of in excepted().values() for name in of} <= names


def test_exceptions_are_read() -> None:
    """A list that nobody reads would call everything exact."""
    text = """
pub const NOT_REPRODUCED: [(&[&str], &str, &[&str]); 1] = [(
    &["18.4", "19rc1"],
    "VACUUM waits for no pin",
    &["pin-stops-vacuum"],
)];
"""
    reason = {"pin-stops-vacuum": "VACUUM waits for no pin"}
    assert excepted(text) == {"18.4": reason, "19rc1": reason}


def test_a_golden_that_no_feature_names() -> None:
    """It is said, not left out of the page."""
    assert feature_of("scenario", "fsm-next-slot") == feature_of("scenario", "insert-wide-rows")
    assert feature_of("compressed", "zstd-toast") != feature_of("compressed", "toast")
    with pytest.raises(LookupError, match="scenario-nobody-knows"):
        feature_of("scenario", "nobody-knows")
