"""
Rows of an answer as bytes, by reference to those of an earlier one.

Of thousands of tables few change within minutes. A row that is equal to one of the base's stands as
its place there; runs of such places stand as their first and their number:

    [[0, 250], {"oid": 16384, ...}, [251, 1749]]

A base has no references, so a reader needs two answers at most.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pgheadroom.sources.recording import AnswerRow

_BYTES_MAX = 512 * 1024**2
"""Of one answer, unpacked; thousands of tables take some MB. What is larger is not ours."""


class NotRows(ValueError):  # noqa: N818 - reads as what happened
    """Bytes that no answer is kept as."""


def packed(rows: Sequence[AnswerRow], base: Sequence[AnswerRow] | None) -> bytes:
    """
    The bytes of an answer.

    Args:
        rows: Of numbers, texts, None, and lists of these.
        base: The rows of the answer that it refers to; None: it is one that others refer to.
    """
    places: dict[str, int] = {}
    for place, row in enumerate(base or ()):
        places.setdefault(_text(row), place)
    items: list[Any] = []
    for row in rows:
        place = places.get(_text(row), -1)
        last = items[-1] if items else None
        if place < 0:
            items.append(row)
        elif isinstance(last, list) and last[0] + last[1] == place:
            last[1] += 1
        else:
            items.append([place, 1])
    return zlib.compress(_text(items).encode(), 6)


def unpacked(data: bytes, base: Sequence[AnswerRow] | None) -> list[AnswerRow]:
    """
    The rows of an answer.

    Args:
        data: From `packed`.
        base: The rows that it refers to, None for one that refers to none.

    Raises:
        NotRows: They are not what `packed` makes.
    """
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(data, _BYTES_MAX)
        items = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise NotRows(f"not readable: {error}") from None
    if not unpacker.eof or not isinstance(items, list):
        raise NotRows("not a whole answer")
    found: list[AnswerRow] = []
    for item in items:
        if isinstance(item, dict):
            found.append(item)
            continue
        first, count = _run(item, len(base or ()))
        found.extend((base or ())[first : first + count])
    return found


def _run(item: Any, rows: int) -> tuple[int, int]:
    is_run = isinstance(item, list) and len(item) == 2
    if not is_run or not all(type(number) is int for number in item):
        raise NotRows("a row is neither a row nor a place")
    first, count = item
    if first < 0 or count < 1 or first + count > rows:
        raise NotRows(f"rows {first} to {first + count} of {rows}")
    return first, count


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=_number)


def _number(value: Any) -> int | float:
    if not isinstance(value, Decimal):
        raise TypeError(f"a history keeps no {type(value).__name__}")
    return int(value) if value == value.to_integral_value() else float(value)
