"""
What long pieces of work take where nobody says: known here before their parts are loaded.
"""

from __future__ import annotations

LENGTH_S = 300.0
"""How long to watch."""

BUDGET_S = 60.0
"""Seconds of processor time for an advice's simulations."""

SEEDS_DEFAULT = 8
"""Runs of a statistical cell: enough for a spread, few enough to wait for; arbitrary."""

SEEDS_IN_SWEEP = 4
"""The same where many fillfactors are asked for: an interval has the same coverage, and its chance
part is 1.25 times as wide in the mean (Student's t, and the mean of fewer runs)."""

SWEEP_FROM = 17
"""So many fillfactors are many: whoever asks for a step of a point wants the course of a curve, and
waits for every one of them; arbitrary."""

WINDOWS_DEFAULT = 60
"""Windows of a series: as many as a terminal shows side by side; arbitrary."""

COMPLETION_TARGET = 0.9
"""Default of checkpoint_completion_target."""

RATES_FROM_S = 3600.0
"""A rate of statistics is told only when they reach back so far: an hour has its load in it, and
what happened at a load of minutes would be taken for a day's. Arbitrary; an interval that somebody
asks for is told as it is."""

JUDGED_FROM_S = 600.0
"""How severe something is goes by the rate of an interval from ten minutes on: a burst of seconds,
told as a day's, would be an alarm that nothing stands behind. Arbitrary."""
