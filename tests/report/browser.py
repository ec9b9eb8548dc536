"""
Headless Chromium by its DevTools protocol, over a pipe: for tests that look at pages.

`holds_to` is what every page of ours must be in it.

Only the standard library; commands are JSON ended by a zero byte on descriptors 3 and 4. What a
page says on its console, what its policy forbids and what it asks for are collected as they come.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (path := shutil.which(name))), None
)  # fmt: skip

_PATIENCE_S = 60.0
"""Longer than any answer takes on a busy machine; then the test fails instead of hanging."""


def with_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test as one that needs Chromium, and skip it with a reason where there is none."""
    reason = "no Chromium is installed (apt-get install chromium)"
    return pytest.mark.browser(pytest.mark.skipif(CHROMIUM is None, reason=reason)(test))


class RefusedError(Exception):
    """Chromium did not carry a command out."""


class Browser:
    """One tab of a running Chromium."""

    def __init__(self, to_fd: int, from_fd: int) -> None:
        self._to, self._from = to_fd, from_fd
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        self.asked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and give its result, or raise RefusedError; events are noted meanwhile."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RefusedError(method, answer["error"])
                return dict(answer["result"])
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        ends = time.monotonic() + _PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0, ends - time.monotonic()))
            assert ready, "Chromium does not answer"
            more = os.read(self._from, 1 << 20)
            assert more, "Chromium is gone"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Log.entryAdded":
                self.said.append(str(params["entry"]["text"]))
            case "Runtime.exceptionThrown":
                self.said.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.said.append(str(params["args"]))
            case "Network.requestWillBeSent":
                self.asked.append(str(params["request"]["url"]))

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page, waiting for it if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        ends = time.monotonic() + _PATIENCE_S
        while True:
            # A page that is being left refuses to evaluate anything.
            with contextlib.suppress(RefusedError):
                if self.run(condition):
                    return
            assert time.monotonic() < ends, f"never true: {condition}"
            time.sleep(0.05)

    def show(self, address: str, *, width: int = 1600, dark: bool = False) -> None:
        """Open a page in a window of that width and in that scheme, and wait until it is loaded."""
        self.resize(width)
        self.scheme(dark=dark)
        self.call("Page.navigate", url=address)
        self.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def resize(self, width: int) -> None:
        """Make the window so many CSS pixels wide."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def scheme(self, *, dark: bool) -> None:
        """Ask for the dark or the light colours, as a system's setting does."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Save what the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


_MEASURED = """(() => {
  const shown = (item) => item.getClientRects().length > 0;
  const charts = [...document.querySelectorAll("figure svg.marks")].filter(shown);
  const px = (text, svg) => parseFloat(getComputedStyle(text).fontSize)
    * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return {
    figures: document.querySelectorAll("figure").length,
    charts: charts.length,
    widest: Math.max(...charts.map((svg) => svg.getBoundingClientRect().right)),
    least: Math.min(...charts.flatMap((svg) =>
      [...svg.querySelectorAll("text")].map((text) => px(text, svg)))),
    page: document.documentElement.scrollWidth,
  };
})()"""

LEAST_TEXT_PX = 11
"""Below, labels of a chart cannot be read on a phone."""


def holds_to(browser: Browser, *, width: int) -> None:
    """Hold the open page to it: each figure has one chart in sight, readable, and all fits."""
    browser.resize(width)
    found = browser.run(_MEASURED)
    assert found["charts"] == found["figures"] > 0
    assert found["least"] >= LEAST_TEXT_PX - 0.01
    assert 100 < found["widest"] <= width
    assert found["page"] <= width, "the page scrolls sideways"


def shows(browser: Browser, page: str, folder: Path) -> None:
    """Hold a page on disk to it, wide and narrow: nothing is said, and nothing asked for."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.said.clear()
    browser.asked.clear()
    browser.show(path.as_uri())
    for width in (1280, 400):
        holds_to(browser, width=width)
    assert browser.said == []
    assert browser.asked == [path.as_uri()]


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Browser]:
    """A browser with its profile in `folder`, which reaches nothing but disk and this machine."""
    assert CHROMIUM is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    # The descriptors must be 3 and 4 in the browser: a shell puts them there.
    arguments = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe",
    ]  # fmt: skip
    redirect = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", redirect, CHROMIUM, *arguments],
        pass_fds=(to_read, from_write), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_read)
    os.close(from_write)
    try:
        yield Browser(to_write, from_read)
    finally:
        os.close(to_write)
        os.close(from_read)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
