"""
Tables and indexes of many shapes, and what their life has left of them.

Each is made by SQL with random numbers of one seed, so every server has the same. `LATER` are
changes after the last ANALYZE.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    A table and its life.

    Attributes:
        name: The table's.
        what: It, in words.
        sql: Statements, each ended by `;` and a line break.
        later: After ANALYZE.
        is_wide: The statistics do not suffice for ten points, and why is said in these words.
    """

    name: str
    what: str
    sql: str
    later: str = ""
    is_wide: str = ""


def _text(low: int, high: int) -> str:
    """Random text of low to high bytes that does not compress."""
    return (
        f"substr(md5(random()::text) || md5(random()::text) || md5(random()::text) || "
        f"md5(random()::text) || md5(random()::text) || md5(random()::text) || "
        f"md5(random()::text) || md5(random()::text), 1, {low} + (random() * {high - low})::int)"
    )


def _vacuumed(name: str) -> str:
    return f"VACUUM {name};\n"


N = 100_000
SHAPES = (
    Shape(
        name="fresh_narrow",
        what="two integers, loaded and left",
        sql=f"CREATE TABLE fresh_narrow (id int PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO fresh_narrow SELECT i, i FROM generate_series(1, {N}) i;\n",
    ),
    Shape(
        name="deleted_third",
        what="two integers, every third row deleted and vacuumed",
        sql=f"CREATE TABLE deleted_third (id int8 PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO deleted_third SELECT i, i FROM generate_series(1, {N}) i;\n"
        "DELETE FROM deleted_third WHERE id % 3 = 0;\nVACUUM deleted_third;\n",
    ),
    Shape(
        name="deleted_not_vacuumed",
        what="the same, not vacuumed yet",
        sql=f"CREATE TABLE deleted_not_vacuumed (id int8 PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO deleted_not_vacuumed SELECT i, i FROM generate_series(1, {N}) i;\n"
        "DELETE FROM deleted_not_vacuumed WHERE id % 3 = 0;\n",
    ),
    Shape(
        name="deleted_after",
        what="the same, deleted after ANALYZE",
        sql=f"CREATE TABLE deleted_after (id int8 PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO deleted_after SELECT i, i FROM generate_series(1, {N}) i;\n",
        later="DELETE FROM deleted_after WHERE id % 3 = 0;\n",
        is_wide="may be counted twice",
    ),
    Shape(
        name="wide_fixed",
        what="forty integers",
        sql="CREATE TABLE wide_fixed (id int8 PRIMARY KEY, "
        + ", ".join(f"c{n} int8 NOT NULL" for n in range(39))
        + ");\nINSERT INTO wide_fixed SELECT "
        + ", ".join(["i"] * 40)
        + " FROM generate_series(1, 30000) i;\n"
        "DELETE FROM wide_fixed WHERE id % 4 = 0;\nVACUUM wide_fixed;\n",
    ),
    Shape(
        name="many_nulls",
        what="twelve columns, each NULL in half to nine tenths of the rows, by itself",
        sql="CREATE TABLE many_nulls (id int PRIMARY KEY, "
        + ", ".join(f"c{n} {t}" for n, t in enumerate(("int", "int8", "text", "bool") * 3))
        + ");\nINSERT INTO many_nulls SELECT i, "
        + ", ".join(
            f"CASE WHEN random() < {0.1 + 0.04 * n:.2f} THEN {v} END"
            for n, v in enumerate(("i", "i", _text(5, 25), "true") * 3)
        )
        + f" FROM generate_series(1, {N}) i;\n"
        "DELETE FROM many_nulls WHERE id % 5 < 2;\nVACUUM many_nulls;\n",
    ),
    Shape(
        name="nulls_together",
        what="eight columns that are NULL in the same half of the rows",
        sql="CREATE TABLE nulls_together (id int PRIMARY KEY, "
        + ", ".join(f"c{n} int8" for n in range(8))
        + ");\nINSERT INTO nulls_together SELECT i, "
        + ", ".join(["CASE WHEN i % 2 = 0 THEN i END"] * 8)
        + f" FROM generate_series(1, {N}) i;\n"
        "DELETE FROM nulls_together WHERE id % 3 = 0;\nVACUUM nulls_together;\n",
    ),
    Shape(
        name="text_varying",
        what="text of 10 to 200 bytes, two fifths deleted",
        sql=f"CREATE TABLE text_varying (id int PRIMARY KEY, t text NOT NULL);\n"
        f"INSERT INTO text_varying SELECT i, {_text(10, 200)} FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX text_varying_t ON text_varying (t);\n"
        "DELETE FROM text_varying WHERE id % 5 < 2;\nVACUUM text_varying;\n",
    ),
    Shape(
        name="text_short",
        what="three texts of 1 to 15 bytes",
        sql="CREATE TABLE text_short (id int PRIMARY KEY, a text, b varchar(20), c text);\n"
        f"INSERT INTO text_short SELECT i, {_text(1, 15)}, {_text(1, 15)}, {_text(1, 15)} "
        f"FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX text_short_a ON text_short (a);\n"
        "DELETE FROM text_short WHERE id % 2 = 0;\nVACUUM text_short;\n",
    ),
    Shape(
        name="text_two_kinds",
        what="text of 4 or of 300 bytes, one fifth deleted",
        sql=f"CREATE TABLE text_two_kinds (id int PRIMARY KEY, t text NOT NULL, n int);\n"
        f"INSERT INTO text_two_kinds SELECT i, CASE WHEN random() < 0.7 THEN {_text(4, 4)} ELSE "
        f"{_text(200, 256)} END, i FROM generate_series(1, {N}) i;\n"
        "DELETE FROM text_two_kinds WHERE id % 5 = 0;\nVACUUM text_two_kinds;\n",
    ),
    Shape(
        name="text_apart",
        what="texts of 928 bytes, then as many of 32, one third deleted",
        sql="CREATE TABLE text_apart (id int PRIMARY KEY, t text NOT NULL);\n"
        "INSERT INTO text_apart SELECT i, (SELECT string_agg(md5((i * k)::text), '') FROM "
        "generate_series(1, CASE WHEN i <= 20000 THEN 29 ELSE 1 END) k) "
        "FROM generate_series(1, 40000) i;\n"
        "DELETE FROM text_apart WHERE id % 3 = 0;\nVACUUM text_apart;\n",
        is_wide="of a sample alone",
    ),
    Shape(
        name="vacuumed_later",
        what="two integers, three hundredths deleted and vacuumed behind ANALYZE, one by one",
        sql=f"CREATE TABLE vacuumed_later (id int8 PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO vacuumed_later SELECT i, i FROM generate_series(1, {N}) i;\n"
        "VACUUM vacuumed_later;\n",
        later=f"DELETE FROM vacuumed_later WHERE id > {N} * 0.99;\nVACUUM vacuumed_later;\n"
        f"DELETE FROM vacuumed_later WHERE id > {N} * 0.98;\nVACUUM vacuumed_later;\n"
        f"DELETE FROM vacuumed_later WHERE id > {N} * 0.97;\nVACUUM vacuumed_later;\n",
    ),
    Shape(
        name="numerics",
        what="numerics of 1 to 20 digits",
        sql="CREATE TABLE numerics (id int PRIMARY KEY, a numeric NOT NULL, b numeric(12, 2));\n"
        "INSERT INTO numerics SELECT i, (random() * 10 ^ (random() * 20))::numeric, "
        f"(random() * 100000)::numeric FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX numerics_b ON numerics (b);\n"
        "DELETE FROM numerics WHERE id % 3 = 0;\nVACUUM numerics;\n",
    ),
    Shape(
        name="uuids",
        what="uuid keys inserted in random order: leaves split in halves",
        sql="CREATE TABLE uuids (id uuid PRIMARY KEY, v int NOT NULL);\n"
        f"INSERT INTO uuids SELECT md5(i::text)::uuid, i FROM generate_series(1, {N}) i;\n",
    ),
    Shape(
        name="jsons",
        what="jsonb of one to six fields",
        sql="CREATE TABLE jsons (id int PRIMARY KEY, j jsonb NOT NULL);\n"
        "INSERT INTO jsons SELECT i, (SELECT jsonb_object_agg('key' || k, md5((i * k)::text)) "
        "FROM generate_series(1, 1 + i % 6) k) FROM generate_series(1, 50000) i;\n"
        "DELETE FROM jsons WHERE id % 7 < 3;\nVACUUM jsons;\n",
    ),
    Shape(
        name="fillfactor_70",
        what="fillfactor 70, loaded and left: the room is no bloat",
        sql="CREATE TABLE fillfactor_70 (id int PRIMARY KEY, c char(60) NOT NULL) "
        "WITH (fillfactor = 70);\n"
        f"INSERT INTO fillfactor_70 SELECT i, 'c' FROM generate_series(1, {N}) i;\n",
    ),
    Shape(
        name="updated_hot",
        what="fillfactor 80, every row updated twice, HOT",
        sql="CREATE TABLE updated_hot (id int PRIMARY KEY, n int NOT NULL, c char(84) NOT NULL) "
        "WITH (fillfactor = 80);\n"
        f"INSERT INTO updated_hot SELECT i, 0, 'c' FROM generate_series(1, {N}) i;\n"
        "UPDATE updated_hot SET n = 1 WHERE id % 10 = 0;\n"
        "UPDATE updated_hot SET n = 2 WHERE id % 10 = 0;\nVACUUM updated_hot;\n",
    ),
    Shape(
        name="updated_cold",
        what="an indexed column of every row updated three times, vacuumed between",
        sql="CREATE TABLE updated_cold (id int PRIMARY KEY, n int NOT NULL, c char(84) NOT NULL);\n"
        "CREATE INDEX updated_cold_n ON updated_cold (n);\n"
        "INSERT INTO updated_cold SELECT i, (random() * 1000000)::int, 'c' "
        f"FROM generate_series(1, {N}) i;\n"
        "UPDATE updated_cold SET n = (random() * 1000000)::int;\nVACUUM updated_cold;\n"
        "UPDATE updated_cold SET n = (random() * 1000000)::int;\n"
        "UPDATE updated_cold SET n = (random() * 1000000)::int;\nVACUUM updated_cold;\n",
    ),
    Shape(
        name="queue",
        what="a queue that has lived: 40 rounds in which the oldest go, one row in 50 stays",
        sql="CREATE TABLE queue (id int8 PRIMARY KEY, state int NOT NULL, payload text NOT NULL);\n"
        "CREATE INDEX queue_open ON queue (id) WHERE state = 0;\n"
        "CREATE INDEX queue_state ON queue (state);\n"
        + "".join(
            f"INSERT INTO queue SELECT i, i % 3, {_text(20, 120)} "
            f"FROM generate_series({n * 5000 + 1}, {n * 5000 + 5000}) i;\n"
            f"DELETE FROM queue WHERE id <= {n * 5000 - 5000} AND id % 50 <> 0;\n"
            + ("VACUUM queue;\n" if n % 4 == 3 else "")
            for n in range(40)
        ),
    ),
    Shape(
        name="composite",
        what="composite and unique keys",
        sql="CREATE TABLE composite (a int NOT NULL, b int NOT NULL, c text NOT NULL, "
        "d int, PRIMARY KEY (a, b));\n"
        f"INSERT INTO composite SELECT i / 100, i % 100, {_text(5, 30)}, i % 5000 "
        f"FROM generate_series(0, {N} - 1) i;\n"
        "CREATE UNIQUE INDEX composite_u ON composite (c, a, b);\n"
        "CREATE INDEX composite_included ON composite (a) INCLUDE (d);\n"
        "DELETE FROM composite WHERE b % 2 = 0;\nVACUUM composite;\n",
    ),
    Shape(
        name="groups",
        what="a composite index whose pairs repeat, with extended statistics",
        sql="CREATE TABLE groups (id int, a int NOT NULL, b int NOT NULL);\n"
        f"INSERT INTO groups SELECT i, i % 1000, (i % 1000) / 10 FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX groups_ab ON groups (a, b);\n"
        "CREATE STATISTICS groups_known (ndistinct) ON a, b FROM groups;\n"
        "DELETE FROM groups WHERE id % 4 = 0;\nVACUUM groups;\n",
    ),
    Shape(
        name="pairs",
        what="the same without them",
        sql="CREATE TABLE pairs (id int, a int NOT NULL, b int NOT NULL);\n"
        f"INSERT INTO pairs SELECT i, i % 1000, (i % 1000) / 10 FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX pairs_ab ON pairs (a, b);\n"
        "DELETE FROM pairs WHERE id % 4 = 0;\nVACUUM pairs;\n",
        is_wide="CREATE STATISTICS",
    ),
    Shape(
        name="duplicates",
        what="indexes of 3, 500 and 20,000 different values, NULL in a third",
        sql="CREATE TABLE duplicates (id int, few int, several int, many int, gone text);\n"
        "INSERT INTO duplicates SELECT i, i % 3, (random() * 499)::int, (random() * 19999)::int, "
        f"CASE WHEN i % 3 > 0 THEN 'x' || (i % 70) END FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX duplicates_few ON duplicates (few);\n"
        "CREATE INDEX duplicates_several ON duplicates (several);\n"
        "CREATE INDEX duplicates_many ON duplicates (many);\n"
        "CREATE INDEX duplicates_gone ON duplicates (gone);\n"
        "DELETE FROM duplicates WHERE id % 10 < 4;\nVACUUM duplicates;\n",
        is_wide="known of a sample alone",
    ),
    Shape(
        name="skewed",
        what="an index whose values are as common as a power law has it",
        sql="CREATE TABLE skewed (id int, v int NOT NULL);\n"
        "INSERT INTO skewed SELECT i, (1 / (1.00001 - random()) ^ 1.2)::int "
        f"FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX skewed_v ON skewed (v);\n"
        "DELETE FROM skewed WHERE id % 3 = 0;\nVACUUM skewed;\n",
    ),
    Shape(
        name="not_deduplicated",
        what="equal numerics, and an index with deduplicate_items off: no posting lists",
        sql="CREATE TABLE not_deduplicated (id int, n numeric NOT NULL, v int NOT NULL);\n"
        f"INSERT INTO not_deduplicated SELECT i, i % 100, i % 100 FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX not_deduplicated_n ON not_deduplicated (n);\n"
        "CREATE INDEX not_deduplicated_v ON not_deduplicated (v) "
        "WITH (deduplicate_items = off, fillfactor = 70);\n"
        "DELETE FROM not_deduplicated WHERE id % 2 = 0;\nVACUUM not_deduplicated;\n",
    ),
    Shape(
        name="expressions",
        what="an index on an expression, and one on a name",
        sql="CREATE TABLE expressions (id int, t text NOT NULL, n name NOT NULL);\n"
        f"INSERT INTO expressions SELECT i, {_text(5, 60)}, {_text(3, 30)} "
        f"FROM generate_series(1, {N}) i;\n"
        "CREATE INDEX expressions_lower ON expressions (lower(t));\n"
        "CREATE INDEX expressions_n ON expressions (n);\n"
        "DELETE FROM expressions WHERE id % 4 = 0;\nVACUUM expressions;\n",
        is_wide="of a sample alone",
    ),
    Shape(
        name="dropped",
        what="a dropped column, and one that was added with a default",
        sql="CREATE TABLE dropped (id int PRIMARY KEY, gone char(100), v int NOT NULL);\n"
        "INSERT INTO dropped SELECT i, 'x', i FROM generate_series(1, 50000) i;\n"
        "ALTER TABLE dropped DROP COLUMN gone;\n"
        "ALTER TABLE dropped ADD COLUMN later text NOT NULL DEFAULT 'twelve bytes';\n",
    ),
    Shape(
        name="toasted",
        what="values of 40 kB out of line, half of them deleted",
        sql="CREATE TABLE toasted (id int PRIMARY KEY, b text NOT NULL);\n"
        "ALTER TABLE toasted ALTER COLUMN b SET STORAGE EXTERNAL;\n"
        "INSERT INTO toasted SELECT i, (SELECT string_agg(md5((i * k)::text), '') "
        "FROM generate_series(1, 1250) k) FROM generate_series(1, 400) i;\n"
        "DELETE FROM toasted WHERE id % 2 = 0;\nVACUUM toasted;\n",
    ),
    Shape(
        name="toasted_small",
        what="values of 3 to 5 kB out of line",
        sql="CREATE TABLE toasted_small (id int PRIMARY KEY, b text NOT NULL);\n"
        "ALTER TABLE toasted_small ALTER COLUMN b SET STORAGE EXTERNAL;\n"
        "INSERT INTO toasted_small SELECT i, (SELECT string_agg(md5((i * k)::text), '') "
        "FROM generate_series(1, 90 + i % 60) k) FROM generate_series(1, 4000) i;\n"
        "DELETE FROM toasted_small WHERE id % 3 = 0;\nVACUUM toasted_small;\n",
        is_wide="last chunk of each value",
    ),
    Shape(
        name="long_rows",
        what="text of 300 to 1,500 bytes, a quarter deleted",
        sql="CREATE TABLE long_rows (id int PRIMARY KEY, t text NOT NULL);\n"
        "INSERT INTO long_rows SELECT i, (SELECT string_agg(md5((i * k)::text), '') "
        "FROM generate_series(1, 10 + i * 7919 % 38) k) FROM generate_series(1, 30000) i;\n"
        "DELETE FROM long_rows WHERE id % 4 = 0;\nVACUUM long_rows;\n",
        is_wide="one by one is not in the statistics",
    ),
    Shape(
        name="arrays",
        what="arrays of one to twenty integers",
        sql="CREATE TABLE arrays (id int PRIMARY KEY, a int[] NOT NULL, ts timestamptz);\n"
        "INSERT INTO arrays SELECT i, array_fill(i, ARRAY[1 + i % 20]), now() "
        "FROM generate_series(1, 60000) i;\n"
        "DELETE FROM arrays WHERE id % 3 = 0;\nVACUUM arrays;\n",
    ),
    Shape(
        name="old_statistics",
        what="text, a third of it rewritten after ANALYZE",
        sql=f"CREATE TABLE old_statistics (id int PRIMARY KEY, t text NOT NULL);\n"
        f"INSERT INTO old_statistics SELECT i, {_text(10, 200)} FROM generate_series(1, 60000) i;\n"
        "VACUUM old_statistics;\n",
        later="UPDATE old_statistics SET t = t || t WHERE id % 3 = 0;\n",
        is_wide="changed since its statistics were taken",
    ),
    Shape(
        name="grown",
        what="two integers and a text, loaded further by a quarter after ANALYZE",
        sql="CREATE TABLE grown (id int PRIMARY KEY, v int NOT NULL, c char(40) NOT NULL);\n"
        f"INSERT INTO grown SELECT i, i, 'c' FROM generate_series(1, {N}) i;\n"
        "DELETE FROM grown WHERE id % 2 = 0;\n",
        later=f"INSERT INTO grown SELECT i, i, 'c' FROM generate_series({N} + 1, {N} + 25000) i;\n",
        is_wide="may be counted twice",
    ),
)
"""All of them; ANALYZE comes after `sql`."""
