"""What a role could not see, and what would let it, out of what a database said."""

from __future__ import annotations

import pytest

from pgheadroom.observe.access import read_access
from pgheadroom.sources.recording import AnswerRow, RecordedAnswer, Recording

TABLE: AnswerRow = {"relkind": "r", "readable": True, "access_method": "heap"}


@pytest.mark.parametrize(
    ("bypasses", "helps"), [(False, ('ALTER ROLE "eye" BYPASSRLS;',)), (True, ())]
)
def test_rows_that_row_security_hides(bypasses: bool, helps: tuple[str, ...]) -> None:
    """All tables of graphile-worker have it, and nothing was said to be missing from the grants."""
    answers: dict[str, list[AnswerRow]] = {
        "access": [{"monitors": True, "reads_data": True, "bypasses_rls": bypasses}],
        "identity": [{"role": "eye"}],
        "tables": [TABLE | {"row_security": guarded} for guarded in (True, False)],
        "extensions": [
            {"name": name, "usable": True}
            for name in ("pg_stat_statements", "pg_freespacemap", "pageinspect")
        ],
    }
    recording = Recording(
        tuple(
            RecordedAnswer(query=query, moment="shape", rows=tuple(rows))
            for query, rows in answers.items()
        )
    )
    found = read_access(recording, sampled=True)
    assert found.would_help == helps
    assert any("1 of 2 tables have row security" in said for said in found.missing) is not bypasses
