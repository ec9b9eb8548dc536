"""A site of records: safe names, whole folders, links that lead somewhere, raw data as it was."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import synthetic
import synthetic_lab
import synthetic_site

import showing
from pgheadroom.cli.site_folder import check_replaceable, write_site
from pgheadroom.errors import InputError
from pgheadroom.predict.page import predict_page
from pgheadroom.profile import read_profile
from pgheadroom.report import site
from pgheadroom.report.site import SiteFile, SiteRecord
from pgheadroom.report.site_fillfactor import over_fillfactor
from pgheadroom.report.site_sources import DOCUMENTS, cited
from pgheadroom.report.site_versions import version_pairs

PAGES = ("2026-01-02-update-cost", "2026-01-02-update-cost-2", "b-fill-factor", "hostile",
         "unfinished")  # fmt: skip


class Addresses(HTMLParser):
    """The addresses that a page names, its anchors, its elements, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.hrefs: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(given)
        self.ids += [found for found in [given.get("id")] if found]
        for name in ("href", "src"):
            self.hrefs += [found for found in [given.get(name)] if found]

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[SiteRecord]:
    return synthetic_site.records(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def folder(records: list[SiteRecord], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sites") / "site"
    write_site(site.files(records), made)
    return made


def test_what_a_site_holds(folder: Path) -> None:
    """An overview, a page for each record, the raw data; no script, nothing hidden is left."""
    pages = {path.name for path in folder.glob("*.html")}
    assert pages == {"index.html", "page-life.html", *(f"{name}.html" for name in PAGES)}
    assert {path.name for path in (folder / "data").iterdir()} == {"page-life", *PAGES}
    assert not list(folder.rglob("*.js"))
    assert [path.name for path in folder.parent.iterdir()] == ["site"]
    for name in PAGES:
        assert (folder / f"{name}.html").stat().st_size < 700_000


def test_every_link_leads_somewhere(folder: Path) -> None:
    """Pages, anchors and data files; out of the site leads only what its sources are."""
    pages = {path.name: Addresses(path.read_text()) for path in folder.glob("*.html")}
    count = 0
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for href in page.hrefs:
            path, _, anchor = href.partition("#")
            if "://" in href:
                assert href in {document.address for document in DOCUMENTS.values()}
                continue
            target = (folder / unquote(path)).resolve() if path else folder / name
            assert target.is_relative_to(folder), href
            assert target.is_file(), href
            if anchor:
                assert anchor in pages[target.name].ids, href
            count += 1
    assert count > 60
    for name in PAGES:
        assert "index.html" in pages[f"{name}.html"].hrefs
        assert f"{name}.html" in pages["index.html"].hrefs


def test_overview_says_what_each_record_found(folder: Path, records: list[SiteRecord]) -> None:
    """Question, answer with interval, server, state, warnings, and what repeats the picture."""
    words = " ".join(Addresses((folder / "index.html").read_text()).words.split())
    assert "is 73.6 % lower [73.0, 74.0] and its modified pages" in words
    assert words.count("What does an UPDATE of one row in a thousand write") == 2
    assert "PostgreSQL 16.14" in words
    assert "not complete" in words
    assert "with 1 caveat" in words
    assert words.count(f"Repeated by {records[0].result['command']}") == 2
    assert (folder / "index.html").read_text().count('class="marks"') == len(PAGES)


def test_answer_stands_first_on_each_page(folder: Path) -> None:
    """The page says what the overview says, before the findings."""
    words = " ".join(Addresses((folder / f"{PAGES[0]}.html").read_text()).words.split())
    assert words.index("is 73.6 % lower [73.0, 74.0]") < words.index("In 6 of the 6 cells")


def test_names_stay_text(folder: Path) -> None:
    """No name of a hostile record becomes an element, also not in the overview's pictures."""
    for name in ("index.html", "hostile.html"):
        text = (folder / name).read_text()
        page = Addresses(text)
        assert not {"script", "img", "iframe", "object", "form", "base"} & page.tags
        assert "<script>alert(1)</script>" in page.words
        assert not {name for name in page.attributes if name.startswith("on")}
        assert not {"\u2028", "\u2029", "\u202e", "\x1b", "\x07"} & set(text)


def test_policies_allow_nothing_but_style(folder: Path) -> None:
    """No page of the site runs a script or loads anything."""
    for path in folder.glob("*.html"):
        policies = re.findall(r'Content-Security-Policy" content="([^"]+)"', path.read_text())
        assert policies == [
            "default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; "
            "base-uri &#39;none&#39;; form-action &#39;none&#39;"
        ]


def test_raw_data_are_those_of_the_record(folder: Path, records: list[SiteRecord]) -> None:
    """Files to the byte, every cell in the CSV, and an archive that is the record folder again."""
    for name, record in zip(PAGES, records, strict=True):
        data = folder / "data" / name
        for file in ("result.json", "samples.jsonl", "request.json", "environment.json"):
            assert (data / file).read_bytes() == (record.folder / file).read_bytes()
        rows = list(csv.reader(io.StringIO((data / "cells.csv").read_text())))
        assert len(rows) == 1 + len(record.result["cells"])
        with zipfile.ZipFile(data / f"{name}.zip") as archive:
            held = {entry: archive.read(entry) for entry in archive.namelist()}
        whole = {
            f"{name}/{path.relative_to(record.folder).as_posix()}": path.read_bytes()
            for path in record.folder.rglob("*") if path.is_file()
        }  # fmt: skip
        assert held == whole | {f"{name}/series/": b""}


def test_list_of_files_is_true(folder: Path) -> None:
    """`site.json` names every other file with its size: by it a site is known as ours."""
    listed = json.loads((folder / "site.json").read_text())["files"]
    there = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip
    assert {name: entry["bytes"] for name, entry in listed.items()} | {
        "site.json": there["site.json"]
    } == there


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["a/x", "b/x", "c/X"], ["x", "x-2", "x-3"]),
        (["index", "CON", "lpt1", "nul"], ["index-2", "con-2", "lpt1-2", "nul-2"]),
        (
            ["update-cost 18.4", "ä", ".hidden-", "-f"],
            ["update-cost-18-4", "record", "hidden", "f"],
        ),
        (["x-2", "a/x", "b/x"], ["x-2", "x", "x-3"]),
        ([f"{'y' * 100}1", f"{'y' * 100}2"], ["y" * 80, f"{'y' * 80}-2"]),
    ],
)
def test_names_are_safe_and_unique(folders: list[str], names: list[str]) -> None:
    """Fit for every file system and address, also where case does not count."""
    made = [SiteRecord(folder=Path("/r") / name, result={}, series=[]) for name in folders]
    assert site.names(made) == names


def test_a_record_given_twice_is_refused(records: list[SiteRecord]) -> None:
    """Two pages of one record would look like two measurements."""
    with pytest.raises(InputError, match="given twice"):
        list(site.files([records[0], records[0]]))


@pytest.mark.parametrize("name", ["samples.jsonl", "series/r001_measured.json"])
def test_a_link_in_a_record_is_not_followed(tmp_path: Path, name: str) -> None:
    """A record from elsewhere must not make a site publish other files of this machine."""
    record = synthetic_site.record(tmp_path / "r", synthetic_lab.index_walkthrough())
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (record.folder / name).unlink(missing_ok=True)
    (record.folder / name).symlink_to(secret)
    with pytest.raises(InputError, match="no plain file"):
        list(site.files([record]))


def test_a_series_name_is_not_foreign(tmp_path: Path) -> None:
    """Names in the archive are unpacked elsewhere: only such as we write."""
    record = synthetic_site.record(tmp_path / "r", synthetic_lab.index_walkthrough())
    (record.folder / "series" / "..\\..\\x.json").write_text("{}")
    with pytest.raises(InputError, match="no series file of a record"):
        list(site.files([record]))


def few(text: str = "new") -> list[SiteFile]:
    """Files that are a site as far as its folder goes."""
    listed = json.dumps({"schema_version": 1, "kind": site.KIND, "files": {"a/b.html": {}}})
    return [
        SiteFile(path="a/b.html", content=text.encode()),
        SiteFile(path=site.MANIFEST, content=listed.encode()),
    ]


def test_a_site_of_ours_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    """What somebody else put there is never removed; the message says what it is."""
    target = tmp_path / "site"
    target.mkdir()
    write_site(few("old"), target)
    write_site(few("new"), target)
    assert (target / "a" / "b.html").read_text() == "new"

    (target / "a" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.txt is not of the site"):
        write_site(few(), target)
    (target / "a" / "mine.txt").unlink()
    (target / "a" / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="link is not of the site"):
        write_site(few(), target)

    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is no site of pgheadroom"):
        write_site(few(), other)
    with pytest.raises(InputError, match="is a file"):
        check_replaceable(other / "mine.txt")
    with pytest.raises(InputError, match="does not exist"):
        check_replaceable(tmp_path / "none" / "site")
    (target / site.MANIFEST).write_text('{"schema_version": 9, "kind": "pgheadroom_site"}')
    with pytest.raises(InputError, match="schema_version 9"):
        check_replaceable(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "site"]


def test_an_error_on_the_way_leaves_the_old_site(tmp_path: Path) -> None:
    """Records are read while the site is written: a damaged one must not cost the old site."""
    target = tmp_path / "site"
    write_site(few("old"), target)

    def failing() -> object:
        yield few()[0]
        raise InputError("damaged")

    with pytest.raises(InputError, match="damaged"):
        write_site(failing(), target)  # type: ignore[arg-type]
    assert (target / "a" / "b.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("before", ["nothing", "a site"])
def test_a_killed_run_leaves_no_half_site(tmp_path: Path, before: str) -> None:
    """After SIGKILL there is the old site or none; the next run takes away what is left beside."""
    target = tmp_path / "site"
    if before == "a site":
        write_site(few("old"), target)
    code = f"""
import os, signal
from pathlib import Path
from pgheadroom.cli.site_folder import write_site
from pgheadroom.report.site import SiteFile
def files():
    yield SiteFile(path="a/b.html", content=b"half")
    os.kill(os.getpid(), signal.SIGKILL)
write_site(files(), Path({str(target)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    if before == "a site":
        assert (target / "a" / "b.html").read_text() == "old"
    else:
        assert not target.exists()
    (left,) = [path for path in tmp_path.iterdir() if path != target]
    assert left.name.endswith(".partial")
    write_site(few(), target)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_one_page_still_holds_everything(records: list[SiteRecord]) -> None:
    """The page of `--html` is as it was: no address, no folder of data, and the answer."""
    page = Addresses(showing.page([(records[0].result, [])], title="one"))
    assert all(href.startswith("#") for href in page.hrefs)
    assert "#data" not in page.hrefs
    assert "is 73.6 % lower [73.0, 74.0]" in page.words


def test_site_begins_with_what_to_do_about_fillfactor(folder: Path) -> None:
    """Records over fillfactor come first, each with a sentence, pictures and the link to it."""
    text = (folder / "index.html").read_text()
    over = text.split('<section class="over"')[1].split('</section>\n<p class="note">')[0]
    assert over.index("What to do about fillfactor") < over.index("At fillfactor 80 against 100")
    assert f'<a href="{PAGES[0]}.html">' in over
    assert text.index("What to do about fillfactor") < text.index("Every record in a line")
    page = Addresses(text)
    for said in ("What versions change", "Words", "Sources", "Cite this", "Each record's archive"):
        assert said in page.words


def test_titles_tell_records_apart(folder: Path) -> None:
    """Two records of one experiment are named by what differs, else by the record's name."""
    text = (folder / "index.html").read_text()
    titles = re.findall(r'<h2 id="record-\d+-title"><a href="[^"]+">([^<]+)</a>', text)
    assert len(titles) == len(PAGES)
    assert len(set(titles)) == len(PAGES)
    for path, title in zip(PAGES, titles, strict=True):
        page = (folder / f"{path}.html").read_text()
        assert f"<title>{title}</title>" in page
        assert f"<h1>{title}</h1>" in page


def test_the_life_of_a_page_is_of_the_profile_beside_it(folder: Path) -> None:
    """The page says which command makes it anew, and the profile is there."""
    page = Addresses((folder / "page-life.html").read_text())
    assert {"index.html", "data/page-life/profile.toml"} == set(page.hrefs)
    assert "predict profile.toml --page 1 --html page-life.html" in page.words
    life = predict_page(read_profile(folder / "data" / "page-life" / "profile.toml"), 1).life
    assert [event.kind for event in life.events[2:5]] == ["update_left", "pruned", "hot_update"]
    for event in life.events:
        assert event.sentence in page.words


def test_versions_are_held_side_by_side() -> None:
    """Cells of two majors, counter by counter; clocks and predictions are left out."""
    known = synthetic_lab.update_cost()
    later = known | {"server": "19.1", "cells": [dict(cell) for cell in known["cells"]]}
    later["cells"][0]["wal_bytes"] += 1000
    minor = known | {"server": "18.1"}
    results = [showing.experiment(data) for data in (known, later, minor)]
    (pair,) = version_pairs(results)
    assert pair.places == (0, 1)
    assert pair.versions == (known["server"], "19.1")
    assert pair.compared - pair.equal == 1
    assert pair.changed is not None
    ((where, before, after, change),) = pair.changed.rows
    assert (before, after) == (known["cells"][0]["wal_bytes"], later["cells"][0]["wal_bytes"])
    assert isinstance(change, str)
    assert change.startswith("+")
    assert isinstance(where, str)
    assert "fillfactor" in where
    (same,) = version_pairs([results[0], showing.experiment(known | {"server": "16.14"})])
    assert same.changed is None
    assert same.equal == same.compared > 0
    assert same.places == (1, 0)


@pytest.mark.parametrize("change", [{"scale": 7}, {"options": {"io": "direct"}}, {"server": "?"}])
def test_versions_of_unlike_records_are_not_compared(change: dict[str, Any]) -> None:
    """Another scale, another option: what differs may be that."""
    known = synthetic_lab.update_cost()
    other = known | {"server": "16.14"} | change
    assert version_pairs([showing.experiment(known), showing.experiment(other)]) == []


def test_sources_are_documents_with_addresses() -> None:
    """Each once, with the records that answer it; a foreign source has no address."""
    known = synthetic_lab.update_cost()
    said = ("S3: the book, chapters 2, 3 and 6 (B2.8)", "S0: words", "https://a.example/", "S9: x")
    found = cited([showing.experiment(known | {"source": source}) for source in said])
    assert [item.document for item in found[:2]] == [DOCUMENTS["S0"], DOCUMENTS["S3"]]
    assert [item.records for item in found[:2]] == [((1, None),), ((0, "chapters 2, 3 and 6"),)]
    assert [item.document.address for item in found[2:]] == [None, None]


def test_labels_of_small_pictures_are_not_cut() -> None:
    """Beside the axis there is room for five characters; 16,394 pages lost two of them."""
    data, _ = synthetic.fillfactor()
    for cell in data["cells"]:
        cell["heap_pages"] = 16_394 + cell["fillfactor"]
    found = over_fillfactor(showing.experiment(data))
    assert found is not None
    assert "heap size, thousand pages" in [title for title, _ in found.pictures]
    for _, picture in found.pictures:
        labels = re.findall(r'text-anchor="end">([^<]+)<', picture)
        assert labels
        assert max(map(len, labels)) <= 5


def test_which_fillfactor_is_enough() -> None:
    """The highest that no lower one betters in HOT, of all groups, and what the lowest takes."""
    data, _ = synthetic.fillfactor(memories=("fits", "twice"))
    hot = {100: 0.4, 90: 0.999, 80: 1.0, 70: 1.0}
    pages = {100: 1000, 90: 1100, 80: 1240, 70: 1320}
    for cell in data["cells"]:
        cell["hot_frac"] = hot[cell["fillfactor"]]
        is_second = cell["memory"] == "twice"
        cell["heap_pages"] = pages[cell["fillfactor"]] + (5000 if is_second else 0)
        cell["hot_frac_interval"] = cell["heap_pages_interval"] = None
    found = over_fillfactor(showing.experiment(data))
    assert found is not None
    lowest = min(cell["fillfactor"] for cell in data["cells"])
    more, less = (((pages[lowest] + by) / (1100 + by) - 1) * 100 for by in (0, 5000))
    assert found.enough == (
        f"90 is enough: {lowest} adds at most 0.5 points of HOT and has a heap that is {less:.3g} "
        f"to {more:.3g} % larger."
    )
    for cell in data["cells"]:
        cell["hot_frac"] = 1 - cell["fillfactor"] / 1000
    rising = over_fillfactor(showing.experiment(data))
    assert rising is not None
    assert rising.enough is None


def test_fillfactor_pictures_are_the_cells() -> None:
    """Every value of a record's first group is a point that says it; the sentence has the ratio."""
    data, _ = synthetic.fillfactor()
    found = over_fillfactor(showing.experiment(data))
    assert found is not None
    titles = [title for title, _ in found.pictures]
    assert titles[0] == "HOT share, %"
    assert [title.split(",")[0] for title in titles][1:] == [
        "WAL per transaction",
        "heap size",
        "throughput",
    ]
    assert len(found.legend) == 3
    for cell in data["cells"]:
        said = f"{cell['tps']:,.0f}" if cell["tps"] >= 1000 else f"{cell['tps']:.4g}"
        assert f"{cell['fillfactor']}: {said}" in found.pictures[-1][1]
    assert found.sentence is not None
    assert found.sentence.startswith("At fillfactor 90 against 100: HOT share ")


def test_a_level_is_no_markup() -> None:
    """A factor's level may be anybody's text, and is text in a picture too."""
    data, _ = synthetic.fillfactor()
    for cell in data["cells"]:
        cell["memory"] = f'"><script>{cell["memory"]}'
    data["factors"][1]["levels"] = [f'"><script>{level}' for level in data["factors"][1]["levels"]]
    data["comparisons"], data["controls"] = [], []
    found = over_fillfactor(showing.experiment(data))
    assert found is not None
    for _, picture in found.pictures:
        ElementTree.fromstring(picture)
        assert "<script" not in picture
