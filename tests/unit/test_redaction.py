"""A password never stands in what we print; what is no password stays."""

from __future__ import annotations

import shlex
from urllib.parse import quote

import psycopg.conninfo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgheadroom.redaction import HIDDEN, command_line, redacted, redacted_argument, secrets_of

SECRET = "hunter2secret"

HIDING = [
    f"postgresql://me:{SECRET}@host/db",
    f"postgres://me:{SECRET}@[::1]:5432,other:5433/db?sslmode=require",
    f"POSTGRESQL://me:{SECRET}@host",
    f"postgresql://:{SECRET}@/db?host=/tmp",
    f"postgresql://me:{SECRET}/x@host/db",  # not encoded: libpq would take it for a port
    f"postgresql://me:a@{SECRET}@host/db",
    f"postgresql://me:a?{SECRET}#@host/db",
    f"postgresql://me@host/db?password={SECRET}",
    f"postgresql://me@host/db?application_name=x&sslpassword={SECRET}&sslmode=require",
    f"postgresql://me@host/db?pass%77ord={SECRET}",
    f"postgresql://me@host/db?password=a&{SECRET}",
    f"host=h password={SECRET} dbname=d",
    f"host=h password = {SECRET}",
    f"password='{SECRET} with blank' host=h",
    f"password='it\\'s {SECRET}' host=h",
    f"password=a\\ {SECRET} host=h",
    f"password=not quoted {SECRET} host=h",  # refused by libpq, and a password all the same
    f"password='not ended {SECRET}",
    f"Password={SECRET}",
    f"passwd={SECRET} host=h",
    f"oauth_client_secret={SECRET} host=h",
    f"scram_client_key={SECRET} host=h",
    f"PGPASSWORD={SECRET}",
    f"--dbname=postgresql://me:{SECRET}@host/db",
    f"-dpostgresql://me:{SECRET}@host/db",
    f"--server=host=h password={SECRET}",
]


@pytest.mark.parametrize("argument", HIDING)
def test_passwords_are_hidden(argument: str) -> None:
    """In every form that libpq reads, and in those that a user takes for one."""
    assert SECRET not in redacted_argument(argument)
    assert HIDDEN in redacted_argument(argument)
    assert SECRET not in command_line(["advise", argument, "--html", "x.html"])
    message = f"not understood: {argument}, and {SECRET} too"
    assert SECRET not in redacted(message, secrets_of(["advise", argument], {}))


@pytest.mark.parametrize(
    "argument",
    [
        "postgresql://me@host:5432/db?sslmode=require",
        "host=h port=5432 user=me dbname=d passfile=/home/me/.pgpass",
        "profile.json",
        "--fillfactor=70,80",
        "--table=password_resets",
        "it's",
    ],
)
def test_the_rest_stays(argument: str) -> None:
    """A command that holds no password is the one that was typed."""
    assert redacted_argument(argument) == argument
    assert redacted(f"found {argument}.") == f"found {argument}."
    assert shlex.split(command_line([argument])) == ["pgheadroom", argument]


def test_what_stands_around_a_password_stays() -> None:
    """Host, database and options tell which server it was."""
    assert redacted_argument(f"postgresql://me:{SECRET}@host:1/db?x=y") == (
        f"postgresql://me:{HIDDEN}@host:1/db?x=y"
    )
    assert redacted_argument(f"host=h password='{SECRET}' dbname=d") == (
        f"host=h password={HIDDEN} dbname=d"
    )


def test_known_passwords_go_from_any_text() -> None:
    """Of the environment too; a password that is a word of ours is not betrayed by its absence."""
    known = secrets_of(["x"], {"PGPASSWORD": SECRET})
    assert redacted(f"KeyError: '{SECRET}'", known) == f"KeyError: '{HIDDEN}'"
    common = secrets_of(["postgresql://me:postgres@host/db"], {})
    assert redacted("role postgres", common) == "role postgres"
    shown = secrets_of(["postgresql://scott:scott@host/db"], {})
    assert redacted("role scott", shown) == "role scott"


PASSWORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=4, max_size=20
).map(lambda text: f"{text}~Zq9~")


@settings(derandomize=True, deadline=None, max_examples=300)
@given(password=PASSWORDS)
def test_whatever_libpq_takes_is_hidden(password: str) -> None:
    """Any password, written as libpq reads it back, is gone from the argument and from messages."""
    for argument in (
        psycopg.conninfo.make_conninfo(host="h", password=password, dbname="d"),
        f"postgresql://me:{quote(password, safe='')}@host/db",
        f"postgresql://me@host/db?password={quote(password, safe='')}&sslmode=require",
    ):
        assert psycopg.conninfo.conninfo_to_dict(argument)["password"] == password
        shown = redacted_argument(argument)
        assert "Zq9" not in shown
        assert psycopg.conninfo.conninfo_to_dict(shown)["password"] == HIDDEN
        text = f"it said {password!s} and {argument}"
        assert "Zq9" not in redacted(text, secrets_of([argument], {}))
