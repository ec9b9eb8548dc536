"""
What may be shown of text in which a password may stand: command lines, messages, reports.

Reads libpq's two forms (src/interfaces/libpq/fe-connect.c, `conninfo_uri_parse_options` and
`conninfo_parse`) more broadly than libpq does: a connection string that libpq would refuse, of
another driver (`postgresql+psycopg://`, `jdbc:`) or another database holds a password all the
same. What hides too much costs a word; what hides too little costs a password.
Without libpq, for `--help` and the first errors come before it is loaded.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import unquote

from pgheadroom.errors import InputError

HIDDEN = "********"

_SECRET = (  # names
    r"(?!password_encryption\b)[\w%]*(?:password|passwd|pwd|secret|scram_\w+_key)\w*"  # noqa: S105
)
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
_SCHEME = r"[a-z][a-z0-9+.-]{0,30}://"
_URI = re.compile(_SCHEME, re.IGNORECASE)
_NO_DATABASE = frozenset({"http", "https", "file", "ftp", "sftp", "ssh", "git", "s3", "gs", "tcp"})
"""Schemes of which a colon and a '@' behind the first '/' are no user and no password."""
_PARAMETER = re.compile(r"(?P<sign>[?&;])(?P<name>[^=&?;]*)(?P<equals>=?)(?P<value>[^&;]*)")
# An unquoted value ends at a blank. What follows without a name of its own is taken for the rest
# of a password that should have been quoted.
_QUOTED = r"'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?"
_KEYWORD = re.compile(
    rf"(?P<name>(?<!\w){_SECRET})(?P<equals>\s*=\s*)"
    rf"(?P<value>{_QUOTED}|(?:(?!\s+[\w-]+\s*=).)*)",
    re.IGNORECASE | re.DOTALL,
)
_KEYWORD_IN_TEXT = re.compile(
    rf"(?P<name>(?<!\w){_SECRET})(?P<equals>\s?=\s?)"
    rf"(?P<value>{_QUOTED}|(?:[^\s'\"`;\\]|\\.)+)",
    re.IGNORECASE | re.DOTALL,
)
# As JSON, YAML and Python write a pair, and as SQL sets a role's: PASSWORD 'x'.
_PAIR_IN_TEXT = re.compile(
    rf"(?P<name>(?<!\w){_SECRET})(?P<equals>[\"']\s*:\s*|\s+E?(?='))(?P<value>{_QUOTED})",
    re.IGNORECASE | re.DOTALL,
)
_URI_IN_TEXT = re.compile(rf"{_SCHEME}[^\s'\"`<>]*", re.IGNORECASE)
_PIECES = re.compile(r"[@/:?#&;'\"\s]+")
_PIECE_CHARACTERS_MIN = 4  # shorter ones stand in many words; arbitrary
_WORDS = frozenset({"password", "pgheadroom", "postgres", "postgresql"})
"""Passwords that stand in our own messages: hiding them there would only tell what they are."""


def command_line(arguments: Sequence[str]) -> str:
    """The command that was typed, without its passwords, quoted as a shell takes it."""
    return shlex.join(["pgheadroom", *map(redacted_argument, arguments)])


def redacted_argument(argument: str) -> str:
    """One argument of a command line without its passwords: a URI, a keyword string, any other."""
    return _scanned(argument)[0]


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """
    Free text without passwords.

    Args:
        text: A message, a trace.
        secrets: Passwords that are known, as `secrets_of` finds them: hidden wherever they stand.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _URI_IN_TEXT.sub(lambda match: _without_secrets(match[0])[0], text)
    for form in (_KEYWORD_IN_TEXT, _PAIR_IN_TEXT):
        text = form.sub(rf"\g<name>\g<equals>{HIDDEN}", text)
    return text


def secrets_of(arguments: Sequence[str], environment: Mapping[str, str]) -> frozenset[str]:
    """
    The passwords of a command line and its environment, whole and in the parts that libpq may show.

    One with a '@' or '/' that is not percent-encoded is cut there by libpq, which then takes the
    rest for a host or a port and says so.
    """
    found: set[str] = set()
    for secret in (*_secrets(arguments), environment.get("PGPASSWORD", "")):
        for form in (secret, unquote(secret)):
            found.update((form, *_PIECES.split(form)))
    shown = command_line(arguments)
    return frozenset(
        secret
        for secret in found
        if len(secret) >= _PIECE_CHARACTERS_MIN
        and secret.lower() not in _WORDS
        and secret not in shown
        and HIDDEN not in secret
    )


def process_secrets(arguments: Sequence[str]) -> frozenset[str]:
    """`secrets_of` with the environment of this process."""
    return secrets_of(arguments, os.environ)


def refuse_misread(parameters: Mapping[str, object]) -> None:
    """
    Refuse a connection string in which libpq has taken a part of a password for something else.

    Args:
        parameters: As libpq has read it.

    Raises:
        InputError: A port that is none, or a host with a '@' inside.
    """
    ports = str(parameters.get("port") or "").split(",")
    hosts = str(parameters.get("host") or "").split(",")
    if all(not port or port.strip().isdecimal() for port in ports) and not any(
        "@" in host[1:] and not host.startswith("/") for host in hosts
    ):
        return
    raise InputError(
        "the connection is not understood: a port is no number, or a host has a '@' in it. In a "
        "URI, the characters @ / : ? # & % of a user or a password are written %40 %2F %3A %3F "
        "%23 %26 %25; or the password goes into a password file"
    )


def _scanned(argument: str) -> tuple[str, list[str]]:
    """An argument that may be shown, and what was taken out of it."""
    uri, keyword = _URI.search(argument), _KEYWORD.search(argument)
    if keyword is not None and (uri is None or keyword.start() < uri.start()):
        shown, found = _scanned(argument[keyword.end() :])
        before = argument[: keyword.start()] + keyword["name"] + keyword["equals"]
        return f"{before}{HIDDEN}{shown}", [keyword["value"], _unquoted(keyword["value"]), *found]
    if uri is None:
        return argument, []
    shown, found = _without_secrets(argument[uri.start() :])
    return argument[: uri.start()] + shown, found


def _without_secrets(uri: str) -> tuple[str, list[str]]:
    """A URI that may be shown, and what was taken out of it."""
    scheme, _, rest = uri.partition("://")
    found: list[str] = []
    # libpq takes a user with an encoded colon as it stands; who wrote it meant a password.
    colon = _COLON.search(rest)
    at = rest.rfind("@")
    if scheme.lower() in _NO_DATABASE:
        at = rest.rfind("@", 0, _AUTHORITY_ENDS.search(rest).start())  # type: ignore[union-attr]
    if colon is not None and colon.end() <= at:
        found.append(rest[colon.end() : at])
        rest = f"{rest[: colon.end()]}{HIDDEN}{rest[at:]}"
    hides = False

    def parameter(match: re.Match[str]) -> str:
        nonlocal hides
        if match["equals"]:
            inside = _settings_within(match["value"])
            hides = _SECRET_NAME.fullmatch(unquote(match["name"]).strip()) is not None
            if hides or inside:
                found.extend((match["value"], *inside))
                return f"{match['sign']}{match['name']}={HIDDEN}"
        elif hides:  # the rest of a password with a '&'
            found.append(match["name"])
            return f"{match['sign']}{HIDDEN}"
        return match[0]

    return f"{scheme}://{_PARAMETER.sub(parameter, rest)}", found


_COLON = re.compile(":|%3a", re.IGNORECASE)
_AUTHORITY_ENDS = re.compile(r"[/?#]|\Z")


def _settings_within(value: str) -> list[str]:
    """Secret settings in a parameter, however often encoded: options=-c%20my.password%3Dx."""
    for _ in range(3):
        found = [match["value"] for match in _KEYWORD.finditer(value)]
        if found:
            return found
        value = unquote(value)
    return []


def _secrets(arguments: Sequence[str]) -> Iterator[str]:
    for argument in arguments:
        yield from _scanned(argument)[1]


def _unquoted(value: str) -> str:
    inner = value[1:].removesuffix(value[0]) if value[:1] in ("'", '"') else value
    return re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)
