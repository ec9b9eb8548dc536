"""
Findings beside the fillfactor: who holds the horizon, autovacuum, the row itself.

Nothing here is executed. What stands under a remark's statements is safe and has an undo; what
ends a session or drops something is said in its text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pgheadroom import _core, quoting
from pgheadroom.advise.log_wal import log_remark
from pgheadroom.advise.room import growth_of, held_frac
from pgheadroom.advise.row import tuple_bytes_of
from pgheadroom.advise.row_locks import locks_remark
from pgheadroom.advise.table_advice import Gain, Remark
from pgheadroom.advise.updates import updates_of
from pgheadroom.errors import InputError
from pgheadroom.layout import profile_columns
from pgheadroom.profile import Profile, TableProfile
from pgheadroom.profile.observed_server import Holder, ObservedServer
from pgheadroom.types import PgVersion
from pgheadroom.units import PAGE_BYTES, percent, show_bytes, show_duration

_HELD_FRAC_MIN = 0.1  # of the interval; held for less is the work's own; arbitrary
_HOLDERS_MAX = 3
_DEAD_BYTES_MAX = 100e6  # dead rows that wait for autovacuum; arbitrary
_SCALE_MIN = 0.001
_ORDER_FRAC_MIN = 0.05  # of a row, that another order of columns saves; arbitrary
_RESERVE_MAX = 30  # percent of a page that one would keep free for one version; arbitrary
_FITTING_BYTES_MAX = 8160


def first_remarks(profile: Profile) -> tuple[Remark, ...]:
    """
    What goes before everything else: a held horizon, and autovacuum that is off.

    Args:
        profile: An observed one.
    """
    observed = profile.server.observed
    assert observed is not None, "remarks are on observed profiles"
    holders = sorted(_holders(observed), key=lambda h: (-h.age_xids_max, h.name))
    made = [_horizon(holder, observed, first=n == 0) for n, holder in enumerate(holders)]
    made = made[:_HOLDERS_MAX]
    if not made and held_frac(observed) >= _HELD_FRAC_MIN:
        made.append(
            Remark(
                kind="horizon",
                text=f"The cleanup horizon stood still for {percent(held_frac(observed))} of the "
                "interval, and this role cannot see who held it: pg_monitor can. No fillfactor "
                "helps while versions cannot be removed.",
                evidence="measured",
                gain={},
            )
        )
    if not profile.server.autovacuum:
        made.append(
            Remark(
                kind="autovacuum",
                text="autovacuum is off on this server: dead rows that pruning cannot reach stay, "
                "and the free space map learns of no room, whatever fillfactor keeps.",
                evidence="measured",
                gain={},
            )
        )
    return tuple(made)


def _holders(observed: ObservedServer) -> Iterable[Holder]:
    """Those that hold data for a good part of the interval, or go on when sessions end."""
    interval_s = observed.interval_s
    xids = observed.counters.xids or 0
    for holder in observed.horizon.holders:
        if not holder.holds_data or not holder.age_xids_max:
            continue
        age_s = holder.transaction_age_s
        if holder.kind == "session":
            is_long = age_s is not None and age_s >= _HELD_FRAC_MIN * interval_s
            is_long = is_long and holder.age_xids_max >= max(_HELD_FRAC_MIN * xids, 2)
        elif holder.kind == "prepared":
            is_long = True
        else:
            is_long = holder.age_xids_max >= max(_HELD_FRAC_MIN * xids, 2)
        if is_long:
            yield holder


def _horizon(holder: Holder, observed: ObservedServer, *, first: bool) -> Remark:
    name, kind = holder.name, holder.kind
    about = ", ".join(filter(None, (holder.application_name, holder.usename, holder.state)))
    about = f" ({about})" if about else ""
    back = f"{holder.age_xids_max:,} transactions back"
    if holder.transaction_age_s is not None:
        back = f"for {show_duration(holder.transaction_age_s)}, {back}"
    who, end = {
        "session": (
            f"Session {name}{about}",
            f"COMMIT or ROLLBACK there ends it, or SELECT pg_terminate_backend({name}); "
            "idle_in_transaction_session_timeout keeps it from coming back.",
        ),
        "standby": (
            f"A standby's feedback, by walsender {name}{about},",
            "The query on the standby that needs the old rows has to end, or hot_standby_feedback "
            "be off there, which then cancels such queries.",
        ),
        "slot": (
            f"Replication slot {name}{about}",
            "Its consumer has to catch up; a slot that nobody uses any more goes with SELECT "
            f"pg_drop_replication_slot({_literal(name, observed)}).",
        ),
        "prepared": (
            f"Prepared transaction {name}{about}",
            f"COMMIT PREPARED or ROLLBACK PREPARED {_literal(name, observed)} ends it; nothing "
            "else does, not even a restart.",
        ),
    }[kind]
    text = f"{who} holds the cleanup horizon {back}. {end}"
    if first:
        text += " No fillfactor helps before that: what is younger cannot be removed from any page."
    return Remark(kind="horizon", text=text, evidence="measured", gain={})


def _literal(name: str, observed: ObservedServer) -> str:
    return f"({name})" if observed.masked else quoting.literal(name)


def table_remarks(table: TableProfile, profile: Profile) -> tuple[Remark, ...]:
    """
    What is found about one table beside its fillfactor and its indexes.

    Args:
        table: With `observed`.
        profile: That it is from.
    """
    found = (
        _autovacuum(table, profile),
        _row_width(table, profile),
        _growth(table, profile),
        _column_order(table),
        log_remark(table),
        locks_remark(table, profile),
    )
    return tuple(remark for remark in found if remark is not None)


def _major(profile: Profile) -> int:
    return PgVersion.parse(profile.server.version).major


def _setting(table: TableProfile, profile: Profile, name: str, default: float) -> float:
    """A storage parameter, else the server's setting of that name, else the default."""
    own = table.reloptions.get(name)
    observed = profile.server.observed
    server = None if observed is None else (observed.settings or {}).get(name)
    for found in (own, None if server is None else server.setting):
        try:
            return float(str(found))
        except ValueError:
            continue
    return default


def _target(table: TableProfile) -> str:
    observed = table.observed
    assert observed is not None, "remarks are on observed tables"
    return ".".join(map(quoting.shown_identifier, (observed.schema, observed.name)))


def _statements(
    table: TableProfile, profile: Profile, option: str, value: str | None
) -> tuple[Mapping[str, str], ...]:
    """Set one storage parameter, or reset it, and put back what was there."""
    if profile.server.observed is not None and profile.server.observed.masked:
        return ()
    target, before = _target(table), table.reloptions.get(option)

    def spelled(wanted: str | None) -> str:
        if wanted is None:
            return f"ALTER TABLE {target} RESET ({option});"
        return f"ALTER TABLE {target} SET ({option} = {wanted});"

    return ({"sql": spelled(value), "undo": spelled(before)},)


def _autovacuum(table: TableProfile, profile: Profile) -> Remark | None:
    """Autovacuum that waits for many dead rows, or is off for the table."""
    enabled = str(table.reloptions.get("autovacuum_enabled", "true")).lower()
    if enabled in ("off", "false", "no", "0"):
        return Remark(
            kind="autovacuum",
            text="autovacuum is off for this table: once the fillfactor is right, what pruning "
            "cannot reach still needs a VACUUM now and then.",
            evidence="measured",
            gain={},
            statements=_statements(table, profile, "autovacuum_enabled", None),
        )
    scale = _setting(table, profile, "autovacuum_vacuum_scale_factor", 0.2)
    dead = _setting(table, profile, "autovacuum_vacuum_threshold", 50) + scale * table.rows
    if _major(profile) >= 18:
        most = _setting(table, profile, "autovacuum_vacuum_max_threshold", 1e8)
        dead = min(dead, most) if most >= 0 else dead
    row_bytes = tuple_bytes_of(table) + 4
    cold = 0.0
    if table.observed is not None:
        counters = table.observed.counters
        cold = (counters.n_tup_upd or 0) - (counters.n_tup_hot_upd or 0)
        cold += counters.n_tup_del or 0
    interval_s = 0.0 if profile.server.observed is None else profile.server.observed.interval_s
    if cold <= 0 or interval_s <= 0 or dead * row_bytes <= _DEAD_BYTES_MAX:
        return None
    wanted = max(float(f"{_DEAD_BYTES_MAX / row_bytes / table.rows:.1g}"), _SCALE_MIN)
    if wanted >= scale:
        return None
    every_s = dead / (cold / interval_s)
    then = wanted * table.rows
    return Remark(
        kind="autovacuum",
        text=f"autovacuum waits for {dead:,.0f} dead rows ({show_bytes(dead * row_bytes)}), at the "
        f"interval's rate {show_duration(every_s)}. Once the fillfactor is right, a scale factor "
        f"of {wanted:g} keeps that at {then:,.0f} rows, at the price of more frequent vacuums.",
        evidence="estimated",
        gain={"dead_rows": Gain(now=round(dead), then=round(then))},
        statements=_statements(table, profile, "autovacuum_vacuum_scale_factor", f"{wanted:g}"),
    )


def _row_width(table: TableProfile, profile: Profile) -> Remark | None:
    """Rows of which no reasonable reserve holds one more version."""
    updates = updates_of(table, _major(profile))
    length = max(round(tuple_bytes_of(table)), 24)
    if updates is None or length > _FITTING_BYTES_MAX:
        return None
    highest = next((f for f in range(99, 9, -1) if _core.spare_versions(length, f) >= 1), None)
    if highest is not None and highest >= 100 - _RESERVE_MAX:
        return None
    need = "no fillfactor keeps" if highest is None else f"only fillfactor {highest} or less keeps"
    return Remark(
        kind="row_width",
        text=f"A row takes {length:,} bytes, so {need} room for one more version of it. Moving "
        "the columns that are updated to a table of their own, or a lower toast_tuple_target for "
        "the wide ones, does more than any fillfactor.",
        evidence="estimated",
        gain={},
    )


def _growth(table: TableProfile, profile: Profile) -> Remark | None:
    updates = updates_of(table, _major(profile))
    growth = None if updates is None else growth_of(table, updates)
    if growth is None or not growth.text:
        return None
    return Remark(
        kind="growth",
        text=f"Rows grow: {growth.text}. What is kept for one version is used up as they do; look "
        "at the table again when rows have another length.",
        evidence="estimated",
        gain={},
    )


def _column_order(table: TableProfile) -> Remark | None:
    """Padding that another order of columns would save."""
    columns = _real_columns(table)
    if columns is None:
        return None
    row = _core.RowLayout(columns)
    order = row.best_order()
    best = _core.RowLayout([columns[place] for place in order])
    saved = row.page_bytes - best.page_bytes
    if saved < _ORDER_FRAC_MIN * row.page_bytes or row.needs_toast:
        return None
    if saved * table.rows < PAGE_BYTES:
        return None
    names = ", ".join(columns[place].name for place in order)
    return Remark(
        kind="column_order",
        text=f"Columns in the order {names} would take {saved} of {row.page_bytes} bytes a row "
        "less, for padding goes. That needs a new definition of the table and all its rows "
        "copied: worth it where that happens anyhow.",
        evidence="estimated",
        gain={
            "row_bytes": Gain(now=row.page_bytes, then=best.page_bytes),
            "heap_bytes": Gain(now=row.page_bytes * table.rows, then=best.page_bytes * table.rows),
        },
    )


def _real_columns(table: TableProfile) -> list[_core.Column] | None:
    """Columns with their own types, of which alignment comes; None where one is not known."""
    made = []
    substitutes = {column.name: column for column in profile_columns(table)}
    for found in () if table.observed is None else table.observed.columns:
        name, width = found.name, None
        if found.stored_bytes is not None:
            stored = round(found.stored_bytes)
            width = max(stored - (1 if stored <= 127 else 4), 0)
        try:
            made.append(_core.Column(found.type, payload_bytes=width, name=name))
        except InputError:
            substitute = substitutes.get(name)
            if substitute is None or substitute.typlen < 0:
                return None
            made.append(substitute)
    return made or None
