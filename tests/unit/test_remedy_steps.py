"""Steps of the doctor's plans without a server: what a file may say, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pgheadroom.doctor.remedy_facts import in_unit
from pgheadroom.doctor.remedy_steps import unmade
from pgheadroom.doctor.standbys import StandbyEvidence, StandbySeen
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.errors import InputError
from pgheadroom.plan.reading import plan_text
from pgheadroom.plan.remedies import (
    Claim,
    PlannedIndex,
    PlannedRelation,
    RemedyKind,
    RemedyStep,
    RemedyTool,
    ServerChange,
    TableWork,
    WalWindow,
)
from pgheadroom.plan.remedy_contradictions import contradiction
from pgheadroom.plan.remedy_statements import remade
from pgheadroom.plan.statements import order_keys
from pgheadroom.plan.steps import check_plan
from pgheadroom.plan.text import as_markdown, as_text
from pgheadroom.plan.values import Plan, Target
from pgheadroom.types import Interval
from pgheadroom.verify.wal_saved import judge_wal

TARGET = Target(
    system_identifier="7", database_oid=5, database="shop", server_version="18.4", is_superuser=True
)
TABLE = PlannedRelation(schema="public", name="t", oid=16400, relfilenode=16400)
FINDING = Finding(
    rule="duplicate-index",
    severity="info",
    object="t_v",
    text="It is there twice.",
    numbers={},
    price=no_price("none"),
    remedy=Remedy(text="Drop it."),
)


def index(name: str, oid: int, *, is_valid: bool = True, **more: Any) -> PlannedIndex:
    made = PlannedIndex(
        relation=PlannedRelation(schema="public", name=name, oid=oid, relfilenode=oid),
        definition=f"CREATE INDEX {name} ON public.t USING btree (v)",
        tablespace=None,
        is_valid=is_valid,
    )
    return replace(made, **more)


def step(kind: RemedyKind, tool: RemedyTool, **fields: Any) -> RemedyStep:
    table = None if kind == "set_server" else TABLE
    return replace(unmade(FINDING, kind, tool, table, "found", ()), **fields)


def plan(*steps: RemedyStep, wal: WalWindow | None = None) -> Plan:
    return Plan(
        tool_version="0",
        created_at="2026-11-27T00:00:00Z",
        observed_at=None,
        target=TARGET,
        policy=None,
        rewrite="auto",
        steps=(),
        offers=(),
        kept=(),
        notes=(),
        remedies=tuple(
            remade(replace(one, number=number), TARGET) for number, one in enumerate(steps, 1)
        ),
        wal=wal,
    )


def dropping(**fields: Any) -> RemedyStep:
    return step("drop_index", "DROP INDEX", **{"index": index("t_v", 16401), **fields})


def storing(options: Mapping[str, str | None], before: Mapping[str, str | None]) -> RemedyStep:
    return step("set_storage", "ALTER TABLE", options=options, options_before=before)


def setting(**fields: Any) -> RemedyStep:
    change = ServerChange(
        name="max_wal_size",
        value="4096MB",
        before="1024",
        was_in_auto=False,
        becomes="4096",
        needs_restart=False,
    )
    return step("set_server", "ALTER SYSTEM", setting=replace(change, **fields))


def test_statements_and_their_undo() -> None:
    """Each names its own undo: what there was before, or nothing."""
    found = plan(
        setting(),
        setting(name="checkpoint_timeout", value=None, before="300", was_in_auto=True),
        storing(
            {"autovacuum_vacuum_scale_factor": "0.01", "autovacuum_enabled": None},
            {"autovacuum_vacuum_scale_factor": None, "autovacuum_enabled": "off"},
        ),
        dropping(),
        dropping(index=index("t_w", 16402, tablespace="Fast disks")),
        dropping(index=index("t_x", 16403, is_valid=False)),
        dropping(index=index("t_a", 16405, tablespace="", comment="it's\n", statistics={"2": 9})),
        storing({"toast.autovacuum_enabled": None}, {"toast.autovacuum_enabled": "NO"}),
        step("rebuild_index", "REINDEX", index=index("t_y", 16404)),
        step("create_index", "CREATE INDEX", index=index("t_z", 0)),
        step("vacuum", "VACUUM"),
    )
    check_plan(found)
    said = [(one.sql, one.undo) for one in found.work]
    assert said == [
        (
            "ALTER SYSTEM SET max_wal_size = '4096MB'; SELECT pg_reload_conf()",
            "ALTER SYSTEM RESET max_wal_size; SELECT pg_reload_conf()",
        ),
        (
            "ALTER SYSTEM RESET checkpoint_timeout; SELECT pg_reload_conf()",
            "ALTER SYSTEM SET checkpoint_timeout = '300'; SELECT pg_reload_conf()",
        ),
        (
            'ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = 0.01); '
            'ALTER TABLE "public"."t" RESET (autovacuum_enabled)',
            'ALTER TABLE "public"."t" SET (autovacuum_enabled = off); '
            'ALTER TABLE "public"."t" RESET (autovacuum_vacuum_scale_factor)',
        ),
        (
            'DROP INDEX CONCURRENTLY "public"."t_v"',
            "CREATE INDEX CONCURRENTLY t_v ON public.t USING btree (v)",
        ),
        (
            'DROP INDEX CONCURRENTLY "public"."t_w"',
            'SET default_tablespace = "Fast disks"; '
            "CREATE INDEX CONCURRENTLY t_w ON public.t USING btree (v); RESET default_tablespace",
        ),
        ('DROP INDEX CONCURRENTLY "public"."t_x"', None),
        (
            'DROP INDEX CONCURRENTLY "public"."t_a"',
            "SET default_tablespace = ''; CREATE INDEX CONCURRENTLY t_a ON public.t USING btree "
            "(v); RESET default_tablespace; "
            'ALTER INDEX "public"."t_a" ALTER COLUMN 2 SET STATISTICS 9; '
            "COMMENT ON INDEX \"public\".\"t_a\" IS E'it''s\\U0000000a'",
        ),
        (
            'ALTER TABLE "public"."t" RESET (toast.autovacuum_enabled)',
            'ALTER TABLE "public"."t" SET (toast.autovacuum_enabled = \'NO\')',
        ),
        ('REINDEX INDEX CONCURRENTLY "public"."t_y"', None),
        (
            "CREATE INDEX CONCURRENTLY t_z ON public.t USING btree (v)",
            'DROP INDEX CONCURRENTLY "public"."t_z"',
        ),
        ('VACUUM "public"."t"', None),
    ]
    for text in (as_text(found), as_markdown(found), plan_text(found)):
        assert "t_z" in text
    title = f"# Change: {len(found.work)} steps for the doctor's findings\n"
    assert as_markdown(found).startswith(title)
    assert "for a restart" not in as_text(found)
    restart = plan(setting(needs_restart=True)).work[0]
    assert restart.sql == "ALTER SYSTEM SET max_wal_size = '4096MB'"
    assert "in force after a restart" in restart.risk


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (setting(name="archive_command"), "a plan does not set archive_command"),
        (setting(value="'; DROP"), "is no value of it"),
        (setting(before="x"), "'x' is no value of it"),
        (setting(name="fsync", value="off", before="on"), "a plan sets fsync to on alone"),
        (
            setting(name="zero_damaged_pages", value="on", before="off"),
            "a plan sets zero_damaged_pages to off alone",
        ),
        (storing({"fillfactor": "70"}, {"fillfactor": None}), "only those of autovacuum"),
        (
            storing({"autovacuum_enabled": "off); DROP"}, {"autovacuum_enabled": None}),
            "is no value of a storage parameter",
        ),
        (storing({"autovacuum_enabled": "off"}, {}), "does not know what it changes"),
        (
            dropping(index=index("t_v", 1, definition="DROP TABLE t")),
            "does not make the index",
        ),
        (
            dropping(
                index=index(
                    "t_v",
                    1,
                    definition="CREATE INDEX t_v ON public.t USING btree (v); DROP TABLE t",
                )
            ),
            "does not make the index",
        ),
        (
            dropping(index=index("t_v", 1, definition="CREATE INDEX t_v ON u USING btree (v)")),
            "does not make the index",
        ),
        (
            dropping(
                index=index("t_v", 1, definition="CREATE INDEX other ON public.t USING btree (v)")
            ),
            "does not make the index",
        ),
        *(
            (
                step(
                    "create_index",
                    "CREATE INDEX",
                    index=index("t_v", 0, definition=f"CREATE INDEX t_v ON public.t {more}"),
                ),
                "does not make the index",
            )
            for more in ("USING btree (somebodys(v))", "USING btree (v) WHERE somebodys(v)")
        ),
        (dropping(index=None), "an index is missing"),
        (dropping(rule="unused-index"), "does not say which standbys were asked"),
        (dropping(rule="overlapping-index"), "does not say which standbys were asked"),
        (step("vacuum", "VACUUM", standbys=("slot b",)), "of what none has to be"),
        (
            dropping(index=index("t_v", 1, statistics={"1 SET STATISTICS 1; DROP": 1})),
            "is no statistics target of column",
        ),
        (step("vacuum", "VACUUM", index=index("t_v", 1)), "one too many"),
        (replace(setting(), table=TABLE), "it is of a table or of a setting"),
    ],
)
def test_what_no_plan_says_is_refused(made: RemedyStep, why: str) -> None:
    """Whoever edits a file and works its digest out anew: nothing but what is known runs."""
    sound = plan(dropping())
    odd = replace(made, number=1, statements=("x",), run_by="apply")
    with pytest.raises(InputError, match=why):
        check_plan(replace(sound, remedies=(odd,)))


@pytest.mark.parametrize(
    "made",
    [
        setting(name="fsync", value="on", before="off", becomes="on"),
        setting(name="fsync", value=None, before="off", becomes="on"),
        dropping(index=index("t_v", 1, definition="CREATE INDEX t_v ON public.t (f(v))")),
        dropping(rule="unused-index", standbys=()),
        dropping(rule="overlapping-index", standbys=("slot b", "name c")),
        step("vacuum", "VACUUM"),
        step("create_index", "CREATE INDEX", index=index("t_v", 0)),
    ],
)
def test_their_sound_counterparts_are_taken(made: RemedyStep) -> None:
    """What is refused above differs from these in one fact; the catalog vouches for what drops."""
    check_plan(plan(made))


def test_texts_are_those_of_the_fields() -> None:
    """A statement or an undo that its step does not make is refused."""
    sound = plan(dropping())
    (one,) = sound.remedies or ()
    for field in ({"statements": ("DROP TABLE t",)}, {"undo_statements": ("DROP TABLE t",)}):
        with pytest.raises(InputError, match="runs only statements that it makes itself"):
            check_plan(replace(sound, remedies=(replace(one, **field),)))
    with pytest.raises(InputError, match="DROP INDEX is not vacuum"):
        check_plan(replace(sound, remedies=(replace(one, kind="vacuum"),)))
    with pytest.raises(InputError, match="expected them in order"):
        check_plan(replace(sound, remedies=(replace(one, number=2),)))


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("(v)", "v"),
        ('(v DESC, "o ""d" NULLS FIRST) INCLUDE (w)', 'v DESC, "o ""d" NULLS FIRST'),
        ("(v) WITH (fillfactor='90')", "v"),
        ("(v, ((w + 1)))", None),
        ("(lower(v))", None),
        ("(v text_pattern_ops)", None),
        ('(v COLLATE "C")', None),
        ('(v, "a\nb")', None),
        ("(v DESC, w LIMIT 1)", None),
    ],
)
def test_the_order_of_an_index_for_pg_repack(key: str, order: str | None) -> None:
    """Columns as ORDER BY takes them, and no other text, whoever wrote the plan."""
    sound = plan(step("cluster_table", "pg_repack by columns", index=index("t_v", 16401)))
    check_plan(sound)
    (made,) = sound.remedies or ()
    assert made.command is not None
    assert "--order-by=v" in made.command.split()
    other = replace(
        made,
        index=index("t_v", 16401, definition=f"CREATE INDEX t_v ON public.t USING btree {key}"),
    )
    assert order_keys(other.index.definition if other.index else "") == order
    if order is None:
        with pytest.raises(InputError, match=r"which pg_repack orders by|does not make"):
            check_plan(replace(sound, remedies=(other,)))
    else:
        check_plan(replace(sound, remedies=(remade(other, TARGET),)))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (setting(), setting(value="1GB"), "max_wal_size is set twice"),
        (
            storing({"autovacuum_enabled": "off"}, {"autovacuum_enabled": None}),
            storing({"autovacuum_enabled": "on"}, {"autovacuum_enabled": None}),
            "autovacuum_enabled of t is set twice",
        ),
        (
            dropping(),
            step("rebuild_index", "REINDEX", index=index("t_v", 16401)),
            "t_v",
        ),
        (
            dropping(keeps=index("t_w", 16402)),
            dropping(index=index("t_w", 16402)),
            "is to serve in place of another",
        ),
        (
            step("rebuild_index", "REINDEX", index=index("t_v", 16401)),
            step("rewrite_table", "VACUUM FULL"),
            "does what the other one does",
        ),
        (step("vacuum", "VACUUM"), step("vacuum", "VACUUM"), "vacuumed twice"),
        (step("analyze", "ANALYZE"), step("analyze", "ANALYZE"), "analyzed twice"),
        (step("analyze", "ANALYZE"), step("rewrite_table", "VACUUM FULL"), "analyzes it"),
        (
            step("create_index", "CREATE INDEX", index=index("t_v", 0)),
            step("create_index", "CREATE INDEX", index=index("t_v", 0)),
            "both act on t_v",
        ),
    ],
)
def test_contradictions(one: RemedyStep, other: RemedyStep, why: str) -> None:
    """In either order; and a plan that holds both is refused."""
    for pair in ((one, other), (other, one)):
        numbered = [replace(each, number=number) for number, each in enumerate(pair, 1)]
        assert why in (contradiction(numbered) or "")
        with pytest.raises(InputError, match="contradict each other"):
            check_plan(plan(*pair))
    alone = [dropping(), dropping(index=index("t_w", 16402)), step("rewrite_table", "VACUUM FULL")]
    assert contradiction(alone) is None
    squeezed = [step("rewrite_table", "pg_squeeze"), step("analyze", "ANALYZE")]
    assert contradiction(squeezed) is None, "it takes no statistics"


def test_values_in_the_unit_of_a_setting() -> None:
    """As pg_settings has it; what is not a whole number there is not told."""
    assert in_unit("4096MB", "MB") == "4096"
    assert in_unit("4GB", "MB") == "4096"
    assert in_unit("15min", "s") == "900"
    assert in_unit("1s", "ms") == "1000"
    assert in_unit("2000", None) == "2000"
    assert in_unit("500ms", "s") is None
    assert in_unit("4 parsecs", "MB") is None


def seen(**fields: Any) -> StandbySeen:
    made = StandbySeen(
        called="b:5432", follows="slot b", since_days=60.0, scans={1: ("t_v", 0)}, followers=()
    )
    return replace(made, **fields)


def test_what_standbys_say() -> None:
    """Each has to have counted for a month, to have the index, and not to have read it."""

    def against(*standbys: StandbySeen, unasked: tuple[str, ...] = ()) -> str | None:
        found = StandbyEvidence(unasked=unasked, seen=standbys, archives=True)
        return found.against(1, "t_v")

    assert against() is None
    assert against(seen()) is None
    assert "standbys were not asked: slot c" in (against(seen(), unasked=("slot c",)) or "")
    assert "has counted for 3 days" in (against(seen(), seen(since_days=3.0)) or "")
    assert "an unknown time" in (against(seen(since_days=None)) or "")
    assert "has read it 4 times" in (against(seen(scans={1: ("t_v", 4)})) or "")
    assert "does not have it" in (against(seen(scans={1: ("other", 0)})) or "")
    alone = StandbyEvidence(unasked=(), seen=(), archives=True)
    assert "out of the archive alone would not be seen" in alone.said
    assert "b:5432 (60 days)" in StandbyEvidence(unasked=(), seen=(seen(),), archives=True).said


def window(wal_bytes: int, inserts: int = 10_000, images: int = 0, **more: Any) -> WalWindow:
    table = TableWork(oid=TABLE.oid, inserts=inserts, updates=0, hot_updates=0, deletes=0)
    made = WalWindow(
        interval_s=60.0,
        wal_bytes=wal_bytes,
        images=images,
        image_bytes=None,
        tables=(table,),
        elsewhere_rows=0,
    )
    return replace(made, **more)


LOGGED = Claim(
    measure="wal_bytes_per_entry",
    unit="bytes",
    before=64.0,
    foreseen=Interval(low=57.6, mid=64.0, high=70.4, level=0.9),
    basis="one",
    how="two",
    of={},
)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (window(2_000_000), window(1_360_000), "held"),
        (window(2_000_000), window(2_000_000), "failed"),
        (window(2_000_000), window(600_000), "failed"),
        (None, window(1_360_000), "not comparable"),
        (window(2_000_000), None, "not comparable"),
        (window(20_000, 100), window(13_600, 100), "undecided"),
        (window(2_000_000), window(1_360_000, images=100), "undecided"),
        (
            window(2_000_000, images=50, image_bytes=0),
            window(1_360_000 + 800_000, images=100, image_bytes=800_000),
            "held",
        ),
        (window(2_000_000), window(2_720_000, elsewhere_rows=10_000), "undecided"),
        (window(200_000_000), window(199_360_000), "undecided"),
        (window(2_000_000), window(1_360_000, 0, elsewhere_rows=9_000), "undecided"),
    ],
)
def test_the_log_beside_its_claim(
    before: WalWindow | None, now: WalWindow | None, verdict: str
) -> None:
    """10,000 entries of 64 bytes are saved or not; what hides it is undecided, never held."""
    made = plan(dropping(claims=(LOGGED,)), wal=before)
    (one,) = made.remedies or ()
    assert judge_wal(made, [(one, LOGGED)], now)[1] == verdict
