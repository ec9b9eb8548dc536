"""Public applications: what is cut out of their files, and the page that is written of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from public_schemas import page
from public_schemas.manifest import Cut, applications, statement
from public_schemas.record import is_inside
from public_schemas.sources import blob_of

from pgheadroom.errors import InputError

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "experiments" / "record" / "public-schemas"
KNOWN = applications(ROOT / "experiments" / "public-schemas")

SOURCE = """
-- name: Other
UPDATE other SET n = $1;
-- name: Count
UPDATE t -- of whom
SET n = $1,
    m = $10
WHERE id = $2;
"""


def _cut(**changes: str) -> Cut:
    asked = {"path": "q.sql", "after": "-- name: Count", "begin": "", "end": ";", **changes}
    return Cut(**asked, replace=(("$10", "1"), ("$1", "2"), ("$2", ":n")))


def test_a_statement_is_cut_out_and_filled_in() -> None:
    """On one line and without comments, for pgbench joins lines; what is missing is an error."""
    text = "UPDATE t SET n = 2, m = 1 WHERE id = :n"
    assert statement("count", _cut(begin="UPDATE"), SOURCE) == text
    with pytest.raises(InputError, match="no statement 'count'"):
        statement("count", _cut(after="-- name: Gone"), SOURCE)
    with pytest.raises(InputError, match="does not stand in"):
        statement("count", _cut(after="-- name: Other", begin="UPDATE"), SOURCE)


def test_a_files_name_is_gits() -> None:
    """As `git hash-object` has it of the same bytes."""
    assert blob_of(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("application", KNOWN, ids=lambda one: one.key)
def test_manifests_name_files_and_licences(application: object) -> None:
    """Each file that a cut or the schema is from is pinned, and the licence is named."""
    one = next(known for known in KNOWN if known is application)
    pinned = {file.path for file in one.files}
    wanted = {part if isinstance(part, str) else part.path for part in one.schema}
    wanted |= {cut.path for cut in one.statements.values()}
    assert wanted == pinned
    assert all(len(file.blob) == 40 for file in one.files)
    assert one.licence


def test_the_page_is_that_of_the_record() -> None:
    """A figure on the page was measured; a page that was edited by hand would say another one."""
    kept = {
        one.key: json.loads((RECORD / f"{one.key}.json").read_text(encoding="utf-8"))
        for one in KNOWN
    }
    written = (ROOT / "docs" / "public-schemas.md").read_text(encoding="utf-8")
    assert page.text(KNOWN, kept) == written
    for one in KNOWN:
        assert kept[one.key]["commit"] == one.commit, "the record is of another commit"


def test_inside_and_outside() -> None:
    """Numbers to the unit, intervals with their ends; nothing where one is not there."""
    assert is_inside(3.0, 3) is True
    assert is_inside(3.0, 4) is False
    assert is_inside({"low": 2.0, "mid": 3.0, "high": 4.0}, 4) is True
    assert is_inside({"low": 2.0, "mid": 3.0, "high": 4.0}, 5) is False
    assert is_inside(None, 5) is None


def test_a_server_that_played_nothing_has_proved_nothing() -> None:
    """A refusal has the branch that was asked for, "18", which is no server beside 18.4."""
    kept = {one.key: json.loads((RECORD / f"{one.key}.json").read_text()) for one in KNOWN}
    (some, *_) = kept.values()
    some["proofs"] = [{"server": "18", "exit_code": 4, "said": ["pgheadroom: refused"]}]
    assert "profiles were proved on 18.4, 16.14. " in page.text(KNOWN, kept)
