"""
Remedies that agree: what one finding keeps no other one drops, and each can be run as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pgheadroom.doctor.values import Finding, Remedy

_DROPPING = ("duplicate-index", "overlapping-index", "unused-index")
"""Rules that drop an index, the surest first: whoever has the same index twice loses nothing."""
ORDERING = "rows-out-of-order"
"""The rule that writes a table anew in the order of an index."""
_RELOAD = "SELECT pg_reload_conf()"
_ALTER = "ALTER SYSTEM "
_ALTERED = re.compile(r"ALTER SYSTEM (?:SET|RESET) (\w+)")
_HERE = ("SELECT ", "ALTER SYSTEM ")
"""Beginnings of what a standby runs itself."""


def agreed(findings: Iterable[Finding]) -> list[Finding]:
    """
    The findings, of which none drops an index that another keeps.

    An index that is dropped by one is not told by another as well. Where one is to go for the sake
    of another, that other one is not unused. What depends on a drop that comes first is told
    without a statement: the next examination has it.
    """
    found = list(findings)
    dropping = [each for rule in _DROPPING for each in found if each.rule == rule]
    kept: set[object] = set()
    gone: set[object] = set()
    left: dict[int, Finding | None] = {}
    unread = {each.numbers["index_oid"] for each in found if each.rule == "unused-index"}
    for each in dropping:
        index, keeps = each.numbers["index_oid"], _kept(each)
        if index in gone or (each.rule == "unused-index" and index in kept):
            left[id(each)] = None
        elif index in kept:
            left[id(each)] = _later(each, "Another finding keeps it: that one's index goes first.")
        elif keeps & gone:
            left[id(each)] = _later(each, "The other one is to go itself, by another finding.")
        elif each.rule == "overlapping-index" and each.numbers["idx_scan"] and keeps & unread:
            left[id(each)] = _later(each, "Nobody reads the other one (`unused-index`).")
        elif each.remedy.sql:
            gone.add(index)
            kept |= keeps
    settled = [one for each in found if (one := left.get(id(each), each)) is not None]
    return _rebuilt_once(_written_once(settled, gone), gone)


def _written_once(findings: Sequence[Finding], gone: set[object]) -> list[Finding]:
    """No table is clustered by an index that goes, or written anew beside that."""
    ordering = [each for each in findings if each.rule == ORDERING and each.remedy.sql]
    clustered = {
        each.numbers["oid"] for each in ordering if each.numbers["by_index_oid"] not in gone
    }
    found = []
    for each in findings:
        if each.rule == ORDERING and each.numbers["by_index_oid"] in gone:
            found.append(_later(each, "Its index is to go itself, by another finding."))
        elif each.rule == "bloated-table" and each.numbers["oid"] in clustered:
            found.append(_later(each, f"Putting its rows in order does it (`{ORDERING}`)."))
        else:
            found.append(each)
    return found


def _rebuilt_once(findings: Sequence[Finding], gone: set[object]) -> list[Finding]:
    """No index is built anew that goes, or that its table's rewrite builds anew."""
    written = {
        each.numbers["oid"]
        for each in findings
        if each.rule == "bloated-table" or (each.rule == ORDERING and each.remedy.sql)
    }
    found = []
    for each in findings:
        if each.rule != "bloated-index":
            found.append(each)
        elif each.numbers["oid"] in gone:
            continue
        elif each.numbers["table_oid"] in written:
            found.append(_later(each, "The rewrite of its table builds it anew."))
        else:
            found.append(each)
    return found


def _kept(finding: Finding) -> set[object]:
    """The index that is kept, and the one of the partitioned table that it is part of."""
    names = ("kept_oid", "kept_whole_oid")
    return {finding.numbers[name] for name in names if name in finding.numbers}


def _later(finding: Finding, why: str) -> Finding:
    return replace(finding, remedy=Remedy(text=f"{why} Look again afterwards."))


def runnable(
    finding: Finding,
    *,
    is_standby: bool,
    allows_alter: bool = True,
    started_with: Mapping[str, str] = MappingProxyType({}),
) -> Finding:
    """
    The finding as it can be done here.

    Its undo is in force where it changes a setting; at a standby it says where it is done; where
    the configuration is kept outside (allow_alter_system, from 17 on), or the server was started
    with the setting, it says what to set there.

    Args:
        finding: As its rule has it.
        is_standby: It is of a standby.
        allows_alter: ALTER SYSTEM is not refused.
        started_with: Settings that go before all files, and where they are from.
    """
    remedy = finding.remedy
    altered = [_ALTERED.match(each) for each in remedy.sql]
    sources = {started_with[one[1]] for one in altered if one and one[1] in started_with}
    if sources:
        where = f"It is set by the server's {sources.pop()}, which goes before its files: there"
        remedy = _outside(remedy, where, "a restart")
    elif not allows_alter and any(altered):
        where = "ALTER SYSTEM is not allowed here (allow_alter_system): where the configuration is"
        remedy = _outside(remedy, f"{where} kept", "a reload")
    if remedy.undo is not None and remedy.undo.startswith("ALTER SYSTEM") and _RELOAD in remedy.sql:
        remedy = replace(remedy, undo=f"{remedy.undo}; {_RELOAD}")
    if is_standby and _changes_data(remedy.sql):
        remedy = replace(remedy, text=f"On the primary: {remedy.text}")
    return finding if remedy is finding.remedy else replace(finding, remedy=remedy)


def _outside(remedy: Remedy, where: str, then: str) -> Remedy:
    """What its statements set, in words."""
    said = []
    for statement in remedy.sql:
        how, _, what = statement.removeprefix(_ALTER).partition(" ")
        if statement.startswith(_ALTER):
            said.append(what if how == "SET" else f"{what} taken out")
    text = f"{remedy.text} {where}, {', '.join(said)}; then {then}."
    return replace(remedy, sql=(), text=text, undo=None)


def _changes_data(statements: Sequence[str]) -> bool:
    return any(not statement.startswith(_HERE) for statement in statements)
