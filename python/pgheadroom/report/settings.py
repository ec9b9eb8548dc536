"""
Settings to change, as a fragment of postgresql.conf, as statements, or for a ticket.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.folding import wrapped
from pgheadroom.quoting import printable
from pgheadroom.report import csv_file, text
from pgheadroom.settings.values import OpenSetting, SettingLine, SettingsAdvice
from pgheadroom.units import show_bytes, show_count

PAGE = "docs/settings.md"
_WIDTH = 98
_CSV = (
    "name",
    "value",
    "now",
    "basis",
    "reason",
    "changes",
    "rule",
    "in_force_by",
    "set_by",
    "sql",
    "undo",
    "note",
)


def fragment(advice: SettingsAdvice) -> str:
    """Lines for postgresql.conf, each with its reason; all else is comment."""
    blocks = [list(_comments(_head(advice)))]
    blocks += [[*_comments(_why(line)), f"{line.name} = {line.value}"] for line in advice.lines]
    asked = list(_missing(advice))
    if asked:
        blocks.append(list(_comments(["Not told, since something is not known:", *asked])))
    return "\n".join("\n".join(block) + "\n" for block in blocks)


def statements(advice: SettingsAdvice) -> str:
    """ALTER SYSTEM for psql, with what takes it back as comments; a reader runs it, not we."""
    head = [*_head(advice), "Nothing of this was run."]
    blocks = [list(_comments(head, "-- "))]
    changed = [line for line in advice.lines if line.sql is not None]
    for line in advice.lines:
        said = list(_comments(_why(line), "-- "))
        blocks.append([*said, f"{line.sql};" if line.sql else f"-- {line.name}: no statement"])
    if changed:
        blocks.append(["SELECT pg_reload_conf();"])
        waiting = [line.name for line in changed if line.in_force_by == "restart"]
        if waiting:
            blocks[-1].append(f"-- Then restart, for {', '.join(waiting)}.")
        undo = [f"-- {line.undo};" for line in changed]
        blocks.append(["-- Undo:", *undo, "-- SELECT pg_reload_conf();"])
    asked = list(_missing(advice))
    if asked:
        said = ["Not told, since something is not known:", *asked]
        blocks.append(list(_comments(said, "-- ")))
    return "\n".join("\n".join(block) + "\n" for block in blocks)


def as_csv(advice: SettingsAdvice) -> str:
    """A row a line."""
    return csv_file.written(_CSV, [tuple(row[name] for name in _CSV) for row in advice.rows()])


def as_markdown(advice: SettingsAdvice) -> str:
    """For a ticket: what, why, and the fragment."""
    lines = [f"# {text.markdown_text(printable(advice.summary()))}", ""]
    lines += [f"- {text.markdown_text(line)}" for line in _head(advice)[1:]]
    for line in advice.lines:
        now = f"`{line.name}`: {line.now} -> {line.value}"
        lines += ["", f"## {now}", ""]
        lines += [f"- {text.markdown_text(each)}" for each in _why(line)]
    missing = list(_missing(advice))
    if missing:
        lines += ["", "## Not told", ""]
        lines += [f"- {text.markdown_text(each)}" for each in missing]
    if advice.lines:
        conf = [f"{line.name} = {line.value}" for line in advice.lines]
        lines += ["", "```", *conf, "```"]
    return "\n".join([*lines, ""])


def _head(advice: SettingsAdvice) -> list[str]:
    given = advice.given
    said = [
        show_bytes(given.memory_bytes) + " of memory" if given.memory_bytes is not None else "",
        show_count(given.cores, "core") if given.cores is not None else "",
        given.disk or "",
        show_count(given.connections, "connection") if given.connections is not None else "",
        given.workload or "",
    ]
    lines = [f"pgheadroom {advice.tool_version}: {advice.summary()}."]
    named = ", ".join(filter(None, said))
    lines += [f"Said: {named}."] if named else []
    lines += [f"Counted {advice.counted}."] if advice.counted is not None else []
    return [*lines, f"Rules: {PAGE}.", *advice.remarks]


def _why(line: SettingLine) -> list[str]:
    lines = [
        f"{_sentence(line.reason)} Rule: {line.rule}.",
        f"{_sentence(line.changes)} Now {line.now} ({line.set_by}); {_IN_FORCE[line.in_force_by]}.",
    ]
    return [*lines, _sentence(line.note)] if line.note is not None else lines


_IN_FORCE = {
    "restart": "needs a restart",
    "reload": "a reload is enough",
    "new sessions": "new sessions have it after a reload",
}


def _missing(advice: SettingsAdvice) -> Iterator[str]:
    """Settings that lack the same, together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in advice.asked:
        groups.setdefault(_key(each), []).append(each.name)
    for (by, reason), names in groups.items():
        yield f"{', '.join(names)}: say {by}; {reason}."


def _key(asked: OpenSetting) -> tuple[str, str]:
    return asked.by, asked.reason


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words[:1].islower() else f"{words}."


def _comments(lines: list[str], mark: str = "# ") -> Iterator[str]:
    for line in lines:
        yield from wrapped(
            printable(line),
            width=_WIDTH,
            initial_indent=mark,
            subsequent_indent=f"{mark}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
