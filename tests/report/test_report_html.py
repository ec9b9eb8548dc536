"""The page: self-contained, escaped, readable by programs; and in a browser where there is one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic
from browser import CHROMIUM, with_browser

import showing
from pgheadroom.report import html

LOADING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background"}


class Page(HTMLParser):
    """What a page contains: tags with attributes, and the text of scripts and of the rest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words = ""
        self._script: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs)
            self.scripts.append((self._script, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            attrs, text = self.scripts.pop()
            self.scripts.append((attrs, text + data))
        else:
            self.words += data


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    records = {
        "update-cost": [(synthetic.update_cost(), [])],
        "fillfactor": [synthetic.fillfactor()],
        "unknown": [(synthetic.unknown(), [])],
        "hostile": [synthetic.hostile()],
        "several": [(synthetic.update_cost(), []), synthetic.fillfactor(memories=("fits",))],
        "300 cells": [(synthetic.unknown(cells=300), [])],
        "empty": [({}, [])],
        "none": [],
    }
    return {
        name: showing.page(given, title=f"{name} <b>&")  # type: ignore[arg-type]
        for name, given in records.items()
    }


NAMES = ["update-cost", "fillfactor", "unknown", "hostile", "several", "300 cells", "empty", "none"]


@pytest.mark.parametrize("name", NAMES)
def test_loads_nothing(pages: dict[str, str], name: str) -> None:
    """No attribute of the page points anywhere but into the page, and its policy forbids more."""
    page = Page(pages[name])
    for tag, attrs in page.tags:
        for attribute in LOADING & set(attrs):
            assert (attrs[attribute] or "").startswith("#"), (tag, attrs)
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert "url(" not in (attrs.get("style") or "")
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") is not None)
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    css = re.search(r"<style>(.*?)</style>", pages[name], re.DOTALL)
    assert css is not None
    assert "url(" not in css[1]
    assert "@import" not in css[1]


@pytest.mark.parametrize("name", NAMES)
def test_runs_only_our_scripts(pages: dict[str, str], name: str) -> None:
    """The policy names the hash of every script that can run; data blocks cannot run."""
    page = Page(pages[name])
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") is not None) or ""
    for attrs, text in page.scripts:
        if attrs.get("type") == "application/json":
            json.loads(text)
            continue
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(page.scripts) == pages[name].count("<script")


def test_names_are_escaped_everywhere(pages: dict[str, str]) -> None:
    """No name of a result becomes an element, an attribute or a template expression."""
    page = Page(pages["hostile"])
    assert not [tag for tag, attrs in page.tags if tag == "img" or "onerror" in attrs]
    assert "<script>alert(1)</script>" in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert "\x07" not in pages["hostile"]
    assert not {"\u2028", "\u2029", "\u202e", "\x1b"} & set(pages["hostile"].split("<script>")[0])
    assert "&lt;script&gt;alert(1)" in pages["hostile"]


def test_json_in_scripts_cannot_end_them() -> None:
    """`</script>`, `<!--` and line separators become escapes, and read back as they were."""
    value = {"a": "</script><!--\u2028\u2029&"}
    text = html.script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


@pytest.mark.parametrize("name", NAMES)
def test_structure_serves_programs(pages: dict[str, str], name: str) -> None:
    """Ids are unique, links lead somewhere, tables have scoped headings and can be focused."""
    page = Page(pages[name])
    ids = [attrs["id"] for tag, attrs in page.tags if attrs.get("id") and tag != "path"]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        if tag == "a":
            assert (attrs["href"] or "").removeprefix("#") in ids
        if tag == "th":
            assert attrs.get("scope") in {"row", "col", "rowgroup", "colgroup"}
        if attrs.get("aria-labelledby"):
            assert attrs["aria-labelledby"] in ids
        if tag == "div" and attrs.get("class") == "scroll":
            assert attrs["tabindex"] == "0"
        if tag == "div" and attrs.get("class") == "chart":
            assert attrs["data-alt"]
    assert sum(tag == "h1" for tag, _ in page.tags) >= 1


def test_order_of_the_content(pages: dict[str, str]) -> None:
    """Question and warnings, then the answer, results, comparisons, and how to repeat it last."""
    words = Page(pages["fillfactor"]).words
    order = [
        "What does a lower fillfactor change",
        "Read this first",
        "The share of HOT updates rises",
        "Effect against fillfactor 100",
        "Ours, in the document's form",
        "Comparisons",
        "Over time",
        "Environment",
        "pgheadroom lab run fillfactor --scale 10 --seed 1",
    ]
    places = [words.index(text) for text in order[:5]]
    places += [words.rindex(text) for text in order[5:]]
    assert places == sorted(places)


def test_alarms_come_first() -> None:
    """An incomplete run and an A/A control that excludes 1 are said before the answer."""
    result: dict[str, Any] = synthetic.update_cost()
    result["complete"] = False
    result["controls"][0]["ratio"] = synthetic.interval(1.2, 0.05)
    words = Page(showing.page([(result, [])], title="t")).words
    assert words.index("not complete") < words.index("In 6 of the 6 cells")
    assert words.index("A/A control of update_ms excludes 1") < words.index("In 6 of the 6 cells")


def test_numbers_are_copied_as_they_are(pages: dict[str, str]) -> None:
    """Thousands are set apart by style alone: the text of a cell is the plain number."""
    assert "2720132" in Page(pages["update-cost"]).words


def test_pictures_for_readers_without_scripts(pages: dict[str, str]) -> None:
    """Each chart has a static picture, which holds nothing that could run."""
    pictures = re.findall(r"<noscript>(.*?)</noscript>", pages["update-cost"], re.DOTALL)
    assert pictures[0].startswith("<svg")
    for picture in re.findall(r"<noscript>(.*?)</noscript>", pages["hostile"], re.DOTALL):
        assert not re.search(r"<script|<img|href=|\son\w+=", picture.replace("&lt;", ""))


def browse(folder: Path, page: str, *options: str) -> tuple[str, str, list[str]]:
    """The page's DOM after its scripts ran, the console, and the addresses that it asked for."""
    assert CHROMIUM is not None
    (folder / "page.html").write_text(page, encoding="utf-8")
    log = folder / "net.json"
    # No name resolves, so that neither the page nor the browser itself reaches a network.
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
         f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
         "--enable-logging=stderr", "--virtual-time-budget=30000", *options, "--dump-dom",
         (folder / "page.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    asked = [event["params"] for event in json.loads(log.read_text())["events"]
             if "url" in event.get("params", {}) and "initiator" in event["params"]]  # fmt: skip
    # What the browser asks for of its own accord has no origin; a page on disk has origin null.
    own = [params["url"] for params in asked if params["initiator"] != "not an origin"]
    return done.stdout, console, [url for url in own if not url.startswith("file:")]


@with_browser
@pytest.mark.parametrize("name", NAMES[:5])
def test_browser_draws_it(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    """Every chart is drawn, no script fails, the policy stops nothing, and nothing is asked for."""
    dom, console, asked = browse(tmp_path, pages[name], "--window-size=1280,900")
    assert 'data-charts="drawn"' in dom
    assert dom.count('class="marks"') == dom.count("data-chart=") > 0
    assert not re.search(r"rror|Refused|violates|Uncaught|WARN", console), console
    assert asked == []


@with_browser
def test_browser_fits_a_narrow_screen(pages: dict[str, str], tmp_path: Path) -> None:
    """At 400 pixels every chart is as wide as its place, and the page does not scroll sideways."""
    (tmp_path / "report.html").write_text(pages["update-cost"], encoding="utf-8")
    frame = """<style>body{margin:0}</style><iframe src="report.html" width="400" height="900"
        style="border:0"></iframe><script>
        setTimeout(() => { const page = frames[0].document; document.body.append([
          page.documentElement.scrollWidth,
          ...[...page.querySelectorAll("svg.marks")].map((svg) => svg.getAttribute("width")),
        ].join(" ")); }, 9000);</script>"""
    dom, _, _ = browse(tmp_path, frame, "--allow-file-access-from-files")
    match = re.search(r"</script>([\d ]+)", dom)
    assert match is not None
    widths = [int(width) for width in match[1].split()]
    assert len(widths) > 1
    assert max(widths) <= 400


@with_browser
def test_browser_says_what_failed(pages: dict[str, str], tmp_path: Path) -> None:
    """The check of the drawings can fail: a chart that cannot be drawn is said in its place."""
    broken = re.sub(
        r'(<script type="application/json">).*?(</script>)', r"\1{}\2", pages["unknown"], count=1
    )
    dom, _, _ = browse(tmp_path, broken)
    assert 'data-charts="failed"' in dom
    assert "could not be drawn" in dom


@with_browser
def test_browser_policy_holds(pages: dict[str, str], tmp_path: Path) -> None:
    """Even if escaping failed, no script would run and nothing be loaded; both checks can fail."""
    evil = """<img src="http://host.invalid/a"><script>document.title = "run"</script>
        <a onclick="1" style="background: url(http://host.invalid/b)">x</a>"""
    dom, console, asked = browse(tmp_path, pages["unknown"].replace("</main>", f"{evil}</main>"))
    assert "<title>run" not in dom
    assert "violates" in console
    assert asked == []
    _, _, asked = browse(tmp_path, evil)
    assert "http://host.invalid/a" in asked


def test_every_figure_prints_the_command_that_repeats_it(pages: dict[str, str]) -> None:
    """A figure that travels alone, in a mail or a slide, still says how to get it again."""
    page = Page(pages["update-cost"])
    command = synthetic.update_cost()["command"]
    figures = [attrs for tag, attrs in page.tags if tag == "figure"]
    assert figures
    assert page.words.count(f"Repeated by {command}") == len(figures)
