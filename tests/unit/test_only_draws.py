"""What is not played as a server would is no draw, whatever is drawn beside it."""

from __future__ import annotations

from pgheadroom.predict import predict
from pgheadroom.profile.reading import checked_profile
from pgheadroom.types import Interval


def test_an_approximation_beside_a_draw_is_no_draw() -> None:
    """
    A multirange is not moved out of a row here, as a server does where a long value has to stay.

    Beside a value that is moved out, whose pointer may share bytes with the last one's: figures
    were certain that no run of the twin could know.
    """
    columns = [
        {"name": "k", "type": "int8"},
        {"name": "a", "type": "tsmultirange"},
        {"name": "d", "type": "text", "width": 400},
        {"name": "f", "type": "bytea", "storage": "main", "values": {"kind": "serial"}},
    ]
    columns[-1]["width"] = {"min_bytes": 1100, "max_bytes": 2600}
    index = {"name": "t_pkey", "columns": ["k"], "unique": True}
    profile = checked_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "table": [{"name": "t", "rows": 40, "columns": columns, "indexes": [index]}],
            "operation": [
                {"table": "t", "kind": "update", "sets": ["d"], "pick": {"distribution": "uniform"}}
            ],
            "run": {"operations": 60},
        }
    )
    (cell,) = predict(profile).cells
    assert isinstance(cell.predicted.n_tup_hot_upd, Interval)
    assert isinstance(cell.predicted.wal_bytes, Interval)
