"""The page of what the doctor says where all is well, beside its record."""

from __future__ import annotations

import json

from doctor_healthy.__main__ import PAGE, RECORD, read_explained
from doctor_healthy.cases import APPLICATIONS, cases
from doctor_healthy.page import page


def test_the_page_is_current() -> None:
    """It is made of the record, each case of which had ten minutes of load."""
    kept = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in cases(None)
        if (path := RECORD / f"{name}.json").exists()
    }
    assert PAGE.read_text(encoding="utf-8") == page(kept, read_explained())
    assert kept.keys() == set(cases(None))
    assert len(APPLICATIONS) >= 3
    for name, case in kept.items():
        assert case["load_s"] >= 600, name
        assert case["autovacuums"] > 0, name
        assert case["cut_off"] == [], name


def test_what_is_severe_is_explained_and_nothing_else() -> None:
    """Each warning stands there with why it is true, and none is explained that was not seen."""
    severe = {
        (name, found["rule"], found["object"])
        for name in cases(None)
        for found in json.loads((RECORD / f"{name}.json").read_text(encoding="utf-8"))["findings"]
        if found["severity"] != "info"
    }
    assert severe == read_explained().keys()


def test_prices_are_no_more_than_the_log() -> None:
    """
    What is said to be written at least, over the load, is less than its log has of B-trees.

    An entry that comes with an image of its page stands in that alone.
    """
    held = 0
    for name in cases(None):
        case = json.loads((RECORD / f"{name}.json").read_text(encoding="utf-8"))
        for found in case["findings"]:
            if "logged_bytes" in found:
                foreseen = found["amount"] * case["load_s"] / 86_400
                logged = found["logged_bytes"] + found.get("image_bytes", 0)
                assert 0 < foreseen <= logged, (name, found["object"])
                held += 1
    assert held >= 4
