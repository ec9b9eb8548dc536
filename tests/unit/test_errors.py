"""Errors cross processes: what a worker raises is raised here as it was."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pgheadroom import errors

RAISED = [
    errors.InputError("take another `scale`", mentions=("scale",)),
    errors.ParameterError("scale", "0: expected at least 1"),
    errors.PrivilegeMissing("not allowed", grant="GRANT x TO y"),
    errors.WalIncomplete("missing", lsn="0/1", path="x"),
    errors.ServerNotFound("none", at_hand=("18.4",)),
    errors.ServerStartFailed("failed", log_tail=("FATAL: x", "LOG: y")),
    errors.DiskFull("full", path=Path("/x"), needed_bytes=2, free_bytes=1, mentions=("scale",)),
    errors.MeasurementInvalid("invalid"),
    errors.TwinError("limit"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_elsewhere(error: errors.HeadroomError) -> None:
    """Its message, what a program may want to know of it, and notes; some could not be made."""
    error.add_note("in trial 1")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.as_option() == error.as_option()
    assert found.__dict__ == error.__dict__
    assert found.__notes__ == ["in trial 1"]
