"""
An observed table with GIN indexes: what they write is what was measured beyond the twin's.

Documents that come in and are updated once or twice soon afterwards, an index over jsonb and one
over `to_tsvector`, on 18.6: 281 bytes of WAL an update at 83 % HOT, observed. After ALTER TABLE
... SET (fillfactor = 80) and VACUUM FULL the same load had 97 % HOT and 150 bytes. With B-trees in
their place 126 to 133 bytes were foreseen for it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgheadroom.advise.calibrate import calibrate
from pgheadroom.advise.curve import curve_of
from pgheadroom.advise.policy import make_policy
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.shares import observed_shares
from pgheadroom.advise.what_if import _varied
from pgheadroom.errors import InputError
from pgheadroom.predict.variants import IndexChange
from pgheadroom.profile import read_profile
from pgheadroom.profile.unpriced import as_they_are, left_out, unpriced_of
from pgheadroom.types import Interval

DOCUMENTS = Path(__file__).parent / "observed" / "documents-gin.json"
VERSION = "18.6"
THEN_BYTES = 149.8
"""WAL of an update at fillfactor 80, as pg_stat_statements counted it."""


def test_what_a_gin_index_writes_is_foreseen_at_another_fillfactor() -> None:
    """By what was measured, and not as the WAL of a B-tree."""
    profile = read_profile(DOCUMENTS)
    (table,) = profile.tables
    shares = observed_shares(table)
    assert shares is not None
    policy = make_policy("balanced", {}, None)
    with Runner() as runner:
        fitted = calibrate(profile, table, shares, VERSION, runner, sample_pages=200)
        assert fitted is not None
        guard = fitted.guard
        assert (guard.reason, guard.contradicted, guard.unpriced) == (None, (), ())
        assert guard.left_out == ("docs_fts (gin)", "docs_tags (gin)")
        assert guard.unplayed is not None
        assert guard.unplayed.low > 0, "they write, and the twin does not have it"
        (found,), (alone,) = (
            curve_of(
                table, fitted.scenario, (80,), VERSION, policy, runner, off=fitted.off, unplayed=wal
            )
            for wal in (guard.unplayed, None)
        )
    foreseen, twins = found.point.wal_bytes_per_update, alone.point.wal_bytes_per_update
    assert isinstance(foreseen, Interval)
    assert isinstance(twins, Interval)
    assert not foreseen.excludes(THEN_BYTES)
    assert twins.excludes(THEN_BYTES)
    assert sum(found.costs) > sum(alone.costs), "rows that come have entries too"
    assert guard.missing.startswith("docs_fts (gin), docs_tags (gin): which updates they end HOT")


def test_a_change_is_checked_with_b_trees_in_the_places_of_other_methods() -> None:
    """A GIN index over an expression stands as its columns, which GIN has no operators for."""
    profile = read_profile(DOCUMENTS)
    played = replace(profile, tables=(as_they_are(profile.tables[0]),))
    assert left_out(played.tables[0]) == ("docs_fts (gin)", "docs_tags (gin)")
    (varied,) = _varied(played, [IndexChange(kind="without", index="docs_tags")]).tables
    assert left_out(varied) == ("docs_fts (gin)",), "and the other one is what it was"
    with pytest.raises(InputError, match="BRIN has no operators"):
        _varied(played, [IndexChange(kind="brin", index="docs_tags")])


def test_a_hash_index_that_stands_as_a_b_tree_is_said() -> None:
    """As in profiles of before hash indexes were priced: it stays one, and is named."""
    (table,) = read_profile(DOCUMENTS).tables
    assert table.observed is not None
    methods = {index.name: "hash" for index in table.observed.indexes if index.method == "gin"}
    observed = replace(
        table.observed,
        indexes=tuple(
            replace(index, method=methods.get(index.name, index.method))
            for index in table.observed.indexes
        ),
    )
    older = replace(table, observed=observed)
    assert as_they_are(older) == older
    assert unpriced_of(older) == ("docs_fts (hash)", "docs_tags (hash)")
    now = tuple(
        replace(index, method="hash") if index.name in methods else index for index in older.indexes
    )
    assert unpriced_of(replace(older, indexes=now)) == ()
