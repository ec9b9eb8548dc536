"""What autovacuum's workers hold, out of lines of a server's log."""

from __future__ import annotations

from pgheadroom.play.ended import Ended
from pgheadroom.play.workers import Hold, holds_in, place_holds

# Of 18.4's log at debug3, catalogues left out: a worker that analyzes one table, vacuums and
# analyzes another, and one of another database.
LINES = """\
2026-11-25 16:31:03.686 UTC [2287] DEBUG:  InitPostgres
2026-11-25 16:31:03.690 UTC [2290] DEBUG:  InitPostgres
2026-11-25 16:31:03.692 UTC [2290] DEBUG:  autovacuum: processing database "postgres"
2026-11-25 16:31:03.693 UTC [2290] DEBUG:  shmem_exit(0): 5 before_shmem_exit callbacks to make
2026-11-25 16:31:03.698 UTC [2287] DEBUG:  autovacuum: processing database "profile"
2026-11-25 16:31:03.699 UTC [2287] DEBUG:  q"t2: vac: 305 (threshold 1048), ins: 0 (threshold 1998)
2026-11-25 16:31:03.699 UTC [2287] DEBUG:  events: vac: 618 (threshold 448), ins: 0 (threshold 1398)
2026-11-25 16:31:03.718 UTC [2287] DEBUG:  q"t2: vac: 305 (threshold 1048), ins: 0 (threshold 1998)
2026-11-25 16:31:03.718 UTC [2287] DEBUG:  Autovacuum VacuumUpdateCosts(db=16384, rel=16397)
2026-11-25 16:31:03.719 UTC [2287] DEBUG:  analyzing "public.q"t2"
2026-11-25 16:31:03.775 UTC [2287] DEBUG:  "q"t2": scanned 1615 of 1615 pages, containing 4992 live
2026-11-25 16:31:04.158 UTC [2287] LOG:  automatic analyze of table "profile.public.q"t2"
\tsystem usage: CPU: user: 0.04 s, system: 0.00 s, elapsed: 0.44 s
2026-11-25 16:31:04.160 UTC [2287] DEBUG:  events: vac: 961 (threshold 448), ins: 0 (threshold 1398)
2026-11-25 16:31:04.162 UTC [2287] DEBUG:  scanned index "events_pkey" to remove 770 row versions
2026-11-25 16:31:04.172 UTC [2287] LOG:  automatic vacuum of table "profile.public.events": index sc
2026-11-25 16:31:04.174 UTC [2287] DEBUG:  analyzing "public.events"
2026-11-25 16:31:04.180 UTC [2287] LOG:  automatic analyze of table "profile.public.events"
2026-11-25 16:31:04.182 UTC [2287] DEBUG:  shmem_exit(0): 5 before_shmem_exit callbacks to make
""".splitlines()
BEGAN_AT = 1795624263.0  # 16:31:03 of that day


def _ms(holds: tuple[Hold, ...]) -> list[tuple[int, int, int, int]]:
    return [
        (
            round(hold.began[0] * 1000),
            round(hold.began[1] * 1000),
            round(hold.ended[0] * 1000),
            round(hold.ended[1] * 1000),
        )
        for hold in holds
    ]


def test_a_workers_holds() -> None:
    """One after the other, each moment between two lines; VACUUM itself holds nobody up."""
    assert _ms(holds_in(LINES, BEGAN_AT, "profile")) == [
        (686, 699, 698, 699),  # InitPostgres
        (698, 700, 718, 720),  # the catalogue
        (718, 720, 1158, 1161),  # ANALYZE
        (1158, 1161, 1160, 1161),  # the catalogue, up to VACUUM
        (1172, 1175, 1172, 1175),  # between VACUUM and ANALYZE
        (1172, 1175, 1180, 1183),
        (1180, 1183, 1180, 1183),
    ]
    assert _ms(holds_in(LINES, BEGAN_AT, "postgres")) == [
        (690, 693, 692, 693),
        (692, 694, 692, 694),
    ]


def test_as_19_says_it_and_of_names_with_spaces() -> None:
    """
    What a worker has looked at is another text from 19 on.

    Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (19rc1).
    """
    newer = [
        line.replace("(threshold 448)", "(thresh 448, score 1.38)").replace("events", "my events")
        for line in LINES
    ]
    assert holds_in(newer, BEGAN_AT, "profile") == holds_in(LINES, BEGAN_AT, "profile")


def test_a_worker_that_goes_on() -> None:
    """What is held when the log ends is held to the end of the run."""
    (_, _, last) = holds_in(LINES[:11], BEGAN_AT, "profile")
    assert last.ended[0] == last.ended[1] == float("inf")
    (placed,) = place_holds([last], Ended([BEGAN_AT + n / 10 for n in range(1, 11)]), BEGAN_AT)
    assert placed == Hold(began=(0.7, 0.7), ended=(1.0, 1.0))


def test_holds_among_the_transactions() -> None:
    """As shares of those that had ended; what lies outside of them is left out."""
    ended = [BEGAN_AT + n for n in (1.0, 2.0, 3.0, 4.0)]
    holds = [
        Hold(began=(0.2, 0.3), ended=(0.8, 0.9)),
        Hold(began=(1.5, 2.5), ended=(3.5, 3.6)),
        Hold(began=(4.1, 4.2), ended=(5.0, 5.0)),
    ]
    assert place_holds(holds, Ended(ended), BEGAN_AT) == (
        Hold(began=(0.25, 0.5), ended=(0.75, 0.75)),
    )
    assert place_holds(holds, Ended([]), BEGAN_AT) == ()


def test_other_lines_say_nothing() -> None:
    """A worker of which the beginning is not in the log, and lines that are not the server's."""
    assert holds_in(LINES[4:], BEGAN_AT, "profile") == ()
    assert holds_in(["\tavg read rate: 0.000 MB/s", ""], BEGAN_AT, "profile") == ()
