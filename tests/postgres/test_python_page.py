"""What `docs/python.md` and the examples in Python say, run as they stand."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observed
import pytest

from pgheadroom.servers import Cluster, Host, ServerPrograms

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("run_parent")


def test_the_page(newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block runs after those before it, and prints what stands below it."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) > 10
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        names: dict[str, Any] = {"conninfo": observed.conninfo(cluster)}
        printed = ""
        for kind, block in blocks:
            if kind == "text":
                assert printed == block
                printed = ""
                continue
            assert printed == "", "what it prints stands below"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, "docs/python.md", "exec"), names)
            printed = out.getvalue()


@contextlib.contextmanager
def _at_work(cluster: Cluster) -> Iterator[None]:
    """Up to a thousand updates a second of one table, for as long as it takes."""
    ended = threading.Event()

    def work() -> None:
        with cluster.connect(autocommit=True) as connection:
            for row in itertools.count():
                if ended.wait(0.001):
                    return
                key = row * 37 % 4900 + 1
                connection.execute("UPDATE jobs SET state = state WHERE id = %s", (key,))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_the_script(newest: ServerPrograms, tmp_path: Path) -> None:
    """In thirty lines it observes, predicts each fillfactor and plots what was predicted."""
    source = (ROOT / "examples" / "observe_predict_plot.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 30
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        page = tmp_path / "page.html"
        source = source.replace("seconds=10", "seconds=2")
        with _at_work(cluster):
            done = subprocess.run(
                [sys.executable, "-c", source, observed.conninfo(cluster), str(page)],
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
    assert done.returncode == 0, done.stderr
    foreseen = re.findall(r"^jobs\t(\d+)\t([01]\.\d+)\t", done.stdout, re.MULTILINE)
    assert [int(fillfactor) for fillfactor, _ in foreseen] == [*range(50, 101, 5)]
    plotted = page.read_text(encoding="utf-8")
    assert all(f'"hot_frac": {hot}' in plotted for _, hot in foreseen)


def test_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run in order; the last line of each is a value that a notebook can show."""
    monkeypatch.chdir(ROOT / "examples")
    book = json.loads((ROOT / "examples" / "curve.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    shown = []
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            *before, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(before, []), "cell", "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
            else:
                exec(compile(ast.Module([last], []), "cell", "exec"), names)
    layout, curve, sentence, chart = shown
    assert "<table>" in layout._repr_html_()
    assert "<table>" in curve._repr_html_()
    assert "100.0% HOT" in sentence, "as Python writes it in the notebook"
    assert chart.to_dict()["mark"]["type"] == "line"
