"""Two readings of the same rows: a column is kept only where enough rows were seen to keep it."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.observe.values import WRITTEN_MIN, read_values

COLUMNS = 3
UNREAD = "?????"


def hash_of(value: int | None) -> str:
    """As the server makes it: five digits, or words of their own for NULL and for long values."""
    return "-----" if value is None else UNREAD if value < 0 else f"{value:05x}"


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    """Rows before and after: some gone, some new, some written with some columns changed."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    rows = draw(st.sampled_from([0, 1, 50, 400, 900]))
    written_frac = draw(st.sampled_from([0.0, 0.4, 1.0]))
    change_fracs = draw(st.lists(st.sampled_from([0.0, 0.003, 0.5, 1.0]), min_size=3, max_size=3))
    unread_frac = draw(st.sampled_from([0.0, 0.3]))
    before, after = [], []
    written, read, changed = 0, [0] * COLUMNS, [0] * COLUMNS
    for key in range(rows):
        old = [rng.choice((None, rng.randrange(1000))) for _ in range(COLUMNS)]
        old = [-1 if rng.random() < unread_frac else value for value in old]
        new, xmin = list(old), 10
        is_written = rng.random() < written_frac
        if is_written:
            xmin = 20 + key
            for place, frac in enumerate(change_fracs):
                if rng.random() < frac:
                    new[place] = 2000 + key
        place_of = rng.choice(("both", "both", "both", "before", "after"))
        if place_of != "after":
            before.append([key, 10, "".join(map(hash_of, old))])
        if place_of != "before":
            after.append([key, xmin, "".join(map(hash_of, new))])
        if place_of == "both" and is_written:
            written += 1
            for place in range(COLUMNS):
                if -1 not in (old[place], new[place]):
                    read[place] += 1
                    changed[place] += old[place] != new[place]
    rng.shuffle(after)
    common = len({row[0] for row in before} & {row[0] for row in after})
    return {
        "before": {"filenode": 5, "attnums": [1, 2, 4], "read": before or None},
        "after": {"filenode": 5, "attnums": [1, 2, 4], "read": after or None},
        "counts": (common, written, read, changed),
    }


@given(history=histories(), frac=st.floats(0.01, 1.0))
def test_rows_are_compared_by_key(history: dict[str, Any], frac: float) -> None:
    found = read_values(history["before"], history["after"])
    rows, written, read, changed = history["counts"]
    if not rows:
        assert found is None
        return
    assert found is not None
    assert (found.rows, found.written) == (rows, written)
    assert [found.read[n] for n in (1, 2, 4)] == read
    assert [found.changed[n] for n in (1, 2, 4)] == changed
    for place, number in enumerate((1, 2, 4)):
        is_kept = found.keeps(number, frac)
        assert is_kept == (changed[place] == 0 and read[place] * frac >= WRITTEN_MIN)
    assert not found.keeps(3, 1.0)  # a column that was not read


def test_readings_of_other_columns_say_nothing() -> None:
    row = [1, 5, "0000100002"]
    one = {"filenode": 5, "attnums": [1, 2], "read": [row]}
    assert read_values(one, one) is not None
    assert read_values(one, None) is None
    assert read_values(None, one) is None
    assert read_values(one, one | {"attnums": [1, 3]}) is None
    assert read_values(one, one | {"filenode": 6}) is None  # rewritten: each row has a new xmin
