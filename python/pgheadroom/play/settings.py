"""
The server's settings of a run: what every run has, what the profile says, and when.

Autovacuum and checkpoints stay out of reach until the load has been checkpointed; only then are
they switched on as the profile wants them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.profile import Profile
from pgheadroom.types import Assumed, PgVersion
from pgheadroom.units import setting_bytes

_OUT_OF_REACH = "1000000GB"

CONDUCT = {
    "fsync": "off",
    "synchronous_commit": "on",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "bgwriter_lru_maxpages": "0",
    "synchronize_seqscans": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_indexonlyscan": "off",
    # The window's WAL has to be there when it is read.
    "wal_keep_size": "1000000GB",
    "max_wal_senders": "0",
}
"""The same in every run, so that runs can be compared."""


def fitting_settings(
    profile: Profile, known: Collection[str], version: PgVersion
) -> tuple[Profile, Assumed]:
    """
    The profile as a server of this version can have it, and what was left out of its settings.

    A profile that was observed on one version has settings that another lacks: initdb of 18
    writes `autovacuum_worker_slots` into its file. Those without effect on pages are left out.

    Args:
        profile: The profile.
        known: Names of the server's settings.
        version: The server's.

    Raises:
        InputError: It lacks one that has an effect.
    """
    left_out = {}
    for name, value in profile.server.settings.items():
        if name in known:
            continue
        path = f"server.settings.{name}"
        if _core.setting_becomes(name, value)[0] != "no effect on pages":
            raise InputError(f"{path}: PostgreSQL {version} does not have it: leave it out")
        left_out[path] = f"left out: PostgreSQL {version} does not have it"
    if not left_out:
        return profile, {}
    kept = {name: value for name, value in profile.server.settings.items() if name in known}
    return replace(profile, server=replace(profile.server, settings=kept)), left_out


def start_settings(profile: Profile) -> dict[str, str]:
    """Settings with which the server starts, and loads."""
    server = profile.server
    return {
        **server.settings,
        **CONDUCT,
        "max_connections": str(profile.workload.run.clients + 20),
        "shared_buffers": setting_bytes(server.shared_buffers_bytes),
        "full_page_writes": _flag(server.full_page_writes),
        "wal_level": server.wal_level,
        "wal_compression": server.wal_compression,
        "wal_log_hints": _flag(server.wal_log_hints),
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "max_wal_size": _OUT_OF_REACH,
    }


def late_settings(profile: Profile) -> dict[str, str]:
    """Settings that change when the window begins; none of them needs a restart."""
    server = profile.server
    settings = {}
    if server.checkpoint_interval_s is not None:
        settings["checkpoint_timeout"] = f"{round(server.checkpoint_interval_s)}s"
    if server.max_wal_size_bytes is not None:
        settings["max_wal_size"] = setting_bytes(server.max_wal_size_bytes)
    if server.autovacuum:
        if server.autovacuum_naptime_s is not None:
            settings["autovacuum_naptime"] = f"{round(server.autovacuum_naptime_s)}s"
        settings["autovacuum"] = "on"
    return settings


def _flag(value: bool) -> str:
    return "on" if value else "off"
