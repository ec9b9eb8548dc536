"""A password never stands in what we print; what is no password stays."""

from __future__ import annotations

import shlex
from urllib.parse import quote

import psycopg.conninfo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengths import examples
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
    f"postgresql:///db?password={SECRET}",
    f"postgresql+psycopg://me:{SECRET}@host/db",
    f"postgresql+asyncpg://host/db?user=me&password={SECRET}",
    f"jdbc:postgresql://host/db?user=me&password={SECRET}&ssl=true",
    f"jdbc:sqlserver://host;user=me;password={SECRET};encrypt=true",
    f"mysql://me:{SECRET}@host/db",
    f"https://me:{SECRET}@host/path@more:1",
    f"postgresql://me%3A{SECRET}@host/db",
    f"postgresql://me@host/db?options=-c%20my.password%3D{SECRET}",
    f"postgresql://me@host/db?options=-c%2520my.password%253D{SECRET}",
    f"options='-c my.password={SECRET}' host=h",
    f"options=-c\\ my.password={SECRET} host=h",
    f'password="{SECRET} with blank" host=h',
    f"password=abc://{SECRET}",
    f"host=h password={SECRET} application_name=postgresql://me:{SECRET}@h",
    f"PGPASSWORD={SECRET} pgheadroom advise postgresql://me:{SECRET}@host/db",
    f"UID=me;PWD={SECRET};Server=h",
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
        "PGPASSFILE=/home/me/.pgpass",
        "host=h require_auth=password sslkey=/home/me/key",
        "postgresql:///db?passfile=/home/me/.pgpass&require_auth=password",
        "postgresql+psycopg://me@host/db",
        "jdbc:postgresql://host:5432/db?user=me",
        "http://host:80/a@b?c=d;e",
        "SET password_encryption = 'scram-sha-256'",
        "password authentication failed for user 'me'",
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


@settings(derandomize=True, deadline=None, max_examples=examples(300))
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


@pytest.mark.parametrize(
    "text",
    [
        f'{{"host": "h", "password": "{SECRET}"}}',
        f"{{'user': 'me', 'password': '{SECRET}', 'port': '5432'}}",
        f"ALTER ROLE me PASSWORD '{SECRET}'",
        f"CREATE USER MAPPING FOR me SERVER s OPTIONS (user 'me', password '{SECRET}')",
        f"ALTER ROLE me ENCRYPTED PASSWORD E'it\\'s {SECRET}'",
        f"$ PGPASSWORD='it\\'s {SECRET}' pgheadroom advise",
        f"fetched mysql://me:{SECRET}@host/db, then jdbc:postgresql://h/d?password={SECRET}.",
    ],
)
def test_passwords_go_from_text_of_others(text: str) -> None:
    """Nobody knows them there: JSON, traces, statements, shells."""
    assert SECRET not in redacted(text)
    assert HIDDEN in redacted(text)


NAME = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12).filter(
    lambda name: not any(word in name for word in ("passw", "pwd", "secret", "scram"))
)
BARE = st.text(st.characters(min_codepoint=48, max_codepoint=122), min_size=4, max_size=20).map(
    lambda text: "".join(c for c in text if c.isalnum()) + "Zq9Zq"
)
SCHEMES = st.sampled_from(
    [
        "postgres",
        "postgresql",
        "postgresql+psycopg",
        "POSTGRES",
        "jdbc:postgresql",
        "mysql",
        "redis",
    ]
)
SECRETS = st.sampled_from(
    ["password", "PGPASSWORD", "sslpassword", "passwd", "pwd", "oauth_client_secret", "pass%77ord"]
)


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(scheme=SCHEMES, name=NAME, key=SECRETS, bare=BARE, before=NAME, after=NAME)
def test_a_planted_password_is_in_no_form_of_a_connection(
    scheme: str, name: str, key: str, bare: str, before: str, after: str
) -> None:
    """In an argument and in free text, whatever stands around it."""
    plain = key.replace("%77", "w")
    for argument in (
        f"{scheme}://{name}:{bare}@{before}/{after}",
        f"{scheme}://:{bare}@{before}:5432,{after}:1/d?x=y",
        f"{scheme}:///{name}?{key}={bare}",
        f"{scheme}://{name}@{before}/d?a={after}&{key}={bare}&b=c",
        f"{scheme}://{before}/d?options=-c%20{name}.{plain}%3D{bare}",
        f"host={before} {plain}={bare} dbname={after}",
        f"host={before} {plain} = '{bare}' dbname={after}",
        f"options='-c {name}.{plain}={bare}' host={after}",
        f"{plain}={bare} pgheadroom {before}",
    ):
        for shown in (
            redacted_argument(argument),
            redacted_argument(f"--{after}={argument}"),
            redacted(f"{before}: {argument} ({after})"),
            redacted(f"{after} {bare}", secrets_of([argument], {})),
        ):
            assert "Zq9" not in shown, (argument, shown)


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(scheme=SCHEMES, words=st.lists(NAME, min_size=4, max_size=4))
def test_what_holds_no_password_comes_out_as_it_went_in(scheme: str, words: list[str]) -> None:
    """Hosts, ports, users, options, files of passwords, and words about passwords."""
    a, b, c, d = words
    for text in (
        f"{scheme}://{a}@{b}:5432/{c}?x={d}&passfile=/home/{a}/.pgpass#e",
        f"{scheme}://{b}:5432,{c}:5433/{d}",
        f"host={a} port=5432 user={b} dbname={c} passfile={d} require_auth=password",
        f"https://{a}.org:443/{b}@{c}?{d}",
        f"no password was given for {a}: expected {b} = {c}, '{d}'",
        f"pgheadroom advise {a}.json --table {b} -o {c} --{d}",
    ):
        assert redacted_argument(text) == text
        assert redacted(text) == text
