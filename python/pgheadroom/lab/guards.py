"""
Guards of benchmark practice: what makes a number say less than it seems to.

Each gives a sentence for the result's warnings, or nothing. Nothing is refused: a short run on a
busy laptop still counts pages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pgheadroom.lab.environment_form import HARDWARE, Environment, Machine, values_of
from pgheadroom.lab.record import TrialSample
from pgheadroom.stats import median, steady_from
from pgheadroom.units import percent

BUSY_MEASURE = "host_busy_frac"
"""In every sample: what other work used of the processors just before the trial."""

BUSY_FRAC_MAX = 0.15
"""Other work from which times are not to be believed (arbitrary: a core of eight and a bit)."""

TRANSACTIONS_MIN = 100_000
WINDOW_S_MIN = 60
DRIVER_FRAC_MAX = 0.9

_PROBE_S = 0.2


def host_busy_frac(probe_s: float = _PROBE_S) -> float | None:
    """
    Share of all processors that others use now, while nothing of ours works.

    Returns:
        0 to 1, stolen time of a virtual machine included; None where the kernel does not say.
    """
    before = processor_ticks()
    if before is None:
        return None
    time.sleep(probe_s)
    return busy_frac(before, processor_ticks())


def busy_frac(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """Share of all processors that was used between two readings; None where one is missing."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    return round(1 - (after[0] - before[0]) / (after[1] - before[1]), 3)


def processor_ticks() -> tuple[int, int] | None:
    """Idle ticks, waiting for disks included, and all ticks since the start of the machine."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    ticks = [int(field) for field in fields[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def quiet_host(samples: Sequence[TrialSample]) -> list[str]:
    """Warn when other work ran before a good part of the trials."""
    shares = [
        share for sample in samples if (share := sample.measures.get(BUSY_MEASURE)) is not None
    ]
    busy = [share for share in shares if share > BUSY_FRAC_MAX]
    if len(busy) * 5 < max(len(shares), 1):
        return []
    return [
        f"Other work used the processors before {len(busy)} of {len(shares)} trials (median "
        f"{percent(median(shares))}): counters stand, times are noisier than on a quiet machine."
    ]


def assertions(environment: Environment) -> list[str]:
    """Warn of a server built with assertions, whose times are those of another program."""
    found = values_of(environment, "debug_assertions")
    if "on" not in found:
        return []
    which = "The server was" if len(found) == 1 else "One of the servers was"
    return [
        f"{which} built with assertions (debug_assertions is on): its times say nothing about a "
        "production build."
    ]


def several_machines(environment: Environment) -> list[str]:
    """Warn of workers whose times say less than those of one machine: unlike, or on one host."""
    workers = environment.workers or {}
    by_label: dict[str, list[Machine]] = {}
    by_host: dict[str, list[str]] = {}
    for name, worker in workers.items():
        by_label.setdefault(worker.label, []).append(worker.machine)
        by_host.setdefault(worker.host, []).append(name)
    found = []
    for label, machines in by_label.items():
        if unlike := _unlike(machines):
            found.append(
                f"Workers with the label {label} are unlike ({unlike}): trials of a block ran on "
                "either, so ratios of times compare the machines as well."
            )
    if not found and (unlike := _unlike([worker.machine for worker in workers.values()])):
        found.append(
            f"Workers with the labels {', '.join(by_label)} are unlike ({unlike}): ratios within "
            "blocks stand, medians of times mix them."
        )
    for names in by_host.values():
        if len(names) > 1:
            found.append(
                f"Workers {', '.join(names)} were on one host and may have disturbed each other: "
                "counters stand, times do not."
            )
    return found


def _unlike(machines: Sequence[Machine]) -> str:
    """What of their hardware differs, with its values; nothing if they are alike."""
    parts = []
    for name in HARDWARE:
        values = list(dict.fromkeys(str(getattr(machine, name)) for machine in machines))
        if len(values) > 1:
            parts.append(f"{name} {', '.join(values)}")
    return "; ".join(parts)


def clients_within_scale(scale: int, clients: int) -> list[str]:
    """Warn of more clients than branches, where waiting for their locks dominates."""
    if scale >= clients:
        return []
    return [
        f"Scale {scale} is below {clients} clients: "
        "waiting for the locks of pgbench_branches dominates the times."
    ]


def long_enough(
    samples: Sequence[TrialSample], window_s: int, *, rate: str = "tps", per_s: float = 1.0
) -> list[str]:
    """
    Warn of windows without the length, the transactions or the checkpoint of a verdict.

    Args:
        samples: All of a record.
        window_s: Length of a window.
        rate: The measure that has the throughput.
        per_s: What one of its units is in transactions per second.
    """
    timed = [sample for sample in samples if sample.measures.get(rate) is not None]
    if not timed:
        return []
    found = []
    if window_s < WINDOW_S_MIN:
        found.append(
            f"Windows of {window_s} s are short for throughput (a minute is the least, with a "
            "whole checkpoint cycle inside): trust the counters, repeat times with "
            "--set window_s=600."
        )
    done = min(float(sample.measures[rate] or 0) * per_s * window_s for sample in timed)
    if done < TRANSACTIONS_MIN:
        found.append(
            f"The shortest window held about {done:,.0f} transactions; below "
            f"{TRANSACTIONS_MIN:,} a few stalls decide the mean."
        )
    if not any(sample.measures.get("checkpoints") for sample in timed):
        found.append("No checkpoint began in any window: its cost is not in these times.")
    return found


def driver(used_s: float, window_s: float, threads: int) -> list[str]:
    """Note a window in which pgbench itself was at its limit, one core for each of its threads."""
    share = used_s / (window_s * threads)
    if share <= DRIVER_FRAC_MAX:
        return []
    return [
        f"The driver, pgbench, used more than {percent(DRIVER_FRAC_MAX)} of the processor time "
        "that its "
        f"{threads} threads can have in at least one window: it may be what limits the throughput."
    ]


def steady(tps_by_second: Sequence[float]) -> list[str]:
    """Note a window whose throughput had no steady state; short ones cannot tell."""
    if len(tps_by_second) < WINDOW_S_MIN or steady_from(tps_by_second) is not None:
        return []
    return [
        "In at least one window the throughput did not become steady: its mean depends on the "
        "length of the window."
    ]
