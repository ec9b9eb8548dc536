"""
Which PostgreSQL settings a profile may set.

A profile is a file that people pass around, and a setting can make a server run programs
(`archive_command`, `shared_preload_libraries`). So only settings that act on storage, WAL,
vacuum and planning costs are let through; those that a field of the profile stands for, and those
that the conduct of a run fixes, are refused with a hint.
"""

from __future__ import annotations

import re

from pgheadroom.forms import FieldError, fail

FIELDS = {
    "shared_buffers": "server.shared_buffers",
    "full_page_writes": "server.full_page_writes",
    "wal_level": "server.wal_level",
    "wal_compression": "server.wal_compression",
    "wal_log_hints": "server.wal_log_hints",
    "autovacuum": "server.autovacuum",
    "autovacuum_naptime": "server.autovacuum_naptime_s",
    "checkpoint_timeout": "server.checkpoint_interval_s",
    "max_wal_size": "server.max_wal_size",
}
"""Settings that have a field of their own."""

CONDUCT = frozenset(
    {
        "fsync",
        "synchronous_commit",
        "jit",
        "bgwriter_lru_maxpages",
        "max_parallel_workers_per_gather",
        "max_parallel_maintenance_workers",
        "synchronize_seqscans",
        "plan_cache_mode",
        "enable_seqscan",
        "enable_indexscan",
        "enable_bitmapscan",
        "enable_indexonlyscan",
        "max_connections",
        "max_wal_senders",
        "wal_keep_size",
    }
)
"""Settings that every run has, so that runs can be compared."""

_ALLOWED = re.compile(
    r"autovacuum_\w+|log_autovacuum_min_duration|vacuum_\w+|maintenance_work_mem|work_mem|"
    r"checkpoint_(completion_target|flush_after)|min_wal_size|wal_buffers|wal_writer_\w+|"
    r"wal_init_zero|wal_recycle|wal_skip_threshold|commit_(delay|siblings)|"
    r"bgwriter_(delay|lru_multiplier|flush_after)|backend_flush_after|huge_pages|"
    r"effective_\w+|\w+_cost|default_toast_compression|default_statistics_target|"
    r"io_(method|workers|combine_limit|max_combine_limit|max_concurrency)|debug_io_direct|"
    r"track_(io_timing|wal_io_timing|cost_delay_timing)|hash_mem_multiplier|"
    r"old_snapshot_threshold|gin_pending_list_limit|deadlock_timeout|max_locks_per_transaction|"
    r"buffer_usage_limit|transaction_buffers|subtransaction_buffers|multixact_\w+_buffers"
)


def check_setting(path: str, name: str, value: str) -> None:
    """
    Refuse a setting that a profile may not set.

    Raises:
        FieldError: With the reason, and the field to use instead where there is one.
    """
    if name in FIELDS:
        raise FieldError(path, f"has a field of its own, expected under {FIELDS[name]}")
    if name in CONDUCT:
        raise FieldError(path, "is the same in every run, expected no setting of it")
    if not _ALLOWED.fullmatch(name):
        raise FieldError(
            path,
            "a profile may not set this, expected a setting of storage, WAL, vacuum or costs",
        )
    if "\n" in value or "\r" in value:
        fail(path, value, "one line")
