"""
Mutants of the twin: is each rule of PostgreSQL's that it keeps seen by its scenario?

    make mutants                                  all of them; resumes where it was stopped
    .venv/bin/python tools/mutants.py run fsm-next-slot
    .venv/bin/python tools/mutants.py record fsm-next-slot

A mutant is a patch, `tests/mutants/RULE.patch`, that breaks one rule in the twin's source. Its
heading names the rule, what holds, where PostgreSQL has it, and the scenarios that have to fail.
The patch is applied to a copy of the crates, built there, and those scenarios are played: if one
of them still agrees with the servers, it does not show what it says, and the mutant has survived.

`record` writes the patch of a rule from what `git diff` says about the crates; break the rule by
hand first, and take the change back afterwards. Nothing here touches the sources themselves.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "tests" / "mutants"
SCENARIOS = ROOT / "golden" / "scenarios"
WORK = ROOT / "target" / "mutants"
TREE = WORK / "tree"
RESULTS = WORK / "results.json"

_TWIN = "crates/pgheadroom-twin"
# What the scenarios' test is built from; other tests and benchmarks would bring their crates.
_SOURCES = (
    "crates/pgheadroom-layout/Cargo.toml",
    "crates/pgheadroom-layout/src",
    f"{_TWIN}/src",
    f"{_TWIN}/tests/golden_scenarios.rs",
    f"{_TWIN}/tests/scenarios",
)
_HEADING = re.compile(
    r"Rule: (?P<rule>[a-z0-9-]+)\n"
    r"Holds: (?P<holds>\S.*\.)\n"
    r"Source: (?P<source>\S.*)\n"
    r"Scenarios: (?P<scenarios>[a-z0-9-]+(?: [a-z0-9-]+)*)\n"
    r"\n(?=--- a/)"
)
_RULE_OF_SCENARIO = re.compile(r"^# rule: ([a-z0-9-]+)$", re.MULTILINE)
# Optimised a little: a debug build plays the scenarios in minutes, a whole one takes minutes to
# build. Otherwise as the tests, in their folder: what the twin depends on is built already.
_PROFILE = "checked"
_SETTINGS = "".join(
    f"{name} = {{ opt-level = 1, codegen-units = 256, debug-assertions = true }}\n"
    for name in ("pgheadroom-layout", "pgheadroom-twin")
)
# A mutant may never end, or ask for memory without end: both are found here, not by the machine.
# Processor time, of which a scenario takes less than a second: a busy machine kills no mutant.
_SECONDS_MAX = 120
_MEMORY_MAX_BYTES = 8 * 1024**3


class MutantsError(Exception):
    """What is wrong with a patch, or with the source without any, and what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One patch; `scenarios` are those that have to fail with it."""

    rule: str
    holds: str
    source: str
    scenarios: tuple[str, ...]
    path: Path

    @staticmethod
    def read(path: Path) -> Mutant:
        """
        Read a patch's heading.

        Raises:
            MutantsError: It has not the four lines, or names another rule than the file.
        """
        heading = _HEADING.match(path.read_text(encoding="utf-8"))
        if heading is None:
            raise MutantsError(
                f"{path.name} does not begin with Rule, Holds, Source and Scenarios, an empty"
                " line and the patch; see another one"
            )
        if heading["rule"] != path.stem:
            raise MutantsError(f"{path.name} is about the rule {heading['rule']}: rename one")
        return Mutant(
            rule=heading["rule"],
            holds=heading["holds"],
            source=heading["source"],
            scenarios=tuple(heading["scenarios"].split()),
            path=path,
        )

    def patch(self) -> str:
        """The scenarios and the patch: what decides the verdict."""
        text = self.path.read_text(encoding="utf-8")
        return text[text.index("Scenarios: ") :]


def mutants() -> list[Mutant]:
    """All mutants, by rule."""
    return [Mutant.read(path) for path in sorted(PATCHES.glob("*.patch"))]


def rules_of_scenarios() -> dict[str, str]:
    """The rule that each scenario's heading names."""
    found = {}
    for path in sorted(SCENARIOS.glob("*.toml")):
        rule = _RULE_OF_SCENARIO.search(path.read_text(encoding="utf-8"))
        if rule is None:
            raise MutantsError(f"{path.name} names no rule: # rule: NAME")
        found[path.stem] = rule[1]
    return found


def apply(mutant: Mutant, tree: Path, *, check: bool = False) -> None:
    """
    Apply a patch to a tree, or only see whether it can be.

    One line of context has to agree: code nearby may change without a new patch.

    Raises:
        MutantsError: It does not apply.
    """
    command = ["git", "apply", "-C1", *(["--check"] if check else []), str(mutant.path)]
    # Inside another repository's folder git would leave out every file and say nothing.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise MutantsError(
            f"{mutant.path.name} does not apply any more:\n{done.stderr.rstrip()}\n"
            f"break the rule by hand ({mutant.holds}), write the patch anew with"
            f" `tools/mutants.py record {mutant.rule}`, and take the change back"
        )


def record(rule: str) -> Path:
    """
    Write a rule's patch from the change that the crates have against the last commit.

    Raises:
        MutantsError: Nothing is changed, or no scenario is about the rule.
    """
    changed = subprocess.run(
        ["git", "diff", "--no-color", "--no-ext-diff", "HEAD", "--", "crates"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line for line in changed.splitlines() if not line.startswith(("diff ", "index "))]
    if not lines:
        raise MutantsError("nothing below crates is changed: break the rule by hand first")
    path = PATCHES / f"{rule}.patch"
    if path.exists():
        heading = path.read_text(encoding="utf-8").split("--- a/", 1)[0]
    else:
        about = [name for name, one in rules_of_scenarios().items() if one == rule]
        if not about:
            raise MutantsError(f"no scenario of golden/scenarios is about the rule {rule}")
        heading = f"Rule: {rule}\nHolds: .\nSource: \nScenarios: {' '.join(about)}\n\n"
    path.write_text(heading + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def copied_sources() -> dict[str, str]:
    """The files of the copy and their text."""
    found = {}
    for name in _SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".rs", ".toml", ".txt"):
                found[str(file.relative_to(ROOT))] = file.read_text(encoding="utf-8")
    twin = (ROOT / _TWIN / "Cargo.toml").read_text(encoding="utf-8")
    # The one program of the other tests is not there.
    others = '[test]]\nname = "twin"\n'
    found[f"{_TWIN}/Cargo.toml"] = _without(twin, "dev-dependencies", "[bench", others)
    workspace = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    members = '["crates/pgheadroom-layout", "crates/pgheadroom-twin"]'
    workspace = re.sub(r"members = \[[^]]*\]", f"members = {members}", workspace, count=1)
    found["Cargo.toml"] = _with_settings(workspace)
    return found


def _with_settings(workspace: str) -> str:
    """The two crates as they are compiled for this, instead of what the manifest says of them."""
    heading = f"[profile.{_PROFILE}.package]\n"
    before, found, packages = workspace.partition(heading)
    if not found:
        raise MutantsError(f"Cargo.toml has no table {heading.strip()}, in which crates are named")
    others = re.sub(r"(?m)^pgheadroom-(?:layout|twin) = \{.*\}\n", "", packages)
    return before + heading + _SETTINGS + others


def _without(manifest: str, *tables: str) -> str:
    parts = re.split(r"(?m)^(?=\[)", manifest)
    return "".join(part for part in parts if not part[1:].startswith(tables))


def _make_equal(sources: dict[str, str]) -> None:
    """Write what differs from the sources and remove the rest: cargo looks at times."""
    for path in (TREE / "crates").rglob("*"):
        if path.is_file() and str(path.relative_to(TREE)) not in sources:
            path.unlink()
    for name, text in sources.items():
        path = TREE / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    lock = TREE / "Cargo.lock"
    # Cargo takes out what the copy does not need; the versions stay.
    if not lock.exists() or lock.stat().st_mtime < (ROOT / "Cargo.lock").stat().st_mtime:
        shutil.copyfile(ROOT / "Cargo.lock", lock)
    golden = TREE / "golden"
    if not golden.is_symlink():
        golden.symlink_to(ROOT / "golden")


def _build() -> Path | str:
    """The test's program, or the compiler's complaint."""
    command = ["cargo", "test", "--offline", "--quiet", "--profile", _PROFILE, "--no-run"]
    command += ["--package", "pgheadroom-twin", "--test", "golden_scenarios"]
    command += ["--target-dir", str(ROOT / "target")]
    command += ["--message-format", "json-render-diagnostics"]
    environment = {**os.environ, "CARGO_INCREMENTAL": "1"}
    done = subprocess.run(
        command, cwd=TREE, env=environment, capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            return Path(message["executable"])
    return done.stderr


def _agrees(program: Path, scenario: str) -> bool:
    """Whether a scenario, played alone, agrees with the servers."""
    environment = {**os.environ, "SCENARIO": scenario, "RUST_BACKTRACE": "0"}
    with subprocess.Popen(
        [str(program)],
        cwd=TREE / _TWIN,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as playing:
        resource.prlimit(playing.pid, resource.RLIMIT_CPU, (_SECONDS_MAX, _SECONDS_MAX))
        return playing.wait() == 0


def _verdict(mutant: Mutant | None, scenarios: tuple[str, ...], sources: dict[str, str]) -> str:
    """`killed`, or what is wrong; without a mutant the source itself."""
    _make_equal(sources)
    if mutant is not None:
        apply(mutant, TREE)
        if all((TREE / name).read_text(encoding="utf-8") == text for name, text in sources.items()):
            return "changes nothing"
    program = _build()
    if isinstance(program, str):
        return f"does not compile:\n{program.rstrip()}"
    alive = [scenario for scenario in scenarios if _agrees(program, scenario)]
    if mutant is None:
        failed = [scenario for scenario in scenarios if scenario not in alive]
        return f"fails without a mutant: {', '.join(failed)}" if failed else "agrees"
    return f"survived {', '.join(alive)}" if alive else "killed"


def run(wanted: list[Mutant]) -> bool:
    """
    Build and play mutants whose patch or whose sources are new; print a line each and a table.

    Returns:
        Whether all were killed.

    Raises:
        MutantsError: A patch does not apply, or the source itself does not agree.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX_BYTES, _MEMORY_MAX_BYTES))
    for mutant in wanted:
        apply(mutant, ROOT, check=True)
    sources = copied_sources()
    digest = hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
    known: dict[str, dict[str, str]] = {}
    if RESULTS.exists():
        known = json.loads(RESULTS.read_text(encoding="utf-8"))
    keys = {
        mutant.rule: hashlib.sha256((digest + mutant.patch()).encode()).hexdigest()
        for mutant in wanted
    }
    todo = [one for one in wanted if known.get(one.rule, {}).get("key") != keys[one.rule]]
    begun = time.monotonic()
    if todo:
        scenarios = tuple(sorted({name for mutant in todo for name in mutant.scenarios}))
        whole = _verdict(None, scenarios, sources)
        if whole != "agrees":
            raise MutantsError(f"the source without a mutant {whole}")
        print(f"without a mutant {len(scenarios)} scenarios agree ({_since(begun)})", flush=True)
    for number, mutant in enumerate(todo, 1):
        before = time.monotonic()
        verdict = _verdict(mutant, mutant.scenarios, sources)
        known[mutant.rule] = {"key": keys[mutant.rule], "verdict": verdict}
        partial = RESULTS.with_suffix(".new")
        partial.write_text(json.dumps(known, indent=1), encoding="utf-8")
        partial.replace(RESULTS)
        print(f"[{number}/{len(todo)}] {mutant.rule}: {verdict} ({_since(before)})", flush=True)
    if todo:
        _make_equal(sources)
    return _table(wanted, known, f"{len(todo)} played in {_since(begun)}")


def _table(wanted: list[Mutant], known: dict[str, dict[str, str]], played: str) -> bool:
    width = max((len(mutant.rule) for mutant in wanted), default=0)
    if len(wanted) > 3:
        print()
        for mutant in wanted:
            verdict = known[mutant.rule]["verdict"].splitlines()[0]
            by = f" by {', '.join(mutant.scenarios)}" if verdict == "killed" else ""
            print(f"{mutant.rule:{width}}  {verdict}{by}")
    left = [one.rule for one in wanted if known[one.rule]["verdict"] != "killed"]
    print(f"{len(wanted) - len(left)} of {len(wanted)} mutants killed; {played}")
    for rule in left:
        print(f"{rule}: {known[rule]['verdict']}", file=sys.stderr)
    return not left


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


def main() -> int:
    """The command line; 1 if a mutant survived or something is wrong with one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="build and play mutants; all without names")
    running.add_argument("rules", nargs="*", metavar="RULE")
    recording = commands.add_parser("record", help="write a rule's patch from the working tree")
    recording.add_argument("rule", metavar="RULE")
    asked = parser.parse_args()
    try:
        if asked.command == "record":
            print(f"{record(asked.rule).relative_to(ROOT)}: complete its heading")
            return 0
        every = mutants()
        missing = set(asked.rules) - {mutant.rule for mutant in every}
        if missing:
            raise MutantsError(f"no mutant {', '.join(sorted(missing))} in tests/mutants")
        wanted = [one for one in every if not asked.rules or one.rule in asked.rules]
        return 0 if run(wanted) else 1
    except MutantsError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
