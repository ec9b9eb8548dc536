"""
A file becomes a profile, and a profile data again: every field written out.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pgheadroom import forms
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, fail
from pgheadroom.input_file import read_text
from pgheadroom.profile.assumed import assumed_of
from pgheadroom.profile.check import check
from pgheadroom.profile.completing import completed_operation, completed_table
from pgheadroom.profile.foreign_keys import with_parents
from pgheadroom.profile.lines import line_of
from pgheadroom.profile.maintaining import check_maintenance
from pgheadroom.profile.model import Profile, ProfileFile
from pgheadroom.profile.settings import check_setting
from pgheadroom.profile.workload import Run, Workload

_FILE_BYTES_MAX = 64 * 1024**2  # a profile of thousands of tables has a few; arbitrary


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
    found = forms.read(ProfileFile, data, nulls=False)
    assert isinstance(data, dict)
    _check_parts(data)
    for name, setting in found.server.settings.items():
        check_setting(f"server.settings.{name}", name, setting)
    raw = data.get("table", ())
    tables = tuple(
        completed_table(table, raw[n], f"table[{n}]") for n, table in enumerate(found.tables)
    )
    tables = with_parents(tables, raw)
    done = data.get("operation", ())
    operations = tuple(
        completed_operation(operation, done[n], f"operation[{n}]", tables)
        for n, operation in enumerate(found.operations)
    )
    _check_run(found.run)
    workload = Workload(operations=operations, builtin=found.builtin, run=found.run)
    profile = Profile(
        server=found.server, tables=tables, workload=workload, assumed=assumed_of(data, tables)
    )
    check(profile)
    check_maintenance(profile)
    return profile


def checked_profile(file: ProfileFile) -> Profile:
    """
    Make a profile of values, checked and completed as if they stood in a file.

    Raises:
        FieldError: As for `parse_profile`.
    """
    return parse_profile(forms.write(file, nulls=False))


def to_json(profile: Profile) -> dict[str, Any]:
    """The profile under the file's names; reading it again gives an equal profile."""
    return profile.to_json()


def _check_parts(data: dict[str, Any]) -> None:
    for name, expected in (
        ("table", "at least one [[table]], or [pgbench]"),
        ("operation", "at least one [[operation]]"),
    ):
        if "pgbench" in data:
            if name in data:
                raise FieldError(name, "stands beside [pgbench], expected only one of them")
        elif name not in data:
            raise FieldError(name, f"missing, expected {expected}")
        elif not data[name]:
            fail(name, data[name], expected)


def _check_run(run: Run) -> None:
    if (run.operations is None) == (run.duration_s is None):
        found = "neither" if run.operations is None else "both"
        raise FieldError("run", f"found {found} of operations and duration_s, expected one")
    if run.operations is not None and run.operations % run.clients:
        fail(
            "run.operations",
            run.operations,
            f"a multiple of run.clients, which is {run.clients}",
        )
    if run.rate_per_s is not None and run.operations is not None:
        raise FieldError("run.rate_per_s", "stands beside operations, expected beside duration_s")
    if run.duration_s is not None and not run.duration_s.is_integer():
        fail("run.duration_s", run.duration_s, "whole seconds, which is what pgbench takes")
    for n, held in enumerate(run.snapshots):
        if held.start_frac + held.length_frac > 1 + 1e-9:
            fail(
                f"run.snapshot[{n}].length_frac",
                held.length_frac,
                "a snapshot that ends within the run",
            )
