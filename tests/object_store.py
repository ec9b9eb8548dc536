"""An object store of Amazon's protocol in this process, with a bucket."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from moto import settings
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from pgheadroom import object_storage

BUCKET = "records"


@contextmanager
def started() -> Iterator[S3FileSystem]:
    """A store with the bucket `BUCKET`, where the environment leads to; its own view of it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    where = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "known",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }
    try:
        with mock.patch.dict(os.environ, where):
            object_storage._session.cache_clear()  # it may know another store
            there = S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
            there.mkdir(BUCKET)
            yield there
    finally:
        server.stop()


@contextmanager
def refusing() -> Iterator[None]:
    """The store knows nobody for so long."""
    with mock.patch.object(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0):
        yield
