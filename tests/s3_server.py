"""A server that implements S3, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def s3_server(secret: str = "any") -> Iterator[dict[str, Any]]:
    """Yield the options with which s3fs reaches it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    try:
        yield {
            "key": "any",
            "secret": secret,
            "endpoint_url": f"http://127.0.0.1:{port}",
            "client_kwargs": {"region_name": "eu-west-1"},
        }
    finally:
        server.stop()
