"""Values of several elements on a server: their bytes are those that a profile says."""

from __future__ import annotations

import pytest

from pgheadroom.play.values import row_values
from pgheadroom.profile import parse_profile
from pgheadroom.profile.column_types import SHORT_HEADER_MAX
from pgheadroom.profile.elements import TYPES, Elements, mean_payload, payload_range
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

ROWS = 2000
FEW = {"min": 3, "max": 5, "ndistinct": 4}
"""Words of a tsvector are often drawn twice."""
MANY = {"min": 2, "max": 9, "ndistinct": 5000}
COMMON = MANY | {"alike": 2}
"""The first two stand in most values."""
STRINGS = [name for name in TYPES if not name.startswith("int")]
OF_TYPES = [
    *((name, given) for name in TYPES for given in (FEW, MANY)),
    ("tsvector", COMMON),
    ("int4[]", COMMON),
    *((name, MANY | {"width": width}) for name in STRINGS for width in (5, 6, 7)),
]


def _payload(name: str) -> str:
    """SQL of the bytes behind a header, which is short as long as all fits in 127 bytes."""
    size = f"pg_column_size({name})"
    return f"{size} - CASE WHEN {size} <= {SHORT_HEADER_MAX} THEN 1 ELSE 4 END"


def test_bytes_are_those_of_the_profile(programs: ServerPrograms) -> None:
    """
    The least and the most are among 2,000 rows, and the mean is theirs.

    The mean of a tsvector was that of the least, one word, and the most: a page's rows by it were
    75 of 70.
    """
    columns = [
        {"name": f"c{n}", "type": name, "elements": given}
        for n, (name, given) in enumerate(OF_TYPES)
    ]
    table = {"name": "t", "rows": ROWS, "columns": [{"name": "id", "type": "int8"}, *columns]}
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [table],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 1},
        }
    )
    (made,) = profile.tables
    # Stored plainly, so that nothing is compressed or moved out.
    names = ", ".join(f"{column.name} {column.type}" for column in made.columns)
    plainly = ", ".join(
        f"ALTER {column.name} SET STORAGE PLAIN" for column in made.columns if column.width
    )
    sizes = ", ".join(
        f"{of}({_payload(column.name)})::float8"
        for column in made.columns[1:]
        for of in ("min", "max", "avg")
    )
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            for statement in (
                f"CREATE TABLE t ({names})",
                f"ALTER TABLE t {plainly}",
                f"INSERT INTO t SELECT {row_values(made, 'i')} "
                f"FROM generate_series(1::int8, {ROWS}) AS i",
            ):
                connection.execute(statement.encode())
            found = connection.execute(f"SELECT {sizes} FROM t".encode()).fetchone()
    assert found is not None
    for n, column in enumerate(made.columns[1:]):
        elements, base = column.elements, column.base_type
        assert isinstance(elements, Elements)
        low, high, mean = found[3 * n : 3 * n + 3]
        least, most = payload_range(elements, base)
        # One word alone is drawn three times once in sixteen values of three, of 5,000 never.
        is_rare = base == "tsvector" and elements.ndistinct > ROWS
        assert (low == least) or (is_rare and low > least), (column, low, least)
        assert high == most, (column, high, most)
        assert mean == pytest.approx(mean_payload(elements, base), rel=0.03), column  # by chance
