"""
Quoting for the languages that names travel into: SQL, postgresql.conf, terminals.

First step of the layers. Server-side binding is used wherever a statement can take parameters;
these are for identifiers and utility statements, which cannot.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata

from pgheadroom.errors import InputError


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise InputError("a name or value contains a NUL byte, which PostgreSQL cannot hold")


def identifier(name: str) -> str:
    """Quote an SQL identifier; always quoted, so that no list of key words is needed."""
    _refuse_nul(name)
    if not name:
        raise InputError("an SQL identifier is empty")
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Quote an SQL string literal, valid whatever `standard_conforming_strings` is."""
    _refuse_nul(value)
    quoted = "'" + value.replace("'", "''").replace("\\", "\\\\") + "'"
    return f" E{quoted}" if "\\" in value else quoted


def conf_value(value: str) -> str:
    """Quote one value of a postgresql.conf line; a line break cannot be one."""
    _refuse_nul(value)
    if "\n" in value or "\r" in value:
        raise InputError(f"setting value {value!r} contains a line break")
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of what acts on a terminal or a line instead of being seen: control and
format characters (escape sequences, the writing direction), halves of pairs, line breaks."""


def printable(text: str) -> str:
    """
    Foreign text for people: what would act instead of being seen becomes its escape.

    Names, messages of servers and contents of files go through here on their way to a terminal: no
    escape sequence arrives, no line ends in it, and nothing changes the direction of writing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if _acts(c) else c for c in text)


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _UNSHOWN


def printable_lines(text: str) -> str:
    """The same for text of ours that has lines, foreign text in it; libpq's have tabs."""
    return "\n".join(map(printable, text.replace("\t", "  ").split("\n")))


def shown_identifier(name: str) -> str:
    r"""
    Quote an SQL identifier for text that people read and paste.

    What would act instead of being seen is written as in `U&"\+00000a"`, which PostgreSQL reads as
    the same name whatever its settings are, and no terminal, editor or comment as anything else.
    """
    if printable(name) == name:
        return identifier(name)
    _refuse_nul(name)
    marked = "".join(f"\\+{ord(c):06x}" if _acts(c) else c for c in name.replace("\\", "\\\\"))
    return f"U&{identifier(marked)}"


def shown_relation(schema: str, name: str) -> str:
    """Schema and name, quoted as `shown_identifier` does it."""
    return f"{shown_identifier(schema)}.{shown_identifier(name)}"


def called(schema: str, name: str) -> str:
    """A relation as people write it: with its schema unless that is `public`."""
    return name if schema == "public" else f"{schema}.{name}"


def shown_literal(value: str) -> str:
    """Quote an SQL string literal for text that people read and paste."""
    if printable(value) == value:
        return literal(value).strip()
    _refuse_nul(value)
    marked = value.replace("'", "''").replace("\\", "\\\\")
    return "E'" + "".join(f"\\U{ord(c):08x}" if _acts(c) else c for c in marked) + "'"


def shell_word(word: str) -> str:
    """One word for a shell: as POSIX has it, or as bash does where something would act."""
    if printable(word) == word:
        return shlex.quote(word)
    marked = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(f"\\U{ord(c):08x}" if _acts(c) else c for c in marked) + "'"


_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]")


def printable_json(text: str) -> str:
    """JSON that is the same value, in which nothing acts: JSON itself leaves DEL and beyond."""

    def escaped(match: re.Match[str]) -> str:
        return json.dumps(match[0])[1:-1] if _acts(match[0]) else match[0]

    return _NOT_PLAIN.sub(escaped, text)
