"""
The demo's loop: observe, advise, apply, verify, each the command of that name as a user calls it.

The shop that they work on is in `demo_shop`.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import typer
from rich.console import Console

from pgheadroom.advise import Options, advise, make_policy
from pgheadroom.advise.advice import Advice
from pgheadroom.cli import apply, demo_shop, observe, output, verify
from pgheadroom.cli.demo_shop import Shop
from pgheadroom.cli.options import Format
from pgheadroom.cli.terminal import Terminal
from pgheadroom.plan import make_plan, plan_text
from pgheadroom.plan.record import record_path
from pgheadroom.profile import read_profile
from pgheadroom.report import text
from pgheadroom.report import verification as verification_report
from pgheadroom.report.advice import html as advice_html
from pgheadroom.report.advice import text as advice_text
from pgheadroom.servers import Host, find_programs
from pgheadroom.verify import Verification

WARM_S = 25.0
"""Load before the observation: long enough that the pages are as they stay."""

SETTLE_S = 10.0
"""Load between the change and its verification: new orders have come to new pages."""

WATCH = "20s"
_BUDGET_S = 150.0  # three tables take a tenth of it on two cores of their own
_TABLES_SHOWN = 2  # verdicts and shares; the page has bytes and workload too
MAX_GROWTH = "25%"
"""How much larger the tables may become, as whoever owns the disk would say."""


def play_demo(folder: Path, server: str) -> bool:
    """
    Play the whole loop and write its files.

    Args:
        folder: Where they go; made if it is not there.
        server: A version, or a folder with server programs.

    Returns:
        Whether a forecast failed.
    """
    console = Terminal(highlight=False)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        Host(find_programs(server), label="demo") as host,
        demo_shop.opened(host) as (shop, cluster),
    ):
        _step(console, "A shop under load: orders come, devices report, accounts are booked.")
        with demo_shop.under_load(host, cluster):
            time.sleep(WARM_S)
            _observed(console, shop, folder)
        # Without load, so that the answer does not depend on how long two slow cores think.
        advice = _advised(console, folder)
        with demo_shop.under_load(host, cluster):
            _applied(console, shop, folder)
            time.sleep(SETTLE_S)
            outcome, failed = _verified(console, shop, folder)
    report = folder / "report.html"
    command = "pgheadroom demo"
    output.write(advice_html.render(advice, command=command, outcome=outcome), report)
    output.write_out(f"{report.absolute()}\n")
    return failed


def _observed(console: Console, shop: Shop, folder: Path) -> None:
    profile_path = folder / "profile.json"
    _step(
        console,
        "Observe it, only reading: which columns updates assign is in its log, which table writes "
        "most WAL, and why, in the write-ahead log.",
    )
    asked = ("--for", WATCH, "--log", "server.log", "--wal", "-o", profile_path)
    _command(console, "observe", shop.conninfo, *asked)
    observe.observe_command(
        targets=[shop.conninfo], length=WATCH, to=profile_path, log=[shop.log], wal=True
    )


def _advised(console: Console, folder: Path) -> Advice:
    profile_path, plan_path = folder / "profile.json", folder / "plan.json"
    _step(console, "Advise: why updates miss HOT, what to set, what that changes and costs.")
    _command(console, "advise", profile_path, "--max-growth", MAX_GROWTH, "--plan", plan_path)
    profile = read_profile(profile_path)
    growth_frac = float(MAX_GROWTH.removesuffix("%")) / 100
    advice = advise(
        profile, Options(policy=make_policy(max_growth_frac=growth_frac), budget_s=_BUDGET_S)
    )
    output.write(text.as_json(advice.to_json()), folder / "advice.json")
    advice_text.print_advice(advice, console, brief=True)
    output.write(plan_text(make_plan(advice, profile)), plan_path)
    return advice


def _applied(console: Console, shop: Shop, folder: Path) -> None:
    _step(console, "Apply: the only part that writes; it shows everything first.")
    plan_path = folder / "plan.json"
    _command(console, "apply", plan_path, shop.conninfo, "--yes")
    # What an earlier demo did was on another server.
    record_path(plan_path).unlink(missing_ok=True)
    apply.apply_command(plan=plan_path, target=shop.conninfo, yes=True)


def _verified(console: Console, shop: Shop, folder: Path) -> tuple[Verification, bool]:
    _step(console, "Verify: the same measures again, beside what was forecast.")
    plan_path, path = folder / "plan.json", folder / "verification.json"
    _command(console, "verify", plan_path, shop.conninfo, "--for", WATCH, "--log", "server.log")
    failed = _fails(
        lambda: verify.verify_command(
            plan=plan_path,
            target=shop.conninfo,
            length=WATCH,
            log=[shop.log],
            form=Format.JSON,
            to=path,
        )
    )
    found = Verification.from_json(json.loads(path.read_text(encoding="utf-8")))
    console.print(verification_report.title(found), style="bold", markup=False)
    for line in (*verification_report.findings(found), *found.notes):
        console.print(f"* {line}", markup=False)
    console.print()
    text.print_tables(verification_report.tables(found)[:_TABLES_SHOWN], console)
    return found, failed


def _fails(call: Callable[[], None]) -> bool:
    """Whether a check ends with findings, for which it has an exit code."""
    try:
        call()
    except typer.Exit as ended:
        return ended.exit_code == 1  # what could not be judged did not fail
    return False


def _step(console: Console, said: str) -> None:
    console.print(f"\n{said}", style="bold", markup=False)


def _command(console: Console, *words: str | Path) -> None:
    line = shlex.join(["pgheadroom", *map(str, words)])
    console.print(f"$ {line}", style="dim", markup=False, soft_wrap=True)
