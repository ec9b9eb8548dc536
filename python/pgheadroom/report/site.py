"""
Records as a static site: an overview, a page for each record, and the raw data of each.

    index.html              what to do about free room, then every record with its question, its
                            answer and a small picture, what versions change, sources
    NAME.html               one record, as `html.render` shows it
    page-life.html          what happens to a page of a table, event by event
    data/NAME/              result.json, cells.csv, samples.jsonl, request.json, environment.json
    data/NAME/NAME.zip      the record folder as a whole, series included
    site.json               what was written, which is how a site of ours is known again

Gives the files one by one and writes none; `cli/site_folder.py` does. The site works from disk
and from any web server, and loads nothing from elsewhere. Records may be somebody else's: names
become safe ones, text is escaped, and links out of a record's folder are refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.lab import reading
from pgheadroom.lab.experiment import Experiment
from pgheadroom.lab.record import SecondsSeries
from pgheadroom.lab.result import ExperimentResult
from pgheadroom.report import html, html_tables, site_life, text, views
from pgheadroom.report.page import page
from pgheadroom.report.site_fillfactor import SWEPT, over_fillfactor
from pgheadroom.report.site_sources import cited
from pgheadroom.report.site_versions import version_pairs

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart

KIND = "pgheadroom_site"
MANIFEST = "site.json"
SCHEMA_VERSION = 1

_RECORD_FILES = {
    "result.json": "medians, intervals, comparisons, findings, warnings",
    "samples.jsonl": "every finished trial, raw, one a line",
    "request.json": "what was asked",
    "environment.json": "server, settings, machine, command",
    "conduct.json": "why there were so many repetitions",
}

_NAME_LENGTH_MAX = 80
_SERIES_NAME = re.compile(r"[A-Za-z0-9_=.-]+\.json")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest that the format knows: the same record always gives the same archive."""

_RESERVED = frozenset(
    {"index", "page-life", "con", "prn", "aux", "nul"}
    | {f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10)}
)
"""Names of pages that every site has, and what Windows takes for devices."""

_MEMORY = {"fits": "in memory", "twice": "twice memory", "tenfold": "ten times memory"}
"""Levels of the data's size, as a title says them."""

_PICTURE_PX = (330, 130)
"""Width of the overview's pictures and height of their panels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRecord:
    """A record folder with what was read from it."""

    folder: Path
    result: ExperimentResult
    series: Sequence[SecondsSeries]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFile:
    """One file of a site: its path from the site's folder, with `/`, and its bytes."""

    path: str
    content: bytes


def names(records: Sequence[SiteRecord]) -> list[str]:
    """
    A name for each record, of the folder's: lower-case letters, digits, `_` and `-`.

    No two are equal, also where case does not count, and none is one that a system reserves.
    """
    found: list[str] = []
    for record in records:
        plain = re.sub(r"[^a-z0-9_-]+", "-", record.folder.resolve().name.lower())
        base = plain.strip("_-")[:_NAME_LENGTH_MAX].strip("_-") or "record"
        name, number = base, 2
        while name in found or name in _RESERVED:
            name, number = f"{base}-{number}", number + 1
        found.append(name)
    return found


def files(records: Sequence[SiteRecord]) -> Iterator[SiteFile]:
    """
    Make the files of the site one by one, the list of them last.

    Args:
        records: In the order in which the overview shows them; a folder only once.

    Raises:
        InputError: A folder is given twice, or a record has a file that is no plain one.
    """
    listed: dict[str, dict[str, Any]] = {}
    for file in _files(records):
        assert file.path not in listed, "no two files of a site have one path"
        digest = hashlib.sha256(file.content).hexdigest()
        listed[file.path] = {"bytes": len(file.content), "sha256": digest}
        yield file
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "tool_version": pgheadroom.__version__,
        "files": listed,
    }
    yield SiteFile(path=MANIFEST, content=f"{json.dumps(manifest, indent=2)}\n".encode())


def _files(records: Sequence[SiteRecord]) -> Iterator[SiteFile]:
    folders = [record.folder.resolve() for record in records]
    for number, folder in enumerate(folders):
        if folder in folders[:number]:
            raise InputError(f"{folder} is given twice: name each record once")
    cards: list[dict[str, Any]] = []
    named = names(records)
    for name, record, title in zip(named, records, _titles(records, named), strict=True):
        data = _data(name, record)
        place = html.SitePage(
            home="index.html",
            files=[
                html.DataFile(
                    href=f"data/{name}/{file}", name=file, holds=holds, size_bytes=len(content)
                )
                for file, (content, holds) in data.items()
            ],
        )
        shown = html.Shown.of(record.result, record.series)
        shown = replace(shown, heading=replace(shown.heading, title=title))
        page = html.render([shown], title=title, place=place)
        yield SiteFile(path=f"{name}.html", content=page.encode())
        for file, (content, _) in data.items():
            yield SiteFile(path=f"data/{name}/{file}", content=content)
        cards.append(_card(len(cards) + 1, name, shown, place, record.result))
    for path, content in site_life.life_files().items():
        yield SiteFile(path=path, content=content)
    yield SiteFile(path="index.html", content=_overview(cards, records).encode())


def _data(name: str, record: SiteRecord) -> dict[str, tuple[bytes, str]]:
    """The raw data of a record by file name, each with what it holds."""
    own = {
        file: (content, holds)
        for file, holds in _RECORD_FILES.items()
        if (content := _read(record.folder / file)) is not None
    }
    series = {path.name: _series(path) for path in sorted((record.folder / "series").glob("*"))}
    whole = {file: content for file, (content, _) in own.items()}
    whole |= {f"series/{file}": content for file, content in series.items()}
    if (record.folder / "series").is_dir():
        whole.setdefault("series/", b"")
    counted = f", with {len(series)} series" if series else ""
    archive = (
        _archive(name, whole),
        f"the record folder{counted}; unpacked, lab report, compare and merge read it",
    )
    cells = text.as_csv(record.result).encode()
    return {
        "cells.csv": (cells, "cells, each measure with its interval"),
        **own,
        f"{name}.zip": archive,
    }


def _series(path: Path) -> bytes:
    content = _read(path) if _SERIES_NAME.fullmatch(path.name) else None
    if content is None:
        raise InputError(
            f"{str(path)!r} is no series file of a record: expected NAME.json; take it away"
        )
    return content


def _read(path: Path) -> bytes | None:
    """A plain file's content, None where there is none; a link could lead anywhere."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(
                f"{path} is no plain file, and a site may not show what a link leads to: put a "
                "copy of the file in its place"
            )
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _archive(name: str, content: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            entry = zipfile.ZipInfo(f"{name}/{path}", _ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            folder = path.endswith("/")
            entry.external_attr = (0o40755 if folder else 0o100644) << 16
            archive.writestr(entry, data)
    return made.getvalue()


def _card(
    number: int, name: str, shown: html.Shown, place: html.SitePage, result: ExperimentResult
) -> dict[str, Any]:
    """A record as the overview shows it."""
    head, charts = shown.heading, shown.charts
    chart = next((chart for chart in charts if chart.section == "key"), next(iter(charts), None))
    return {
        "id": f"record-{number}",
        "href": f"{name}.html",
        "name": name,
        "kind": head.kind,
        "title": head.title,
        "over": _over(result),
        "question": head.question,
        "answer": head.answer or "The experiment has no figure yet.",
        "state": "complete" if head.complete else "not complete",
        "warnings": len(head.alarms),
        "meta": [
            (term, value)
            for term, value in head.meta
            if term in ("Server", "Scale", "Cells", "Repetitions", "Started")
        ],
        "command": head.command,
        "picture": None if chart is None else _picture(chart, number),
        "caption": None if chart is None else chart.title,
        "files": [file for file in place.files if file.name.endswith((".csv", ".zip"))],
    }


def _settings(result: ExperimentResult) -> dict[str, str]:
    """By what two records of one experiment are told apart: levels of factors, and the server."""
    levels = {
        factor.name: list(map(reading.label, reading.present(result, factor)))
        for factor in reading.factors(result)
        if factor.name != SWEPT  # which each of them sweeps, over longer or shorter lists
    }
    found = {
        name: f"{reading.printable(name)} {'/'.join(said)}"
        if name != "memory"
        else ", ".join(_MEMORY.get(level, level) for level in said)
        for name, said in levels.items()
    }
    return found | {"server": f"PostgreSQL {reading.printable(result.server)}"}


def _titles(records: Sequence[SiteRecord], named: Sequence[str]) -> list[str]:
    """Of each record; titles that several have with what differs, else with the record's name."""
    titles = [views.heading(record.result).title for record in records]
    settings = [_settings(record.result) for record in records]
    told = list(titles)
    for title in {title for title in titles if titles.count(title) > 1}:
        same = [place for place, found in enumerate(titles) if found == title]
        keys = [
            key
            for key in settings[same[0]]
            if len({settings[place].get(key) for place in same}) > 1
        ]
        for place in same:
            differs = [settings[place][key] for key in keys if key in settings[place]]
            told[place] = f"{title} ({', '.join(differs)})" if differs else title
    return [
        f"{title}, {name}" if told.count(title) > 1 else title
        for title, name in zip(told, named, strict=True)
    ]


def _over(result: ExperimentResult) -> dict[str, Any] | None:
    """The record over what is swept, with its pictures."""
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    found = over_fillfactor(result)
    if found is None:
        return None
    return {
        "sentence": found.sentence,
        "enough": found.enough,
        "legend": found.legend,
        # Safe: numbers, titles of ours, and text that was escaped.
        "pictures": [
            {"title": title, "picture": Markup(picture)}  # noqa: S704
            for title, picture in found.pictures
        ],
    }


def _picture(chart: Chart, number: int) -> object:
    """The first panel of a chart, small."""
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    from pgheadroom.report import drawn  # noqa: PLC0415 - imports the chart library

    panels = chart.spec.get("vconcat")
    small = {key: value for key, value in chart.spec.items() if key != "vconcat"}
    small |= dict(panels[0]) if panels else {}
    width, small["height"] = _PICTURE_PX
    config = dict(small["config"])
    config["legend"] = {**config["legend"], "symbolLimit": 4}
    # The reader's font may be wider than the one that the room was measured with.
    config["padding"] = {**config["padding"], "left": 10}
    small["config"] = config
    svg = drawn.picture(small, width, chart, f"record-{number}")
    return Markup(svg)  # noqa: S704 - numbers, and text that was escaped there


def _overview(cards: Sequence[dict[str, Any]], records: Sequence[SiteRecord]) -> str:
    results = [record.result for record in records]
    version = html.versions(map(views.heading, results))
    began = sorted(filter(None, (record.result.started_at for record in records)))
    return page(
        "site.html.j2",
        "site.css",
        cards=cards,
        over=sorted(
            (card for card in cards if card["over"]),
            key=lambda card: -len(card["over"]["pictures"]),
        ),
        topics=_topics(cards, records),
        sources=cited(results),
        pairs=_pairs(results),
        life=site_life.PAGE,
        span=[began[0][:10], began[-1][:10]] if began else None,
        version=version,
    )


def _pairs(results: Sequence[ExperimentResult]) -> list[dict[str, Any]]:
    """What versions change, each table laid out."""
    return [
        {
            "pair": pair,
            "table": None
            if pair.changed is None
            else html_tables.laid(pair.changed, f"versions-{number}"),
        }
        for number, pair in enumerate(version_pairs(results), 1)
    ]


def _topics(
    cards: Sequence[Mapping[str, Any]], records: Sequence[SiteRecord]
) -> list[dict[str, Any]]:
    """Cards by what their experiments are about; of one that nobody knows here by its kind."""
    from pgheadroom.lab import experiments  # noqa: PLC0415 - imports all of them

    known = {experiment.name: experiment.topic for experiment in experiments.ALL}
    by_topic: dict[str, list[Mapping[str, Any]]] = {}
    for card, record in zip(cards, records, strict=True):
        by_topic.setdefault(known.get(record.result.name, Experiment.topic), []).append(card)
    named = [*dict.fromkeys(known.values()), Experiment.topic]
    order = sorted(by_topic, key=lambda topic: (topic == Experiment.topic, named.index(topic)))
    return [{"title": topic, "cards": by_topic[topic]} for topic in order]
