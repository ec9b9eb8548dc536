"""A site in headless Chromium: drawn, quiet, readable in narrow and wide, light and dark."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic_site
from browser import Browser, holds_to, opened, with_browser

from pgheadroom.cli.site_folder import write_site
from pgheadroom.report import site

_UNREADABLE = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const parts = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92
      : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const poor = []; let count = 0;
  for (const element of document.body.querySelectorAll("*")) {
    const said = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!said || ["SCRIPT", "NOSCRIPT", "STYLE"].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [one, other] = [light(parts(colour).slice(0, 3)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    count += 1;
    if (ratio < 4.5) poor.push([element.textContent.trim().slice(0, 40), colour, ratio]);
  }
  return { count, poor };
})()"""
"""Texts whose contrast with what is behind them is below 4.5, the bound of WCAG 2 for text."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sites") / "site"
    # One of two alike is enough here; each page costs seconds of drawing.
    records = synthetic_site.records(tmp_path_factory.mktemp("records"))[1:]
    write_site(site.files(records), made)
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("chromium")) as found:
        yield found


def looked_at(browser: Browser, address: str) -> None:
    """Open a page and hold it to everything that a page must be."""
    browser.said.clear()
    browser.asked.clear()
    browser.show(address, width=1600)
    for width in (1600, 400):
        holds_to(browser, width=width)
        assert browser.run("innerWidth") == width
        for dark in (False, True):
            browser.scheme(dark=dark)
            paper = browser.run("getComputedStyle(document.body).backgroundColor")
            assert (paper == "rgb(22, 24, 27)") is dark
            found = browser.run(_UNREADABLE)
            assert found["count"] > 20
            assert found["poor"] == [], f"{address}, {width} pixels, dark: {dark}"
    assert browser.said == []


@with_browser
@pytest.mark.parametrize(
    "name", ["index", "2026-01-02-update-cost", "b-fill-factor", "hostile", "unfinished"]
)
def test_from_disk(folder: Path, browser: Browser, name: str) -> None:
    """Every chart is drawn, the console is silent, nothing but the page itself is read."""
    address = (folder / f"{name}.html").as_uri()
    looked_at(browser, address)
    assert browser.asked == [address]


@with_browser
def test_from_a_web_server(folder: Path, browser: Browser) -> None:
    """The same over HTTP, by clicking from the overview to a record and back."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        browser.said.clear()
        browser.show(address)
        browser.run("document.querySelector('article h2 a').click()")
        browser.wait(f"location.href !== {address!r} && document.readyState === 'complete'")
        holds_to(browser, width=1600)
        browser.run("document.querySelector('nav a').click()")
        browser.wait("document.querySelectorAll('article.card').length === 4")
        server.shutdown()
    assert [said for said in browser.said if "favicon" not in said] == []


@with_browser
def test_policy_and_checks_can_fail(folder: Path, browser: Browser, tmp_path: Path) -> None:
    """If escaping failed, no script would run, also none of the site; and it would be seen."""
    broken = tmp_path / "site"
    shutil.copytree(folder, broken)
    (broken / "data" / "evil.js").write_text("document.title = 'run'")
    page = broken / "unfinished.html"
    evil = """<script>document.title = "run"</script><script src="data/evil.js"></script>
        <img src="http://host.invalid/a"><p style="color: #999; min-width: 2000px">pale</p>"""
    page.write_text(page.read_text().replace("</main>", f"{evil}</main>"))
    browser.said.clear()
    browser.show(page.as_uri())
    assert browser.run("document.title") != "run"
    assert sum("Content Security Policy" in said for said in browser.said) >= 3
    assert [text for text, _, _ in browser.run(_UNREADABLE)["poor"]] == ["pale"]
    assert browser.run("document.documentElement.scrollWidth > innerWidth")
