"""An index by which the rows of a foreign key are found: not for nothing, though nobody read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import observed_table as made
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.advise.served_keys import served_text

KEY = {
    "schema": "public",
    "table": "jobs",
    "name": "jobs_owner_fkey",
    "columns": ["owner"],
    "references_schema": "hr",
    "references": "people",
    "references_columns": ["id"],
}
PAIR = KEY | {"name": "jobs_pair_fkey", "columns": ["owner", "state"], "references": "pairs"}
SAID = (
    " jobs_owner serves a foreign key (jobs_owner_fkey): without it each row deleted from "
    "hr.people reads this whole table."
)


def _said(keys: list[dict[str, Any]], *indexes: dict[str, Any], **facts: Any) -> str:
    counters = made.counters(1000, 400, 600)
    profile = made.profile_of(counters, indexes=[made.PKEY, *indexes], **facts)
    seen = made.seen_of_server(foreign_keys=keys)
    profile = replace(profile, server=replace(profile.server, observed=seen))
    return served_text(profile, profile.tables[0], "jobs_owner")


def test_deletes_elsewhere_find_rows_by_it() -> None:
    """By its first columns, in any order; a partition's key is that of its table."""
    assert _said([KEY], made.OWNER) == SAID
    both = made.index("jobs_owner", ["state", "owner", "note"])
    assert "(jobs_pair_fkey): without it each row deleted from hr.pairs" in _said([PAIR], both)
    assert "foreign keys (a, jobs_owner_fkey)" in _said([KEY | {"name": "a"}, KEY], made.OWNER)
    assert _said([KEY | {"table": "all_jobs"}], made.OWNER, parent="all_jobs") == SAID


@pytest.mark.parametrize(
    ("key", "indexes"),
    [
        (KEY | {"table": "others"}, [made.OWNER]),
        (KEY | {"schema": "hr"}, [made.OWNER]),
        (KEY, [made.index("jobs_owner", ["state", "owner"])]),
        (KEY, [made.index("jobs_owner", ["owner"], predicate="state = 0")]),
        (KEY, [made.index("jobs_owner", ["owner"], method="brin")]),
        (KEY, [made.OWNER, made.index("jobs_both", ["owner", "state"])]),
        (PAIR, [made.OWNER]),
    ],
)
def test_it_serves_no_key(key: dict[str, Any], indexes: list[dict[str, Any]]) -> None:
    """Another table's key, other columns first, not all rows, or another index does as well."""
    assert not _said([key], *indexes)


def test_a_profile_of_before_keys_were_observed() -> None:
    """Nothing is known of its keys, so nothing is said."""
    profile = made.profile_of(made.counters(1000, 400, 600))
    seen = made.seen_of_server()
    profile = replace(profile, server=replace(profile.server, observed=seen))
    assert seen.foreign_keys is None
    assert not served_text(profile, profile.tables[0], "jobs_owner")


def test_the_remark_on_the_index_says_so() -> None:
    """`tasks_assignee` was never read, ended HOT for 21 % of the updates, and served a key."""
    counters = made.counters(1000, 0, 1000)
    profile = made.profile_of(
        counters,
        indexes=[made.PKEY, made.index("jobs_owner", ["owner"], totals={"idx_scan": 0})],
        classes=[made.a_class(["owner"], 1000)],
    )
    seen = made.seen_of_server(foreign_keys=[KEY])
    profile = replace(profile, server=replace(profile.server, observed=seen))
    (table,) = advise(profile, Options()).tables
    (remark,) = (one for one in table.remarks if one.kind == "index")
    assert "ends HOT" in remark.text
    assert remark.text.endswith(SAID)
