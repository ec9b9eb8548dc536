"""
Names become pseudonyms, statement texts and literals go: `--mask`.

A pseudonym is a keyed hash of the name, so it is the same in every observation of the database
and says nothing without the key. The key is made of the server's system identifier and the
database's OID, which a masked profile does not carry.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pgheadroom.sources.recording import AnswerRow, RecordedAnswer, Recording

_DIGITS = 10  # 40 bits: two names of 2,000 tables with 40,000 columns meet once in a thousand
# What each query's fields hold; fields that are not named here hold no names of users.
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "identity": {"database": "database", "role": "role", "application_name": "application"},
    "extensions": {"schema": "schema"},
    "tables": {"schema": "schema", "name": "table"},
    "columns": {"name": "column"},
    "column_statistics": {"schema": "schema", "table": "table", "name": "column"},
    "indexes": {
        "schema": "schema",
        "name": "index",
        "parent_schema": "schema",
        "parent_name": "index",
    },
    "foreign_keys": {"name": "constraint"},
    "domains": {"schema": "schema", "name": "type"},
    "triggers": {"name": "trigger", "function_schema": "schema", "function": "function"},
    "views": {"schema": "schema", "name": "view"},
    "horizon": {"application_name": "application", "usename": "role"},
}
_REMOVED: Mapping[str, tuple[str, ...]] = {
    "cluster": ("system_identifier",),
    "index_definitions": ("key_texts", "keys", "predicate"),
    "activity": ("query",),
    "statement_texts": ("query",),
    "triggers": ("source", "arguments"),
    "function_calls": ("schema", "name", "targets"),
    "views": ("names",),
}


def pseudonym(key: bytes, kind: str, name: str) -> str:
    """The name's stand-in: its kind and a keyed hash."""
    digest = hmac.new(key, f"{kind}\0{name}".encode(), hashlib.sha256).hexdigest()
    return f"{kind}_{digest[:_DIGITS]}"


def masked(recording: Recording) -> Recording:
    """The recording without anything that a user of the database has named or written."""
    key = _key(recording)
    return Recording(tuple(_line(line, key) for line in recording.lines))


def _key(recording: Recording) -> bytes:
    identity = recording.row("identity", "shape") or {}
    number = (recording.row("cluster", "shape") or {}).get("system_identifier")
    # Where the number may not be read a random key stands for it: stable in this profile alone.
    secret = f"{number or secrets.token_hex(16)}/{identity.get('database_oid')}"
    return hashlib.sha256(f"pgheadroom mask {secret}".encode()).digest()


def _line(line: RecordedAnswer, key: bytes) -> RecordedAnswer:
    return replace(line, rows=tuple(_row(line.query, row, key) for row in line.rows))


def _row(query: str, row: AnswerRow, key: bytes) -> dict[str, Any]:
    new = dict(row)
    for field, kind in _FIELDS.get(query, {}).items():
        if isinstance(new.get(field), str):
            new[field] = pseudonym(key, kind, new[field])
    for field in _REMOVED.get(query, ()):
        new[field] = None
    if query in ("columns", "column_statistics") and new.get("labels"):
        new["labels"] = [pseudonym(key, "label", str(label)) for label in new["labels"]]
    if query == "columns" and new.get("label_default") is not None:
        new["label_default"] = pseudonym(key, "label", str(new["label_default"]))
    if query == "columns" and new.get("is_user_type") and new.get("type") is not None:
        new["type"] = pseudonym(key, "type", str(new["type"]))
    if query == "columns" and (new.get("is_user_type") or new.get("is_domain")):
        new["declared"] = pseudonym(key, "type", str(new.get("declared")))
    # A session is named by its pid; slots and prepared transactions by their users.
    if query == "horizon" and new.get("kind") in ("slot", "prepared"):
        new["name"] = pseudonym(key, str(new["kind"]), str(new["name"]))
    return new
