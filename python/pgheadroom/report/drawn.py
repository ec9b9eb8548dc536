"""
A chart's description as SVG inside a page: made once, small, and without anything that loads.

Vega draws; this fits the drawing to its place, takes away what a page does not need and lets
through only elements and attributes that are known to draw and nothing else. Its text stays text,
whatever it says. Colours stay the page's variables. A mark that says its values (`aria-label`,
from a row's `told`) says them as its title, which browsers show on hover.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from pgheadroom.lab import reading
from pgheadroom.report.charts import Chart

NARROW_PX = 340
"""Room on a phone, and in one of a page's three columns."""

WIDE_PX = 702
"""Room in two columns."""

_FRAME_PX = 50
"""What labels and margins of a chart take beside its panels, mostly."""

_LEAST_PX = 120
"""Width of a panel in which something can still be seen."""

_CHARACTER_PX = 6.2
"""Width of a character of an axis label, about."""

_HEADING_PX = 7.4
"""The same of a panel's heading."""

_LINE_PX = 14
"""What a tilted label takes of the axis."""

_TILTED: Mapping[str, Any] = {"labelAngle": -40, "labelAlign": "right", "labelLimit": 140}

_SVG = "{http://www.w3.org/2000/svg}"

_ELEMENTS = {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath"}

_INHERITED = (
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity",
    "stroke-miterlimit", "text-anchor", "font-size", "font-weight", "font-family", "font-style",
)  # fmt: skip

_ATTRIBUTES = {
    *_INHERITED, "d", "transform", "opacity", "x", "y", "dx", "dy", "x1", "x2", "y1", "y2",
    "width", "height", "viewBox", "id", "clip-path",
}  # fmt: skip

_NUMBERS = {"d", "transform", "x", "y", "dx", "dy", "x1", "x2", "y1", "y2"}

_TEXT = {"font-family": "system-ui, sans-serif", "font-size": "11px"}
"""What most text has: the drawing's own, so that it stands once."""

_PERCENT = re.compile(r"^(-?[\d.]+)%$")
"""An axis' label as Vega writes it; all other text of ours has a space before the sign."""


def pictures(chart: Chart, ident: str) -> list[tuple[str, str]]:
    """
    A chart for the page, each drawing with its class in the style sheet.

    Args:
        chart: What is drawn.
        ident: Begins every id within, so that none is in a page twice.

    Returns:
        One narrow drawing; for what answers the question, or has many names across, a wide one
        too.
    """
    narrow = picture(chart.spec, NARROW_PX, chart, f"{ident}-n")
    if not is_wide(chart):
        return [("", narrow)]
    return [("wide", picture(chart.spec, WIDE_PX, chart, f"{ident}-w")), ("narrow", narrow)]


def is_wide(chart: Chart) -> bool:
    """Whether a chart takes two columns where there is room."""
    room_px = NARROW_PX - _FRAME_PX
    return chart.section == "key" or any(
        _is_tight(across, room_px) for across in _across(chart.spec)
    )


def picture(spec: Mapping[str, Any], room_px: int, chart: Chart, ident: str) -> str:
    """
    A description drawn to fit a width, as the page holds it.

    Args:
        spec: Vega-Lite, of the chart or of a part of it.
        room_px: CSS pixels.
        chart: Its title and words, for those who cannot see it.
        ident: Begins every id within.
    """
    import vl_convert  # noqa: PLC0415 - starts a JavaScript engine, which takes a second

    px = room_px - _FRAME_PX
    root = _parsed(vl_convert.vegalite_to_svg(fitted(spec, px)))
    # Names beside an axis take room that is only known once drawn.
    over = float(root.get("width", "0")) - room_px
    if over > 0:
        px = max(_LEAST_PX, px - round(over))
        root = _parsed(vl_convert.vegalite_to_svg(fitted(spec, px)))
    return _small(root, chart, ident)


def fitted(spec: Mapping[str, Any], px: int) -> dict[str, Any]:
    """The same chart with panels of a width, and legends, headings and labels that go with it."""

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {key: narrowed(key, item, value) for key, item in value.items()}

    def narrowed(key: str, item: Any, inside: Mapping[str, Any]) -> Any:
        if key == "width" and isinstance(item, int) and "height" in inside:
            return px
        if key == "x" and isinstance(item, Mapping) and item.get("axis") and _is_tight(item, px):
            crowded = px < _LINE_PX * len(item["scale"]["domain"])
            return {**item, "axis": {**item["axis"], **_TILTED, "labelOverlap": crowded}}
        if key == "title" and isinstance(item, Mapping) and isinstance(item.get("text"), str):
            lines = textwrap.wrap(item["text"], int((px + _FRAME_PX) / _HEADING_PX))
            return {**item, "text": lines}
        return item if key == "datasets" else walk(item)

    found: dict[str, Any] = walk(spec)
    config = found["config"]
    room = spec.get("usermeta", {}).get("legend_px") or 150
    config["legend"]["columns"] = max(1, int((px + _FRAME_PX) / room))
    return found


def _across(value: Any) -> Iterator[Mapping[str, Any]]:
    """The horizontal axes of a description."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "x" and isinstance(item, Mapping):
                yield item
            elif key != "datasets":
                yield from _across(item)
    elif isinstance(value, list):
        for item in value:
            yield from _across(item)


def _is_tight(across: Mapping[str, Any], px: int) -> bool:
    """Whether an axis has names, and two of them would not stand beside each other in a width."""
    if across.get("type") != "nominal":
        return False
    names = across.get("scale", {}).get("domain") or []
    longest = max((len(f"{one}{other}") / 2 for one, other in pairwise(names)), default=0)
    return (longest + 1) * _CHARACTER_PX * len(names) > px


def _parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - drawn here, without a document type


def _small(root: ET.Element, chart: Chart, ident: str) -> str:
    found = _kept(root, ident)
    assert found is not None, "a drawing has something in it"
    named = {"role": "img", "class": "marks", **_TEXT, **found.attrib}
    picture = ET.Element("svg", named)
    for tag, text in (("title", chart.title), ("desc", chart.alt)):
        ET.SubElement(picture, tag).text = reading.printable(text)
    picture.extend(found)
    return ET.tostring(picture, encoding="unicode")


def _kept(element: ET.Element, ident: str) -> ET.Element | None:
    """What of an element draws; None where nothing does."""
    tag = element.tag.removeprefix(_SVG)
    if tag not in _ELEMENTS or _is_unseen(element):
        return None
    found = ET.Element(tag)
    for key, value in element.attrib.items():
        if key in _ATTRIBUTES and (written := _written(key, value, ident)) is not None:
            found.set(key, written)
    if tag in ("text", "tspan") and element.text is not None:
        found.text = _PERCENT.sub(r"\1 %", element.text)
    elif (said := element.get("aria-label")) is not None and tag != "g":
        ET.SubElement(found, "title").text = said
    for child in element:
        kept = _kept(child, ident)
        if kept is None:
            continue
        if kept.tag == "g" and not kept.attrib:
            found.extend(kept)
        else:
            found.append(kept)
    if tag in ("g", "defs") and not len(found):
        return None
    if tag in ("g", "svg"):
        _lift(found)
    return found


def _is_unseen(element: ET.Element) -> bool:
    """Frames without a line or a fill, and labels that Vega dropped for want of room."""
    if element.get("class") in ("background", "foreground"):
        return not (element.get("fill") or element.get("stroke"))
    return element.get("opacity") == "0" or element.get("display") == "none"


def _written(key: str, value: str, ident: str) -> str | None:
    """An attribute as it is kept: shorter, its ids the page's own; None without effect."""
    if key == "id":
        return f"{ident}-{value}"
    if "url(" in value:
        inner = re.fullmatch(r"url\(['\"]?#([\w-]+)['\"]?\)", value)
        return f"url(#{ident}-{inner[1]})" if inner else None
    if key in _NUMBERS:
        value = re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda at: f"{round(float(at[0]), 1):g}", value)
    nothing = {"transform": "translate(0,0)", "opacity": "1"}
    if nothing.get(key) == value or _TEXT.get(key) == value:
        return None
    return value


def _lift(group: ET.Element) -> None:
    """Say once for a group what all in it say."""
    parts = [part for part in group if part.tag not in ("title", "defs")]
    if len(parts) < 2:
        return
    for key in _INHERITED:
        values = {part.get(key) for part in parts}
        if len(values) == 1 and None not in values:
            group.set(key, values.pop() or "")
            for part in parts:
                del part.attrib[key]
