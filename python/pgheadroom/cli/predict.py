"""
`pgheadroom predict`: what a profile would do, by the twin alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output, predict_page
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.on_cluster import executor_at
from pgheadroom.cli.options import (
    Format,
    FormatOption,
    HtmlOption,
    OutputOption,
    SchedulerOption,
)
from pgheadroom.cli.output import check_outputs, said
from pgheadroom.cli.proof_output import put_proof
from pgheadroom.cli.rewriting import (
    RewriteForOption,
    RewriteHow,
    RewriteHowOption,
    RewriteOption,
    rewrite_of,
)
from pgheadroom.cli.variants import (
    BrinOption,
    EngineName,
    EngineOption,
    FillOption,
    NarrowOption,
    OrderOption,
    StorageName,
    StorageOption,
    WithoutOption,
    changes_of,
)
from pgheadroom.defaults import (
    SEEDS_DEFAULT,
    SEEDS_IN_SWEEP,
    SWEEP_FROM,
    WINDOWS_DEFAULT,
)
from pgheadroom.errors import InputError
from pgheadroom.quoting import printable
from pgheadroom.ranges import parse_ranges
from pgheadroom.redaction import command_line

if TYPE_CHECKING:
    from pgheadroom.profile import Profile
    from pgheadroom.progress import Progress, RunState

ProfileArgument = Annotated[Path, typer.Argument(help="A profile, TOML or JSON.")]
FillfactorOption = Annotated[
    str | None,
    typer.Option(
        "--fillfactor",
        metavar="VALUES",
        help="One cell each: 100,90,80 or 50..100:5 (both ends included); default: the profile's.",
    ),
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        "-t",
        help="Table to vary (default: every table that has updates), whose page is watched, or "
        "whose indexes are others in an observed profile.",
    ),
]
PageOption = Annotated[
    int | None,
    typer.Option(
        "--page",
        min=0,
        metavar="N",
        help="Instead: the life of page N of --table, event by event, with pictures.",
    ),
]
SeedsOption = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=1000,
        help="Orders of the clients' transactions to try where the outcome is statistical "
        f"(default: {SEEDS_DEFAULT}; predict with more than {SWEEP_FROM - 1} fillfactors and "
        f"without samples: {SEEDS_IN_SWEEP}).",
    ),
]
TpsOption = Annotated[
    float | None,
    typer.Option(
        "--tps",
        metavar="N",
        help="Transactions a second, all clients together, where the profile has no rate_per_s: "
        "the clock of autovacuum, checkpoints and --series (default: 1000 for each client).",
    ),
]
SeriesOption = Annotated[
    bool,
    typer.Option("--series", help="The figures over simulated time too, window by window."),
]
WindowsOption = Annotated[
    int | None,
    typer.Option(
        min=4,
        max=1000,
        metavar="N",
        help=f"Windows of --series (default: {WINDOWS_DEFAULT}).",
    ),
]
FromFillfactorOption = Annotated[
    int | None,
    typer.Option(
        "--from-fillfactor",
        metavar="VALUE",
        help="The tables were loaded at this one; --fillfactor is set when the run begins, without "
        "a rewrite. With --series: how long until it takes effect.",
    ),
]
SampleOption = Annotated[
    int | None,
    typer.Option(
        "--sample-pages",
        min=1,
        metavar="N",
        help="Simulate about N pages of the largest table, several times, instead of all (default: "
        "all, up to 2 GB).",
    ),
]
EvaluateOption = Annotated[
    bool,
    typer.Option(
        "--evaluate",
        help="Have a throw-away server (--server's, else the profile's version) evaluate the "
        "expressions and predicates of indexes that the twin cannot and the profile does not "
        "state.",
    ),
]
_PLAIN = (StorageName.LOCAL, EngineName.HEAP)
_QUIET_S = 1.0  # what is done by then needs no progress; arbitrary


_ServerOption = Annotated[
    str | None,
    typer.Option(
        help="Version that the twin follows (18, 16.14), or a folder with server programs; "
        "it wins over the profile's."
    ),
]


def predict_command(
    profile: ProfileArgument,
    fillfactor: FillfactorOption = None,
    table: TableOption = None,
    server: _ServerOption = None,
    seeds: SeedsOption = None,
    without_index: WithoutOption = None,
    narrow_index: NarrowOption = None,
    brin_index: BrinOption = None,
    index_fillfactor: FillOption = None,
    storage: StorageOption = StorageName.LOCAL,
    tps: TpsOption = None,
    series: SeriesOption = False,
    windows: WindowsOption = None,
    from_fillfactor: FromFillfactorOption = None,
    rewrite: RewriteOption = None,
    rewrite_how: RewriteHowOption = RewriteHow.FULL,
    rewrite_for: RewriteForOption = None,
    engine: EngineOption = EngineName.HEAP,
    order: OrderOption = False,
    sample_pages: SampleOption = None,
    evaluate: EvaluateOption = False,
    page: PageOption = None,
    scheduler: SchedulerOption = None,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    html: HtmlOption = None,
) -> None:
    """Predict HOT updates, pages and WAL of a profile over fillfactors; no server takes part."""
    check_outputs(to, html)
    levels = _levels_of(fillfactor, from_fillfactor, page)
    changes = changes_of(without_index, narrow_index, brin_index, index_fillfactor)
    read = read_or_evaluated(profile, server, evaluate=evaluate)
    asked = rewrite_of(rewrite, rewrite_how, rewrite_for, from_fillfactor)
    _check_windows(windows, series=series)
    if page is not None:
        _refuse_beside_page(
            {"--series": series, "--seeds": seeds, "--scheduler": scheduler},
            varied=(storage, engine) != _PLAIN or bool(changes or order),
            sampled=sample_pages is not None,
        )
        predict_page.show_page_life(
            read, page, table, levels, server=server, tps=tps, form=form, to=to, html=html
        )
        said(html)
        return
    if changes and read.server.observed is not None:
        _refuse_of_observed(
            {"--series": series, "--seeds": seeds, "--tps": tps, "--order": order},
            {"--from-fillfactor": from_fillfactor, "--sample-pages": sample_pages},
            storage,
            engine,
        )
        from pgheadroom.advise.what_if import what_if

        with executor_at(scheduler) as executor:
            found = what_if(read, changes, table, levels, server=server, executor=executor)
    else:
        from pgheadroom.predict import Timing, predict

        with executor_at(scheduler) as executor, counted("predict") as report:
            found = predict(
                read,
                levels,
                table,
                server=server,
                changes=changes,
                storage=storage.value,
                engine=engine.value,
                order=order or engine is EngineName.CLUSTERED,
                seeds=seeds,
                timing=Timing(tps=tps, windows=(windows or WINDOWS_DEFAULT) if series else 0),
                from_fillfactor=from_fillfactor,
                rewrite=asked,
                sample_pages=sample_pages,
                executor=executor,
                report=report,
            )
    put_proof(found, form, to, page=html, command=command_line(sys.argv[1:]))
    said(html)


def read_or_evaluated(path: Path, server: str | None, *, evaluate: bool) -> Profile:
    """A file's profile; on request with what a server makes of the indexes' expressions."""
    from pgheadroom.profile import read_profile

    read = read_profile(path)
    if not evaluate:
        return read
    from pgheadroom.play.evaluating import evaluated

    def say(what: str) -> None:
        sys.stderr.write(f"server: {printable(what)}\n")
        sys.stderr.flush()

    return evaluated(read, server=server, say=say)


def _check_windows(windows: int | None, *, series: bool) -> None:
    if not series:
        refuse({"--windows": windows}, where="without a series", instead="--series shows windows")


def _levels_of(
    fillfactor: str | None, from_fillfactor: int | None, page: int | None
) -> list[int] | None:
    """The fillfactors, which one to begin with needs."""
    levels = parse_fillfactors(fillfactor)
    if from_fillfactor is not None and (levels is None or page is not None):
        raise InputError(
            "--from-fillfactor goes with --fillfactor, the setting that is changed to, and not "
            "with --page"
        )
    return levels


def _refuse_beside_page(given: Mapping[str, object], *, varied: bool, sampled: bool) -> None:
    if varied:
        raise InputError("--page: a page lives in the profile as it is, expected no variant")
    if sampled:
        raise InputError("--page: a page lives in the whole table, expected no --sample-pages")
    refuse(
        given,
        where="with --page, which tells the life of one page in one run",
        instead="leave --page out for the figures of the whole",
    )


def _refuse_of_observed(
    played: Mapping[str, object],
    loaded: Mapping[str, object],
    storage: StorageName,
    engine: EngineName,
) -> None:
    models = {"--storage": storage is not _PLAIN[0], "--engine": engine is not _PLAIN[1]}
    refuse(
        {**played, **loaded, **models},
        where="for other indexes of an observed profile, whose table is calibrated and played to "
        "its steady state as advice plays it",
        instead="leave it out, or the options for indexes",
    )


def parse_fillfactors(text: str | None) -> list[int] | None:
    """
    Fillfactors out of `100,90` or `50..100:5`, in that order.

    Raises:
        ParameterError: Not numbers from 10 to 100, or one given twice.
    """
    if text is None:
        return None
    from pgheadroom.predict.cells import FILLFACTOR_MAX, FILLFACTOR_MIN

    return parse_ranges(text, (FILLFACTOR_MIN, FILLFACTOR_MAX), parameter="fillfactor")


@contextmanager
def counted(label: str) -> Iterator[Progress]:
    """RunState of the twin on standard error, once it takes long enough to need one."""
    from pgheadroom.progress import RunState

    started = time.monotonic()
    begun: tuple[float, int] | None = None  # what came before the first call took its own time
    with ExitStack() as stack:
        step: Callable[[RunState], None] | None = None

        def report(done: int, total: int, _what: str) -> None:
            nonlocal step, begun
            now = time.monotonic()
            begun = (now, done) if begun is None or done < begun[1] else begun
            if step is None and (now - started < _QUIET_S or done == total):
                return
            if step is None:
                step = stack.enter_context(output.progress(label))
            since, had = begun
            left = (now - since) * (total - done) / (done - had) if done > had else 0.0
            step(RunState(done=done, total=total, left_s=left, text=label))
            if done == total:  # the bar leaves room for what comes after
                stack.close()
                step = begun = None

        yield report
