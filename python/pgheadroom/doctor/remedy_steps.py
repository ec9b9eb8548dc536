"""
One finding as one step: what it acts on, its evidence, and what it claims, with an interval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pgheadroom.doctor.remedy_facts import (
    FactRow,
    RemedyFacts,
    index_of,
    is_shown,
    relation_of,
    table_of,
)
from pgheadroom.doctor.rewriting import copied_bytes, rewriting_facts, tools_for
from pgheadroom.doctor.standbys import StandbyEvidence
from pgheadroom.doctor.values import Finding
from pgheadroom.plan.remedies import (
    Claim,
    PlannedIndex,
    PlannedRelation,
    RemedyKind,
    RemedyStep,
    RemedyTool,
)
from pgheadroom.plan.statements import tool_of
from pgheadroom.plan.values import Target
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

_LOG_FRAC = 0.1
"""By how much the log of an entry may be off: splits write more than entries (measured, see
docs/accuracy/doctor.md)."""
_HELD = "it could not be looked at: it is gone, or somebody holds its table"
_EXTENDED_PAGES = 64
_NEW = "See first that it is no new one, for when it was made is in no catalog."
_OPTIONS = re.compile(r"ALTER TABLE \S.* (SET|RESET) \(([a-z_.0-9 =,]+)\)", re.DOTALL)


class NotAStep(Exception):  # noqa: N818 - a reason, not an error of ours
    """Why a finding is no step of a plan."""


def unmade(
    finding: Finding,
    kind: RemedyKind,
    tool: RemedyTool,
    table: PlannedRelation | None,
    evidence: str,
    claims: Sequence[Claim],
) -> RemedyStep:
    """A step without the texts that follow from it (`remade` makes these)."""
    return RemedyStep(
        number=0,
        kind=kind,
        tool=tool,
        rule=finding.rule,
        finding=finding.object,
        table=table,
        evidence=evidence,
        claims=tuple(claims),
        statements=(),
        command=None,
        undo_statements=(),
        undo_note="",
        lock="",
        blocks="",
        duration_s=Interval.exactly(0.0),
        duration_basis="",
        disk_bytes=0,
        wal_bytes=0,
        run_by="apply",
        verified=False,
        risk="",
    )


def finding_number(finding: Finding, name: str) -> float:
    """A number that its rule gives each of its findings."""
    found = finding.numbers[name]
    assert isinstance(found, int | float), f"{finding.rule} has {name}"
    return float(found)


def _seen_index(facts: RemedyFacts, oid: float) -> tuple[FactRow, PlannedIndex]:
    row = facts.index(int(oid))
    if row is None:
        raise NotAStep(_HELD)
    index = index_of(row)
    if not is_shown(index):
        raise NotAStep("characters of its definition cannot be printed: do it by hand")
    return row, index


def dropped(facts: RemedyFacts, finding: Finding, standbys: StandbyEvidence | None) -> RemedyStep:
    """
    An index that goes.

    Args:
        facts: Asks the database.
        finding: Of a rule that drops it.
        standbys: What they read; None where reads do not matter, for no query can read it, or
            another index is exactly the same.

    Raises:
        NotAStep: A standby may need it, or its lock would stop writers.
    """
    name = "oid" if finding.rule == "invalid-index" else "index_oid"
    row, index = _seen_index(facts, finding_number(finding, name))
    if row["relkind"] != "i":
        raise NotAStep(
            "an index of a partitioned table is dropped under ACCESS EXCLUSIVE on all partitions: "
            "do it by hand while nobody needs them"
        )
    if row["is_of_extension"]:
        raise NotAStep("it depends on an extension, which its undo would not say: do it by hand")
    evidence = finding.text
    if standbys is not None:
        why = standbys.against(index.relation.oid, index.relation.name)
        if why is not None:
            raise NotAStep(why)
        first = finding.remedy.text if finding.remedy.sql else _NEW
        evidence = f"{evidence} {standbys.said[0].upper()}{standbys.said[1:]}. {first}"
    elif finding.rule == "duplicate-index":
        evidence += " The other one serves the same queries, on standbys too."
    keeps = None
    if "kept_oid" in finding.numbers:
        _, keeps = _seen_index(facts, finding_number(finding, "kept_oid"))
    step = unmade(
        finding,
        "drop_index",
        "DROP INDEX",
        table_of(row),
        evidence,
        (_size_claim(float(row["size_bytes"])), *_log_claims(finding, row)),
    )
    asked = None if standbys is None else standbys.followers
    return replace(step, index=index, keeps=keeps, standbys=asked)


def _size_claim(size: float) -> Claim:
    """Of an index that goes whole; until then it may grow."""
    return Claim(
        measure="given_back_bytes",
        unit="bytes",
        before=size,
        foreseen=Interval(low=size * 0.9, mid=size, high=max(size * 1.1, size + 81_920), level=0.9),
        basis="its file when it was planned",
        how="its file just before the step, less what is there now",
        of={},
    )


def _log_claims(finding: Finding, row: FactRow) -> tuple[Claim, ...]:
    wal, entries = (finding.numbers.get(f"{name}_a_day") for name in ("wal_bytes", "entries"))
    if not row["is_counted"] or not wal or not entries:
        return ()
    assert isinstance(wal, int | float), "a number or nothing"
    assert isinstance(entries, int | float), "a number or nothing"
    each = wal / entries
    return (
        Claim(
            measure="wal_bytes_per_entry",
            unit="bytes",
            before=each,
            foreseen=Interval(
                low=each * (1 - _LOG_FRAC), mid=each, high=each * (1 + _LOG_FRAC), level=0.9
            ),
            basis="an INSERT_LEAF record with its entry, which is then not written",
            how="the server's WAL for each changed row, in an interval before and one afterwards",
            of={"entries_a_day": float(entries)},
        ),
    )


def rebuilt(facts: RemedyFacts, finding: Finding) -> RemedyStep:
    """
    An index that is built anew.

    Raises:
        NotAStep: It cannot be built beside clients, or may fail for its rows.
    """
    row, index = _seen_index(facts, finding_number(finding, "oid"))
    if row["relkind"] != "i":
        raise NotAStep("an index of a partitioned table is built anew partition by partition")
    if row["is_exclusion"]:
        raise NotAStep("an exclusion constraint's index cannot be built CONCURRENTLY")
    if not index.is_valid and row["is_unique"]:
        raise NotAStep(
            "it is unique: where its build failed for rows that are there twice, it fails again "
            "until these are gone"
        )
    if finding.rule == "bloated-index":
        claims: tuple[Claim, ...] = (_given_back(finding, "given_back_bytes"),)
        new_bytes = claims[0].before or 0.0
        new_bytes -= claims[0].foreseen.low
    else:
        new_bytes = float(row["size_bytes"])
        claims = (
            Claim(
                measure="is_valid",
                unit="",
                before=0.0,
                foreseen=Interval.exactly(1.0),
                basis="a build that ends well makes it valid",
                how="pg_index has it as valid",
                of={},
            ),
        )
    step = unmade(finding, "rebuild_index", "REINDEX", table_of(row), finding.text, claims)
    return replace(
        step,
        index=index,
        copied_bytes=round(new_bytes),
        reads_bytes=2 * int(row["table_bytes"]),
    )


def _given_back(finding: Finding, measure: str) -> Claim:
    low, mid, high = (
        finding_number(finding, f"given_back_bytes{end}") for end in ("_low", "", "_high")
    )
    return Claim(
        measure="toast_given_back_bytes" if measure.startswith("toast") else "given_back_bytes",
        unit="bytes",
        before=finding_number(finding, "size_bytes"),
        foreseen=Interval(low=low, mid=min(max(mid, low), high), high=high, level=0.9),
        basis="pages less those of a fresh copy, by the layout of rows or entries and statistics",
        how="its file just before the step, less its file just after",
        of={},
    )


def _extended_in_bulk(claim: Claim) -> Claim:
    """
    The claim of a tool that inserts rows, by which a table has pages to spare at its end.

    Source: `RelationAddBlocks` and MAX_BUFFERS_TO_EXTEND_BY, src/backend/access/heap/hio.c;
    REPACK (CONCURRENTLY) of 19rc1 left 10 and 13 pages.
    """
    found = claim.foreseen
    low = max(found.low - _EXTENDED_PAGES * PAGE_BYTES, 0.0)
    return replace(
        claim,
        foreseen=replace(found, low=low),
        basis=f"{claim.basis}; up to {_EXTENDED_PAGES} pages at its end, by which it is extended",
    )


def rewritten(facts: RemedyFacts, finding: Finding, how: str, target: Target) -> RemedyStep:
    """
    A table that is rewritten, by what lets its clients go on or by what was asked for.

    Raises:
        NotAStep: Rewrites are not wanted, or only VACUUM FULL can do it and was not asked for.
    """
    oid = int(finding_number(finding, "oid"))
    row = facts.table(oid)
    found = rewriting_facts(facts.rows, [oid]).get(oid)
    if row is None or found is None:
        raise NotAStep(_HELD)
    if how == "none":
        raise NotAStep("rewrites were not wanted (--rewrite none)")
    tools, unfit = tools_for(facts.settings(), target.major, found)
    if how == "auto":
        tools = [tool for tool in tools if tool != "VACUUM FULL"]
        if not tools:
            raise NotAStep(
                "of what can rewrite it only VACUUM FULL is there, which takes ACCESS EXCLUSIVE: "
                "nobody reads or writes it until that ends; a step with --rewrite vacuum-full"
            )
    elif (wanted := tool_of(how)) not in tools:
        raise NotAStep(f"{how} cannot rewrite it: {unfit[wanted]}")
    else:
        tools = [wanted]
    is_toast = finding.object.startswith("TOAST of ")
    claim = _given_back(finding, "toast" if is_toast else "heap")
    if tools[0] != "VACUUM FULL":
        claim = _extended_in_bulk(claim)
    new_bytes = float(row["size_bytes"])
    if not is_toast:
        new_bytes = finding_number(finding, "size_bytes") - claim.foreseen.low
    step = unmade(
        finding,
        "rewrite_table",
        cast("RemedyTool", tools[0]),
        relation_of(row),
        finding.text,
        (claim,),
    )
    return replace(step, copied_bytes=copied_bytes(found, new_bytes))


def indexed_key(facts: RemedyFacts, finding: Finding) -> RemedyStep:
    """
    An index for a foreign key.

    Raises:
        NotAStep: Another step's index serves it, its table is partitioned, or the name is taken.
    """
    if not finding.remedy.sql:
        raise NotAStep(finding.remedy.text)
    row = facts.key(int(finding_number(finding, "constraint_oid")))
    if row is None:
        raise NotAStep(_HELD)
    if row["relkind"] != "r":
        raise NotAStep("its table is partitioned: an index on each partition first, by hand")
    if row["is_taken"]:
        raise NotAStep(f"an index of the name {row['index_name']} is there already")
    index = PlannedIndex(
        relation=PlannedRelation(
            schema=str(row["schema"]), name=str(row["index_name"]), oid=0, relfilenode=0
        ),
        definition=str(row["definition"]),
        tablespace=None,
        is_valid=True,
    )
    if not is_shown(index):
        raise NotAStep("characters of its definition cannot be printed: do it by hand")
    size = float(row["size_bytes"])
    step = unmade(
        finding,
        "create_index",
        "CREATE INDEX",
        relation_of(row),
        finding.text,
        (
            Claim(
                measure="deletes_by_index_frac",
                unit="",
                before=0.0,
                foreseen=Interval(low=0.95, mid=1.0, high=1.0, level=0.9),
                basis=f"each deleted row looks its children up once, and reads {size:,.0f} bytes "
                "of the table no more",
                how="reads of the index since the step, by rows deleted from the parent",
                of={"read_bytes_per_delete": size},
            ),
        ),
    )
    entries = 20.0 * float(row["reltuples"])
    return replace(
        step,
        index=index,
        referenced=int(row["parent_oid"]),
        copied_bytes=round(entries),
        reads_bytes=2 * int(size),
    )


def stored(facts: RemedyFacts, finding: Finding) -> RemedyStep:
    """
    Storage parameters of autovacuum.

    Raises:
        NotAStep: It is set for the whole server.
    """
    if not finding.remedy.sql:
        raise NotAStep(finding.remedy.text)
    match = _OPTIONS.fullmatch(finding.remedy.sql[0])
    assert match is not None, finding.remedy.sql
    options: dict[str, str | None] = {}
    for part in match[2].split(", "):
        name, _, value = part.partition(" = ")
        options[name] = value if match[1] == "SET" else None
    row = facts.table(_table_oid(finding))
    if row is None:
        raise NotAStep(_HELD)
    own: Mapping[str, str] = {**row["options"], **row["toast_options"]}
    dead = finding.numbers.get("n_dead_tup")
    wanted = finding.numbers.get("trigger_rows_wanted", finding.numbers["trigger_rows"])
    assert isinstance(wanted, int | float), "the finding says it"
    claim = _dead_claim(finding, float(wanted), None if dead is None else float(dead))
    step = unmade(finding, "set_storage", "ALTER TABLE", relation_of(row), finding.text, (claim,))
    before = {name: own.get(name) for name in options}
    return replace(step, options=options, options_before=before)


def _table_oid(finding: Finding) -> int:
    """Of the table, though the finding may be of its TOAST table: statements name that."""
    return int(finding_number(finding, "table_oid" if "table_oid" in finding.numbers else "oid"))


def _dead_claim(finding: Finding, trigger_rows: float, before: float | None) -> Claim:
    return Claim(
        measure="toast_n_dead_tup" if finding.object.endswith(" (TOAST)") else "n_dead_tup",
        unit="rows",
        before=before,
        foreseen=Interval(low=0.0, mid=trigger_rows, high=trigger_rows, level=0.9),
        basis="the dead rows at which autovacuum comes",
        how="n_dead_tup at the end of the interval",
        of={},
    )


def vacuumed(facts: RemedyFacts, finding: Finding) -> RemedyStep:
    """
    A VACUUM.

    Raises:
        NotAStep: One is at work.
    """
    if not finding.remedy.sql:
        raise NotAStep(finding.remedy.text)
    row = facts.table(_table_oid(finding))
    if row is None:
        raise NotAStep(_HELD)
    claim = _dead_claim(
        finding, finding_number(finding, "trigger_rows"), finding_number(finding, "n_dead_tup")
    )
    step = unmade(finding, "vacuum", "VACUUM", relation_of(row), finding.text, (claim,))
    return replace(step, reads_bytes=int(row["size_bytes"]))


def analyzed(facts: RemedyFacts, finding: Finding) -> RemedyStep:
    """
    An ANALYZE.

    Raises:
        NotAStep: Somebody holds the table.
    """
    row = facts.table(int(finding_number(finding, "oid")))
    if row is None:
        raise NotAStep(_HELD)
    claim = Claim(
        measure="is_analyzed",
        unit="",
        before=0.0,
        foreseen=Interval.exactly(1.0),
        basis="ANALYZE takes statistics of every column",
        how="the server counts an ANALYZE of it since the step began",
        of={},
    )
    if finding.rule == "statistics-behind":
        trigger = finding_number(finding, "trigger_rows")
        claim = Claim(
            measure="n_mod_since_analyze",
            unit="rows",
            before=finding_number(finding, "changed"),
            foreseen=Interval(low=0.0, mid=0.0, high=trigger, level=0.9),
            basis="the changed rows at which autovacuum analyzes",
            how="n_mod_since_analyze at the end of the interval",
            of={},
        )
    step = unmade(finding, "analyze", "ANALYZE", relation_of(row), finding.text, (claim,))
    sampled = 300 * 8192 * int(facts.settings()["default_statistics_target"])
    return replace(step, reads_bytes=min(int(row["size_bytes"]), sampled))
