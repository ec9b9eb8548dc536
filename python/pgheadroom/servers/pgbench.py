"""
pgbench's output: the closing report and the per-transaction log, as pgbench 13 to 18 write them.

Only parsing; starting pgbench is the caller's, who knows where it has to run.
Source: doc/src/sgml/ref/pgbench.sgml, "Per-Transaction Logging" (REL_18_STABLE).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import LabError, MeasurementInvalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.integer[Any]]

_STATEMENT = re.compile(r"^\s+(\d+\.\d+)\s+(?:(\d+)\s+)?(\S.*)$")
_TRANSACTIONS = re.compile(r"number of transactions actually processed: (\d+)")
_FAILED = re.compile(r"number of failed transactions: (\d+)")
_SERIALIZATION = re.compile(r"number of serialization failures: (\d+)")
_SCRIPT_TRANSACTIONS = re.compile(r"^ - (\d+) transactions \(", re.MULTILINE)
_TPS = re.compile(r"^tps = (\d+\.\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTime:
    """Mean time of one command of a script (its first line), and how often it ran."""

    text: str
    mean_ms: float
    transactions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchReport:
    """
    What pgbench prints at its end; `tps` is without the initial connection time.

    `script_transactions` are those of each script, in the order of the command line; one script's
    are all. `serialization_failures` are told with `--failures-detailed` alone.
    """

    transactions: int
    failed_transactions: int
    serialization_failures: int
    tps: float
    script_transactions: tuple[int, ...]
    statements: tuple[StatementTime, ...]

    def mean_ms(self, pattern: str) -> float | None:
        """
        Mean time of the statements that match a pattern, weighted by how often they ran.

        Args:
            pattern: Regular expression, searched without regard to case.

        Returns:
            Milliseconds, or None when no statement matches.
        """
        matching = [s for s in self.statements if re.search(pattern, s.text, re.IGNORECASE)]
        weight = sum(statement.transactions for statement in matching)
        if weight == 0:
            return None
        return sum(s.mean_ms * s.transactions for s in matching) / weight


def parse_report(text: str) -> PgbenchReport:
    """
    Read pgbench's closing report, with one script or several.

    Raises:
        LabError: The text lacks the figures, so it is no such report.
    """
    total, tps = _TRANSACTIONS.search(text), _TPS.search(text)
    if total is None or tps is None:
        raise LabError(f"pgbench's report has no transactions or no tps: it ends {text[-300:]!r}")
    failed, refused = _FAILED.search(text), _SERIALIZATION.search(text)
    statements: list[StatementTime] = []
    transactions, inside = int(total[1]), False
    for line in text.splitlines():
        if script_total := _TRANSACTIONS.search(line):
            transactions = int(script_total[1])
        if "latencies in milliseconds" in line:
            inside = True
        elif inside and (match := _STATEMENT.match(line)):
            statements.append(
                StatementTime(text=match[3], mean_ms=float(match[1]), transactions=transactions)
            )
        else:
            inside = False
    return PgbenchReport(
        transactions=int(total[1]),
        failed_transactions=int(failed[1]) if failed else 0,
        serialization_failures=int(refused[1]) if refused else 0,
        tps=float(tps[1]),
        script_transactions=tuple(map(int, _SCRIPT_TRANSACTIONS.findall(text))) or (int(total[1]),),
        statements=tuple(statements),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLog:
    """
    Every transaction of a run, by its end.

    `ends_s` in epoch seconds, `latency_ms`, `script`, the number of its script on the command line,
    and `client`, from 0; all of shape (n,). `failed_ends_s` are those of transactions that failed,
    which have no latency, and `failed_client` whose they are.
    """

    ends_s: FloatArray
    latency_ms: FloatArray
    script: IntArray
    client: IntArray
    failed_ends_s: FloatArray
    failed_client: IntArray


def read_logs(paths: Iterable[Path]) -> TransactionLog:
    """
    Read the files that `pgbench --log` wrote, one a thread.

    Transactions that were skipped are left out.

    Raises:
        MeasurementInvalid: A line is not a transaction, or there is none at all.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    ends, latencies, scripts, clients = array("d"), array("d"), array("H"), array("I")
    failed, failed_clients = array("d"), array("I")
    for path in sorted(paths):
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, start=1):
                fields = line.split()
                try:
                    end = int(fields[4]) + int(fields[5]) / 1e6
                    if fields[2].isdigit():
                        latencies.append(int(fields[2]) / 1000)
                        scripts.append(int(fields[3]))
                        clients.append(int(fields[0]))
                        ends.append(end)
                    elif fields[2] != "skipped":
                        failed_clients.append(int(fields[0]))
                        failed.append(end)
                except (IndexError, ValueError) as error:
                    raise MeasurementInvalid(
                        f"line {number} of pgbench's log is {line.rstrip()!r}, not a transaction"
                    ) from error
    if not ends:
        raise MeasurementInvalid(
            "pgbench's log holds no transaction that ended: expected one at least; have the run "
            "last longer, or see why all failed"
        )
    columns: list[Any] = [
        np.frombuffer(column, column.typecode) for column in (ends, latencies, scripts, clients)
    ]
    if bool((columns[0][1:] < columns[0][:-1]).any()):  # one file is in order
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    by_end = np.argsort(np.array(failed), kind="stable")
    return TransactionLog(
        ends_s=columns[0],
        latency_ms=columns[1],
        script=columns[2],
        client=columns[3],
        failed_ends_s=np.array(failed)[by_end],
        failed_client=np.array(failed_clients, dtype=np.int64)[by_end],
    )
