"""
Objects under a prefix of a bucket, `s3://BUCKET/PREFIX`, through fsspec.

An object appears whole or not at all, and `create` makes one only where there is none: both are the
store's own promises (`If-None-Match: *`), so neither a kill nor a second writer leaves half of one.
Where the store is and who asks say the environment and the files that Amazon's own tools read
(`AWS_ENDPOINT_URL`, `AWS_PROFILE`, ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from pgheadroom.errors import ConnectionFailed, InputError, PrivilegeMissing, SourceError

_URL = re.compile(r"s3://([A-Za-z0-9][A-Za-z0-9._-]{1,62})/([^\s?#]*[^\s?#/])/?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CONNECT_S = 10.0
_READ_S = 60.0
_ATTEMPTS = 3
"""How long a store may take and how often it is asked again (arbitrary)."""


def is_url(text: str) -> bool:
    """Whether a place is named as a URL, and so is no path."""
    return _SCHEME.match(text) is not None


@cache
def _session() -> Any:
    """One for all: it has read descriptions of the service, a fifth of a second, once."""
    from aiobotocore.session import get_session  # noqa: PLC0415 - comes with the extra

    return get_session()


class ObjectFolder:
    """
    What lies under a prefix, by names relative to it; a context manager.

    Args:
        url: `s3://BUCKET/PREFIX`.

    Raises:
        InputError: The URL is another one, or the extra is not installed.
    """

    def __init__(self, url: str) -> None:
        parts = _URL.fullmatch(url)
        if parts is None or "//" in parts[2]:
            raise InputError(f"{url}: expected s3://BUCKET/PREFIX")
        self.url = url.rstrip("/")
        self.name = parts[2].rpartition("/")[2]
        self._bucket = parts[1]
        self._prefix = f"{parts[1]}/{parts[2]}"
        try:
            from s3fs import S3FileSystem  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError(
                "the package s3fs is not installed: expected the extra s3, "
                "pip install 'pgheadroom[s3]'"
            ) from None
        self._there: Any = S3FileSystem(
            skip_instance_cache=True,
            use_listings_cache=False,
            session=_session(),
            config_kwargs={
                "connect_timeout": _CONNECT_S,
                "read_timeout": _READ_S,
                "retries": {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            },
        )
        self._there.retries = 1  # the client below it asks again

    def __enter__(self) -> ObjectFolder:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        client = self._there._s3
        if client is not None:
            from fsspec.asyn import sync  # noqa: PLC0415 - an extra

            sync(self._there.loop, client.__aexit__, None, None, None)
            self._there._s3 = None

    def sizes(self) -> dict[str, int]:
        """
        Bytes of each object under the prefix, by its name.

        Raises:
            InputError: No such bucket.
            SourceError: The store does not answer, or refuses.
        """
        with self._translated():
            # A prefix where nothing lies is no error to `find`, a missing bucket has to be one.
            found = self._there.find(self._prefix, detail=True)
            if not found:
                self._there.call_s3("list_objects_v2", Bucket=self._bucket, MaxKeys=1)
            inside = f"{self._prefix}/"
            return {
                name.removeprefix(inside): int(about["size"])
                for name, about in sorted(found.items())
                if name.startswith(inside)
            }

    def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """
        What objects hold.

        Raises:
            SourceError: One is gone; or as `sizes`.
        """
        with self._translated():
            found = self._there.cat([f"{self._prefix}/{name}" for name in names]) if names else {}
            return {name.removeprefix(f"{self._prefix}/"): it for name, it in found.items()}

    def put(self, name: str, content: bytes) -> None:
        """
        Make an object, in the place of one that is there.

        Raises:
            SourceError: As `sizes`; what was there is untouched.
        """
        with self._translated():
            self._there.pipe_file(f"{self._prefix}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """
        Make an object where there is none.

        Returns:
            Whether it is ours: there was none, or an attempt of ours whose answer was lost made it.

        Raises:
            SourceError: As `sizes`.
        """
        path = f"{self._prefix}/{name}"
        with self._translated():
            try:
                self._there.pipe_file(path, content, mode="create")
            except FileExistsError:
                return bool(self._there.cat_file(path) == content)
            return True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the store says into our errors."""
        from botocore import exceptions as said  # noqa: PLC0415 - comes with the extra

        try:
            yield
        except FileNotFoundError as error:
            if "bucket" in str(error).lower():
                raise InputError(
                    f"{self.url}: there is no bucket {self._bucket}; expected one that is there"
                ) from error
            raise SourceError(
                f"{self.url}: an object is gone meanwhile ({error}): give the command again"
            ) from error
        except said.NoCredentialsError as error:
            raise PrivilegeMissing(
                f"{self.url}: no credentials were found; expected them where Amazon's tools look, "
                "for example in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            ) from error
        except PermissionError as error:
            raise PrivilegeMissing(
                f"{self.url}: the store refuses ({error}); expected the rights to list the prefix "
                "and to get and put objects there"
            ) from error
        except (said.ConnectionError, said.HTTPClientError, TimeoutError, ConnectionError) as error:
            raise ConnectionFailed(
                f"{self.url}: the object store does not answer ({error}); expected one at "
                "AWS_ENDPOINT_URL, or Amazon's where that is not set"
            ) from error
        except (said.BotoCoreError, OSError) as error:
            raise SourceError(f"{self.url}: the object store failed: {error}") from error
