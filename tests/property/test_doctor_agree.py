"""Remedies of the doctor never contradict, whatever indexes a table has and whoever reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.doctor import Finding
from pgheadroom.doctor.agreeing import agreed
from pgheadroom.doctor.values import Remedy, no_price

RULES = ("duplicate-index", "overlapping-index", "unused-index")


@st.composite
def findings(draw: st.DrawFn) -> list[Finding]:
    """Any, of six indexes: also such as no database gives."""
    found = []
    for rule in RULES:
        for index in draw(st.sets(st.integers(1, 6))):
            numbers: dict[str, float | int | bool | str | None] = {
                "index_oid": index,
                "idx_scan": 0 if rule == "unused-index" else draw(st.integers(0, 1)),
            }
            if rule != "unused-index":
                others = st.sampled_from([other for other in range(1, 7) if other != index])
                numbers |= {"kept_oid": draw(others), "kept_whole_oid": draw(others)}
            sql = ("DROP INDEX",) if draw(st.booleans()) else ()
            found.append(
                Finding(
                    rule=rule,
                    severity="info",
                    object=f"i{index}",
                    text="It is so.",
                    numbers=numbers,
                    price=no_price("nothing"),
                    remedy=Remedy(text="Drop it.", sql=sql),
                )
            )
    return draw(st.permutations(found))


@given(findings())
def test_what_one_keeps_no_other_drops(found: list[Finding]) -> None:
    after = agreed(found)
    dropping = [each for each in after if each.remedy.sql]
    dropped = [each.numbers["index_oid"] for each in dropping]
    kept = {each.numbers.get(name) for each in dropping for name in ("kept_oid", "kept_whole_oid")}
    assert len(dropped) == len(set(dropped)), "an index is dropped once"
    assert not set(dropped) & kept
    unused = {each.numbers["index_oid"] for each in after if each.rule == "unused-index"}
    assert not unused & kept, "what is kept is not unused"
    # Nothing is lost but what another finding of the same index says, or keeps.
    told = {each.numbers["index_oid"] for each in after} | kept
    assert {each.numbers["index_oid"] for each in found} <= told
