"""The doctor without a server: what counts as worse, acceptances, thresholds, the page."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from doctor_page import PAGE, book, page

from pgheadroom.doctor import accepting, all_rules, beside_baseline, read_diagnosis, rule_named
from pgheadroom.doctor.agreeing import agreed, runnable
from pgheadroom.doctor.choosing import is_worse
from pgheadroom.doctor.dead_rows import is_switched_off, trigger_rows
from pgheadroom.doctor.examining import as_far_as_watched, by_effect
from pgheadroom.doctor.index_cost import IndexCost
from pgheadroom.doctor.rule import Facts, bytes_a_day
from pgheadroom.doctor.rules.archiver_failing import _segments_between
from pgheadroom.doctor.rules.checkpoints_by_wal import distance_bytes
from pgheadroom.doctor.values import (
    SEVERITIES,
    Blind,
    Diagnosis,
    Examined,
    Finding,
    Remedy,
    Severity,
    no_price,
)
from pgheadroom.doctor.where_set import change_of
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.lab import experiments
from pgheadroom.report import doctor as doctor_report
from pgheadroom.report.text import as_json

WRITTEN = Path(__file__).parent / "written" / "doctor.json"
MIB = 2**20


def finding(
    rule: str = "unused-index",
    about: str = "t_v",
    severity: Severity = "info",
    amount: float | None = 1000.0,
) -> Finding:
    price = no_price("nothing") if amount is None else bytes_a_day(amount, "WAL")
    return Finding(
        rule=rule,
        severity=severity,
        object=about,
        text="It is so.",
        numbers={"size_bytes": 8192},
        price=price,
        remedy=Remedy(text="Do it.", sql=("DROP INDEX t_v",), lock="none", cost="none", undo="x"),
    )


def diagnosis(*findings: Finding, **facts: Any) -> Diagnosis:
    examined = Examined(
        at="2026-11-27T12:00:00Z",
        database="shop",
        server="18.4",
        role="monitor",
        in_recovery=False,
        interval_s=None,
        statistics_since="2026-10-01T00:00:00Z",
        rules=39,
    )
    return Diagnosis(tool_version="0.1.0", examined=examined, findings=findings, **facts)


def facts(**settings: str) -> Facts:
    given = {
        "autovacuum": "on",
        "autovacuum_vacuum_threshold": "50",
        "autovacuum_vacuum_scale_factor": "0.2",
        **settings,
    }
    return Facts(
        major=18,
        now_s=1e9,
        interval_s=None,
        since_s=1e9 - 86_400,
        is_standby=False,
        has_standbys=False,
        monitors=True,
        settings=given,
    )


def test_by_effect() -> None:
    """Severity first, then the price, then what has none."""
    found = by_effect(
        [
            finding(about="a", amount=None),
            finding(about="b", amount=10),
            finding(about="c", amount=20),
            finding(about="d", severity="error", amount=None),
            finding(about="e", severity="warning", amount=1),
        ]
    )
    assert "".join(each.object for each in found) == "decba"


def test_a_baseline_leaves_out_what_is_known() -> None:
    """But not what is more severe now, or twice as dear."""
    before = diagnosis(finding(about="same"), finding(about="dearer"), finding(about="worse"))
    now = diagnosis(
        finding(about="same", amount=1999),
        finding(about="dearer", amount=2000),
        finding(about="worse", severity="warning"),
        finding(about="new"),
    )
    left = beside_baseline(now, before)
    assert [each.object for each in left.findings] == ["dearer", "worse", "new"]
    assert left.known == 1
    assert not is_worse(finding(severity="info"), finding(severity="error"))
    assert not is_worse(finding(amount=None), finding())


def test_what_a_baseline_had_accepted_counts_again() -> None:
    """The day of an acceptance is not outlived by a file that has it."""
    accepted, until = ["unused-index:t_v"], date(2026, 11, 30)
    before = accepting(diagnosis(finding()), accepted, until, date(2026, 11, 30))
    now = accepting(diagnosis(finding()), accepted, until, date(2026, 12, 1))
    assert [each.object for each in beside_baseline(now, before).findings] == ["t_v"]


def test_a_baseline_of_another_database_is_refused() -> None:
    """Its findings would hide those of this one by name."""
    other = diagnosis()
    with pytest.raises(ParameterError, match="baseline"):
        beside_baseline(diagnosis(), replace(other, examined=replace(other.examined, database="x")))


def test_acceptances_end() -> None:
    """A finding is set aside until the last day, and counts again on the next."""
    found = diagnosis(finding(), finding(about="other"))
    names, until = ["unused-index:t_v", "unused-index:gone"], date(2026, 11, 30)
    kept = accepting(found, names, until, date(2026, 11, 30))
    assert [each.object for each in kept.findings] == ["other"]
    assert [each.finding.object for each in kept.accepted] == ["t_v"]
    assert kept.notes == ("accepted, but not found: unused-index:gone",)
    over = accepting(found, names, until, date(2026, 12, 1))
    assert over.findings == found.findings
    assert "counts again" in over.notes[0]
    with pytest.raises(ParameterError, match="RULE:OBJECT"):
        accepting(found, ["t_v"], until, date(2026, 11, 1))


def test_a_diagnosis_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A baseline is the file that an earlier run wrote; another file is refused by its kind."""
    file = tmp_path / "before.json"
    file.write_text(as_json(diagnosis(finding()).to_json()), encoding="utf-8")
    assert read_diagnosis(file) == diagnosis(finding())
    written = read_diagnosis(WRITTEN)
    assert as_json(written.to_json()) == WRITTEN.read_text(encoding="utf-8")
    for text, said in (("[]", "list"), ('{"kind": "plan"}', "plan"), ("{", "no JSON")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            read_diagnosis(file)


def test_how_severe() -> None:
    """`--fail-on warning` counts errors too."""
    found = diagnosis(finding(), finding(severity="warning"), finding(severity="error"))
    assert [found.at_least(severity) for severity in SEVERITIES] == [3, 2, 1]
    assert found.headline() == "1 error, 1 warning, 1 info"
    assert diagnosis().headline() == "no finding"


@pytest.mark.parametrize(
    ("size_mib", "target", "wanted_mib"),
    [(1024, 0.9, 512), (1024, 0.5, 656), (2048, 0.9, 1056), (16384, 0.9, 8592), (32, 0.9, 16)],
)
def test_the_distance_of_checkpoints(size_mib: int, target: float, wanted_mib: int) -> None:
    """About half of max_wal_size; figures of the catalogue, but the last: one segment at least."""
    assert distance_bytes(size_mib * MIB, 16 * MIB, target) == wanted_mib * MIB


def test_where_autovacuum_comes() -> None:
    """Storage parameters go before settings; 18 bounds the threshold, -1 unbinds it."""
    row = {"reltuples": 1000.0, "reloptions": None}
    assert trigger_rows(facts(), row) == 250
    own = {"autovacuum_vacuum_scale_factor": "0.1", "autovacuum_vacuum_threshold": "7"}
    assert trigger_rows(facts(), row | {"reloptions": own}) == 107
    assert trigger_rows(facts(), row | {"reltuples": -1.0}) == 50
    bounded = facts(autovacuum_vacuum_max_threshold="100")
    assert trigger_rows(bounded, row) == 100
    free = {"autovacuum_vacuum_max_threshold": "-1"}
    assert trigger_rows(bounded, row | {"reloptions": free}) == 250
    odd = {"autovacuum_vacuum_threshold": " 0x3E8", "autovacuum_vacuum_scale_factor": "0x1p-3"}
    assert trigger_rows(facts(), row | {"reloptions": odd}) == 1000 + 125
    octal = {"autovacuum_vacuum_threshold": "010", "autovacuum_vacuum_scale_factor": "010"}
    assert trigger_rows(facts(), row | {"reloptions": octal}) == 8 + 10_000
    for value, is_off in (("off", True), ("FALSE", True), ("0", True), ("on", False), ("1", False)):
        assert (
            is_switched_off(facts(), row | {"reloptions": {"autovacuum_enabled": value}}) is is_off
        )
    assert is_switched_off(facts(autovacuum="off"), row)


def test_segments_that_wait() -> None:
    """By their names, across the end of a log of 4 GiB; not across timelines."""
    one = "000000010000000000000009"
    assert _segments_between(one, "00000001000000000000000C", 16 * MIB) == 3
    assert _segments_between("0000000100000000000000FF", "000000010000000100000001", 16 * MIB) == 2
    assert _segments_between(one, "00000002000000000000000C", 16 * MIB) is None
    assert _segments_between("00000002.history", one, 16 * MIB) is None


def test_rates_want_an_hour() -> None:
    """What was counted in minutes is not told as a day's; an interval that was asked for is."""
    young = replace(facts(), since_s=1e9 - 600)
    assert young.a_day({}, 10) is None
    assert facts().a_day({}, 10) == 10
    assert replace(young, interval_s=60.0).a_day({}, 1) == 1440
    assert facts().a_day({"since_epoch_s": 1e9 - 43_200}, 10) == 20


def test_a_short_interval_is_no_alarm() -> None:
    """Severity by a rate needs ten minutes; less is told, and that it is so only if it goes on."""
    rule, found = rule_named("temp-files"), finding("temp-files", severity="warning")
    short = as_far_as_watched(rule, found, replace(facts(), interval_s=599.0))
    assert short.severity == "info"
    assert short.price.text == "WAL; if it goes on so"
    assert as_far_as_watched(rule, found, replace(facts(), interval_s=600.0)) == found
    assert as_far_as_watched(rule, found, facts()) == found
    by_count = finding("invalid-index", severity="warning", amount=None)
    kept = as_far_as_watched(rule_named("invalid-index"), by_count, replace(facts(), interval_s=5))
    assert kept == by_count
    large = IndexCost(size_bytes=2**30, entries_a_day=1.0, wal_bytes_a_day=1.0, judges_rates=False)
    assert large.severity == "warning"
    busy = replace(large, size_bytes=0, wal_bytes_a_day=2.0**40)
    assert (busy.severity, replace(busy, judges_rates=True).severity) == ("info", "warning")


def test_rules_say_all_that_a_rule_is() -> None:
    """Each field is written, and its page is one of PostgreSQL's."""
    for rule in all_rules():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
        said = (rule.question, rule.threshold, rule.severity, rule.price, rule.remedy, rule.blind)
        assert all(len(text) > 5 for text in said), rule.id
        assert rule.question.endswith("?")
        assert rule.link.startswith("https://www.postgresql.org/"), rule.id
        assert set(rule.sql) <= {15, 16, 17, 18, 19}
        assert bool(rule.counters) == bool(rule.key), rule.id
        assert rule.counters or not rule.is_rate, rule.id
        assert doctor_report.explained(rule)[0].startswith(rule.id)


def test_an_unknown_rule() -> None:
    """The message lists those that there are."""
    with pytest.raises(ParameterError, match="unused-index") as caught:
        rule_named("used-index")
    assert caught.value.as_option().startswith("--explain")


def test_the_page_is_current() -> None:
    """`python tools/doctor_page.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_row_of_the_catalogue_has_a_rule_or_a_reason() -> None:
    """And no rule answers a row that is not there; experiments that are named exist."""
    rows = book()
    assert len(rows) == 170
    answered = {row for rule in all_rules() for row in rule.book}
    should = {"B9.12", "B10.37", "B6.27", "B9.30", "B6.20", "B4.14", "B11.3", "B11.4", "B15.9"}
    should |= {"B11.14", "B5.14", "B6.14", "B2.7", "B5.10", "B6.17", "B6.25", "B7.36", "B7.37"}
    should |= {"B10.29", "B10.31", "B10.40", "B14.1", "B17.7", "B17.21"}
    assert answered - set(rows) == should, "rows that are rated less than must"
    for row, said in rows.items():
        assert (row in answered) != ("why" in said), row
    named = {
        name
        for said in rows.values()
        for name in re.findall(r"`lab run ([a-z-]+)`", str(said.get("why", "")))
    }
    assert named <= {experiment.name for experiment in experiments.ALL}


def test_plain_rules_have_known_fields() -> None:
    """A field that is misspelt would be left out without a word."""
    folder = Path(str(rule_named.__code__.co_filename)).parent
    files = sorted(folder.glob("*.toml"))
    assert len(files) >= 4
    known = {
        *("id", "question", "book", "sql", "severity", "effect", "threshold", "text", "remedy"),
        *("remedy_sql", "to", "lock", "cost", "undo", "price", "blind", "link"),
        *("needs_monitor", "on_standby"),
    }
    for file in files:
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["rule"]:
            assert set(entry) <= known, entry["id"]


def test_no_index_is_built_anew_in_vain() -> None:
    """One that is to go, or that its table's rewrite builds anew, needs no REINDEX."""

    def of(rule: str, about: str, sql: str, **numbers: int) -> Finding:
        made = finding(rule, about)
        return replace(made, numbers=numbers, remedy=Remedy(text="Do it.", sql=(sql,)))

    drop = of("unused-index", "t_v", "DROP INDEX t_v", index_oid=2, idx_scan=0)
    gone = of("bloated-index", "t_v", "REINDEX INDEX t_v", oid=2, table_oid=1)
    kept = of("bloated-index", "u_v", "REINDEX INDEX u_v", oid=4, table_oid=3)
    later = of("bloated-index", "w_v", "REINDEX INDEX w_v", oid=6, table_oid=5)
    table = of("bloated-table", "w", "VACUUM (FULL) w", oid=5)
    found = agreed([gone, drop, kept, later, table])
    assert [(each.object, each.remedy.sql) for each in found] == [
        ("t_v", ("DROP INDEX t_v",)),
        ("u_v", ("REINDEX INDEX u_v",)),
        ("w_v", ()),
        ("w", ("VACUUM (FULL) w",)),
    ]


def test_a_table_is_written_anew_once() -> None:
    """What puts rows in order gives back what another rewrite does, unless its index goes."""

    def of(rule: str, sql: str, **numbers: int) -> Finding:
        made = finding(rule, rule)
        return replace(made, numbers=numbers, remedy=Remedy(text="Do it.", sql=(sql,)))

    order = of("rows-out-of-order", "CLUSTER t USING t_v", oid=1, by_index_oid=2)
    table = of("bloated-table", "VACUUM (FULL) t", oid=1)
    index = of("bloated-index", "REINDEX INDEX t_v", oid=2, table_oid=1)
    drop = of("duplicate-index", "DROP INDEX t_v", index_oid=2, kept_oid=3, idx_scan=1)

    def carried_out(*found: Finding) -> list[str]:
        return [statement for each in agreed(found) for statement in each.remedy.sql]

    assert carried_out(table, order, index) == ["CLUSTER t USING t_v"]
    assert carried_out(table, order, index, drop) == ["VACUUM (FULL) t", "DROP INDEX t_v"]
    by_hand = replace(order, remedy=Remedy(text="By hand."))
    assert carried_out(by_hand, index) == ["REINDEX INDEX t_v"]
    assert carried_out(by_hand, table) == ["VACUUM (FULL) t"]


def test_an_undo_is_in_force() -> None:
    """Settings are read again after it; a standby's DDL is its primary's."""
    reload = "SELECT pg_reload_conf()"
    change = Remedy(text="Do.", sql=("ALTER SYSTEM RESET x", reload), undo="ALTER SYSTEM SET x = 1")
    found = replace(finding(), remedy=change)
    settled = runnable(found, is_standby=True).remedy
    assert settled.undo == f"ALTER SYSTEM SET x = 1; {reload}"
    assert settled.text == "Do."
    assert runnable(finding(), is_standby=True).remedy.text == "On the primary: Do it."
    assert runnable(finding(), is_standby=False) == finding()


def test_statements_stay_whole() -> None:
    """Names are printed as they are: lines are not broken, and no name ends a block."""
    wide = f'DROP INDEX "{"a ```b " * 20}"'
    found = finding()
    found = replace(found, remedy=replace(found.remedy, sql=(wide,), undo="CREATE INDEX t_v"))
    lines = doctor_report.finding_lines(found)
    assert [line for line in lines if doctor_report.is_statement(line)] == [
        f"do: {wide};",
        "undo: CREATE INDEX t_v;",
    ]
    text = doctor_report.as_markdown(diagnosis(found))
    assert f"````sql\n{wide};\n````" in text
    assert "```sql\nCREATE INDEX t_v;\n```" in text


def test_what_is_printed() -> None:
    """A screen of findings; the rest by name; what was not looked at before what is blind."""
    found = diagnosis(
        *(finding(about=f"t{n}") for n in range(9)),
        blind=(Blind(rule="b", why="right"), Blind(rule="a", why="late", cut_off=True)),
    )
    assert len(doctor_report.first_screen(found)) < 9
    assert list(doctor_report.blind_lines(found)) == ["blind: b: right", "not looked at: a: late"]
    lines = doctor_report.finding_lines(found.findings[0])
    assert lines[1] == "price: 1000 B a day (estimated): WAL"
    assert lines[2] == "do: DROP INDEX t_v;"
    assert doctor_report.priced(no_price("no price: why")) == "none: why"
    text = doctor_report.as_markdown(found)
    assert text.count("## info: unused-index") == 9
    assert doctor_report.as_csv(found).count("\n") == 10


def row_of_setting(source: str, **more: Any) -> dict[str, Any]:
    return {
        "object": "enable_seqscan",
        "setting": "off",
        "source": source,
        "sourcefile": None,
        "sourceline": None,
        "context": "user",
        "database": "shop",
        "role": '"The role"',
        **more,
    }


@pytest.mark.parametrize(
    ("row", "to", "sql", "undo"),
    [
        (
            row_of_setting("database"),
            "",
            ("ALTER DATABASE shop RESET enable_seqscan",),
            "ALTER DATABASE shop SET enable_seqscan = 'off'",
        ),
        (
            row_of_setting("database user"),
            "on",
            ('ALTER ROLE "The role" IN DATABASE shop RESET enable_seqscan',),
            "ALTER ROLE \"The role\" IN DATABASE shop SET enable_seqscan = 'off'",
        ),
        (row_of_setting("command line"), "on", (), None),
        (
            row_of_setting("configuration file", sourcefile="/etc/p.conf", sourceline=3),
            "",
            (),
            None,
        ),
        (row_of_setting("configuration file"), "", (), None),
        (
            row_of_setting("configuration file", sourcefile="/etc/p.conf", sourceline=3),
            "on",
            ("ALTER SYSTEM SET enable_seqscan = on", "SELECT pg_reload_conf()"),
            "ALTER SYSTEM RESET enable_seqscan",
        ),
        (
            row_of_setting("configuration file", sourcefile="/d/postgresql.auto.conf"),
            "",
            ("ALTER SYSTEM RESET enable_seqscan", "SELECT pg_reload_conf()"),
            "ALTER SYSTEM SET enable_seqscan = 'off'",
        ),
    ],
)
def test_a_setting_is_changed_where_it_is_set(
    row: dict[str, Any], to: str, sql: tuple[str, ...], undo: str | None
) -> None:
    """ALTER SYSTEM RESET does nothing for what a role, a file or a command line sets."""
    made = change_of(row, to, "Take it out.", None)
    assert (made.sql, made.undo) == (sql, undo)
    if row["sourceline"] and not to:
        assert "line 3 of /etc/p.conf" in made.text


def test_ids_that_are_taken_fast() -> None:
    """Young ids are no error however fast they go; nor are old ones by a rate of seconds."""
    rule = rule_named("transaction-ids")
    given = facts(autovacuum_freeze_max_age="200000000", vacuum_failsafe_age="1600000000")
    row = {"name": "shop", "next_xid": 1e8, "lets_in": True, "oldest": ["t", "p"]}

    def severities(age: int, interval_s: float) -> list[str]:
        seen = replace(given, interval_s=interval_s)
        found = [*rule.decide(seen, [row | {"age_xids": age}])]
        assert all(isinstance(each, Finding) for each in found)
        return [each.severity for each in found if isinstance(each, Finding)]

    assert severities(250_000_000, 600) == []
    assert severities(350_000_000, 5) == ["warning"]
    assert severities(350_000_000, 600) == ["error"]
    for more, sql in (
        ({}, ("VACUUM (VERBOSE) t",)),
        ({"oldest": ["pg_temp_3.t", "t"]}, ()),
        ({"lets_in": False, "oldest": None}, ()),
    ):
        (found,) = rule.decide(given, [row | {"age_xids": 350_000_000} | more])
        assert isinstance(found, Finding)
        assert found.remedy.sql == sql


def test_toast_has_its_tables_options() -> None:
    """All of them where it has none of its own: the remedy names the one that is set."""
    rule = rule_named("autovacuum-off")
    row = {
        "oid": 16401,
        "table_oid": 16400,
        "schema": "public",
        "name": "t",
        "is_toast": True,
        "reltuples": 100.0,
        "relpages": 10_000,
        "n_dead_tup": 1000,
        "n_live_tup": 100,
        "reloptions": {"autovacuum_enabled": "off"},
    }
    for is_own, wanted in ((False, "autovacuum_enabled"), (True, "toast.autovacuum_enabled")):
        (found,) = rule.decide(facts(), [row | {"has_own_toast_options": is_own}])
        assert isinstance(found, Finding)
        assert found.remedy.sql == (f'ALTER TABLE "public"."t" RESET ({wanted})',)


def test_slots_that_are_invalid_or_at_work() -> None:
    """Why is told where it is known, and a slot in use is never to be dropped."""
    rule = rule_named("slot-keeps-wal")
    given = facts(max_wal_size="1024", max_slot_wal_keep_size="-1")
    row = {
        "name": "s",
        "slot_type": "logical",
        "active": False,
        "wal_status": "lost",
        "is_copied": False,
        "has_position": False,
        "kept_bytes": 0.0,
        "reason": "rows_removed",
    }
    (lost,) = rule.decide(given, [row])
    assert isinstance(lost, Finding)
    assert "invalid (rows_removed)" in lost.text
    assert lost.remedy.sql == ("SELECT pg_drop_replication_slot('s')",)
    for status in ("lost", "unreserved"):
        (active,) = rule.decide(given, [row | {"active": True, "wal_status": status}])
        assert isinstance(active, Finding)
        assert active.remedy.sql == ()
