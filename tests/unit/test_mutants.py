"""The mutants of the twin: patches that still apply, one for each rule that a scenario shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import mutants

# Scenarios that the twin does not reproduce on a verified version show nothing of it: no mutant.
_NOT_REPRODUCED = re.compile(r"const NOT_REPRODUCED: .*? =\s*\[(.*?)\];\n", re.DOTALL)
_ENTRY = re.compile(r'\(\s*&\[([^\]]*)\],\s*"[^"]*",\s*&\[([^\]]*)\]', re.DOTALL)
_TOUCHED = re.compile(r"^(?:---|\+\+\+) [ab]/(\S+)$", re.MULTILINE)


def _not_reproduced() -> set[str]:
    text = (mutants.ROOT / "crates/pgheadroom-twin/tests/scenarios/mod.rs").read_text("utf-8")
    found = _NOT_REPRODUCED.search(text)
    assert found is not None
    names: set[str] = set()
    for versions, listed in _ENTRY.findall(found[1]):
        if set(re.findall(r'"([^"]+)"', versions)) != {"19rc1"}:
            names.update(re.findall(r'"([^"]+)"', listed))
    return names


def test_every_patch_applies() -> None:
    """A patch that the code has left behind breaks nothing, and nothing would be shown by it."""
    stale = []
    for mutant in mutants.mutants():
        try:
            mutants.apply(mutant, mutants.ROOT, check=True)
        except mutants.MutantsError as error:
            stale.append(str(error))
    assert stale == []


def test_the_copy_has_a_manifest() -> None:
    """Cargo reads it, which takes no table and no crate twice."""
    manifest = tomllib.loads(mutants.copied_sources()["Cargo.toml"])
    assert len(manifest["workspace"]["members"]) == 2
    for name in ("pgheadroom-layout", "pgheadroom-twin"):
        assert manifest["profile"]["checked"]["package"][name]["debug-assertions"]
        assert "path" in manifest["workspace"]["dependencies"][name]


def _of_sessions() -> set[str]:
    paths = mutants.SCENARIOS.glob("*.toml")
    return {path.stem for path in paths if "\n# protocol: " in path.read_text("utf-8")}


def test_every_rule_of_a_scenario_has_a_mutant() -> None:
    """A scenario that nobody has seen fail may show nothing; one that fails names its rule."""
    scenarios = mutants.rules_of_scenarios()
    about: dict[str, set[str]] = {}
    for scenario in scenarios.keys() - _not_reproduced() - _of_sessions():
        about.setdefault(scenarios[scenario], set()).add(scenario)
    found = {mutant.rule: set(mutant.scenarios) for mutant in mutants.mutants()}
    assert len(found) >= 120
    assert {rule: found.get(rule) for rule in about} == about


def test_every_history_of_sessions_is_failed_by_a_mutant() -> None:
    """What sessions do to each other is one mechanism for many: its mutant lists all it fails."""
    rules = {
        rule for name, rule in mutants.rules_of_scenarios().items() if name not in _of_sessions()
    }
    failed: set[str] = set()
    for mutant in mutants.mutants():
        if mutant.rule not in rules:
            assert set(mutant.scenarios) <= _of_sessions(), mutant.rule
            failed |= set(mutant.scenarios)
    assert failed == _of_sessions() - _not_reproduced()


def test_mutants_change_sources_alone() -> None:
    """A patch of a test or of a manifest would fail a scenario without breaking a rule."""
    for mutant in mutants.mutants():
        touched = _TOUCHED.findall(mutant.path.read_text(encoding="utf-8"))
        assert touched, mutant.rule
        assert all(re.fullmatch(r"crates/[a-z-]+/src/\S+\.rs", name) for name in touched)


def test_a_patch_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    """The message says which rule to break anew, and how."""
    source = tmp_path / "crates" / "heap.rs"
    source.parent.mkdir()
    source.write_text("fn keeps() -> u32 {\n    1\n}\n")
    path = tmp_path / "some-rule.patch"
    heading = "Rule: some-rule\nHolds: It is one.\nSource: `f`, f.c\nScenarios: one\n\n"
    patch = "--- a/crates/heap.rs\n+++ b/crates/heap.rs\n"
    patch += "@@ -1,3 +1,3 @@\n fn keeps() -> u32 {\n-    2\n+    3\n }\n"
    path.write_text(heading + patch)
    mutant = mutants.Mutant.read(path)
    with pytest.raises(mutants.MutantsError, match="record some-rule"):
        mutants.apply(mutant, tmp_path, check=True)
    source.write_text("fn keeps() -> u32 {\n    2\n}\n")
    mutants.apply(mutant, tmp_path)
    assert source.read_text() == "fn keeps() -> u32 {\n    3\n}\n"


@pytest.mark.parametrize(
    "heading",
    [
        "Rule: another-rule\nHolds: It is one.\nSource: `f`, f.c\nScenarios: one\n\n",
        "Rule: some-rule\nHolds: .\nSource: \nScenarios: one\n\n",
        "Rule: some-rule\nHolds: It is one.\nSource: `f`, f.c\nScenarios: \n\n",
        "",
    ],
)
def test_a_heading_that_says_too_little_is_refused(tmp_path: Path, heading: str) -> None:
    """What is broken, where PostgreSQL has it and what notices is said, or there is no mutant."""
    path = tmp_path / "some-rule.patch"
    path.write_text(heading + "--- a/crates/heap.rs\n+++ b/crates/heap.rs\n@@ -2 +2 @@\n-2\n+3\n")
    with pytest.raises(mutants.MutantsError):
        mutants.Mutant.read(path)
