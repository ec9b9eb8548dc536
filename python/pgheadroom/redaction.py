"""
What may be shown of text in which a password may stand: command lines, messages, reports.

Reads libpq's two forms (src/interfaces/libpq/fe-connect.c, `conninfo_uri_parse_options` and
`conninfo_parse`) more broadly than libpq does: a connection string that libpq would refuse holds a
password all the same. What hides too much costs a word; what hides too little costs a password.
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

_SECRET = r"[\w%]*(?:password|passwd|pwd|secret|scram_\w+_key)\w*"  # noqa: S105 - names, no secret
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
_URI = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<sign>[?&])(?P<name>[^=&?]*)(?P<equals>=?)(?P<value>[^&]*)")
# An unquoted value ends at a blank. What follows without a name of its own is taken for the rest
# of a password that should have been quoted.
_KEYWORD = re.compile(
    rf"(?P<name>(?<!\w){_SECRET})(?P<equals>\s*=\s*)"
    r"(?P<value>'(?:[^'\\]|\\.)*'?|(?:(?!\s+[\w-]+\s*=).)*)",
    re.IGNORECASE | re.DOTALL,
)
_KEYWORD_IN_TEXT = re.compile(
    rf"(?P<name>(?<!\w){_SECRET})(?P<equals>\s?=\s?)"
    r"(?P<value>'(?:[^'\\]|\\.)*'?|(?:[^\s'\"`;\\]|\\.)+)",
    re.IGNORECASE | re.DOTALL,
)
_URI_IN_TEXT = re.compile(r"postgres(?:ql)?://[^\s'\"`<>]*", re.IGNORECASE)
_PIECES = re.compile(r"[@/:?#&\s]+")
_PIECE_CHARACTERS_MIN = 4  # shorter ones stand in many words; arbitrary
_WORDS = frozenset({"password", "pgheadroom", "postgres", "postgresql"})
"""Passwords that stand in our own messages: hiding them there would only tell what they are."""


def command_line(arguments: Sequence[str]) -> str:
    """The command that was typed, without its passwords, quoted as a shell takes it."""
    return shlex.join(["pgheadroom", *map(redacted_argument, arguments)])


def redacted_argument(argument: str) -> str:
    """One argument of a command line without its passwords: a URI, a keyword string, any other."""
    uri = _URI.search(argument)
    if uri is None:
        return _KEYWORD.sub(rf"\g<name>\g<equals>{HIDDEN}", argument)
    before = _KEYWORD_IN_TEXT.sub(rf"\g<name>\g<equals>{HIDDEN}", argument[: uri.start()])
    return before + _without_secrets(argument[uri.start() :])[0]


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
    return _KEYWORD_IN_TEXT.sub(rf"\g<name>\g<equals>{HIDDEN}", text)


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


def _without_secrets(uri: str) -> tuple[str, list[str]]:
    """A URI that may be shown, and what was taken out of it."""
    scheme, _, rest = uri.partition("://")
    found: list[str] = []
    colon, at = rest.find(":"), rest.rfind("@")
    if 0 <= colon < at:
        found.append(rest[colon + 1 : at])
        rest = f"{rest[: colon + 1]}{HIDDEN}{rest[at:]}"
    hides = False

    def parameter(match: re.Match[str]) -> str:
        nonlocal hides
        if match["equals"]:
            hides = _SECRET_NAME.fullmatch(unquote(match["name"]).strip()) is not None
            if hides:
                found.append(match["value"])
                return f"{match['sign']}{match['name']}={HIDDEN}"
        elif hides:  # the rest of a password with a '&'
            found.append(match["name"])
            return f"{match['sign']}{HIDDEN}"
        return match[0]

    return f"{scheme}://{_PARAMETER.sub(parameter, rest)}", found


def _secrets(arguments: Sequence[str]) -> Iterator[str]:
    for argument in arguments:
        uri = _URI.search(argument)
        if uri is not None:
            yield from _without_secrets(argument[uri.start() :])[1]
            continue
        for match in _KEYWORD.finditer(argument):
            yield match["value"]
            yield _unquoted(match["value"])


def _unquoted(value: str) -> str:
    inner = value[1:].removesuffix("'") if value.startswith("'") else value
    return re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)
