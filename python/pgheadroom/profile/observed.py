"""
What `observe` wrote beside a profile, checked where it is read.

`[server.observed]` and `[table.observed]` stand in a file that anybody may have edited or cut. What
advice, check, plan and verification read of them has its shape here, so that they may rely on it;
what they do not read may be as it is.
"""

from __future__ import annotations

from pgheadroom.profile.shapes import (
    choice,
    flag,
    many,
    mapping,
    nullable,
    number,
    one_of,
    record,
    row,
    text,
    whole,
)

_OID_MAX = 2**32 - 1
_SECONDS_MAX = 1e9  # thirty years
_PAGES_MAX = 2**32  # MaxBlockNumber and one

_frac = number(0, 1)
_count = number(0)
_counts = mapping(nullable(_count))


_texts = many(text())
_INDEX = record(
    {
        "schema": text(),
        "name": text(),
        "method": text(),
        "is_unique": flag(),
        "is_primary": flag(),
        "is_summarizing": flag(),
        "columns": _texts,
        "ends_hot": flag(),
        "ends_hot_by_columns": _texts,
    },
    {
        "oid": whole(0, _OID_MAX),
        "is_exclusion": flag(),
        "is_clustered": flag(),
        "is_replica_identity": flag(),
        "is_valid": flag(),
        "is_ready": flag(),
        "is_live": flag(),
        "include": _texts,
        "expressions": one_of(text(), _texts, expected="a list of texts, or a text"),
        "predicate": text(),
        "reloptions": mapping(
            one_of(text(), number(), flag(), expected="a setting: a text or a number")
        ),
        "main_bytes": _count,
        "counters": _counts,
        "totals": _counts,
    },
)
_COLUMN = record(
    {"name": text(), "type": text()},
    {
        "null_frac": _frac,
        "avg_width": _count,
        "n_distinct": number(-1),
        "correlation": number(),
        "stored_bytes": number(0, 2**31),
        "stored_bytes_deviation": number(0, 2**31),
        "stored_bytes_evidence": text(),
        "substituted": text(),
    },
)
_CLASS = record(
    {
        "kind": text(),
        "columns": _texts,
        "calls": whole(),
        "rows": nullable(whole()),
        "frac": nullable(_frac),
    },
    {
        "attnums": many(whole(0, 1600)),
        "rows_per_statement": _count,
        "same": _texts,
        "appended": _texts,
        "wal_bytes": _count,
    },
)
_UPDATES = record(
    {"classes": many(_CLASS), "pick": record({"evidence": text()}, {"why": text()})},
    {
        "source": text(),
        "unattributed_frac": _frac,
        "unattributed_resolution": _frac,
        "unattributed_why": text(),
        "assumed": _texts,
    },
)
_SAMPLE = record(
    {
        "tuple_bytes": record(
            {"mean": number(0, 2**31), "deviation": number(0, 2**31)}, {"evidence": text()}
        )
    },
    {
        "pages": _count,
        "rows": _count,
        "recent_rows": _count,
        "drawn_percent": number(0, 100),
        "since_xids": whole(0, 2**32),
        # Rows by age: [k, rows, bytes of them], age from 2^k to 2^(k+1) transactions.
        "ages": many(row(whole(0, 64), _count, _count)),
    },
)
_FREE_SPACE = record(
    {
        "pages": whole(0, _PAGES_MAX),
        "class_bytes": whole(1, 8192),
        "classes": many(row(whole(0, 8192), whole(0, _PAGES_MAX))),
    },
    {"source": text(), "evidence": text(), "table_pages": whole(0, _PAGES_MAX)},
)
TABLE = record(
    {
        "schema": text(),
        "name": text(),
        "oid": whole(0, _OID_MAX),
        "relfilenode": whole(0, _OID_MAX),
        "main_bytes": nullable(_count),
        "counters": _counts,
        "per_s": _counts,
        "columns": many(_COLUMN),
        "indexes": many(_INDEX),
        "updates": _UPDATES,
    },
    {
        "relpages": whole(),
        "relallvisible": whole(),
        "pages": whole(0, _PAGES_MAX),
        "parent": text(),
        "persistence": text(),
        "reloptions": mapping(text()),
        "totals": _counts,
        "state": mapping(nullable(number())),
        "toast": record({}, {"main_bytes": _count, "counters": _counts}),
        "sample": _SAMPLE,
        "free_space": many(_FREE_SPACE),
        "differs": mapping(text()),
        "rows_evidence": text(),
    },
)
"""`[table.observed]`."""

_STOOD_STILL = record({"start_frac": _frac, "length_frac": _frac})
_HOLDER = record(
    {
        "kind": choice("session", "standby", "slot", "prepared"),
        "name": text(),
        "holds_data": nullable(flag()),
        "age_xids_max": whole(),
        "transaction_age_s": nullable(number(0, _SECONDS_MAX)),
    },
    {
        "backend_type": text(),
        "application_name": text(),
        "usename": text(),
        "state": text(),
        "seen": whole(),
    },
)
_SETTING = record({"setting": nullable(text())}, {"unit": text(), "source": text()})
SERVER = record(
    {
        "interval_s": number(0.001, _SECONDS_MAX),
        "server_version": text(),
        "database": text(),
        "database_oid": whole(0, _OID_MAX),
        "system_identifier": nullable(text()),
        "observed_at": text(),
        "in_recovery": nullable(flag()),
        "is_idle": flag(),
        "masked": flag(),
        "access": record({"levels": _texts, "missing": _texts}, {"would_help": _texts}),
        "broken": _texts,
        "changed": _texts,
        "assumed": _texts,
        "partitioned": many(
            record({"schema": text(), "name": text()}, {"parent": text(), "strategy": text()})
        ),
        "counters": record(
            {},
            {
                "checkpoint": record(
                    {}, {"num_timed": _count, "num_requested": _count, "totals": _counts}
                ),
                "wal": record(
                    {},
                    {"wal_records": _count, "wal_fpi": _count, "wal_bytes": _count}
                    | {"totals": _counts},
                ),
                "database": record({}, {"totals": _counts}),
                "wal_position_bytes": number(),
                "wal_bytes_per_s": number(),
                "xids": whole(),
                "xids_per_s": _count,
            },
        ),
        "horizon": record({"stood_still": many(_STOOD_STILL), "holders": many(_HOLDER)}),
        "modules": mapping(text()),
    },
    {
        "tool_version": text(),
        "role": text(),
        "passes": whole(),
        "settings": mapping(_SETTING),
        "left_out": many(record({"schema": text(), "name": text(), "why": text()})),
        "statements": many(
            record(
                {"source": text(), "statements": whole(), "calls": whole()},
                {"detail": text(), "not_understood": mapping(whole())},
            )
        ),
    },
)
"""`[server.observed]`."""
