"""Student's t, which every interval of several runs is made with."""

from __future__ import annotations

import subprocess
import sys

from scipy.special import stdtrit

from pgheadroom.predict.chance import LEVEL, students_t


def test_it_is_that_of_scipy() -> None:
    """For all degrees that runs can have, odd and even: to twelve digits."""
    for degrees in (*range(1, 40), 99, 100, 999):
        assert abs(students_t(degrees) / float(stdtrit(degrees, (1 + LEVEL) / 2)) - 1) < 1e-12


def test_a_check_imports_no_library_for_it() -> None:
    """Half of a check's processor time went into importing NumPy and SciPy for one number."""
    code = (
        "import sys, pgheadroom.migration, pgheadroom.migration.figures\n"
        "from pgheadroom.predict.chance import students_t\n"
        "students_t(2)\n"
        "print('scipy' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
