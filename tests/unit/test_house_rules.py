"""Rules of the house that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest
from syntax import tree_of

import pgheadroom
from pgheadroom import errors
from pgheadroom.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("python", "tests", "crates")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".pyi", ".rs") and "target" not in path.parts
]

EXIT_CODES = {
    errors.InputError: 2,
    errors.SourceError: 3,
    errors.LabError: 4,
    errors.TwinError: 5,
}


def _subclasses(kind: type[errors.HeadroomError]) -> list[type[errors.HeadroomError]]:
    return [kind, *(deep for direct in kind.__subclasses__() for deep in _subclasses(direct))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_readable(path: Path) -> None:
    """At 600 lines a file has a second subject; lines end at 100 characters."""
    lines = path.read_text(encoding="utf-8").splitlines()
    # The core is one module, and a module has one stub, whatever it binds.
    lines_max = 1200 if path.suffix == ".pyi" else 600
    assert len(lines) <= lines_max, "look for the second subject"
    assert [number for number, line in enumerate(lines, 1) if len(line) > 100] == []


def test_a_name_is_one_type() -> None:
    """Forty names were two classes each, and thirty of types meant two things by module."""
    homes: dict[str, list[str]] = {}
    for path in sorted((ROOT / "python").rglob("*.py")):
        for node in tree_of(path).body:
            for name in _names_of_types(node):
                homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(homes) > 500
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def _names_of_types(node: ast.stmt) -> list[str]:
    """Public ones: a class, or what is said to stand for a type, as in `Value = float | None`."""
    if isinstance(node, ast.ClassDef):
        names = [node.name]
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        names = [name for name in names if name[0].isupper() and not name.isupper()]
    else:
        return []
    return [name for name in names if not name.startswith("_")]


def test_functions_stay_readable() -> None:
    """Of 80 lines at most, from their first line on: a command's options stand above it."""
    long = [
        f"{path.relative_to(ROOT)}: {function.name} has {lines} lines"
        for path in sorted((ROOT / "python").rglob("*.py"))
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > 80
    ]
    assert long == []


OPTIONS_BY_RIGHT = {
    "play/gates.py": "the shell's own test of a file",
    "errors.py": "puts the option in its parameter's place",
    "lab/base/accounts_trial.py": "pgbench's",
    "lab/base/accounts_windows.py": "pgbench's",
    "lab/driver.py": "pgbench's",
    "lab/experiments/commit_cost/experiment.py": "pgbench's",
    "lab/experiments/custom/load.py": "pgbench's and psql's",
    "lab/experiments/custom/measure.py": "pgbench's",
    "lab/experiments/fillfactor/experiment.py": "pgbench's",
    "lab/experiments/insert_rate/measure.py": "pgbench's",
    "lab/experiments/insert_rate/script.py": "pgbench's",
    "lab/experiments/load_methods/script.py": "pgbench's",
    "lab/experiments/tprocc/measure.py": "pgbench's",
    "lab/experiments/tprocc/run.py": "pgbench's",
    "lab/experiments/tprocc/summary.py": "a note in the record, repeated by its command line",
    "lab/guards.py": "a note in the record, repeated by its command line",
    "lab/merge.py": "a note in the record, repeated by its command line",
    "lab/wal_images.py": "pg_waldump's",
    "report": "shows commands to type, and the colours of a page are CSS variables",
    "doctor/planning.py": "notes of a plan, which a person has asked for there",
    "doctor/remedy_steps.py": "notes of a plan, as well",
    "doctor/standbys.py": "notes of a plan, as well",
    "plan/remedy_statements.py": "what to type after a step that was stopped",
    "plan/reading.py": "names the command that writes such a file",
    "plan/statements.py": "commands of pg_repack",
    "plan/text.py": "commands to type after a plan",
    "extension/building.py": "pg_config's",
    "play/clients.py": "pgbench's",
    "play/run.py": "pgbench's",
    "play/wal_source.py": "pg_waldump's",
    "play/waldump.py": "pg_waldump's",
    "schedule/scheduler.py": "dask's",
    "servers/borrowed.py": "df's",
    "servers/cluster.py": "the server's",
    "servers/disk.py": "cp's",
    "servers/programs.py": "pg_config's and the server programs'",
    "servers/restore.py": "cp's",
    "servers/run_folder.py": "df's",
    "servers/templates.py": "initdb's",
    "servers/user.py": "useradd's",
    "settings": "a fragment says what was given, and which option would tell more",
    "sources/recording.py": "names the command whose script writes such a file",
    "sources/script.py": "that script's own heading",
}
"""Where texts name options of command lines, and why."""

WRITERS = {
    "observe": "an observed profile",
    "observe --print-sql": "the script whose files are read",
    "advise --plan": "a plan",
    "apply": "the record of what a plan has done",
    "lab run": "a record folder",
    "lab report": "a record's result.json",
}
"""Commands that an error may name, by the kind of file that they write."""


def test_the_library_speaks_of_parameters() -> None:
    """`ph.predict` has no --sample-pages: errors carry names, and the command line its options."""
    base = ROOT / "python" / "pgheadroom"
    found: dict[str, list[str]] = {}
    for path in sorted(base.rglob("*.py")):
        name = path.relative_to(base)
        texts = [*_texts(tree_of(path))]
        if name.parts[0] != "cli" and any(_OPTION.search(text) for text in texts):
            by_right = name.as_posix() if name.as_posix() in OPTIONS_BY_RIGHT else name.parts[0]
            found.setdefault(by_right, []).append(name.as_posix())
    assert {name: paths for name, paths in found.items() if name not in OPTIONS_BY_RIGHT} == {}
    assert set(OPTIONS_BY_RIGHT) == set(found), "one that is no longer needed"


def test_errors_of_the_library_name_no_command() -> None:
    """
    But one: that which writes a kind of file, in full and in backquotes.

    Such a file comes from the command line wherever it is read, and `pgheadroom lab run` says more
    than a description. What is asked for by a parameter is a ParameterError; the stages that are
    functions of the package too go by their name (`predict`), as parameters that are mentioned.
    """
    base = ROOT / "python" / "pgheadroom"
    called = "|".join(COMMANDS)
    spoken = rf"(`|\b(?=pgheadroom ))(pgheadroom )?((?:{called})(?=[ `]|$)[^`]*)"
    stages = {name for name in pgheadroom.__all__ if name in COMMANDS}
    found = []
    for path in sorted(base.rglob("*.py")):
        if path.relative_to(base).parts[0] == "cli":
            continue
        for raised in ast.walk(tree_of(path)):
            if not isinstance(raised, ast.Raise):
                continue
            texts = [n.value for n in ast.walk(raised) if _is_text(n)]
            for quote, ours, named in re.findall(spoken, "".join(texts)):
                by_right = named in WRITERS if ours else named in stages or named in texts
                if not (quote and by_right):
                    found.append(f"{path.relative_to(base)}:{raised.lineno}: {named}")
    assert found == []


def test_the_command_line_has_one_way_out() -> None:
    """What is printed or becomes a file goes through `cli/output`, which checks and shows it."""
    folder = ROOT / "python" / "pgheadroom" / "cli"
    ways = ("write_atomically", "sys.stdout.write")
    found = [
        f"{path.name}: {way}"
        for path in sorted(folder.glob("*.py"))
        for way in ways
        if path.name != "output.py" and way in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_percentages_have_one_spelling() -> None:
    """`38 %`, by `units.percent`: Python's own format has no room in front of the sign."""
    own = re.compile(r"\.(\d|\{\w+\})%\}|\}%")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "python" / "pgheadroom").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if own.search(line)
    ]
    assert found == []


NAMED_ONCE = {"Access", "Options", "Outcome", "Place", "Sample", "Table", "Verdict"}
"""Kinds that there were several of, each of which had to be told from the others."""


def test_kinds_and_functions_are_named_for_what_they_are() -> None:
    """One kind has such a name, or none; `show` and `_plain` say of no function what it does."""
    homes: dict[str, list[str]] = {}
    for path in sorted((ROOT / "python" / "pgheadroom").rglob("*.py")):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                homes.setdefault(node.name, []).append(path.name)
            elif isinstance(node, ast.Assign) and "Literal[" in ast.unparse(node.value):
                homes.setdefault(ast.unparse(node.targets[0]), []).append(path.name)
    assert {name: homes[name] for name in NAMED_ONCE & set(homes) if len(homes[name]) > 1} == {}
    assert {"show", "_plain"} & set(homes) == set()


def test_what_an_error_mentions_stands_in_its_message() -> None:
    """In backquotes, else the command line would not find what to put its option for."""
    missing = []
    for path in sorted((ROOT / "python").rglob("*.py")):
        for call in ast.walk(tree_of(path)):
            if not isinstance(call, ast.Call):
                continue
            mentions = [k.value for k in call.keywords if k.arg == "mentions"]
            named = [n.value for n in (m for v in mentions for m in ast.walk(v)) if _is_text(n)]
            said = "".join(n.value for a in call.args for n in ast.walk(a) if _is_text(n))
            missing += [(path.name, n) for n in named if "=" not in n and f"`{n}`" not in said]
    assert missing == []


def test_a_factor_at_a_level_is_what_set_takes() -> None:
    """A program has factors; the command line has `--set`."""
    error = errors.InputError(
        "take `io=cached` or another `scale`", mentions=("io=cached", "scale")
    )
    assert error.as_option() == "take --set io=cached or another --scale"
    assert str(error) == "take `io=cached` or another `scale`"


_OPTION = re.compile(r"--[a-z]|(?<![\w-])-[a-zA-Z]\b")


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Texts of a module that are no docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


@pytest.mark.parametrize("base", EXIT_CODES, ids=lambda kind: kind.__name__)
def test_every_error_keeps_its_familys_exit_code(base: type[errors.HeadroomError]) -> None:
    """Scripts branch on the code: 2 input, 3 source, 4 lab, 5 twin."""
    assert {kind.exit_code for kind in _subclasses(base)} == {EXIT_CODES[base]}


def test_every_error_has_a_family() -> None:
    """Nothing derives from the root directly but the four families."""
    assert set(errors.HeadroomError.__subclasses__()) == set(EXIT_CODES)


def test_decision_records_have_unique_numbers() -> None:
    """Two records with one number cannot be referred to."""
    numbers = [path.name[:4] for path in (ROOT / "docs" / "adr").glob("*.md")]
    assert all(re.fullmatch(r"\d{4}", number) for number in numbers)
    assert len(set(numbers)) == len(numbers)


def test_changelog_fragments_are_named_by_kind() -> None:
    """The changelog is put together from them."""
    for path in (ROOT / "changelog.d").glob("*"):
        if path.name != "README.md":
            assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|accuracy)\.md", path.name)


def test_architecture_page_names_every_part_that_exists() -> None:
    """The page is true: what stands in the package stands on it."""
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {
        path.name.removesuffix(".py")
        for path in (ROOT / "python" / "pgheadroom").iterdir()
        if not path.name.startswith("_") and path.suffix in ("", ".py")
    }
    crates = {path.name for path in (ROOT / "crates").iterdir()}
    missing = {name for name in parts | crates if f"`{name}" not in page}
    assert missing == set()


def test_lock_files_carry_no_address_of_a_mirror() -> None:
    """Cargo.lock has its default index and nothing else; requirements have no address at all."""
    locks = (ROOT / "Cargo.lock", ROOT / "fuzz" / "Cargo.lock")
    cargo = "".join(path.read_text(encoding="utf-8") for path in locks)
    allowed = 'source = "registry+https://github.com/rust-lang/crates.io-index"'
    assert {line for line in cargo.splitlines() if "http" in line} <= {allowed}
    assert "://" not in (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_versions_agree() -> None:
    """The package, the core and the workspace are one release."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "([^"]+)"', manifest, re.MULTILINE)
    assert version is not None
    assert pgheadroom.__version__ == version[1]


def test_help_does_not_load_the_heavy_libraries() -> None:
    """A command line that takes seconds to say --help is not used."""
    code = (
        "import sys, pgheadroom.cli.app\n"
        "print(sorted({'altair', 'vl_convert', 'scipy.stats'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_two_files_of_tests_have_one_name() -> None:
    """They are collected as modules of one name space: the second of a name is an error."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
