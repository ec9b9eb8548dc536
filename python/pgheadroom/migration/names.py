"""
Which tables and indexes of a profile names mean, while a migration renames, makes and drops them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

from pgheadroom.migration.actions import Address, NamedRelation
from pgheadroom.migration.foreign_keys import ForeignKeys
from pgheadroom.profile import Profile
from pgheadroom.quoting import called


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAt:
    """An index of one table of the profile: the table's name there, and the index's identity."""

    table: str
    identity: str


class NamesNow:
    """
    The profile's tables and indexes by the names that they have now.

    Attributes:
        tables: Names in the profile: of the table, or of a partitioned one's partitions.
        indexes: The index behind a name; of a partitioned table one for each partition.
        partitioned: Places of partitioned tables.
        made: What the migration has made: schema, if it was named, and name.
        gone: What it has dropped.
        observed: Tables by their places before anything was done.
        keys: Foreign keys.
        domains: Whether each has constraints; all are known if `knows_domains`.
        heirs: Tables that inherit from a table and are no partitions, by its name in the profile.
        part_of: The partitioned table's index that a partition's is a part of, both by place.
        partitions: Which table each partition is of, and which is a table's default one.
    """

    def __init__(self, profile: Profile) -> None:
        self.tables: dict[Address, list[str]] = {}
        self.indexes: dict[Address, list[IndexAt]] = {}
        self.partitioned: set[Address] = set()
        self.part_of: dict[Address, Address] = {}
        self.made: set[tuple[str | None, str]] = set()
        self.gone: set[NamedRelation] = set()
        leaves: dict[str, list[str]] = {}
        for table in profile.tables:
            observed = table.observed
            assert observed is not None, "the caller has checked that tables are observed"
            self.tables[observed.schema, observed.name] = [table.name]
            if observed.parent:
                leaves.setdefault(observed.parent, []).append(table.name)
            for index in observed.indexes:
                place = index.schema, index.name
                at = IndexAt(table=table.name, identity=index.name)
                self.indexes[place] = [at]
                if index.parent is not None:
                    schema, _, name = index.parent.rpartition(".")
                    whole = schema or "public", name
                    self.part_of[place] = whole
                    self.indexes.setdefault(whole, []).append(at)
        parents = () if profile.server.observed is None else profile.server.observed.partitioned
        full = {called(found.schema, found.name): found for found in parents}

        for name, found in full.items():
            levels = [name]
            for level in levels:  # once each: a file may say that two are each other's parents
                below = (n for n, other in full.items() if other.parent == level)
                levels += [n for n in below if n not in levels]
            members = [leaf for n in levels for leaf in leaves.get(n, ())]
            place = found.schema, found.name
            self.tables[place] = members
            self.partitioned.add(place)
        self.partitions = PartitionsNow(profile)
        self.observed = {place: tuple(keys) for place, keys in self.tables.items()}
        server = profile.server.observed
        self.keys = ForeignKeys(None if server is None else server.foreign_keys)
        domains = None if server is None else server.domains
        self.knows_domains = domains is not None
        self.domains = {(d.schema, d.name): d.is_constrained for d in domains or ()}
        # Tables of plain inheritance: ALTER TABLE goes on to them.
        of_name = {called(*place): keys[0] for place, keys in self.observed.items() if keys}
        self.heirs: dict[str, list[str]] = {}
        for parent, members in leaves.items():
            if parent not in full and parent in of_name:
                self.heirs[of_name[parent]] = members

    def copied(self) -> NamesNow:
        """The same, which what comes later leaves alone."""
        made = copy.copy(self)
        made.tables = {place: list(keys) for place, keys in self.tables.items()}
        made.indexes = {place: list(found) for place, found in self.indexes.items()}
        made.part_of = dict(self.part_of)
        made.partitioned, made.made, made.gone = (
            set(self.partitioned),
            set(self.made),
            set(self.gone),
        )
        made.partitions = self.partitions.copied()
        made.keys = self.keys.copied()
        made.domains = dict(self.domains)
        made.heirs = {key: list(members) for key, members in self.heirs.items()}
        return made

    def table(self, target: NamedRelation) -> Address | None:
        """Of a table's name."""
        return _place(target, self.tables)

    def index(self, target: NamedRelation) -> Address | None:
        """Of an index's name."""
        return _place(target, self.indexes)

    def place_of(self, target: NamedRelation) -> Address | None:
        """Of a table, observed or made by the migration."""
        found = self.table(target)
        return self.is_new_place(target) if found is None else found

    def heirs_of(self, keys: Iterable[str]) -> list[str]:
        """Tables that inherit from some, and from these."""
        found: dict[str, None] = {}
        left = list(keys)
        while left:
            new = [key for key in self.heirs.get(left.pop(0), ()) if key not in found]
            found.update(dict.fromkeys(new))
            left += new
        return list(found)

    def is_domain(self, spelled: str) -> bool:
        """Whether a type is a domain that was observed, or is made by the migration."""
        return self._domain(spelled) is not None

    def is_constrained(self, spelled: str) -> bool | None:
        """Whether a type is a domain with constraints; None: domains were not observed."""
        place = self._domain(spelled)
        if place is not None:
            return self.domains[place]
        return False if self.knows_domains else None

    def _domain(self, spelled: str) -> Address | None:
        *before, name = (part.strip('"') for part in spelled.split("."))
        return _place(NamedRelation(schema=before[0] if before else None, name=name), self.domains)

    def tables_of(self, target: NamedRelation) -> tuple[str, ...]:
        """Names in the profile of a table, or of the partitions of one; none where it has none."""
        place = self.table(target)
        return () if place is None else tuple(self.tables[place])

    def indexes_of(self, target: NamedRelation) -> tuple[IndexAt, ...]:
        """The indexes behind a name."""
        place = self.index(target)
        return () if place is None else tuple(self.indexes[place])

    def called(self, table: str) -> Address | None:
        """Schema and name that a table of the profile has now; None: it is gone."""
        return next(
            (
                place
                for place, keys in self.tables.items()
                if keys == [table] and place not in self.partitioned
            ),
            None,
        )

    def is_partitioned(self, target: NamedRelation) -> bool:
        """Whether it is a partitioned table."""
        return self.table(target) in self.partitioned

    def is_new(self, target: NamedRelation) -> bool:
        """Whether the migration has made it; an unqualified name may be that of any schema."""
        if target.schema is None:
            return any(name == target.name for _, name in self.made)
        return any(
            name == target.name and schema in (None, target.schema) for schema, name in self.made
        )

    def is_new_place(self, target: NamedRelation) -> Address | None:
        """Of a table that the migration has made."""
        return _place(target, {(schema or "public", name) for schema, name in self.made})

    def is_gone(self, target: NamedRelation) -> bool:
        """Whether the migration has dropped it."""
        return any(
            found.name == target.name and target.schema in (None, found.schema)
            for found in self.gone
        )

    def is_taken(self, schema: str, name: str) -> bool:
        """Whether a schema has a table or an index of that name now."""
        return (
            (schema, name) in self.tables
            or (schema, name) in self.indexes
            or any(name == n and s in (None, schema) for s, n in self.made)
        )

    def drop_table(self, target: NamedRelation) -> None:
        """It goes, with its indexes and, of a partitioned one, its partitions."""
        made, place = self.place_of(target), self.table(target)
        self.made = {found for found in self.made if found[1] != target.name}
        self.gone.add(target)
        if made is not None:
            self.partitions.leave(made)
        if place is None:
            return
        gone = set(self.tables.pop(place))
        is_whole = place in self.partitioned
        for other, keys in list(self.tables.items()):
            if keys and gone.issuperset(keys) and (is_whole or other not in self.partitioned):
                del self.tables[other]
                self.gone.add(NamedRelation(schema=other[0], name=other[1]))
            elif gone & set(keys):
                self.tables[other] = [key for key in keys if key not in gone]
        self.gone.add(NamedRelation(schema=place[0], name=place[1]))
        for where, found in list(self.indexes.items()):
            self._keep(where, [index for index in found if index.table not in gone])

    def drop_index(self, table: str, identity: str) -> None:
        """It has no name any more, under whatever names it was known."""
        gone = IndexAt(table=table, identity=identity)
        for where, found in list(self.indexes.items()):
            if gone in found:
                self._keep(where, [index for index in found if index != gone])

    def _keep(self, place: Address, left: list[IndexAt]) -> None:
        if left:
            self.indexes[place] = left
        else:
            del self.indexes[place]
            self.part_of.pop(place, None)

    def rename_index(self, place: Address, new: str) -> None:
        """Another name in the same schema."""
        renamed = place[0], new
        self.indexes[renamed] = self.indexes.pop(place)
        self.part_of = {
            renamed if part == place else part: renamed if whole == place else whole
            for part, whole in self.part_of.items()
        }

    def detach(self, target: NamedRelation) -> None:
        """A table is no partition any more: its indexes are its own."""
        place = self.place_of(target)
        if place is not None:
            self.partitions.leave(place)
        keys = self.tables_of(target)
        for part, whole in list(self.part_of.items()):
            if all(one.table in keys for one in self.indexes.get(part, ())):
                del self.part_of[part]
                if whole in self.indexes and whole != part:
                    left = [one for one in self.indexes[whole] if one.table not in keys]
                    self._keep(whole, left)

    def attach(
        self, target: NamedRelation, whole: NamedRelation | None, *, is_default: bool
    ) -> None:
        """A table is a partition from here on, of one that is observed or new as well."""
        place, parent = self.place_of(target), None if whole is None else self.place_of(whole)
        if place is not None and parent is not None:
            self.partitions.join(place, parent, is_default=is_default)

    def move_table(self, place: Address, moved: Address) -> None:
        """Another name, or another schema, into which its indexes go along."""
        self.tables[moved] = self.tables.pop(place)
        self.keys.move(place, moved)
        self.partitions.move(place, moved)
        if place in self.partitioned:
            self.partitioned.remove(place)
            self.partitioned.add(moved)
        elif place[0] != moved[0]:
            keys = self.tables[moved]
            self.indexes = {
                (moved[0] if all(one.table in keys for one in found) else schema, name): found
                for (schema, name), found in self.indexes.items()
            }


class PartitionsNow:
    """
    Which partitioned table each table is a partition of, by place.

    Attributes:
        parents: The partitioned table of each partition.
        defaults: The default partition of each partitioned table that has one.
    """

    def __init__(self, profile: Profile) -> None:
        server = profile.server.observed
        listed = () if server is None else server.partitioned
        whole = {called(one.schema, one.name): (one.schema, one.name) for one in listed}
        above = {(one.schema, one.name): one.parent for one in listed}
        for table in profile.tables:
            if table.observed is not None:
                above[table.observed.schema, table.observed.name] = table.observed.parent
        known = {called(*place): place for place in above}
        self.parents = {place: whole[parent] for place, parent in above.items() if parent in whole}
        self.defaults = {
            whole[called(one.schema, one.name)]: known[one.default]
            for one in listed
            if one.default in known
        }

    def copied(self) -> PartitionsNow:
        """The same, which what comes later leaves alone."""
        made = copy.copy(self)
        made.parents, made.defaults = dict(self.parents), dict(self.defaults)
        return made

    def join(self, place: Address, parent: Address, *, is_default: bool) -> None:
        """A table is a partition from here on."""
        self.parents[place] = parent
        if is_default:
            self.defaults[parent] = place

    def leave(self, place: Address) -> None:
        """A table is no partition any more."""
        self.parents.pop(place, None)
        self.defaults = {whole: one for whole, one in self.defaults.items() if one != place}

    def move(self, place: Address, moved: Address) -> None:
        """A table, partitioned or not, has another name or schema."""

        def now(one: Address) -> Address:
            return moved if one == place else one

        self.parents = {now(part): now(whole) for part, whole in self.parents.items()}
        self.defaults = {now(whole): now(one) for whole, one in self.defaults.items()}


def _place(target: NamedRelation, known: Iterable[Address]) -> Address | None:
    """Schema and name; an unqualified name is the one in `public`, else the only one."""
    if target.schema is not None:
        place = (target.schema, target.name)
        return place if place in set(known) else None
    found = [place for place in known if place[1] == target.name]
    public = [place for place in found if place[0] == "public"]
    if public:
        return public[0]
    return found[0] if len(found) == 1 else None
