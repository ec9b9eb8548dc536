"""
Settings of checkpoints and WAL: by the log itself, by the rate that was counted, or by rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.settings.arithmetic import (
    GIB,
    WAL_PEAK,
    are_by_wal,
    checkpoints_by_wal,
    distance_bytes,
    rounded_up_mib,
    wal_size_for,
)
from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.settings.values import OpenSetting
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_duration
from pgheadroom.wal.other_checkpoints import KNEE_LEFT_FRAC
from pgheadroom.wal.what_if_values import CheckpointWal, WhatIf, middle

TIMEOUT_S = 900.0
TIMEOUT_SHORT_S = 600.0
_TIMEOUT_RANGE_S = (TIMEOUT_SHORT_S, 3600.0)
_TARGET = 0.9
_SAVES_FRAC_MIN = 0.05  # of the log, below which a change is not worth a line; arbitrary
IMAGES_FRAC_MIN = 0.5
IMAGES_BYTES_A_DAY_MIN = GIB
_COMPRESSED_FRAC_MIN = 0.1
_BY_WORKLOAD = {"web": 4 * GIB, "oltp": 8 * GIB, "dw": 16 * GIB, "mixed": 4 * GIB}
"""Where nobody knows the rate: what pgtune says today."""


def decide(case: SettingsCase) -> Iterator[Said]:
    """checkpoint_timeout, max_wal_size, the completion target, wal_compression."""
    knee = None if case.log is None else knee_of(case.log)
    timeout_s = case.number("checkpoint_timeout")
    said = _timeout(case, knee)
    yield said
    low, high = _TIMEOUT_RANGE_S
    if knee is not None and knee.timeout_s is not None:
        timeout_s = max(timeout_s, knee.timeout_s)
    elif not low <= timeout_s <= high:
        timeout_s = TIMEOUT_S
    name = "checkpoint_completion_target"
    target = case.number(name)
    if target < _TARGET:
        yield case.line(
            name,
            _TARGET,
            basis="rule",
            reason="the default since 14",
            changes="a checkpoint's writing is spread over most of the time until the next",
            rule="checkpoint_completion_target (B6.14)",
        )
        target = _TARGET
    else:
        yield case.kept(name, "the default or more")
    yield _max_wal_size(case, knee, timeout_s, target)
    yield _compression(case)


def knee_of(log: WhatIf) -> CheckpointWal | None:
    """
    The smallest setting that saves nearly all that can be; None where that is not worth it.

    A timeout that passes less than twice in the log is none that it speaks of.
    """
    now = middle(in_force(log).bytes)
    tried = [
        one
        for one in log.checkpoint
        if not one.in_force and one.timeout_s is not None and 2 * one.timeout_s <= log.length_s
    ]
    least = min((middle(one.bytes) for one in tried), default=now)
    if now - least < _SAVES_FRAC_MIN * now:
        return None
    enough = least + KNEE_LEFT_FRAC * (now - least)
    good = [one for one in tried if middle(one.bytes) <= enough]
    return min(good, key=lambda one: (one.max_wal_size_bytes or 0, one.timeout_s or 0))


def in_force(log: WhatIf) -> CheckpointWal:
    """The log as it is."""
    return next(one for one in log.checkpoint if one.in_force)


def _log_says(case: SettingsCase, knee: CheckpointWal) -> str:
    log = case.log
    assert log is not None
    now = in_force(log)
    return (
        f"measured in the log {log.start_lsn} to {log.end_lsn} "
        f"({show_duration(log.length_s)}): {show_bytes(middle(now.bytes))} of WAL as it is, "
        f"{show_bytes(middle(knee.bytes))} with {show_duration(knee.timeout_s or 0)} and "
        f"{show_bytes(knee.max_wal_size_bytes or 0)} (`wal what-if`)"
    )


def _timeout(case: SettingsCase, knee: CheckpointWal | None) -> Said:
    name = "checkpoint_timeout"
    now = case.number(name)
    low, high = _TIMEOUT_RANGE_S
    costs = (
        "a page's first change after a checkpoint writes the whole page, so there is less WAL; "
        "recovery after a crash reads up to so much time of it"
    )
    if knee is not None and knee.timeout_s is not None:
        if now >= knee.timeout_s:
            return case.kept(name, _log_says(case, knee))
        return case.line(
            name,
            knee.timeout_s,
            basis="measured",
            reason=_log_says(case, knee),
            changes=costs,
            rule="checkpoint_timeout (B6.13, B11.29)",
        )
    if low <= now <= high:
        return case.kept(name, "from 10 min to an hour")
    return case.line(
        name,
        TIMEOUT_S,
        basis="rule",
        reason="15 min to 30 min are usual where recovery may take some minutes",
        changes=costs if now < low else "recovery after a crash reads less WAL; there is more",
        rule="checkpoint_timeout (B6.13, B11.29)",
    )


def _max_wal_size(
    case: SettingsCase, knee: CheckpointWal | None, timeout_s: float, target: float
) -> Said:
    name, rule = "max_wal_size", "max_wal_size (B6.12, B11.27, B5.8)"
    now = case.number(name)

    def line(wanted: float, basis: str, reason: str) -> Said:
        value = rounded_up_mib(max(wanted, GIB))
        return case.line(
            name,
            value,
            basis="measured" if basis == "measured" else "rule",
            reason=reason,
            changes="checkpoints come by the clock, not because the log is full; pg_wal takes "
            f"about {show_bytes(value)} of disk, more where a slot or the archiver holds it",
            rule=rule,
        )

    segment = int(case.number("wal_segment_size"))
    if knee is not None and knee.max_wal_size_bytes is not None:
        if now >= knee.max_wal_size_bytes:
            return case.kept(name, _log_says(case, knee))
        return line(knee.max_wal_size_bytes, "measured", _log_says(case, knee))
    rate, over = _rate(case)
    if rate is None:
        by_rule = _BY_WORKLOAD.get(case.given.workload or "")
        if by_rule is None:
            return OpenSetting(
                name=name,
                by="--for or --wal, or --workload" if case.is_live else "--wal, or --workload",
                reason=f"no rate of WAL is known: {case.uncounted}",
            )
        if now >= by_rule:
            return case.kept(name, f"{show_bytes(by_rule)} or more (--workload)")
        return line(
            by_rule,
            "rule",
            f"no rate of WAL is known ({case.uncounted}): a start for --workload "
            f"{case.given.workload}",
        )
    needed = wal_size_for(rate, timeout_s, segment, target)
    asked = ""
    counted = case.counted
    if counted is not None and case.log is None and counted.checkpoints_done is not None:
        distance = distance_bytes(now, segment, case.number("checkpoint_completion_target"))
        by_wal = checkpoints_by_wal(
            counted.checkpoints_requested or 0,
            counted.checkpoints_done,
            counted.wal_bytes if counted.checkpoints_beside_wal else None,
            distance,
        )
        if are_by_wal(by_wal, counted.checkpoints_done):
            needed = max(needed, int(2 * now))
            asked = (
                f"; up to {by_wal} of {counted.checkpoints_done} checkpoints came because "
                f"{show_bytes(distance)} were written"
            )
    means = (
        f"measured {over}: {show_bytes(rate)} of WAL a second, so {show_bytes(rate * timeout_s)} "
        f"in {show_duration(timeout_s)}{asked}"
    )
    if now >= needed:
        return case.kept(name, means)
    wanted = needed if asked and needed >= 2 * now > needed / WAL_PEAK else needed * WAL_PEAK
    return line(
        wanted,
        "measured",
        f"{means}; x (1 + {target:g}) and two segments, and twice that for peaks",
    )


def _rate(case: SettingsCase) -> tuple[float | None, str]:
    """Bytes of WAL a second, and over which time."""
    log, counted = case.log, case.counted
    if log is not None and log.length_s > 0:
        now = in_force(log)
        return middle(now.bytes) / log.length_s, f"in {show_duration(log.length_s)} of the log"
    if counted is not None and counted.wal_bytes is not None and counted.wal_length_s:
        return counted.wal_bytes / counted.wal_length_s, counted.wal_over
    return None, ""


def _compression(case: SettingsCase) -> Said:
    name, rule = "wal_compression", "wal_compression (B5.12)"
    setting = case.in_force[name]
    if setting.value != "off":
        return case.kept(name, "it is on")
    if case.log is not None and case.log.compression:
        return _compression_by_log(case, case.log)
    counted = case.counted
    if counted is None or counted.wal_bytes is None or not counted.wal_length_s:
        return OpenSetting(
            name=name,
            by="--wal" if not case.is_live else "--for or --wal",
            reason=f"what images are of the WAL is not known: {case.uncounted}",
        )
    images = min((counted.wal_fpi or 0.0) * PAGE_BYTES, counted.wal_bytes)
    share = images / max(counted.wal_bytes, 1.0)
    a_day = images * 86_400.0 / counted.wal_length_s
    said = (
        f"full-page images are up to {show_bytes(images)} of {show_bytes(counted.wal_bytes)} of "
        f"WAL {counted.wal_over} ({percent(share)})"
    )
    if share < IMAGES_FRAC_MIN or a_day < IMAGES_BYTES_A_DAY_MIN:
        return case.kept(name, said)
    return case.line(
        name,
        "lz4" if "lz4" in setting.enumvals else "pglz",
        basis="measured",
        reason=said,
        changes="images are written compressed, at processor time of the session that changes the "
        "page; what it saves here, `wal what-if` says by the log itself",
        rule=rule,
    )


def _compression_by_log(case: SettingsCase, log: WhatIf) -> Said:
    name = "wal_compression"
    setting = case.in_force[name]
    now = middle(in_force(log).bytes)
    allowed = setting.enumvals or ("pglz",)
    found = [one for one in log.compression if one.method in allowed]
    best = min(found, key=lambda one: one.bytes, default=None)
    cheap = next((one for one in found if one.method == "lz4"), best)
    if best is None or cheap is None or now - cheap.bytes < _COMPRESSED_FRAC_MIN * now:
        return case.kept(name, "the log would be shorter by less than 10 %")
    return case.line(
        name,
        cheap.method,
        basis="measured",
        reason=f"the log would have {show_bytes(cheap.bytes)} instead of {show_bytes(now)} "
        "(`wal what-if`)",
        changes=f"images are compressed: {cheap.cpu_s:.2g} s of processor time for the "
        f"{show_duration(log.length_s)} of that log, here",
        rule="wal_compression (B5.12)",
    )
