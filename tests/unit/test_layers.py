"""The architecture: who may import whom, in Python and in Rust."""

from __future__ import annotations

import ast
import graphlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from syntax import tree_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pgheadroom"

# Each part may import from the steps before its own; parts on one step not from each other.
STEPS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    (
        "units",
        "quoting",
        "defaults",
        "files",
        "folding",
        "forms",
        "redaction",
        "input_file",
        "object_storage",
        "on_demand",
        "ranges",
    ),
    ("types", "_core"),
    ("stats", "schedule", "outcome", "page_life", "progress", "tabular"),
    ("servers", "sources", "fleet"),
    ("profile", "history", "extension"),
    ("layout", "observe", "play"),
    ("predict", "bloat"),
    ("accuracy", "order"),
    ("prove", "lab", "wal"),
    ("advise", "settings"),
    ("plan", "migration"),
    ("doctor", "verify"),
    ("watch", "clustering"),
    ("report",),
    ("results",),
    ("api",),
    ("agents",),
    ("cli",),
)
STEP_OF = {part: number for number, parts in enumerate(STEPS) for part in parts}

CRATES: dict[str, set[str]] = {
    "pgheadroom-crc32c": set(),
    "pgheadroom-layout": set(),
    "pgheadroom-models": {"pgheadroom-layout", "pgheadroom-twin"},
    "pgheadroom-serverlog": set(),
    "pgheadroom-sql": set(),
    "pgheadroom-twin": {"pgheadroom-layout"},
    "pgheadroom-walread": {"pgheadroom-crc32c", "pgheadroom-layout"},
    "pgheadroom-python": {
        "pgheadroom-layout",
        "pgheadroom-models",
        "pgheadroom-serverlog",
        "pgheadroom-sql",
        "pgheadroom-twin",
        "pgheadroom-walread",
    },
}


def _part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(tree: ast.Module) -> set[str]:
    """Parts of ours that a module imports, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            names = (
                [f"{module}.{alias.name}" for alias in node.names]
                if module == "pgheadroom"
                else [module]
            )
        else:
            continue
        found.update(
            name.split(".")[1] for name in names if name.startswith("pgheadroom.") and "." in name
        )
    return found - {"__version__"}


def _violations(part: str, imported: set[str]) -> list[str]:
    return [
        other for other in imported if other != part and STEP_OF.get(other, 99) >= STEP_OF[part]
    ]


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_go_to_the_left(path: Path) -> None:
    """Data flow one way: a module imports only from steps before its own."""
    part = _part(path)
    if part in ("__init__", "__main__"):
        return
    assert part in STEP_OF, f"{part} has no place in the layers yet"
    found = _imports(tree_of(path))
    assert _violations(part, found) == []


def test_the_check_itself_finds_a_violation() -> None:
    """A test of layers that sees nothing would pass for ever."""
    tree = ast.parse("from pgheadroom.report import text\nimport pgheadroom.stats\n")
    assert _violations("lab", _imports(tree)) == ["report"]


DOORS = {"pgheadroom", "pgheadroom.cli"}
"""They load what they open when it is asked for; what is behind knows a name or two of theirs."""


def _circle(sources: Mapping[str, str]) -> list[str]:
    """Modules that know each other, by their sources; also where only annotations need them."""
    graph: dict[str, set[str]] = {}
    for name, source in sources.items():
        known = graph.setdefault(name, set())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                known.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                known.update(one if one in sources else str(node.module) for one in whole)
        known -= {name, *(known - sources.keys())}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [str(one) for one in error.args[1]]
    return []


def test_no_modules_know_each_other() -> None:
    """A cluster knew its host, which made it: neither could be read without the other."""
    names = {
        path: ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in PACKAGE.rglob("*.py")
    }
    sources = {
        name.removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for path, name in names.items()
    }
    assert _circle({name: text for name, text in sources.items() if name not in DOORS}) == []
    two = {"a": "if TYPE_CHECKING:\n    from b import x", "b": "import c", "c": "import a"}
    assert set(_circle(two)) == {"a", "b", "c"}


def test_crates_depend_in_one_direction() -> None:
    """The crates stand as layout <- twin, walread <- python; the layout knows nobody."""
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        form = tomllib.loads(manifest.read_text(encoding="utf-8"))
        name = form["package"]["name"]
        ours = {other for other in form.get("dependencies", {}) if other.startswith("pgheadroom-")}
        assert ours <= CRATES[name], f"{name} depends on {ours - CRATES[name]}"


def test_only_one_crate_knows_python() -> None:
    """PyO3 types inside the algorithms would end their independence."""
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        form = tomllib.loads(manifest.read_text(encoding="utf-8"))
        if form["package"]["name"] != "pgheadroom-python":
            assert "pyo3" not in form.get("dependencies", {})


REPORT = PACKAGE / "report"
ROOMS = {path.name for path in REPORT.iterdir() if (path / "__init__.py").exists()}
KERNEL = ("table.py", "text.py", "columns.py", "charts.py", "html_tables.py")


def _rooms_imported(path: Path) -> set[str]:
    """Rooms of the report that a module imports from, wherever the statement stands."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pgheadroom.report"):
            names = [f"{node.module}.{alias.name}".split(".")[2] for alias in node.names]
            found |= set(names) & ROOMS
    return found


COMPUTES = {"statistics", "numpy", "scipy", "random"}
"""What a result is made with; a report that needs it makes one of its own."""


def test_the_report_makes_no_figures() -> None:
    """What it shows stands in the result, or is a property of it: other readers want it as well."""
    for path in REPORT.rglob("*.py"):
        tree = tree_of(path)
        found = {
            name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)]
        }
        assert not found & COMPUTES, path
        assert not _imports(tree) & {"stats", "play", "servers", "sources"}, path


def test_rooms_of_the_report_stand_alone() -> None:
    """Each is over the kernel, none knows another, and the kernel knows none."""
    assert {"advice", "experiment", "page_life", "proof", "wal"} <= ROOMS
    for room in ROOMS:
        for path in (REPORT / room).glob("*.py"):
            assert _rooms_imported(path) <= {room}, path
    for name in KERNEL:
        assert _rooms_imported(REPORT / name) == set(), name
    assert _rooms_imported(REPORT / "views.py"), "the door to the rooms"


def test_the_report_reads_values_and_no_keys() -> None:
    """A name that is none is then mypy's to find; what a cell holds is under the result's names."""
    asked = {
        node.args[0].value
        for room in ("proof", "experiment")
        for path in (REPORT / room).glob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and isinstance(node.args[0], ast.Constant)
    }
    assert asked == {"repetitions", "twin.approximations"}


def test_progress_has_one_home() -> None:
    """`Say` stood in two modules, and three more forms of it in signatures."""
    forms = ("Callable[[str], None]", "Callable[[int, int], None]", "Callable[[int, int, str]")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(form in path.read_text(encoding="utf-8") for form in forms)
    }
    assert found == {"progress.py"}


def _modules_known(name: str, source: str, modules: set[str]) -> set[str]:
    """
    The modules of a crate that a Rust file names from its root, or its parent, on.

    Args:
        name: The file's own module, such as `page::packed`.
        source: The file's text; its tests, which come last, do not count.
        modules: Paths of the crate's modules.
    """
    text = re.sub(r"//.*", "", source).split("#[cfg(test)]", 1)[0]
    parent = "::".join(("crate", *name.split("::")[:-1]))
    text = re.sub(r"\bsuper::(?!\*)", f"{parent}::", text)
    named = [
        path for use in re.findall(r"\buse (crate::[^;]+);", text) for path in _spelled_out(use)
    ]
    named += re.findall(r"\bcrate::[a-z_:]+", text)
    known = set()
    for path in named:
        parts = path.split(" as ", 1)[0].strip(": \n").split("::")[1:]
        prefixes = ["::".join(parts[:count]) for count in range(len(parts), 0, -1)]
        known.update(next(([one] for one in prefixes if one in modules), []))
    return known


def _spelled_out(use: str) -> list[str]:
    """`a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`."""
    inner = re.search(r"\{([^{}]*)\}", use)
    if inner is None:
        return ["".join(use.split())]
    before, after = use[: inner.start()], use[inner.end() :]
    return [
        path
        for one in inner.group(1).split(",")
        if one.strip()
        for path in _spelled_out(f"{before}{one.strip()}{after}")
    ]


def _rust_circle(sources: Mapping[str, str]) -> list[str]:
    """Modules of a crate that know each other, by their sources."""
    names = set(sources)
    graph = {one: _modules_known(one, text, names) - {one} for one, text in sources.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [str(one) for one in error.args[1]]
    return []


def _rust_modules(crate: Path) -> dict[str, str]:
    """A crate's modules and their texts; `lib.rs`, which names them all, left out."""
    found = {}
    for path in (crate / "src").rglob("*.rs"):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        name = "::".join(parts[:-1] if parts[-1] == "mod" else parts)
        if name != "lib":
            found[name] = path.read_text(encoding="utf-8")
    return found


def test_no_modules_of_a_crate_know_each_other() -> None:
    """A heap knew VACUUM, which knew heaps; a page knew what was said about pages."""
    for crate in sorted((ROOT / "crates").iterdir()):
        assert _rust_circle(_rust_modules(crate)) == [], crate.name
    known = {"a": "use crate::b::{self, d::E};", "b::c": "fn f(x: crate::a::X) {}", "b": ""}
    assert _rust_circle(known) == []
    assert set(_rust_circle(known | {"b::d": "use super::c::F;"})) == {"a", "b::c", "b::d"}


def test_every_test_of_the_twin_is_in_its_program() -> None:
    """Cargo looks for none by itself there, so a file that nobody names would not be tested."""
    folder = ROOT / "crates" / "pgheadroom-twin" / "tests"
    named = set(re.findall(r"(?m)^mod (\w+);", (folder / "twin.rs").read_text(encoding="utf-8")))
    apart = {"twin", "golden_scenarios", "scenarios"}
    assert {path.stem for path in folder.glob("*.rs")} - apart <= named
