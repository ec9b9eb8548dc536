"""A fleet without its servers: what is named, and what a question's end does to the others."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from pgheadroom.errors import ConnectionFailed, InputError, ParameterError
from pgheadroom.fleet import FleetServer, Pause, ask_all, asked_of, services_from, services_in

FILE = """# services
 [shop]
host=/run/shop
dbname=shop
[books]   and what follows
host=/run/books
[shop]
host=elsewhere
"""


def test_services_are_a_files_sections(tmp_path: Path) -> None:
    """As libpq reads them: blanks before a section, a second one of the name counts for nothing."""
    path = tmp_path / "services.conf"
    path.write_text(FILE)
    assert services_in(path) == ("shop", "books")
    path.write_text("host=/run/shop\n#[shop]\n")
    with pytest.raises(InputError, match=r"names no service: expected sections such as \[shop\]"):
        services_in(path)


def test_each_server_has_its_name(tmp_path: Path) -> None:
    """A name is what was typed, without its password; the file's sections come after."""
    path = tmp_path / "it's.conf"
    path.write_text("[o'clock]\n")
    found = asked_of(["postgresql://me:hidden@host/db"], {"user": "you"}, path)
    assert [each.name for each in found] == ["postgresql://me:********@host/db", "o'clock"]
    assert found[1].conninfo == "service='o\\'clock'"
    assert {each.parameters["user"] for each in found} == {"you"}
    assert [each.conninfo for each in asked_of([], {})] == [""]
    with pytest.raises(InputError, match="dbname=a is named twice"):
        asked_of(["dbname=a", "dbname=b", "dbname=a"], {})


def test_the_file_is_libpqs_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has its own file again afterwards, or none."""
    for before in (None, "/another"):
        monkeypatch.delenv("PGSERVICEFILE", raising=False)
        if before is not None:
            monkeypatch.setenv("PGSERVICEFILE", before)
        with services_from(tmp_path / "f"):
            assert os.environ["PGSERVICEFILE"] == str(tmp_path / "f")
        assert os.environ.get("PGSERVICEFILE") == before
        with services_from(None):
            assert os.environ.get("PGSERVICEFILE") == before


def _target(name: str) -> FleetServer:
    return FleetServer(name=name, conninfo=f"dbname={name} password=secret-{name}", parameters={})


FLEET = [_target(name) for name in ("one", "two", "three")]


def test_one_that_fails_stops_nothing() -> None:
    """All are asked at once, the answers are in the order of asking, and no password is in them."""
    together = threading.Barrier(len(FLEET))

    def question(target: FleetServer, _: Pause) -> str:
        together.wait()
        if target.name == "two":
            raise ConnectionFailed("no connection: password secret-two is wrong")
        return target.name.upper()

    found = ask_all(question, FLEET)
    assert [each.value for each in found] == ["ONE", None, "THREE"]
    assert found[1].error == "no connection: password ******** is wrong"


def test_a_wrong_question_ends_all() -> None:
    """What is the user's mistake is told once, and nobody waits for the others' pauses."""

    def question(target: FleetServer, pause: Pause) -> None:
        if target.name == "two":
            raise ParameterError("seconds", "0: expected more")
        pause(3600.0)

    with pytest.raises(ParameterError, match="seconds 0"):
        ask_all(question, FLEET)


def test_ctrl_c_ends_pauses_and_keeps_answers() -> None:
    """Who waits tells what it has; who had not begun says so."""
    waiting = threading.Event()

    def question(target: FleetServer, pause: Pause) -> str:
        if target.name == "two":
            waiting.wait()
            os.kill(os.getpid(), signal.SIGINT)
        else:
            waiting.set()
        try:
            pause(3600.0)
        except KeyboardInterrupt:
            return f"{target.name}, cut short"
        raise AssertionError("the pause went on")

    found = ask_all(question, FLEET, at_once=2)
    assert [each.value for each in found] == ["one, cut short", "two, cut short", None]
    assert found[2].error == "interrupted before it had answered"
