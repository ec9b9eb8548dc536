"""
Triggers that change a row before an update writes it: what `check` says, and what servers do.

A trigger that set `updated_at` was not observed: no statement assigned the column, so an index over
it was passed ("as before", exit code 0), and no update was HOT any more.
"""

from __future__ import annotations

from collections import Counter

import observed
import pytest

from pgheadroom.migration import check_migration, read_migration
from pgheadroom.observe import find_classes, observe
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.log import StatementCounts

pytestmark = pytest.mark.usefixtures("run_parent")

PLAIN = "BEGIN NEW.seen = now(); RETURN NEW; END"
TABLES = {
    # A table's trigger, with its function, and whether an index over `seen` ends HOT by it; None:
    # nobody can know. Statements assign `name`.
    "plain": (PLAIN, "BEFORE UPDATE ON {} FOR EACH ROW", True),
    "copied": (
        'DECLARE _new record; BEGIN _new := NEW; _new."seen" = now(); RETURN _new; END',
        "BEFORE INSERT OR UPDATE ON {} FOR EACH ROW",
        True,
    ),
    "when_it_differs": (
        PLAIN,
        "BEFORE UPDATE ON {} FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)",
        True,
    ),
    "of_the_column": (PLAIN, "BEFORE UPDATE OF name ON {} FOR EACH ROW", True),
    "of_another": (PLAIN, "BEFORE UPDATE OF note ON {} FOR EACH ROW", False),
    "compares": (
        "BEGIN IF NEW.seen = OLD.seen THEN NEW.note = 'x'; END IF; RETURN NEW; END",
        "BEFORE UPDATE ON {} FOR EACH ROW",
        False,
    ),
    "afterwards": (PLAIN, "AFTER UPDATE ON {} FOR EACH ROW", False),
    "inserts": (PLAIN, "BEFORE INSERT ON {} FOR EACH ROW", False),
    "unseen": (
        "BEGIN RETURN jsonb_populate_record(NEW, jsonb_build_object('seen', now())); END",
        "BEFORE UPDATE ON {} FOR EACH ROW",
        None,
    ),
}
TABLE = "(id int PRIMARY KEY, name text, note text, seen timestamptz, words tsvector)"


def _make(cluster: Cluster) -> None:
    with observed.session(cluster) as connection:
        for name, (body, event, _) in TABLES.items():
            connection.execute(f"CREATE TABLE {name} {TABLE} WITH (fillfactor = 50)".encode())
            connection.execute(
                f"CREATE FUNCTION of_{name}() RETURNS trigger LANGUAGE plpgsql AS $f${body}$f$"
            )
            connection.execute(
                f"CREATE TRIGGER t BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION "
                "tsvector_update_trigger(words, 'pg_catalog.simple', name)".encode()
            )
            connection.execute(
                f"CREATE TRIGGER own {event.format(name)} EXECUTE FUNCTION of_{name}()".encode()
            )
            connection.execute(
                f"INSERT INTO {name} SELECT i FROM generate_series(1, 60) i".encode()
            )
        connection.execute("VACUUM ANALYZE")


def _updated(cluster: Cluster, value: str) -> Counter[str]:
    """Twenty updates of each table by one statement."""
    counts: Counter[str] = Counter()
    with observed.session(cluster) as connection:
        for name in TABLES:
            text = f"UPDATE {name} SET name = '{value}' WHERE id <= 20"
            connection.execute(text.encode())
            counts[text] += 1
    return counts


def _observed(cluster: Cluster) -> Profile:
    counts: Counter[str] = Counter()
    recording = observed.watched(cluster, lambda: counts.update(_updated(cluster, "a")))
    files = [StatementCounts(source="file", counts=counts, seen=counts.total(), cut=0)]
    return observe(recording, find_classes(recording, [], files), mask=False, sampled=True)


def _hot(cluster: Cluster) -> dict[str, int]:
    query = "SELECT relname, n_tup_hot_upd FROM pg_stat_user_tables"
    with cluster.connect() as connection:
        return {name: int(count) for name, count in connection.execute(query).fetchall()}


def test_what_triggers_assign_is_assigned(programs: ServerPrograms) -> None:
    """An index over what a trigger sets loses HOT; one over what it leaves alone does not."""
    ddl = "".join(f"CREATE INDEX {name}_seen ON {name} (seen);\n" for name in TABLES)
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        _make(cluster)
        profile = _observed(cluster)
        found = {one.name: one for one in check_migration(profile, read_migration(ddl)).tables}
        words = check_migration(profile, read_migration("CREATE INDEX ON inserts (words)"))
        observed.load(cluster, ddl)
        before = _hot(cluster)
        _updated(cluster, "b")
        after = _hot(cluster)
    for name, (_, _, is_ending) in TABLES.items():
        verdict = found[name].verdict
        wanted = {True: "loses HOT", False: "as before", None: "not judged"}[is_ending]
        assert verdict == wanted, f"{name}: {found[name].text}"
        assert (after[name] == before[name]) == (is_ending is not False), name
    assert "assign seen (a trigger does)" in found["plain"].text
    assert "rigger own may change any column" in found["unseen"].text
    # Of PostgreSQL's own functions it is known which argument is assigned.
    assert [one.verdict for one in words.tables] == ["loses HOT"]


def test_a_mask_hides_triggers(newest: ServerPrograms) -> None:
    """Names are pseudonyms, and functions' texts are not in a profile at all."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        _make(cluster)
        recording = observed.watched(cluster, lambda: None, samples=False)
        made = observe(recording, find_classes(recording, [], []), mask=True, sampled=False)
    seen = [table.observed for table in made.tables]
    triggers = [one for table in seen if table is not None for one in table.triggers or ()]
    assert len(triggers) == 2 * len(TABLES) - 2
    assert all(one.name.startswith("trigger_") for one in triggers)
    assert not {"seen", "of_plain", "words"} & {
        text for one in triggers for text in (*(one.assigns or ()), one.function)
    }
