"""
Advice on workloads that nobody here wrote for the twin: profiles that `observe` made on 18.4.

`job-queue`: inserted, claimed, finished and deleted rows with a GIN index over jsonb, 70 rows at a
time. `ledger`: balances that leave 0 at fillfactor 90, whose later windows had 99.39 % HOT; and the
stock of orders of 5 to 15 lines, updated by one statement an order (99.35 to 99.99 % HOT).
"""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

from pgheadroom.advise import Advice, Options, advise
from pgheadroom.predict import predict
from pgheadroom.profile import read_profile
from pgheadroom.profile.unpriced import said_unpriced, unpriced_of
from pgheadroom.report.advice import csv as advice_csv
from pgheadroom.report.advice import detail as advice_detail
from pgheadroom.report.advice import html as advice_html
from pgheadroom.report.advice import text as advice_text
from pgheadroom.types import Interval

PROFILES = Path(__file__).parent / "observed"


@cache
def advised(name: str) -> Advice:
    """The advice on a profile."""
    return advise(read_profile(PROFILES / f"{name}.json"), Options(budget_s=600))


def test_a_queue_whose_rows_come_and_go_gets_no_wal() -> None:
    """Its updates found no row in the run, and all other WAL over none of them was millions."""
    (table,) = advised("job-queue").tables
    assert (table.verdict, table.decided_by) == ("KEEP", "rule"), "an index ends its HOT"
    assert table.calibration is not None
    assert any("come and go" in text for text in table.calibration.contradicted)
    assert any("jobs_payload (gin)" in text and "not priced" in text for text in table.missing)


def test_methods_that_nobody_prices_are_named_by_one_word_everywhere() -> None:
    """`predict` had 14,726 bytes of WAL an update for a GIN index, and no word about it."""
    profile = read_profile(PROFILES / "job-queue.json")
    named = said_unpriced(unpriced_of(profile.tables[0]))
    assert named.startswith("jobs_payload (gin) is not priced")
    assert named in predict(profile, seeds=2).assumed["twin.approximations"]
    (missing,) = advised("job-queue").tables[0].missing
    assert missing.startswith("jobs_payload (gin) is not priced"), "as what it is, and of no WAL"


def test_no_figure_of_a_contradicted_twin_is_shown_anywhere() -> None:
    """It repeated HOT, then had a curve of dashes with sizes of indexes, and WAL saved."""
    advice = advised("job-queue")
    (table,) = advice.tables
    assert (table.curve, table.transition) == ((), None)
    assert table.calibration is not None
    found = table.calibration
    assert found.predicted_hot_frac is found.predicted_newpage_frac is None
    assert (found.predicted_wal_bytes_per_update, found.fit, found.fitted) == (None, None, ())
    assert {finding.evidence for finding in advice.indexes} == {"estimated"}
    assert not any(remark.evidence == "predicted" for remark in table.remarks)
    assert '"predicted"' not in json.dumps(advice.to_json())
    for said in (
        advice_text.as_markdown(advice, verbose=True),
        advice_html.render(advice),
    ):
        assert "come and go" in said
        assert "repeats the measured" not in said
        assert "The curve over fillfactor" not in said
    (line,) = csv.DictReader(advice_csv.as_csv(advice).splitlines())
    for name in ("then_hot_frac", "then_wal_bytes_per_update", "then_heap_bytes", "gain_frac"):
        assert line[name] == ""


def test_a_balance_that_left_zero_does_not_grow_for_ever() -> None:
    """A held horizon would explain its HOT, but not its WAL: neither it nor growth is believed."""
    (table,) = (table for table in advised("ledger").tables if table.table == "accounts")
    assert table.verdict == "KEEP", table.reason
    assert "used up" not in table.reason
    assert table.calibration is not None
    assert not {"grows_bytes", "held_s"} & {one.quantity for one in table.calibration.fitted}
    point = table.point(90)
    assert point is not None
    assert isinstance(point.hot_frac, Interval)
    assert point.hot_frac.low <= 0.9939 <= point.hot_frac.high
    own, known = table.calibration.predicted_wal_bytes_per_update, table.wal_bytes_per_update
    assert isinstance(own, Interval)
    assert isinstance(known, Interval)
    assert abs(own.mid / known.mid - 1) < 0.1, f"{own} against {known}, as counted"


def test_rows_of_a_statement_may_lie_anywhere() -> None:
    """Neighbours would want room of one page at once: 19 points less HOT than was measured."""
    (table,) = (table for table in advised("ledger").tables if table.table == "stock")
    assert table.verdict != "ABSTAIN", table.reason
    point = table.point(90)
    assert point is not None
    assert isinstance(point.hot_frac, Interval)
    assert point.hot_frac.low <= 0.9935
    assert point.hot_frac.high >= 0.9999
    assert any("statement updates" in text for text in table.missing), "it says why it is wide"


def test_one_word_each() -> None:
    """HOT is measured or the long run at a fillfactor; nothing is `now`, no calibrated third."""
    for table in advised("ledger").tables:
        said = advice_detail.calibration(table)
        assert "measured" in said
        assert "predicted" not in said
    text = advice_text.as_markdown(advised("ledger"), verbose=True)
    assert "long run" in text
    assert "steady state at" not in text
    assert Advice.from_json(json.loads(json.dumps(advised("ledger").to_json()))) == advised(
        "ledger"
    )


def test_files_of_earlier_versions_are_read() -> None:
    """They have all WAL of a table under the name that the update's own has now."""
    data = advised("ledger").to_json()
    for table in data["tables"]:
        del table["wal_bytes_per_update"]
        for key in ("observed_wal_bytes_per_update", "predicted_wal_bytes_per_update"):
            del table["calibration"][key]
        del table["calibration"]["contradicted"]
        for point in table["curve"]:
            point["wal_bytes_per_update"] = point.pop("all_wal_bytes_per_update")
    read = Advice.from_json(json.loads(json.dumps(data)))
    for old, new in zip(read.tables, advised("ledger").tables, strict=True):
        assert [p.wal_bytes_per_update for p in old.curve] == [None] * len(old.curve)
        assert [p.all_wal_bytes_per_update for p in old.curve] == [
            p.all_wal_bytes_per_update for p in new.curve
        ]
