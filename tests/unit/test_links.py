"""Links of the pages: each leads to a file of the repository, and to a heading that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


FOLDERS = (
    "changelog.d",
    "crates",
    "docs",
    "examples",
    "experiments",
    "fuzz",
    "golden",
    "python",
    "tests",
    "tools",
)
"""What the repository keeps; git is not asked, for a source archive has none."""


def _files(*suffixes: str) -> Iterator[Path]:
    """Files of the repository, not those that building and running leave beside."""
    yield from (path for path in ROOT.iterdir() if path.suffix in suffixes)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in suffixes and "target" not in path.parts[len(ROOT.parts) :]:
                yield path


def _prose(page: Path) -> str:
    """A page without its blocks of code, in which `](` is no link and `#` no heading."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """What a heading's link is called on GitHub: its words in lower case, joined by hyphens."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    names = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {
        name if not earlier else f"{name}-{earlier}"
        for number, name in enumerate(names)
        for earlier in [names[:number].count(name)]
    }


def _dead(page: Path) -> list[str]:
    """Links of a page that lead nowhere, with the page's name before them."""
    # A fragment becomes a part of CHANGELOG.md, one folder up.
    is_fragment = page.parent.name == "changelog.d" and page.name != "README.md"
    base = page.parent.parent if is_fragment else page.parent
    found = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", _prose(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = base / name if name else page
        has_anchor = not anchor or (target.suffix == ".md" and anchor in _anchors(target))
        if not target.exists() or not has_anchor:
            found.append(f"{page.name}: {link}")
    return found


def test_links_lead_somewhere() -> None:
    """A page that is moved or split takes the links to it along."""
    pages = list(_files(".md"))
    assert len(pages) > 30
    assert [link for page in pages for link in _dead(page)] == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """A missing file, a missing heading, and neither in code."""
    page = tmp_path / "page.md"
    page.write_text(
        "# One & two\n\n[a](#one--two) [b](#three) [c](no.md) [d](page.md#one) `[e](f.md)`\n"
        "[g](https://example.org/h#i)\n\n```\n# no heading\n[j](k.md)\n```\n",
        encoding="utf-8",
    )
    assert _dead(page) == ["page.md: #three", "page.md: no.md", "page.md: page.md#one"]


def test_code_and_tools_name_pages_that_exist() -> None:
    """A page that a comment or a message names by its path is there."""
    named = re.compile(r"docs/[A-Za-z0-9_/-]+\.(?:md|svg)")
    files = _files(".py", ".rs", ".toml")
    paths = [name for path in files for name in named.findall(path.read_text(encoding="utf-8"))]
    assert len(paths) > 20
    assert sorted({path for path in paths if not (ROOT / path).exists()}) == []
