"""The answer of a record: one sentence, its interval, and no more than the verdicts allow."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import synthetic
import synthetic_lab
import synthetic_proof
from synthetic_lab import comparison

import showing
from pgheadroom.forms import FieldError
from pgheadroom.lab import ratio_words
from pgheadroom.lab.base import answers as shared
from pgheadroom.types import Interval

Result = dict[str, Any]

MAKERS: dict[str, Callable[[], Result]] = {
    "update-cost": synthetic_lab.update_cost,
    "cluster-decay": synthetic_lab.cluster_decay,
    "fpi-sawtooth": synthetic_lab.fpi_sawtooth,
    "long-transaction": synthetic_lab.long_transaction,
    "index-walkthrough": synthetic_lab.index_walkthrough,
    "clients-scale": synthetic_lab.clients_scale,
    "fillfactor": lambda: synthetic.fillfactor()[0],
    "tprocc": lambda: synthetic_lab.clients_scale() | {"name": "tprocc"},
    "unknown": synthetic.unknown,
    "hostile": lambda: synthetic.hostile()[0],
}


def compared(*items: Result, **parts: Any) -> Result:
    """A result of an experiment that has no sentence of its own."""
    levels = {"clients": [1, 4], "server": ["16", "18"]}
    return synthetic_lab.result(
        "something-new", levels, cells=[{"clients": 1}], comparisons=list(items), **parts
    )


def test_update_cost() -> None:
    """HOT against not HOT: the cells say which is which, the comparisons by how much."""
    said = showing.answer(synthetic_lab.update_cost())
    assert said is not None
    assert said.startswith(
        "The WAL of a HOT UPDATE (fillfactor 80) against one that is not HOT (fillfactor 100) is "
        "73.6 % lower [73.0, 74.0] and its modified pages are 50 % lower [49, 51]"
    )
    assert "at filler_length 64, update_bid 0" in said
    no_hot = synthetic_lab.update_cost()
    for cell in no_hot["cells"]:
        cell["hot_frac"] = 0.5
    assert "HOT" not in (showing.answer(no_hot) or "")


def test_cluster_decay() -> None:
    """Plain heap though it is not the first; the best cycle is that of the laboratory's rule."""
    said = showing.answer(synthetic_lab.cluster_decay())
    # 10,560 pages moved; 100 ranges a round pay 40, 80, 120 more pages each: 2 rounds cost least.
    assert said == (
        "The rows of a range lie on 50.0 [49.5, 50.5] pages freshly clustered and on "
        "210.0 [207.9, 212.1] after 4 rounds (engine heap, fillfactor 100, churn_pct 2, index "
        "btree); clustering again, counted in pages at 100 range SELECTs a round, costs least when "
        "done after every 2 rounds; with engine sorted those pages are at the end, against heap, "
        "38 % lower [36, 40] (93.8 to 95 % intervals)."
    )
    short = showing.answer(synthetic_lab.cluster_decay(rounds=1)) or ""
    assert "does not pay after 1 round" in short


def test_fpi_sawtooth() -> None:
    """The first cycle only: the window before the second checkpoint is the far one."""
    said = showing.answer(synthetic_lab.fpi_sawtooth()) or ""
    assert said.startswith("With fillfactor 100, full_page_writes on, wal_compression off an ")
    assert "8,000 [7,920, 8,080] bytes of WAL in window 1 after a checkpoint" in said
    assert "200 [198, 202] in window 4" in said


def test_long_transaction() -> None:
    """Before, under and after the snapshot, as the options of the run say."""
    said = showing.answer(synthetic_lab.long_transaction()) or ""
    assert "is 99.00 [98.50, 99.49] % before a snapshot is held, 20.0 [19.9, 20.1] % in" in said
    assert "99.00 [98.50, 99.49] % at the end, after it" in said
    assert "2,000 [1,990, 2,010], 3,500 [3,482, 3,517] and 3,500 [" in said


def test_index_walkthrough() -> None:
    """All, or how many are not; a count that varied between repetitions is not as predicted."""
    said = showing.answer(synthetic_lab.index_walkthrough())
    assert said == "All 6 block counts are exactly as predicted, in 1 repetition."
    said = showing.answer(synthetic_lab.index_walkthrough(wrong=2))
    assert said == ("4 of 6 block counts are exactly as predicted and 2 are not, in 1 repetition.")
    varied = synthetic_lab.index_walkthrough()
    varied["cells"][0]["buffers_interval"] = {"low": 39, "mid": 40, "high": 41, "level": 0.75}
    assert (showing.answer(varied) or "").startswith("5 of 6 block counts")


def test_clients_scale() -> None:
    """The most clients against the fewest at the smallest and the largest data."""
    said = showing.answer(synthetic_lab.clients_scale()) or ""
    assert said.startswith(
        "Throughput with 4 clients against 1 is 4.0 times [3.6, 4.4] at data_scale 1, not "
        "shown to differ [-10 %, +20 %] at data_scale 8"
    )
    assert "of all 4 such comparisons 2 are higher, 2 are not shown to differ" in said
    assert "the highest median is 4,000 [3,960, 4,040] a second (clients 4, data_scale 1)" in said


def test_fillfactor() -> None:
    """One step below the reference for each size of memory, whatever came out at the others."""
    said = showing.answer(synthetic.fillfactor()[0]) or ""
    found = [
        item for item in synthetic.fillfactor()[0]["comparisons"]
        if item["measure"] == "accounts_update_ms" and item["cell"]["fillfactor"] == 90
    ]  # fmt: skip
    ratio = found[0]["ratio"]
    assert (
        "At fillfactor 90 against 100 the time of the accounts UPDATE is "
        f"{ratio_words.changed(Interval(**ratio))} where the data fit in memory, "
    ) in said
    assert "undecided (4 interleaved pairs; a verdict needs at least 5) with memory ten" in said
    assert "of all 9 such comparisons 3 are lower, 1 is higher" in said


def test_fillfactor_counted_only() -> None:
    """Without times the answer is of a counter; with undecided times the counter stands beside."""
    counted = synthetic.fillfactor()[0]
    times = [item for item in counted["comparisons"] if item["measure"] != "wal_bytes_per_tx"]
    for item in times:
        item["pairs"] = 2
    both = showing.answer(counted) or ""
    assert "is undecided (2 interleaved pairs" in both
    assert re.search(r"WAL per transaction is 1[78]\.\d % lower \[", both)
    counted["comparisons"] = [item for item in counted["comparisons"] if item not in times]
    only = showing.answer(counted) or ""
    assert only.startswith(
        "At fillfactor 90 against 100 WAL per transaction is 17.8 % lower [17.3, 18.3]"
    )


@pytest.mark.parametrize("name", ["update-cost", "clients-scale", "fillfactor", "cluster-decay"])
def test_fewer_than_five_pairs_decide_nothing(name: str) -> None:
    """Whatever verdict the file states, four pairs are undecided, and the reason is told."""
    result = MAKERS[name]()
    for item in result["comparisons"]:
        item["pairs"] = 4
    said = showing.answer(result) or ""
    assert "undecided (4 interleaved pairs; a verdict needs at least 5)" in said
    assert not re.search(r"(times|lower|higher) \[", said)
    assert "not shown to differ [" not in said


@pytest.mark.parametrize(
    "maker", [synthetic_lab.cluster_decay, synthetic_lab.fpi_sawtooth,
              synthetic_lab.long_transaction]
)  # fmt: skip
def test_fewer_than_five_repetitions_decide_nothing(maker: Callable[..., Result]) -> None:
    """Figures of three repetitions are told as measured, behind the word undecided."""
    said = showing.answer(maker(repetitions=3)) or ""
    assert said.startswith("Undecided (3 repetitions; a verdict needs at least 5); measured: ")
    assert "clustering again" not in said


def test_medians_whose_intervals_meet_show_no_change() -> None:
    """Two medians are not told as a change where their intervals overlap."""
    result = synthetic_lab.fpi_sawtooth()
    for cell in result["cells"]:
        cell["wal_bytes_per_update_interval"] = {"low": 1, "mid": 500, "high": 9000, "level": 0.94}
    assert "the intervals show no change" in (showing.answer(result) or "")


def test_a_control_that_excludes_one_decides_nothing() -> None:
    """Noise that is larger than the intervals say takes every verdict of that measure and cell."""
    result = synthetic_lab.clients_scale()
    cell = {"data_scale": 1, "clients": 1}
    result["controls"] = [comparison("tps", {}, cell, (1.1, 1.2, 1.3), "higher")]
    said = showing.answer(result) or ""
    assert "undecided (the A/A control shows 1.100 to 1.300 where 1 is the truth)" in said
    assert not re.search(r"(times|lower|higher) \[", said)


def test_a_verdict_against_its_own_interval_is_not_told() -> None:
    """A record may be somebody else's: "lower" with an interval that holds 1 is undecided."""
    at = {"clients": 1, "server": "18"}
    for ends in ((0.9, 1.0, 1.1), (1.1, 1.2, 1.3), None):
        said = showing.answer(compared(comparison("tps", {"clients": 4}, at, ends, "lower")))
        assert said is not None
        assert said.startswith(
            "Undecided (its interval does not bear its verdict out): throughput at "
        )


def test_main_measures_are_told_in_their_order() -> None:
    """The first comparison of each, whatever the verdicts; of the others how they came out."""
    at = {"clients": 1, "server": "18"}
    result = compared(
        comparison("hot_frac", {"clients": 4}, at, (0.2, 0.25, 0.3), "lower"),
        comparison("nopm", {"clients": 4}, at, (0.9, 1.0, 1.1), "no difference shown"),
        comparison("nopm", {"clients": 9}, at, (2.9, 3.0, 3.1), "higher"),
    )
    assert shared.told_of("nopm", "hot_frac")(showing.experiment(result)) == (
        "Rate of new orders at clients 4 against clients 1 is not shown to differ "
        "[-10 %, +10 %] (of all 2 such comparisons 1 is higher, 1 is not shown to differ); HOT "
        "share at clients 4 against clients 1 is about 0.25 times [0.20, 0.30] (95 % intervals)."
    )


def test_tprocc_tells_of_the_first_level_at_the_most_users() -> None:
    """One comparison, fixed by the request, with all its measures; the others are counted."""
    at = {"fillfactor": 100, "users": 4}
    fewer = {**at, "users": 1}
    result = compared(
        comparison("nopm", {"fillfactor": 80}, fewer, (0.5, 0.6, 0.7), "lower"),
        comparison("nopm", {"fillfactor": 80}, at, (0.9, 1.0, 1.1), "no difference shown"),
        comparison("nopm", {"fillfactor": 60}, at, (2.9, 3.0, 3.1), "higher"),
        comparison("hot_frac", {"fillfactor": 80}, at, (1.2, 1.25, 1.3), "higher"),
    )
    said = showing.answer(result | {"name": "tprocc"}) or ""
    assert said.startswith("At fillfactor 80 against 100")
    assert "new orders per minute are not shown to differ [-10 %, +10 %], the HOT share" in said
    assert "is 1.25 times [1.20, 1.30]; of all 3 comparisons of new orders per minute" in said
    assert "0.600" not in said


def test_generic_takes_the_clearest_and_says_of_how_many() -> None:
    """The nearer end of the interval decides, so a wide interval does not win by its middle."""
    at = {"clients": 1, "server": "18"}
    wide = comparison("latency_ms", {"clients": 4}, at, (1.05, 3.0, 9.0), "higher")
    clear = comparison("tps", {"clients": 4}, at, (0.5, 0.55, 0.6), "lower")
    open_ = comparison("heap_pages", {"clients": 4}, at, (0.5, 0.5, 0.5), "lower", pairs=1)
    said = showing.answer(compared(wide, clear, open_)) or ""
    assert said.startswith(
        "The clearest of 3 comparisons: throughput at clients 4 against clients 1 is 45 % lower "
        "[40, 50]; of all 3, 1 is lower, 1 is higher, 1 is undecided"
    )


def test_generic_without_a_difference() -> None:
    """Equal and not shown are not the same, and neither is undecided."""
    at = {"clients": 1, "server": "18"}
    same = comparison("heap_pages", {"clients": 4}, at, (1, 1, 1), "equal")
    vague = comparison("tps", {"clients": 4}, at, (0.9, 1.0, 1.1), "no difference shown")
    assert showing.answer(compared(same)) == (
        "Heap size at clients 4 against clients 1 is equal in all 5 pairs."
    )
    said = showing.answer(compared(vague, same)) or ""
    assert said.startswith("None of 2 comparisons shows a difference (1 is equal, 1 is not shown")


def test_generic_without_comparisons() -> None:
    """From where to where the first measure goes, and that nothing was compared."""
    said = showing.answer(synthetic.unknown()) or ""
    assert said.startswith("Undecided (repetitions are not stated; a verdict needs at least 5)")
    assert "rate of rows is from 1,000 [900, 1,100] 1/s (step 0, mode a) to 1,002 [" in said


def test_two_records_compared_have_no_sentence_of_one_experiment() -> None:
    """`lab compare` keeps the experiment's name, but its question is another one."""
    result = synthetic_lab.update_cost()
    result["factors"].insert(0, {"name": "record", "levels": ["A", "B"]})
    result["comparisons"] = [
        comparison("wal_bytes", {"record": "B"}, {"record": "A"}, (1.1, 1.2, 1.3), "higher")
    ]
    said = showing.answer(result) or ""
    assert said.startswith("WAL at record B against record A is 20 % higher [10, 30]")


def test_no_end_is_rounded_onto_one() -> None:
    """An interval that excludes 1 is never shown as one that touches it."""
    at = {"clients": 1, "server": "18"}
    item = comparison("tps", {"clients": 4}, at, (0.9991, 0.9995, 0.99996), "lower")
    assert "0.050 % lower [0.004, 0.090]" in (showing.answer(compared(item)) or "")


def test_an_unfinished_run_says_so() -> None:
    """What is missing may change the answer."""
    said = showing.answer(synthetic_lab.index_walkthrough() | {"complete": False}) or ""
    assert said.startswith("So far, with the run not complete: All 6 block counts")


def test_proofs_and_empty_results_have_none() -> None:
    """A proof's findings are its answer; a result without a number has nothing to say."""
    assert showing.answer(synthetic_proof.proof()) is None
    assert showing.answer({}) is None


def damaged(value: Any) -> Iterator[Any]:
    """The value with one part missing, of the wrong type, or out of every range."""
    if isinstance(value, dict):
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
            for part in damaged(value[key]):
                yield value | {key: part}
    elif isinstance(value, list):
        yield []
        for part in damaged(value[0]) if value else ():
            yield [part, *value[1:]]
    yield from (None, "text", -1, 10**400, 1e308, float("nan"), [], {"low": 2})


@pytest.mark.parametrize("name", MAKERS)
def test_no_damage_raises(name: str) -> None:
    """
    Results may be damaged, foreign or from another version: one sentence, or a refusal.

    Files are refused where they are read, with the place; no damage is a trace.
    """
    result = MAKERS[name]()
    # The first two of everything keep the shapes and make the variants few.
    small = {
        key: part[:2] if key in ("measures", "comparisons", "controls", "factors") else part
        for key, part in copy.deepcopy(result).items()
        if key in ("name", "kind", "complete", "factors", "measures", "cells", "comparisons",
                   "controls", "options")
    }  # fmt: skip
    count = refused = 0
    for variant in damaged(small):
        try:
            said = showing.answer(variant) if isinstance(variant, dict) else None
        except FieldError:
            refused += 1
            continue
        assert said is None or (
            said.endswith(".") and not re.search(r"\b(nan|inf)( \[|\]| times| repet)", said)
        )
        count += 1
    assert count > 20
    assert refused > 20


@pytest.mark.parametrize("name", MAKERS)
def test_text_is_printable(name: str) -> None:
    """An answer goes to a terminal: no control character of a result reaches it."""
    said = showing.answer(MAKERS[name]()) or ""
    assert said.isprintable()
    assert json.loads(json.dumps(said)) == said
