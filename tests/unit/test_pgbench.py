"""pgbench's output is read as pgbench 15, 16 and 18 write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgheadroom.errors import LabError, MeasurementInvalid
from pgheadroom.servers.pgbench import parse_report, read_logs

# Recorded: pgbench 18.4 -c 2 -j 2 -n -t 500 -r -l, scale 1.
ONE_SCRIPT = """\
pgbench (18.4)
transaction type: <builtin: TPC-B (sort of)>
number of transactions actually processed: 1000/1000
number of failed transactions: 0 (0.000%)
latency average = 0.539 ms
initial connection time = 2.483 ms
tps = 3708.909914 (without initial connection time)
statement latencies in milliseconds and failures:
         0.001           0 \\set aid random(1, 100000 * :scale)
         0.025           0 BEGIN;
         0.072           0 UPDATE pgbench_accounts SET abalance = abalance + :delta
         0.121           0 SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
         0.049           0 END;
"""

# Recorded: pgbench 18.4 -c 2 -n -T 1 -r -f s.sql@3 -b select-only@1.
TWO_SCRIPTS = """\
transaction type: multiple scripts
number of transactions actually processed: 7709
number of failed transactions: 3 (0.000%)
tps = 7742.097467 (without initial connection time)
SQL script 1: s.sql
 - weight: 3 (targets 75.0% of total)
 - 5774 transactions (74.9% of total)
 - number of transactions actually processed: 5774 (tps = 5798.789827)
 - number of failed transactions: 0 (0.000%)
 - latency average = 0.291 ms
 - statement latencies in milliseconds and failures:
         0.001           0 \\set aid random(1, 100000)
         0.128           0 UPDATE pgbench_accounts
SQL script 2: <builtin: select only>
 - weight: 1 (targets 25.0% of total)
 - number of transactions actually processed: 1935 (tps = 1943.307640)
 - statement latencies in milliseconds and failures:
         0.130           0 SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
         0.300           0 update pgbench_accounts
"""

# As pgbench.c prints it (printResults) with --failures-detailed.
DETAILED = """\
number of transactions actually processed: 1970/2000
number of failed transactions: 30 (1.500%)
number of serialization failures: 28 (1.400%)
number of deadlock failures: 2 (0.100%)
tps = 812.5 (without initial connection time)
"""

# Recorded: pgbench 14's form, without the column of failures.
BEFORE_15 = """\
number of transactions actually processed: 10
tps = 12.5 (without initial connection time)
statement latencies in milliseconds:
         0.158  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
"""

UPDATE = r"^update\s+pgbench_accounts\b"


def test_one_script() -> None:
    """Transactions, throughput and the UPDATE's mean time."""
    report = parse_report(ONE_SCRIPT)
    assert (report.transactions, report.failed_transactions) == (1000, 0)
    assert report.tps == pytest.approx(3708.909914)
    assert report.mean_ms(UPDATE) == pytest.approx(0.072)
    assert report.mean_ms("no such statement") is None


def test_several_scripts_are_weighted_by_their_transactions() -> None:
    """A statement in two scripts has one mean, that over all its executions."""
    report = parse_report(TWO_SCRIPTS)
    assert (report.transactions, report.failed_transactions) == (7709, 3)
    expected = (0.128 * 5774 + 0.300 * 1935) / (5774 + 1935)
    assert report.mean_ms(UPDATE) == pytest.approx(expected)


def test_failures_by_kind() -> None:
    """With --failures-detailed it is said how many did not serialize; else nothing is known."""
    report = parse_report(DETAILED)
    assert (report.transactions, report.failed_transactions) == (1970, 30)
    assert report.serialization_failures == 28
    assert parse_report(ONE_SCRIPT).serialization_failures == 0


def test_the_form_without_failures() -> None:
    """Before 15 there was one column."""
    assert parse_report(BEFORE_15).mean_ms(UPDATE) == pytest.approx(0.158)


def test_anything_else_is_an_error() -> None:
    """A report without figures is never a throughput of zero."""
    with pytest.raises(LabError, match="no transactions"):
        parse_report("pgbench: error: connection failed")


def test_logs_of_several_threads_are_merged_in_order(tmp_path: Path) -> None:
    """Transactions in the order of their ends; skipped ones have no time."""
    (tmp_path / "t.1").write_text("0 1 3511 0 1795217799 100273\n0 2 skipped 0 1795217800 5\n")
    (tmp_path / "t.1.1").write_text("1 1 700 0 1795217798 500000\n")
    log = read_logs(tmp_path.glob("t.*"))
    assert log.latency_ms.tolist() == [0.7, 3.511]
    assert log.ends_s.tolist() == pytest.approx([1795217798.5, 1795217799.100273])


@pytest.mark.parametrize("text", ["", "not a log\n", "0 1 3511\n"])
def test_a_log_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """No percentiles out of nothing."""
    (tmp_path / "t.1").write_text(text)
    with pytest.raises(MeasurementInvalid):
        read_logs([tmp_path / "t.1"])
