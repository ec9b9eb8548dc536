"""
A file becomes a profile: parse, read each section, fill in defaults, check across sections.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgheadroom.errors import InputError
from pgheadroom.input_file import read_text
from pgheadroom.profile.check import check
from pgheadroom.profile.fields import FieldError, Fields, fail
from pgheadroom.profile.lines import line_of
from pgheadroom.profile.model import (
    CHECKSUMS_FROM_MAJOR,
    PGBENCH_TABLES,
    Operation,
    PgbenchBuiltin,
    Profile,
    Run,
    ServerSettings,
    Snapshot,
    TableProfile,
    Workload,
)
from pgheadroom.profile.observed import SERVER
from pgheadroom.profile.reading_operation import read_operation
from pgheadroom.profile.reading_table import read_table
from pgheadroom.profile.settings import check_setting
from pgheadroom.types import PgVersion
from pgheadroom.units import parse_setting_bytes

SCHEMA_VERSION = 1
VERSION_MIN, VERSION_MAX = 15, 19

_FILE_BYTES_MAX = 64 * 1024**2  # a profile of thousands of tables has a few; arbitrary
_TOP = ("schema_version", "server", "table", "operation", "pgbench", "run")
_SERVER = (
    "version",
    "shared_buffers",
    "full_page_writes",
    "wal_level",
    "wal_compression",
    "wal_log_hints",
    "data_checksums",
    "autovacuum",
    "autovacuum_naptime_s",
    "checkpoint_interval_s",
    "max_wal_size",
    "settings",
    "observed",
)


def read_profile(path: Path) -> Profile:
    """
    Read a profile; a file that begins with `{` is JSON, every other is TOML.

    Raises:
        InputError: Not readable, not TOML or JSON, or a field is wrong; with path and line.
    """
    text = read_text(path, bytes_max=_FILE_BYTES_MAX, expected="a profile, TOML or JSON")
    try:
        return parse_profile(load_text(text))
    except FieldError as error:
        line = line_of(text, error.path)
        place = f"{path}, line {line}" if line is not None else str(path)
        raise InputError(f"{place}: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def load_text(text: str) -> object:
    """
    The data of a TOML or JSON text.

    Raises:
        InputError: Neither; with the parser's words.
    """
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        return tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # deep nesting; numbers of thousands of digits
        raise InputError(f"not a profile: {type(error).__name__} while reading it") from None


def parse_profile(data: object) -> Profile:
    """
    Make a profile of data that TOML or JSON gave.

    Raises:
        FieldError: A field is unknown, missing, of a wrong type, out of range, or does not fit
            to another one.
    """
    assumed: dict[str, Any] = {}
    top = Fields(data, "", _TOP, assumed)
    top.integer("schema_version", SCHEMA_VERSION, SCHEMA_VERSION)
    server = _server(top.get("server") if top.has("server") else {}, assumed)
    tables: tuple[TableProfile, ...] = ()
    operations: tuple[Operation, ...] = ()
    builtin = None
    if top.has("pgbench"):
        for name in ("table", "operation"):
            if top.has(name):
                raise FieldError(name, "stands beside [pgbench], expected only one of them")
        builtin = _pgbench(top.get("pgbench"), assumed)
    else:
        found = top.items("table", "at least one [[table]], or [pgbench]", required=True)
        tables = tuple(read_table(item, f"table[{n}]", assumed) for n, item in enumerate(found))
        done = top.items("operation", "at least one [[operation]]", required=True)
        operations = tuple(
            read_operation(item, f"operation[{n}]", tables, assumed) for n, item in enumerate(done)
        )
    if not top.has("run"):
        raise FieldError("run", "missing, expected [run] with operations or duration_s")
    run = _run(top.get("run"), assumed)
    workload = Workload(operations=operations, builtin=builtin, run=run)
    profile = Profile(server=server, tables=tables, workload=workload, assumed=assumed)
    check(profile)
    return profile


def _server(value: object, assumed: dict[str, Any]) -> ServerSettings:
    fields = Fields(value, "server", _SERVER, assumed)
    version = fields.text("version", "18")
    major, _, minor = version.partition(".")
    digits = major.isascii() and major.isdecimal() and len(major) == 2
    minor_fits = not minor or (minor.isascii() and minor.isdecimal() and len(minor) <= 2)
    if not (digits and minor_fits and VERSION_MIN <= int(major) <= VERSION_MAX):
        fail(
            fields.at("version"),
            version,
            f'a version from {VERSION_MIN} to {VERSION_MAX}, such as "18" or "18.4"',
        )
    version = version.rstrip(".")
    settings = fields.words("settings")
    for name, setting in settings.items():
        check_setting(f"{fields.at('settings')}.{name}", name, setting)
    major_number = PgVersion(int(major), 0).major
    if not fields.has("data_checksums"):
        fields.assume("data_checksums", major_number >= CHECKSUMS_FROM_MAJOR)
    for name, what in (
        ("checkpoint_interval_s", "no checkpoint inside the run"),
        ("max_wal_size", "out of reach"),
    ):
        if not fields.has(name):
            fields.assume(name, what)
    return ServerSettings(
        version=version,
        shared_buffers_bytes=_size(fields, "shared_buffers", "1GB", 128 * 1024),
        full_page_writes=fields.flag("full_page_writes", True),
        wal_level=fields.choice("wal_level", ("minimal", "replica", "logical"), "replica"),
        wal_compression=fields.choice(
            "wal_compression", ("off", "on", "pglz", "lz4", "zstd"), "off"
        ),
        wal_log_hints=fields.flag("wal_log_hints", False),
        data_checksums=fields.flag("data_checksums", None),
        autovacuum=fields.flag("autovacuum", False),
        autovacuum_naptime_s=fields.number("autovacuum_naptime_s", 1, 2147483, None),
        # PostgreSQL's checkpoint_timeout is at least 30 s.
        checkpoint_interval_s=fields.number("checkpoint_interval_s", 30, 86400, None),
        max_wal_size_bytes=(
            _size(fields, "max_wal_size", "", 32 * 1024**2) if fields.has("max_wal_size") else None
        ),
        settings=settings,
        observed=fields.checked("observed", SERVER),
    )


def _size(fields: Fields, name: str, default: str, low_bytes: int) -> int:
    text = fields.text(name, default)
    try:
        size_bytes = parse_setting_bytes(text)
    except InputError as error:
        raise FieldError(fields.at(name), str(error)) from None
    if not low_bytes <= size_bytes <= 2**50:
        fail(fields.at(name), text, f"at least {low_bytes // 1024}kB and at most 1024TB")
    return size_bytes


def _pgbench(value: object, assumed: dict[str, Any]) -> PgbenchBuiltin:
    fields = Fields(value, "pgbench", ("builtin", "scale", "fillfactor"), assumed)
    chosen: Mapping[str, Any] = fields.opaque("fillfactor") or {}
    fillfactors = Fields(chosen, fields.at("fillfactor"), PGBENCH_TABLES, assumed)
    return PgbenchBuiltin(
        builtin=fields.choice("builtin", ("tpcb-like", "simple-update", "select-only")),
        scale=fields.integer("scale", 1, 100_000),
        fillfactor={name: fillfactors.integer(name, 10, 100, 100) for name in PGBENCH_TABLES},
    )


def _run(value: object, assumed: dict[str, Any]) -> Run:
    known = ("operations", "duration_s", "rate_per_s", "clients", "seed", "snapshot")
    fields = Fields(value, "run", known, assumed)
    clients = fields.integer("clients", 1, 10_000, 1)
    if fields.has("operations") == fields.has("duration_s"):
        found = "both" if fields.has("operations") else "neither"
        raise FieldError("run", f"found {found} of operations and duration_s, expected one")
    operations = fields.integer("operations", 1, 2**31 - 1, None)
    if operations is not None and operations % clients:
        fail("run.operations", operations, f"a multiple of run.clients, which is {clients}")
    rate_per_s = fields.number("rate_per_s", 0.001, 1e9, None)
    if rate_per_s is not None and operations is not None:
        raise FieldError("run.rate_per_s", "stands beside operations, expected beside duration_s")
    duration_s = fields.number("duration_s", 1, 10 * 86400, None)
    if duration_s is not None and not duration_s.is_integer():
        fail("run.duration_s", duration_s, "whole seconds, which is what pgbench takes")
    snapshots = tuple(
        _snapshot(item, f"run.snapshot[{n}]", assumed)
        for n, item in enumerate(fields.items("snapshot", "a list of snapshots"))
    )
    return Run(
        operations=operations,
        duration_s=duration_s,
        rate_per_s=rate_per_s,
        clients=clients,
        seed=fields.integer("seed", 0, 2**63 - 1, 1),
        snapshots=snapshots,
    )


def _snapshot(value: object, path: str, assumed: dict[str, Any]) -> Snapshot:
    fields = Fields(value, path, ("start_frac", "length_frac"), assumed)
    found = Snapshot(
        start_frac=fields.number("start_frac", 0, 1), length_frac=fields.number("length_frac", 0, 1)
    )
    if found.start_frac + found.length_frac > 1 + 1e-9:
        fail(fields.at("length_frac"), found.length_frac, "a snapshot that ends within the run")
    return found
