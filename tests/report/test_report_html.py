"""The page: self-contained, escaped, readable by programs; and in a browser where there is one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic
from browser import CHROMIUM, Browser, holds_to, opened, shows, with_browser

import showing
from pgheadroom.report import drawn, html_tables
from pgheadroom.report.table import Column, Table

LOADING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background"}


class Page(HTMLParser):
    """What a page contains: tags with attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
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
    """Nothing of the page points out of it or runs, and its policy forbids both."""
    page = Page(pages[name])
    for tag, attrs in page.tags:
        for attribute in LOADING & set(attrs):
            assert (attrs[attribute] or "").startswith("#"), (tag, attrs)
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert "url(" not in (attrs.get("style") or "")
        assert tag not in {"script", "noscript", "foreignobject", "image", "use"}
        assert not {name for name in attrs if name.startswith("on")}
    (policy,) = (a["content"] for t, a in page.tags if a.get("http-equiv") is not None)
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
    css = re.search(r"<style>(.*?)</style>", pages[name], re.DOTALL)
    assert css is not None
    assert "url(" not in css[1]
    assert "@import" not in css[1]


def test_names_are_escaped_everywhere(pages: dict[str, str]) -> None:
    """No name of a result becomes an element, an attribute or a template expression."""
    page = Page(pages["hostile"])
    assert not [tag for tag, attrs in page.tags if tag == "img" or "onerror" in attrs]
    assert "<script>alert(1)</script>" in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert "\x07" not in pages["hostile"]
    assert not {"\u2028", "\u2029", "\u202e", "\x1b"} & set(pages["hostile"])
    assert "&lt;script&gt;alert(1)" in pages["hostile"]


@pytest.mark.parametrize("name", NAMES)
def test_structure_serves_programs(pages: dict[str, str], name: str) -> None:
    """Ids are unique, links lead somewhere, tables have scoped headings and can be focused."""
    page = Page(pages[name])
    ids = [attrs["id"] for tag, attrs in page.tags if attrs.get("id")]
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
        for value in attrs.values():
            for inner in re.findall(r"url\(([^)]*)\)", value or ""):
                assert inner.removeprefix("#") in ids
    assert sum(tag == "h1" for tag, _ in page.tags) >= 1


def test_order_of_the_content(pages: dict[str, str]) -> None:
    """Question, answer, caveats, then results, comparisons, and how to repeat it last."""
    words = Page(pages["fillfactor"]).words
    order = [
        "What does a lower fillfactor change",
        "The share of HOT updates rises",
        "1 caveat",
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
    assert words.index("A/A control of time of") < words.index("In 6 of the 6 cells")


def test_caveats_are_folded_with_their_number() -> None:
    """Behind the answer; one alone is in sight, as it is no longer than its heading."""
    result: dict[str, Any] = synthetic.update_cost()
    for warnings, said in ((["first"], "1 caveat"), (["first", "second"], "2 caveats")):
        page = showing.page([(result | {"warnings": warnings}, [])], title="t")
        assert page.index("In 6 of the 6 cells") < page.index(f"<summary>{said}</summary>")
        assert ('<details class="warnings" open>' in page) == (len(warnings) == 1)


def test_findings_have_names_for_people_and_one_spelling_of_per_cent() -> None:
    """Records of earlier versions hold names of measures, and 41.9% beside 41.9 %."""
    data, _ = synthetic.fillfactor()
    said = "hot_frac rose to 41.9% (--set window_s=600)"
    words = Page(showing.page([(data | {"findings": [said] * 7}, [])], title="t")).words
    assert "HOT share rose to 41.9 % (--set window_s=600)" in words
    assert "4 more findings" in words


def test_numbers_are_copied_as_they_are(pages: dict[str, str]) -> None:
    """Thousands are set apart by style alone: the text of a cell is the plain number."""
    assert "2720132" in Page(pages["update-cost"]).words


@pytest.mark.parametrize("name", NAMES[:6])
def test_each_chart_is_a_picture_with_words(pages: dict[str, str], name: str) -> None:
    """Drawn narrow, and what needs it wide too; each with its title and what it shows in words."""
    figures = re.findall(r"<figure.*?</figure>", pages[name], re.DOTALL)
    assert figures
    for figure in figures:
        pictures = re.findall(r"<svg.*?</svg>", figure, re.DOTALL)
        heading = re.search(r"<h3>(.*?)</h3>", figure, re.DOTALL)
        assert heading is not None
        assert len(pictures) == (2 if re.search(r'^<figure[^>]* wide"', figure) else 1)
        for picture in pictures:
            said = re.match(r'<svg [^>]*role="img"[^>]*><title>(.*?)</title><desc>(.*?)<', picture)
            assert said is not None
            assert Page(said[1]).words == Page(heading[1]).words
            assert len(said[2]) > 10
            assert picture.count("<path") + picture.count("<rect") > 2
            assert re.search(r"<text[ >]", picture)
            assert not re.search(r"\d\.\d\d", " ".join(re.findall(r' d="([^"]*)"', picture)))


def test_axes_have_percentages_as_text_has_them(pages: dict[str, str]) -> None:
    """Vega writes 40%, everything else of ours 40 %."""
    labels = [label for name in NAMES for label in re.findall(r">([\d.]+ ?%)<", pages[name])]
    assert labels
    assert all(" %" in label for label in labels)


def test_a_point_says_its_value(pages: dict[str, str]) -> None:
    """Its title has the cell and the value with its interval, which browsers show on hover."""
    found = re.findall(r"<path[^>]*><title>([^<]*)</title></path>", pages["fillfactor"])
    assert "fillfactor 90, memory fits: 1.053 [1.032, 1.074], higher" in found


def test_drawings_are_as_wide_as_their_place() -> None:
    """Long names beside an axis take room from the panel, not from the page."""
    result = synthetic.update_cost()
    for number, cell in enumerate(result["cells"]):
        cell["filler_length"] = f"a name of a cell that is long, {number}"
    (chart,) = showing.charts(result, [])[:1]
    rooms = (drawn.WIDE_PX, drawn.NARROW_PX)
    for room, (_, svg) in zip(rooms, drawn.pictures(chart, "x"), strict=True):
        width = re.match(r'<svg [^>]*\bwidth="(\d+)"', svg)
        assert width is not None
        assert 0.8 * room < int(width[1]) <= room


def browse(folder: Path, page: str, *options: str) -> tuple[str, str, list[str]]:
    """The page's DOM once loaded, the console, and the addresses that it asked for."""
    assert CHROMIUM is not None
    (folder / "page.html").write_text(page, encoding="utf-8")
    log = folder / "net.json"
    # No name resolves, so that neither the page nor the browser itself reaches a network.
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
         f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
         "--enable-logging=stderr", *options, "--dump-dom",
         (folder / "page.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    asked = [event["params"] for event in json.loads(log.read_text())["events"]
             if "url" in event.get("params", {}) and "initiator" in event["params"]]  # fmt: skip
    # What the browser asks for of its own accord has no origin; a page on disk has origin null.
    own = [params["url"] for params in asked if params["initiator"] != "not an origin"]
    return done.stdout, console, [url for url in own if not url.startswith("file:")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@with_browser
@pytest.mark.parametrize("name", NAMES[:5])
def test_browser_shows_it(
    pages: dict[str, str], name: str, browser: Browser, tmp_path: Path
) -> None:
    """Charts are in sight and readable in wide and narrow; nothing is said, nothing asked for."""
    shows(browser, pages[name], tmp_path)


@with_browser
def test_browser_check_can_fail(pages: dict[str, str], browser: Browser, tmp_path: Path) -> None:
    """A chart that is missing, or too wide for a phone, is noticed."""
    page = tmp_path / "page.html"
    for old, new in (('class="marks"', ""), (".chart.wide { display: none; }", "")):
        assert old in pages["unknown"]
        page.write_text(pages["unknown"].replace(old, new), encoding="utf-8")
        browser.show(page.as_uri())
        with pytest.raises(AssertionError):
            holds_to(browser, width=400)


@with_browser
def test_print_cuts_nothing(pages: dict[str, str], browser: Browser, tmp_path: Path) -> None:
    """On paper what is folded is open, and no table is wider than the page."""
    page = tmp_path / "page.html"
    page.write_text(pages["300 cells"], encoding="utf-8")
    browser.show(page.as_uri(), width=688)
    hidden = (
        "[...document.querySelectorAll('details table')]"
        ".filter((part) => !part.checkVisibility({ contentVisibilityAuto: true })).length"
    )
    assert browser.run(hidden) > 0
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.wait(f"{hidden} === 0")
        assert browser.run("document.documentElement.scrollWidth") <= 688
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


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


@pytest.mark.parametrize(("length", "is_stacked"), [(47, False), (48, True)])
def test_long_texts_are_laid_out_below_each_other(length: int, is_stacked: bool) -> None:
    """On a phone each value then has its column's name; names in it are foreign."""
    table = Table(
        title="t",
        columns=(Column("a", 'a"<b', style="words"), Column("n", "n", unit="pages")),
        rows=(("x" * length, 3),),
    )
    laid = html_tables.laid(table, "i")
    assert laid["stacked"] == is_stacked
    (row,) = laid["bodies"][0]["rows"]
    assert [cell["head"] for cell in row] == ['a"<b', "n, pages"]
