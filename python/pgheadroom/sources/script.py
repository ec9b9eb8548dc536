"""
The statements of `observe` as a psql script, for servers where only psql may connect.

The script asks what `observing.py` asks, in the same words, and writes one file a pass into the
folder where psql runs; `recording.read_files` reads them. It suits every version: where versions
differ, psql chooses.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.sources import observing, sql

_HEAD = """\
-- pgheadroom observe, for psql. It only reads.
--
--     psql -X -f SCRIPT 'CONNECTION'       in an empty folder; takes about {minutes:.0f} min
--     pgheadroom observe --from FOLDER -o profile.json
--
-- It writes {files} into the folder where psql runs. They hold names of tables and columns and
-- texts of statements, and salted hashes of the values of some rows; `observe --from FOLDER --mask`
-- leaves all of these out of the profile.
-- A statement that fails (no privilege, say) is named by psql, and the rest goes on.
\\set ON_ERROR_STOP off
\\set QUIET on
\\pset format unaligned
\\pset tuples_only on
\\pset pager off
SELECT CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END
       AS encoding
\\gset
\\encoding :encoding
"""
_SESSION = {
    "application_name": observing.APPLICATION_NAME,
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",
    "lock_timeout": "1s",
    "search_path": "pg_catalog",
}


def psql_script(request: observing.ObservationRequest) -> str:
    """
    The whole script.

    Args:
        request: Its length, ticks and samples; the time cap of all samples together is not kept,
            only that of each statement.
    """
    return "\n".join(_parts(request)) + "\n"


def _parts(request: observing.ObservationRequest) -> Iterator[str]:
    yield _HEAD.format(minutes=request.duration_s / 60, files="pgheadroom-observed-*.jsonl")
    for name, value in (_SESSION | observing.SESSION_SETTINGS).items():
        if name != "client_encoding":
            yield f"SET {name} = '{value}';"
    for variable, number in request.variables().items():
        yield f"\\set {variable} {_set_value(number)}"
    if request.tables:
        yield sql.text("chosen_tables", 0) or ""
        yield "\\gset"
    yield from _conditions()
    yield from _pass(observing.SHAPE, "shape", "00-shape")
    if request.samples:
        yield "SELECT (random() * 1e15)::int8 AS salt\n\\gset"
        yield from _samples(request, observing.VALUES, "start", "00-values")
    yield from _pass(observing.COUNTERS, "start", "01-start")
    yield (
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS start_xid\n\\gset\n"
        "\\echo the interval has begun"
    )
    pause_s = max(round(request.duration_s / request.ticks), 1)
    for number in range(1, request.ticks + 1):
        # psql's own pause: pg_sleep would hold a snapshot, and so the horizon.
        yield f"\\! sleep {pause_s}"
        if number < request.ticks:
            yield from _pass(observing.TICK, f"tick {number}", f"02-tick-{number:03d}")
    yield from _pass(observing.END, "end", "03-end")
    if request.samples:
        names = (*observing.VALUES, *observing.SAMPLES)
        yield from _samples(request, names, "end", "04-samples")
    yield "\\o\n\\echo done"


def _set_value(value: int | str) -> str:
    """As psql reads it: between single quotes, with escapes as in C."""
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _conditions() -> Iterator[str]:
    majors = sorted({since for name in sql.names() for since, _ in sql.variants(name) if since})
    listed = ", ".join(
        f"current_setting('server_version_num')::int >= {major}0000 AS from_{major}"
        for major in majors
    )
    yield f"SELECT {listed}\n\\gset"
    for extension, variable in sorted(set(observing.EXTENSION_OF.values())):
        quoted = "quote_ident(n.nspname)" if variable == "pgss_schema" else "n.nspname"
        yield (
            f"SELECT count(*) > 0 AS has_{variable}, coalesce(max({quoted}), '') AS {variable}\n"
            "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace\n"
            f"WHERE e.extname = '{extension}' AND has_schema_privilege(n.oid, 'USAGE')\n\\gset"
        )
    yield "SELECT rolsuper AS is_superuser FROM pg_roles WHERE rolname = current_user\n\\gset"


def _pass(queries: tuple[str, ...], moment: str, file: str) -> Iterator[str]:
    yield f"\n\\o pgheadroom-observed-{file}.jsonl"
    for name in queries:
        needed = observing.EXTENSION_OF.get(name)
        if needed is not None:
            yield f"\\if :has_{needed[1]}"
        yield from _chosen(name, moment)
        if needed is not None:
            yield "\\endif"
    yield "\\o"


def _chosen(name: str, moment: str) -> Iterator[str]:
    """The query's text for the server's version."""
    variants = sql.variants(name)
    for place, (since, query) in enumerate(variants):
        if since:
            yield f"\\{'if' if place == 0 else 'elif'} :from_{since}"
        elif place:
            yield "\\else"
        yield sql.as_line(name, moment, query) + ";"
    if variants[0][0]:
        yield "\\endif"


def _samples(
    request: observing.ObservationRequest, names: tuple[str, ...], moment: str, file: str
) -> Iterator[str]:
    """Statements that write statements, which psql then runs one by one."""
    yield f"\nSET statement_timeout = '{round(request.sample_statement_s * 1000)}ms';"
    yield f"\\set moment {moment}"
    yield f"\\o pgheadroom-observed-{file}.jsonl"
    for name in names:
        ((_, query),) = sql.variants(name)
        needed = observing.EXTENSION_OF.get(name)
        if needed is not None:
            yield f"\\if :has_{needed[1]}"
        if name == "page_statements":
            yield "\\if :is_superuser"
        yield f"{query}\n\\gexec"
        if name == "page_statements":
            yield "\\endif"
        if needed is not None:
            yield "\\endif"
    yield f"\\o\nSET statement_timeout = '{_SESSION['statement_timeout']}';"
