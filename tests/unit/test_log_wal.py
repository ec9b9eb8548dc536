"""WAL of a table's updates by the log: what is counted, what is shared, who uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import observed_table as made
import pytest
from test_verdicts import wal_point

from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.guard import Twins, guard_of, measured_of
from pgheadroom.advise.log_wal import log_remark, log_wal
from pgheadroom.advise.stake import stake_of
from pgheadroom.advise.updates import updates_of
from pgheadroom.errors import ParameterError
from pgheadroom.outcome import middle
from pgheadroom.plan.measured import measure
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.types import Interval
from pgheadroom.verify.comparing import judge_wal, wal_ratio
from pgheadroom.wal.beside import beside

HOT, COLD, PRUNED, ENTERED, IMAGES = 42_000, 20_000, 6_000, 64_000, 500_000
COUNTERS = made.counters(1000, 600, 100)


def _profile(counters: dict[str, int | None] = COUNTERS, **causes: tuple[int, int]) -> Profile:
    """A table of 1000 updates, 600 of them HOT, with this log."""
    by_cause = {
        "hot_update": (600, HOT),
        "cold_update": (400, COLD),
        "prune_on_access": (100, PRUNED),
        "index_insert": (800, ENTERED),
        "fpi_first_change": (0, IMAGES),
    } | causes
    wal: dict[str, Any] = {
        "records": sum(records for records, _ in by_cause.values()),
        "bytes": sum(length for _, length in by_cause.values()),
        "fpi": 100,
        "fpi_bytes": IMAGES,
        "index_bytes": ENTERED,
        "toast_bytes": 0,
        "by_cause": {
            cause: {"records": records, "bytes": length}
            for cause, (records, length) in by_cause.items()
        },
    }
    return parse_profile(
        to_json(made.profile_of(counters, wal=wal))
        | {"server": {"version": "18.4", "observed": made.SERVER}}
    )


def test_of_updates_alone_all_is_counted() -> None:
    """Without inserts and deletes nothing is shared, and images stand apart."""
    found = log_wal(_profile().table("jobs"))
    assert found is not None
    own = HOT + COLD + PRUNED + ENTERED
    assert found.updates == 1000
    assert found.own_bytes_per_update == Interval(
        low=own / 1000, mid=own / 1000, high=own / 1000, level=0.9
    )
    assert found.most_bytes_per_update == (own + IMAGES) / 1000
    assert found.with_images_bytes == pytest.approx(own + IMAGES)
    assert found.hot_bytes == HOT + PRUNED * 0.6
    assert found.hot_bytes + found.not_hot_bytes == own


def test_what_inserts_and_deletes_write_too_is_shared() -> None:
    """By how many there were; off by as much as the smaller part at most."""
    found = log_wal(_profile(insert=(100, 9_000), delete=(1000, 54_000)).table("jobs"))
    assert found is not None
    alone = HOT + COLD
    own = found.own_bytes_per_update
    assert own.mid == pytest.approx((alone + ENTERED * 0.8 + PRUNED * 0.5) / 1000)
    assert own.low == pytest.approx((alone + ENTERED * 0.6) / 1000)
    assert own.high == pytest.approx((alone + ENTERED + PRUNED) / 1000)


def test_a_part_of_the_log_is_shared_by_its_own_part_of_the_inserts() -> None:
    """Files had half of the interval: COPY's rows, which only the counters know, count half."""
    half = {
        "hot_update": (300, HOT // 2),
        "cold_update": (200, COLD // 2),
        "prune_on_access": (50, PRUNED // 2),
        "index_insert": (400, ENTERED // 2),
        "fpi_first_change": (0, IMAGES // 2),
    }
    copied = made.counters(1000, 600, 100) | {"n_tup_ins": 400}
    whole = log_wal(_profile(counters=copied).table("jobs"))
    part = log_wal(_profile(counters=copied, **half).table("jobs"))
    assert whole is not None
    assert part is not None
    assert part.own_bytes_per_update == whole.own_bytes_per_update
    assert whole.own_bytes_per_update.low < whole.own_bytes_per_update.high


def test_locks_are_updates_where_these_left_their_page() -> None:
    """A SELECT FOR UPDATE locks too."""
    plain = log_wal(_profile().table("jobs"))
    moved = log_wal(_profile(newpage_update=(10, 1_000), lock=(40, 2_160)).table("jobs"))
    assert plain is not None
    assert moved is not None
    more = moved.own_bytes_per_update.mid * 1010 - plain.own_bytes_per_update.mid * 1000
    assert more == pytest.approx(1_000 + 540)


def test_a_log_without_updates_says_nothing() -> None:
    """No share of nothing; an older profile has no log at all."""
    nothing = (0, 0)
    empty = _profile(hot_update=nothing, cold_update=nothing)
    assert log_wal(empty.table("jobs")) is None
    assert log_wal(made.profile_of(COUNTERS).table("jobs")) is None
    assert log_remark(made.profile_of(COUNTERS).table("jobs")) is None


def test_prices_are_the_logs() -> None:
    """What is at stake, what causes wrote and what the twin is held against is measured by it."""
    profile = _profile()
    table = profile.table("jobs")
    found = log_wal(table)
    assert found is not None
    measured = measured_of(profile, table)
    assert measured.wal_bytes_per_update == found.own_bytes_per_update
    assert measured.most_wal_bytes_per_update == found.most_bytes_per_update
    causes = causes_of(table, 18)
    hot = sum(middle(one.wal_bytes) or 0 for one in causes if one.kind == "hot")
    assert hot == pytest.approx(found.hot_bytes)
    whole = sum(middle(one.wal_bytes) or 0 for one in causes)
    assert whole == pytest.approx(found.hot_bytes + found.not_hot_bytes)
    assert stake_of(table, updates_of(table, 18), causes, None).evidence == "measured"
    twins = Twins(wal_bytes_per_update=900.0, heap_bytes=None, done_frac=1.0)
    (said,) = guard_of(profile, table, twins).contradicted
    assert said.endswith("132 bytes as the log has it")
    remark = log_remark(table)
    assert remark is not None
    assert "images at first change 79 %" in remark.text
    facts = measure(profile, table)
    assert (facts.wal_by_log, facts.wal_bytes_per_update) == (True, found.own_bytes_per_update.mid)


def test_claims_by_the_log_are_of_updates_without_images() -> None:
    """Checkpoints are no excuse where images stand apart."""
    before, after = (
        replace(wal_point(100, own), all_wal_bytes_per_update=2000.0) for own in (1000.0, 500.0)
    )
    own = wal_ratio(before, after, images=False)
    assert own is not None
    assert own.mid == pytest.approx(0.5)
    whole = wal_ratio(before, after)
    assert whole is not None
    assert whole.mid == pytest.approx(1.0)
    foreseen = Interval(low=190.0, mid=200.0, high=210.0, level=0.9)
    assert judge_wal(300.0, 400.0, foreseen)[0] is None
    assert judge_wal(300.0, 400.0, foreseen, images=False)[0] == "failed"
    assert judge_wal(210.0, 400.0, foreseen, images=False)[0] == "held"


def test_the_log_is_read_from_one_place(tmp_path: Path) -> None:
    """Of --wal and --wal-files one was left out without a word."""
    with (
        pytest.raises(ParameterError, match="expected one of them") as raised,
        beside("host=nowhere", {}, wanted=True, files=[tmp_path]),
    ):
        raise AssertionError("it was not refused")
    assert raised.value.as_option().startswith("--wal-files beside --wal:")
