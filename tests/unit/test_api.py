"""
The door for programs: what `import pgheadroom as ph` gives, and in which form.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pgheadroom as ph
from pgheadroom.errors import ConnectionMisread, InputError, ParameterError
from pgheadroom.outcome import KEYS
from pgheadroom.profile import parse_profile
from pgheadroom.tabular import Tabular, columns, even
from pgheadroom.types import Interval

ROOT = Path(__file__).parents[2]
HEARTBEAT = ROOT / "examples" / "heartbeat.toml"
LEDGER = ROOT / "tests" / "unit" / "observed" / "ledger.json"
FUNCTIONS = (
    "advise",
    "doctor",
    "doctor_plan",
    "evaluate",
    "layout",
    "observe",
    "predict",
    "prove",
    "read_profile",
    "read_wal",
)


def _python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_nothing() -> None:
    """A program pays for what it calls."""
    code = "import sys, pgheadroom; print([n for n in sys.modules if n.startswith('pgheadroom.')])"
    assert _python(code) == "[]"


def test_type_checkers_know_every_function() -> None:
    """What `__getattr__` alone gives is `object` to mypy: each function is imported for it too."""
    tree = ast.parse(Path(str(ph.__file__)).read_text())
    (checked,) = (
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node)
    )
    imports = (node for node in checked.body if isinstance(node, ast.ImportFrom))
    known = {name.asname or name.name for node in imports for name in node.names}
    assert known == set(FUNCTIONS) == set(ph.__all__) - {"__version__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_annotations_are_there_at_runtime(name: str) -> None:
    """Programs that read hints found names of type checking: `Prediction` was not defined."""
    hints = typing.get_type_hints(getattr(ph, name))
    homes = {"advise": "Advice", "layout": "Layout", "prove": "Proof", "predict": "Prediction"}
    homes |= {"doctor": "Diagnosis", "doctor_plan": "DoctorPlan"}
    expected = homes.get(name, "WalStats" if name == "read_wal" else "Profile")
    assert hints["return"].__name__ == expected
    assert all(not isinstance(hint, str) for hint in hints.values())


def test_a_profile_is_read_without_the_rest() -> None:
    """`ph.read_profile` loads neither numpy nor the parts of the other functions."""
    code = (
        "import sys, pgheadroom as ph\n"
        f"ph.read_profile({str(HEARTBEAT)!r})\n"
        "others = ['advise', 'doctor', 'lab', 'layout', 'observe', 'predict', 'prove']\n"
        "others += ['sources', 'wal']\n"
        "heavy = {'numpy', 'psycopg', 'scipy', *(f'pgheadroom.{name}' for name in others)}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert _python(code) == "[]"


@pytest.mark.parametrize("first", ["pgheadroom.cli.app", "pgheadroom.predict.cells"])
def test_functions_go_before_parts_of_their_name(first: str) -> None:
    """`ph.predict` is the function, whether or not the part was imported before or is after."""
    code = (
        f"import {first}, pgheadroom as ph\n"
        f"found = {{name: getattr(ph, name) for name in {FUNCTIONS}}}\n"
        "import pgheadroom.observe.build, pgheadroom.advise.guard as guard\n"
        "from pgheadroom.predict import Timing\n"
        "assert guard.__name__ == 'pgheadroom.advise.guard'\n"
        "print(all(callable(f) and getattr(ph, name) is f for name, f in found.items()))"
    )
    assert _python(code) == "True"


def test_what_there_is_not() -> None:
    """A misspelled name is an AttributeError, as of every module."""
    with pytest.raises(AttributeError, match="predikt"):
        _ = ph.predikt  # type: ignore[attr-defined]
    assert set(FUNCTIONS) < set(dir(ph))


def test_a_curve_as_rows() -> None:
    """One row a fillfactor and table; the whole under None; the file's own names and numbers."""
    told: list[str] = []
    found = ph.predict(HEARTBEAT, range(90, 101, 5), progress=lambda *step: told.append(step[2]))
    rows = found.rows()
    assert [row["fillfactor"] for row in rows if row["table"] is None] == [90, 95, 100]
    assert set(rows[0]) >= {"fillfactor", "variant", "table", *KEYS}
    for cell, row in zip(
        found.to_json()["cells"], (row for row in rows if row["table"] is None), strict=True
    ):
        assert [cell["predicted"][key] for key in KEYS] == [row[key] for key in KEYS]
    assert set(told) <= {"twin"}
    assert found == ph.predict(ph.read_profile(HEARTBEAT), [90, 95, 100])


def test_each_table_has_its_own_fillfactor_in_its_row() -> None:
    """Where one is varied others keep theirs; all together then have none that they share."""
    varied = ph.predict(ROOT / "examples" / "orders.toml", 90, table="orders")
    found = {row["table"]: row["fillfactor"] for row in varied.rows()}
    assert found == {None: None, "users": 100, "orders": 90, "lines": 100}


def test_one_cell_and_one_level() -> None:
    """A number is one cell at it; nothing is one at the profile's own."""
    (cell,) = ph.predict(HEARTBEAT, 80).cells
    assert cell.fillfactor == 80
    assert len(ph.predict(HEARTBEAT).cells) == 1


def test_a_layout() -> None:
    """A row a column, of the profile or its file alike."""
    found = ph.layout(HEARTBEAT)
    assert found == ph.layout(ph.read_profile(HEARTBEAT)) == ph.layout(str(HEARTBEAT))
    (table,) = found.tables
    assert [row["name"] for row in found.rows()] == [column.name for column in table.columns]
    assert found.to_json()["tables"][0]["tuple_bytes"] == table.tuple_bytes


def test_an_advice_as_rows() -> None:
    """One row a table, with the verdict; a name alone is one table and not its letters."""
    profile = ph.read_profile(LEDGER)
    name = profile.tables[0].name
    found = ph.advise(profile, tables=name, budget_s=0.001)
    (row,) = found.rows()
    assert (row["table"], row["verdict"]) == (name, found.tables[0].verdict)


def test_a_profile_is_a_result() -> None:
    """Its file's form, a row a table and the table of a notebook, as every result has them."""
    found = ph.read_profile(LEDGER)
    assert parse_profile(json.loads(json.dumps(found.to_json()))) == found
    rows = found.rows()
    assert [row["table"] for row in rows] == [table.name for table in found.tables]
    assert sum(row["operations"] for row in rows) == len(found.workload.operations)
    assert rows[0]["rows"] == found.tables[0].rows
    assert f"<td>{rows[1]['table']}</td>" in found._repr_html_()
    assert found.summary() == "Profile for PostgreSQL 18.4: 2 tables, operations of its own"


def test_a_profile_of_pgbench_as_rows() -> None:
    """Its tables are pgbench's, as long as its scale makes them."""
    found = ph.read_profile(ROOT / "examples" / "pgbench.toml")
    assert [tuple(row.values())[:3] for row in found.rows()] == [
        ("pgbench_accounts", 100_000, 90),
        ("pgbench_branches", 1, 100),
        ("pgbench_tellers", 10, 100),
        ("pgbench_history", 0, 100),
    ]
    assert found.summary().endswith("4 tables, pgbench's tpcb-like at scale 1")


@pytest.mark.parametrize(
    ("call", "parameter", "said"),
    [
        (lambda: ph.predict(HEARTBEAT, 5), "fillfactor", "5"),
        (lambda: ph.predict(HEARTBEAT, [90, 90]), "fillfactor", "twice"),
        (lambda: ph.predict(HEARTBEAT, 90, table="nobody"), "table", "nobody"),
        (lambda: ph.predict(HEARTBEAT, tps=-1.0), "tps", "above 0"),
        (lambda: ph.predict(HEARTBEAT, 90, seeds=0), "seeds", "at least 2"),
        (lambda: ph.predict(HEARTBEAT, sample_pages=0), "sample_pages", "at least 1"),
        (lambda: ph.layout(HEARTBEAT, table="nobody"), "table", "nobody"),
        (lambda: ph.advise(LEDGER, goal="speed"), "goal", "balanced"),
        (lambda: ph.advise(LEDGER, prices={"gold": 1.0}), "price", "wal_gb"),
        (lambda: ph.advise(LEDGER, tables=["nobody"]), "table", "nobody"),
        (lambda: ph.observe("host=localhost", seconds=0), "seconds", "expected"),
        (lambda: ph.doctor("host=localhost", seconds=0), "seconds", "more than 0"),
        (lambda: ph.doctor_plan("host=localhost", seconds=0), "seconds", "more than 0"),
        (lambda: ph.doctor_plan("host=localhost", rewrite="cluster"), "rewrite", "cluster"),
        (lambda: ph.prove(HEARTBEAT, server="one"), "server", "one"),
    ],
)
def test_errors_name_the_parameter(call: Any, parameter: str, said: str) -> None:
    """And no option of the command line, which names its own."""
    with pytest.raises(ParameterError, match=said) as caught:
        call()
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(parameter)
    assert "--" not in str(caught.value)
    assert caught.value.as_option().startswith(f"--{parameter.replace('_', '-')}")


class _Numbers(Tabular):
    __slots__ = ("_rows",)

    def __init__(self, *values: object) -> None:
        self._rows = even([{"name": f"<{n}>", **columns("x", v)} for n, v in enumerate(values)])

    def rows(self) -> list[dict[str, Any]]:
        return self._rows

    def summary(self) -> str:
        return "1 < 2"


def test_rows_have_the_same_names() -> None:
    """An exact value beside intervals is its own low and high; nothing known stays nothing."""
    rows = _Numbers(1, Interval(low=1, mid=2, high=4, level=0.9), None).rows()
    assert [list(row) for row in rows] == [["name", "x", "x_low", "x_high"]] * 3
    assert [(row["x_low"], row["x"], row["x_high"]) for row in rows] == [
        (1, 1, 1),
        (1, 2, 4),
        (None, None, None),
    ]
    assert [list(row) for row in _Numbers(1, 2).rows()] == [["name", "x"]] * 2


def test_a_notebook_shows_names_as_text() -> None:
    """A table's name is foreign: it is never markup."""
    shown = _Numbers(1, None)._repr_html_()
    assert "<td>&lt;0&gt;</td><td>1</td>" in shown
    assert "1 &lt; 2" in shown
    assert "and 3 rows more" in _Numbers(*range(63))._repr_html_()
    assert "<table>" in _Numbers()._repr_html_()


def test_frames_where_a_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars where pandas lacks; without both it says what to take instead."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match=r"rows\(\)"):
        _Numbers(1).to_frame()
    frame = SimpleNamespace(DataFrame=lambda rows: ("frame", rows))
    monkeypatch.setitem(sys.modules, "polars", frame)
    assert _Numbers(1).to_frame() == ("frame", [{"name": "<0>", "x": 1}])
    for library, said in (("pandas", "is not installed"), ("dask", "expected pandas or polars")):
        with pytest.raises(ParameterError, match=said) as caught:
            _Numbers(1).to_frame(library)
        assert caught.value.parameter == "library"


def test_what_is_no_connection_is_said_in_the_callers_words() -> None:
    """A program has one text for it, the command line options beside."""
    with pytest.raises(
        ConnectionMisread, match="expected an existing file, postgresql://"
    ) as caught:
        ph.observe("nonsense")
    assert "-" not in str(caught.value)
    assert caught.value.as_option().endswith(", or --host, --port, --username, --dbname")


def test_results_are_json() -> None:
    """What `to_json` gives is JSON as it stands."""
    for found in (ph.predict(HEARTBEAT), ph.layout(HEARTBEAT), ph.advise(LEDGER, budget_s=0.001)):
        assert json.loads(json.dumps(found.to_json()))["kind"] in (
            "prediction",
            "layout",
            "advice",
        )
