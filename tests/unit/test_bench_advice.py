"""The proof that the advice is good: its workloads, the rules of others, the arithmetic."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench_advice import page
from bench_advice.ask import ask_or_fail
from bench_advice.goal import FILLFACTORS, GOALS, candidates, cost_of
from bench_advice.player import PIECES, carried, script_counts
from bench_advice.record import Record
from bench_advice.rules import RULES, Counters, counters_of, pg_gather, pgtools, rin_nas
from bench_advice.score import ADVICE, LEAVE, noise, score, summarise
from bench_advice.workloads import Workload, manifest, workloads
from hypothesis import given
from hypothesis import strategies as st

from pgbench_scripts import Prng, run
from pgheadroom.play.scripts import scripts, variables

FOLDER = Path(__file__).parents[2] / "experiments" / "advice"


def named(name: str) -> Workload:
    return next(item for item in workloads() if item.name == name)


def counters(hot_percent: float, **fields: int) -> Counters:
    updates = 1_000_000
    made = {"n_tup_ins": 0, "n_tup_upd": updates, "fillfactor": 100} | fields
    return Counters(**made, n_tup_hot_upd=round(updates * hot_percent / 100))


# Workloads


def test_the_generator_makes_what_was_committed() -> None:
    """The workloads were fixed before any advice: another generator is another benchmark."""
    committed = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    assert manifest() == committed


def test_there_are_enough_of_each_kind() -> None:
    """At least 50, 10 where KEEP is expected, 10 where an index is the cause; every sort."""
    found = workloads()
    intents = Counter(item.intent for item in found)
    assert len(found) >= 50
    assert intents["keep"] >= 10
    assert intents["index"] >= 10
    tables = [item.profile.tables[0] for item in found]
    operations = [o for item in found for o in item.profile.workload.operations]
    assert {o.kind for o in operations} == {
        "insert", "update", "delete", "select", "upsert", "lock"
    }  # fmt: skip
    assert {"uniform", "zipfian", "hot_set", "newest", "oldest", "sequential"} <= {
        o.pick.distribution for o in operations if o.pick is not None
    }
    assert any(change.grows_max_bytes for o in operations for change in o.sets)
    assert sum(1 for item in found if item.profile.workload.run.snapshots) >= 3
    assert min(table.fillfactor for table in tables) < 60
    assert sum(1 for table in tables if table.fillfactor < 100) >= 10
    assert max(o.rows_per_statement for o in operations) > 1


@pytest.mark.parametrize("workload", workloads(), ids=lambda item: item.name)
def test_every_workload_can_be_played_in_pieces(workload: Workload) -> None:
    """Its profile is valid, one client's, and its cycles divide into the pieces."""
    profile = workload.profile
    assert profile.workload.run.clients == 1
    assert profile.workload.run.operations == workload.window
    assert workload.window % PIECES == workload.settle % PIECES == 0
    assert workload.window > 0
    for snapshot in profile.workload.run.snapshots:
        assert (snapshot.start_frac * PIECES) == pytest.approx(round(snapshot.start_frac * PIECES))


def test_rows_are_there_until_the_end() -> None:
    """A queue, or rows that wait for their one update, must not run out inside the window."""
    for workload in workloads():
        profile = workload.profile
        transactions = profile.workload.transactions()
        weights = [transaction[0].weight for transaction in transactions]
        live = workload.rate_per_s * (workload.observe_s + 10)
        spent = workload.settle + max(workload.window, live)
        for transaction in transactions:
            for operation in transaction:
                if operation.pick and operation.pick.distribution in ("sequential", "oldest"):
                    share = min(1.05 * transaction[0].weight / sum(weights), 1.0)
                    taken = spent * share * operation.rows_per_statement
                    assert taken <= profile.tables[0].rows, workload.name


# Playing in pieces


def test_script_counts_are_pgbenchs_own() -> None:
    """With several scripts pgbench names each one's transactions; with one only the sum."""
    several = (
        "number of transactions actually processed: 1440/1440\nlatency average = 0.1 ms\n"
        "tps = 9000.5 (without initial connection time)\nSQL script 1: script-0.sql\n"
        " - weight: 1 (targets 50.0% of total)\n - 704 transactions (48.9% of total)\n"
        "SQL script 2: script-1.sql\n - weight: 1 (targets 50.0% of total)\n"
        " - 736 transactions (51.1% of total)\n"
    )
    assert script_counts(several) == (704, 736)
    assert script_counts(several.partition("SQL script 1")[0]) == (1440,)


def _play(text: str, state: dict[str, int]) -> None:
    """What a script does to the counters, as pgbench would; what it draws does not matter."""
    for _ in run(text, state, Prng(1)):
        pass


@pytest.mark.parametrize(
    "name", ["once-later160", "once-now90", "queue-100", "deletes-170", "several-all"]
)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 4))
def test_pieces_go_on_where_the_last_one_ended(name: str, order: list[int], cut: int) -> None:
    """Keys must neither repeat nor be left out, whatever the scripts' order."""
    profile = named(name).profile
    texts = [script.text for script in scripts(profile)]
    order = [n % len(texts) for n in order]
    whole = dict(variables(profile)) | {"client_id": 0}
    for n in order:
        _play(texts[n], whole)
    pieces = variables(profile)
    for begin in range(0, len(order), cut):
        part = Counter(order[begin : begin + cut])
        pieces = carried(profile, pieces, tuple(part[n] for n in range(len(texts))))
    assert pieces == {name: whole[name] for name in pieces}


# Rules of others


@pytest.mark.parametrize(
    ("hot_percent", "gather", "tools", "patterns"),
    [(0, 80, 80, 93), (33, 87, 90, 95), (50, 90, None, 96), (75, 95, None, 99)],
)
def test_formulas_give_their_published_values(
    hot_percent: float, gather: int, tools: int | None, patterns: int
) -> None:
    """The values of the tools' own rules for tables that are only updated."""
    seen = counters(hot_percent)
    assert (pg_gather(seen), pgtools(seen), rin_nas(seen)) == (gather, tools, patterns)


def test_formulas_see_nothing_but_counters() -> None:
    """Inserts halve pg_gather's step, few updates silence pgtools, a fillfactor rin-nas."""
    assert pg_gather(counters(0, n_tup_ins=1_000_000)) == 90
    assert pg_gather(counters(0, fillfactor=70)) == 80
    assert pgtools(Counters(n_tup_ins=0, n_tup_upd=99, n_tup_hot_upd=0, fillfactor=100)) is None
    assert rin_nas(counters(0, fillfactor=90)) is None
    nothing = Counters(n_tup_ins=5, n_tup_upd=0, n_tup_hot_upd=0, fillfactor=90)
    assert {name: rule(nothing) for name, rule in RULES.items()} == {
        "pg_gather": None, "pgtools": None, "rin-nas": None, "always 100": 100, "always 90": 90
    }  # fmt: skip


# Costs and regrets


def measured(wal_bytes: int, heap_pages: int = 100, **fields: int) -> dict[str, Any]:
    made = {"heap_pages": heap_pages, "heap_pages_begin": heap_pages, "index_pages": 20}
    made |= {"index_pages_begin": 20, "pages_modified": 50, "wal_bytes": wal_bytes}
    return made | fields


def test_cost_is_the_policys_formula() -> None:
    """A day has 2,880 cycles of 30 s; a GB of WAL costs 5, a million pages written 2."""
    balanced, large = GOALS
    kept_gb = 120 * 8192 / 1e9
    rest = 5 * 2880 * 4_000_000 / 1e9 + 2 * 2880 * 50 / 1e6
    assert cost_of(measured(4_000_000), balanced.prices) == pytest.approx(kept_gb + rest)
    assert cost_of(measured(4_000_000), large.prices) == pytest.approx(1e4 * kept_gb + rest)
    grown = measured(4_000_000, heap_pages_begin=60)
    assert cost_of(grown, large.prices) == pytest.approx(1e4 * 100 * 8192 / 1e9 + rest)
    assert balanced.options == ()
    assert large.options == ("--price", "kept_gb=10000.0")


def fill(record: Record, workload: Workload, wal_bytes: dict[int, int]) -> None:
    for fillfactor, amount in wal_bytes.items():
        head = {"workload": workload.name, "sha256": workload.sha256, "server": "18.4"}
        line = head | {"fillfactor": fillfactor, "measured": measured(amount)}
        record.append("cells", line)


def seen(hot: int) -> dict[str, Any]:
    found = {"n_tup_ins": 0, "n_tup_upd": 1000, "n_tup_hot_upd": hot}
    return {"table": [{"fillfactor": 100, "observed": {"counters": found}}]}


def test_regret(tmp_path: Path) -> None:
    """Cost over the least, minus 1; silence and KEEP are the current setting; ABSTAIN too."""
    workload = named("uniform-90")
    record = Record(tmp_path)
    amounts = dict.fromkeys(candidates(workload), 5_000_000) | {100: 6_000_000, 90: 4_000_000}
    record.write_observed(workload, seen(hot=1000))
    assert score(record, workload, GOALS[0]) is None, "nothing is measured"
    fill(record, workload, amounts)
    assert score(record, workload, GOALS[0]) is None, "99, which rin-nas names, is not measured"
    fill(record, workload, {99: 5_500_000})
    found = score(record, workload, GOALS[0])
    assert found is not None
    assert found.best == 90
    assert found.chosen == {
        "pg_gather": 100, "pgtools": 100, "rin-nas": 99,
        "always 100": 100, "always 90": 90, LEAVE: 100,
    }  # fmt: skip
    assert found.silent == {"pgtools", LEAVE}
    assert found.regret("always 90") == 0
    assert found.regret("pg_gather") == pytest.approx(0.5, rel=0.02)
    assert found.loss("pg_gather") == 0
    assert found.loss("always 90") == pytest.approx(-1 / 3, rel=0.02)
    assert not found.keep_is_right
    said = {"workload": workload.name, "sha256": workload.sha256, "goal": "balanced"}
    record.append("advice", said | {"verdict": "ABSTAIN", "fillfactor": None})
    found = score(record, workload, GOALS[0])
    assert found is not None
    assert (found.chosen[ADVICE], found.verdict) == (100, "ABSTAIN")
    record.append("advice", said | {"verdict": "CHANGE", "fillfactor": 95})
    found = score(record, workload, GOALS[0])
    assert found is not None
    assert found.regret(ADVICE) == pytest.approx(0.25, rel=0.02), "the last advice counts"


def test_advice_that_fails_is_a_result(tmp_path: Path) -> None:
    """It is recorded with its reason and counts as leaving the setting."""
    workload = named("uniform-90")
    missing = tmp_path / "profile.json"
    line = ask_or_fail(workload, missing, GOALS[0])
    assert (line["verdict"], line["fillfactor"]) == ("FAILED", None)
    assert "exit code" in line["reason"]
    record = Record(tmp_path / "record")
    record.write_observed(workload, seen(hot=500))
    fill(record, workload, dict.fromkeys((*FILLFACTORS, 96), 4_000_000))
    record.append("advice", line)
    found = score(record, workload, GOALS[0])
    assert found is not None
    assert (found.chosen[ADVICE], found.verdict) == (100, "FAILED")


def test_summary_and_noise(tmp_path: Path) -> None:
    """Median, 90th percentile, worst, and the workloads that a rule has harmed."""
    record = Record(tmp_path)
    chosen = [named(name) for name in ("uniform-90", "uniform-180", "uniform-350")]
    for n, workload in enumerate(chosen):
        record.write_observed(workload, seen(hot=500))
        amounts = dict.fromkeys((*FILLFACTORS, 96), 4_000_000)
        fill(record, workload, amounts | {90: round(4_000_000 * (1 + 0.2 * n))})
        head = {"workload": workload.name, "sha256": workload.sha256, "fillfactor": 100}
        record.append("repeats", head | {"measured": measured(4_000_000 + n)})
    scored = [score(record, workload, GOALS[0]) for workload in chosen]
    found = summarise([item for item in scored if item is not None], "always 90")
    assert found.median == pytest.approx(0.2, rel=0.02)
    assert found.worst == pytest.approx(0.4, rel=0.02)
    assert found.p90 == pytest.approx(0.36, rel=0.02)
    assert (found.harmed, found.silent) == (2, 0)
    differences = noise(record, chosen, GOALS[0])
    assert differences[0] == 0
    assert 0 < differences[1] < differences[2] < 1e-6
    target = tmp_path / "docs" / "advice.md"
    target.parent.mkdir()
    page.write(record, chosen, target, tmp_path / "docs" / "accuracy" / "advice.svg")
    text = target.read_text(encoding="utf-8")
    assert "| always 90 | 19." in text
    assert "The advice has not been asked yet." in text
    assert (tmp_path / "docs" / "accuracy" / "advice.svg").read_text().startswith("<svg")


def test_a_record_survives_a_kill_and_another_generator(tmp_path: Path) -> None:
    """A torn last line is no cell; neither is one of a workload that has changed since."""
    workload = named("uniform-90")
    record = Record(tmp_path)
    fill(record, workload, {100: 1, 90: 2})
    path = tmp_path / "cells.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    assert set(record.cells(workload)) == {100}
    fill(record, workload, {80: 3})
    assert set(record.cells(workload)) == {100, 80}
    path.write_text(text.replace(workload.sha256, "0" * 64), encoding="utf-8")
    assert record.cells(workload) == {}


def test_counters_come_from_the_observed_interval() -> None:
    """As `observe` writes them; what it could not read counts as none."""
    table = {
        "fillfactor": 85,
        "observed": {"counters": {"n_tup_ins": 3, "n_tup_upd": 7, "n_tup_hot_upd": None}},
    }
    assert counters_of(table) == Counters(n_tup_ins=3, n_tup_upd=7, n_tup_hot_upd=0, fillfactor=85)
