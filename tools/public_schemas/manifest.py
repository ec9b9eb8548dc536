"""
What is known of an application: one file of experiments/public-schemas each.

No text of an application stands in it: its schema and its statements are cut out of its own files,
fetched at a pinned commit. What is ours: the rows that are loaded, the values that stand for a
statement's parameters, and how often each statement runs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError

Replacements = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of the application's repository, and git's own hash of its contents."""

    path: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An npm package, and a script beside this one that prints the application's texts of it."""

    npm: str
    script: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """
    Where a text stands in a file: behind `after`, from `begin` on (with it), up to `end`.

    Without `end` up to the file's. Of the schema each occurrence is taken, of a statement the
    first.
    """

    path: str
    after: str
    begin: str
    end: str
    replace: Replacements


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A pgbench script in which `<<NAME>>` stands for a statement of the application."""

    weight: int
    script: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A public application: where its text is, what is loaded, what runs."""

    key: str
    name: str
    repository: str
    commit: str
    licence: str
    about: str
    files: tuple[SourceFile, ...]
    package: Package | None
    schema: tuple[str | Cut, ...]
    before: str
    schema_replace: Replacements
    rows: str
    common: Replacements
    statements: Mapping[str, Cut]
    transactions: tuple[Transaction, ...]
    rate_per_s: int
    warm_s: int
    watch_s: int
    own: str

    def schema_text(self, texts: Mapping[str, str]) -> str:
        """The schema as SQL, out of the application's files."""
        parts = [self.before]
        for part in self.schema:
            if isinstance(part, str):
                parts.append(texts[part])
            else:
                parts += [f"{found};" for found in _cuts(part, texts[part.path])]
        # Files are run one by one there; the last statement of one may lack its semicolon.
        return replaced("\n;\n".join(parts), self.schema_replace)

    def scripts(self, texts: Mapping[str, str]) -> list[tuple[int, str]]:
        """The workload: weight and text of each pgbench script."""
        made = {
            name: statement(name, cut, texts[cut.path], self.common)
            for name, cut in self.statements.items()
        }
        unused = set(made)

        def text_of(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in made:
                raise InputError(f"{self.key}: no statement {name!r}")
            unused.discard(name)
            return made[name]

        found = [(t.weight, re.sub(r"<<([\w-]+)>>", text_of, t.script)) for t in self.transactions]
        if unused:
            raise InputError(f"{self.key}: statements that nothing runs: {sorted(unused)}")
        return found


def statement(name: str, cut: Cut, text: str, common: Replacements = ()) -> str:
    """One statement with its parameters filled in, without a semicolon and without comments."""
    found = next(_cuts(cut, text), None)
    if found is None:
        raise InputError(f"{cut.path}: no statement {name!r} behind {cut.after!r}")
    made = replaced(found, cut.replace)
    for old, new in common:
        made = made.replace(old, new)
    # pgbench joins lines, so a comment to the end of its line would hide the rest.
    lines = [re.sub(r"(^|\s)--.*", "", line) for line in made.splitlines()]
    return " ".join(" ".join(lines).split()).rstrip(";")


def _cuts(cut: Cut, text: str) -> Any:
    at = text.find(cut.after) if cut.after else 0
    while at >= 0:
        begin = text.find(cut.begin, at + len(cut.after))
        if begin < 0:
            return
        end = text.find(cut.end, begin + len(cut.begin)) if cut.end else len(text)
        if end < 0:
            return
        yield text[begin:end]
        if not cut.after:
            return
        at = text.find(cut.after, end + len(cut.end))


def replaced(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    """
    The text with each pair's first word replaced by its second, in their order.

    Raises:
        InputError: A word does not stand there: the application's text is another than was read.
    """
    for old, new in pairs:
        if old not in text:
            raise InputError(f"{old!r} does not stand in {text[:120]!r}")
        text = text.replace(old, new)
    return text


def read_application(path: Path) -> Application:
    """Read one file of experiments/public-schemas."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))

    def cut(of: dict[str, Any]) -> Cut:
        return Cut(
            path=of["path"],
            after=of.get("after", ""),
            begin=of.get("begin", ""),
            end=of.get("end", ";"),
            replace=tuple((a, b) for a, b in of.get("replace", [])),
        )

    return Application(
        key=path.stem,
        name=data["name"],
        repository=data["repository"],
        commit=data["commit"],
        licence=data["licence"],
        about=data["about"],
        files=tuple(SourceFile(path=name, blob=blob) for name, blob in data["files"].items()),
        package=Package(**data["package"]) if "package" in data else None,
        schema=tuple(p if isinstance(p, str) else cut(p) for p in data["schema"]),
        before=data.get("before", ""),
        schema_replace=tuple((a, b) for a, b in data.get("schema_replace", [])),
        rows=data["rows"],
        common=tuple((a, b) for a, b in data.get("replace", [])),
        statements={name: cut(of) for name, of in data.get("statement", {}).items()},
        transactions=tuple(Transaction(**of) for of in data["transaction"]),
        rate_per_s=data.get("rate_per_s", 300),
        warm_s=data.get("warm_s", 10),
        watch_s=data.get("watch_s", 20),
        own=data.get("own", ""),
    )


def applications(folder: Path) -> list[Application]:
    """All of them, by name."""
    return [read_application(path) for path in sorted(folder.glob("*.toml"))]
