"""
`pgheadroom order`: how well tables lie in index order, and what ranges read for it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.options import Format, FormatOption, HtmlOption, OutputOption, TablesOption
from pgheadroom.errors import InputError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s

if TYPE_CHECKING:
    from rich.console import Console

    from pgheadroom.order import OrderReport
    from pgheadroom.order.live import OrderWish
    from pgheadroom.order.values import OrderPrices

_PAGES_BOUNDS = (100, 1_000_000)

_NoSampleOption = Annotated[
    bool,
    typer.Option("--no-sample", help="Read no rows: statistics and counters alone."),
]
_PagesOption = Annotated[
    int | None,
    typer.Option("--pages", help="Pages to read of each table, at most (default 1,000)."),
]
_LengthOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="Read counters twice, so far apart, e.g. 10m (default: what the statistics have "
        "since their start).",
    ),
]


_ReadOption = Annotated[
    float | None,
    typer.Option("--page-read-ms", help="Price of a page that is not cached (default 0.1)."),
]
_WriteOption = Annotated[
    float | None,
    typer.Option("--page-write-ms", help="Price of a page that CLUSTER writes (default 0.05)."),
]
_HitOption = Annotated[
    float | None,
    typer.Option("--page-hit-ms", help="Price of a page in shared buffers (default 0.0005)."),
]
_LockOption = Annotated[
    float | None,
    typer.Option(
        "--lock-cost",
        help="Seconds of work that a second counts for in which CLUSTER locks the table "
        "(default 10).",
    ),
]


_PlanOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plan",
        help="Write a plan that clusters what pays back within 30 days, or what --table names: "
        ".md, .sql, else JSON for apply; again for more.",
    ),
]
_ToolOption = Annotated[
    str | None,
    typer.Option(
        "--tool",
        help="Of the plan: auto (the best that locks for a moment alone), or repack (from 19 on), "
        "pg_squeeze, pg_repack, cluster, which locks the table.",
    ),
]


def order_command(
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    table: TablesOption = None,
    length: _LengthOption = None,
    no_sample: _NoSampleOption = False,
    pages: _PagesOption = None,
    page_read_ms: _ReadOption = None,
    page_write_ms: _WriteOption = None,
    page_hit_ms: _HitOption = None,
    lock_cost: _LockOption = None,
    plan: _PlanOption = None,
    tool: _ToolOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    How well tables lie in the order of their B-trees: pages that a range of 1,000 rows lies on.

    Only reads. Ranges are read in index order, at most --pages pages of a table: the answer is an
    interval, beside the pages of a freshly clustered table and of rows at random. By the rows that
    change, how that goes on; by the scans of an index and prices, when CLUSTER pays. Statements of
    pg_stat_statements that read ranges are told with what they touch.
    """
    from pgheadroom.order.live import SAMPLE_PAGES, OrderWish, order_live

    if no_sample:
        refuse(
            {"--pages": pages},
            where="with --no-sample, which reads none",
            instead="leave one of the two out",
        )
    least, most = _PAGES_BOUNDS
    if pages is not None and not least <= pages <= most:
        raise InputError(f"--pages {pages}: expected {least} to {most:,}")
    prices = _prices(
        page_read_ms=page_read_ms,
        page_write_ms=page_write_ms,
        page_hit_ms=page_hit_ms,
        lock_cost=lock_cost,
    )
    if not plan:
        refuse({"--tool": tool}, where="without a plan", instead="--plan FILE writes one")
    elif no_sample:
        raise InputError("--plan rests on what ranges tell: leave --no-sample out")
    output.check_outputs(to, html, *(plan or ()))
    wish = OrderWish(
        tables=tuple(table or ()),
        samples=not no_sample,
        pages=SAMPLE_PAGES if pages is None else pages,
        interval_s=None if length is None else parse_duration_s(length),
        prices=prices,
    )
    parameters = parameters_of(host, port, user, dbname)
    if plan:
        found = _planned(target, parameters, wish, plan, tool or "auto")
    else:
        found = order_live(target, parameters, wish, say=_say)
    _put(found, form, to)
    if html is not None:
        output.write(_page(found), html)
        output.said(html)


def _planned(
    target: str, parameters: dict[str, str], wish: OrderWish, paths: list[Path], how: str
) -> OrderReport:
    from pgheadroom.cli.plan_files import write_plan
    from pgheadroom.clustering import order_and_plan

    found, plan = order_and_plan(target, parameters, wish, how, say=_say)
    write_plan(plan, paths, none="clustering pays for no table")
    return found


def _prices(**given: float | None) -> OrderPrices:
    """Those that were given, and which were not."""
    from dataclasses import replace

    from pgheadroom.order.values import OrderPrices

    known = {name: value for name, value in given.items() if value is not None}
    for name, value in known.items():
        if not 0 <= value < float("inf"):
            raise InputError(f"--{name.replace('_', '-')} {value}: expected a price of 0 or more")
    assumed = tuple(name for name in given if name not in known)
    return replace(OrderPrices(), **known, is_assumed=assumed)


def _say(text: str) -> None:
    sys.stderr.write(f"order: {printable(text)}\n")
    sys.stderr.flush()


def _put(found: OrderReport, form: Format, to: Path | None) -> None:
    from pgheadroom.report import order as order_report
    from pgheadroom.report import text

    output.put(
        form,
        to,
        json=lambda: text.as_json(found.to_json()),
        csv=lambda: order_report.as_csv(found),
        markdown=lambda: _markdown(found),
        show=lambda console, _: _print(found, console),
    )


def _markdown(found: OrderReport) -> str:
    from pgheadroom.report import order as order_report
    from pgheadroom.report import text

    head = order_report.heading(found)
    lines = [f"# {text.markdown_text(found.summary())}", ""]
    said = (head.answer or "", *head.findings, *head.warnings, *head.assumed)
    lines += [f"- {text.markdown_text(line)}" for line in said if line]
    return "\n".join([*lines, "", text.as_markdown(order_report.tables(found))])


def _print(found: OrderReport, console: Console) -> None:
    from pgheadroom.report import order as order_report

    output.print_result(order_report.heading(found), order_report.tables(found), console)


def _page(found: OrderReport) -> str:
    from pgheadroom.report import order as order_report
    from pgheadroom.report.html import Shown, render

    shown = Shown(heading=order_report.heading(found), tables=order_report.tables(found), charts=())
    return render([shown], title=found.summary())
