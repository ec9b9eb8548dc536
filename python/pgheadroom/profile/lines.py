"""
The line of a field in a TOML file, for messages: Python's parser does not keep it.

Reads only as much of TOML as headers, keys and inline tables need. Nothing depends on it but the
number in a message; where it is unsure it names the nearest enclosing line, or none.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")


def line_of(text: str, path: str) -> int | None:
    """
    The line, from 1, where the field of that path stands; None if no part of it is found.

    Args:
        text: A TOML file; JSON gives None.
        path: As in `table[0].columns[1].type`.
    """
    if not path or text.lstrip().startswith("{"):
        return None
    parts = re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)
    steps: list[str | int] = [name if name else int(number) for name, number in parts]
    return _find(text.splitlines(), steps)


def _sections(lines: list[str]) -> list[tuple[int, list[str | int]]]:
    """Each header's line, from 0, with the path of its section; the top of the file first."""
    found: list[tuple[int, list[str | int]]] = [(-1, [])]
    counts: dict[str, int] = {}
    for number, line in enumerate(lines):
        match = _HEADER.match(line)
        if match is None:
            continue
        names = [name.strip().strip("\"'") for name in match[2].split(".")]
        if match[1] == "[[":
            key = ".".join(names)
            counts[key] = counts.get(key, -1) + 1
        here: list[str | int] = []
        for depth, name in enumerate(names, start=1):
            here.append(name)
            key = ".".join(names[:depth])
            if key in counts:
                here.append(counts[key])
        found.append((number, here))
    return found


def _find(lines: list[str], steps: list[str | int]) -> int | None:
    """Walk to the section that holds the most of the path, then to the key inside."""
    sections = _sections(lines)
    fitting = [n for n, (_, here) in enumerate(sections) if steps[: len(here)] == here]
    best = max(fitting, key=lambda n: len(sections[n][1]))
    start, here = sections[best]
    end = sections[best + 1][0] if best + 1 < len(sections) else len(lines)
    position, found = start + 1, start + 1 if start >= 0 else None
    for step in steps[len(here) :]:
        line = _step(lines, position, end, step)
        if line is None:
            break
        # The next step may be on the same line: inline tables follow their name.
        found, position = line + 1, line
        if isinstance(step, int):
            end = line + 1
    return found


def _step(lines: list[str], start: int, end: int, step: str | int) -> int | None:
    """The line, from 0, on which a key or an item of an inline list begins."""
    if isinstance(step, int):
        return _item(lines, start, end, step)
    pattern = re.compile(rf"(^|[\s{{,])[\"']?{re.escape(step)}[\"']?\s*=")
    return next((number for number in range(start, end) if pattern.search(lines[number])), None)


def _item(lines: list[str], start: int, end: int, wanted: int) -> int | None:
    """The line on which the item of that number of an inline list of tables begins."""
    seen, depth = -1, 0
    for number in range(start, end):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'|#.*", "", lines[number])
        for character in bare:
            if character == "{":
                depth += 1
                if depth == 1:
                    seen += 1
                    if seen == wanted:
                        return number
            elif character == "}":
                depth -= 1
    return None
