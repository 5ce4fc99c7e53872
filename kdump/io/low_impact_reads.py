"""How much this process reads, whatever command or function opens the files: no faster than a limit, which it shares
with its worker processes, and with --idle within its share of the processors."""

from __future__ import annotations

__lazy_modules__ = {"kdump.io.processor_share"}

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kdump.idle import is_idle
from kdump.io.errors import RequestLimit
from kdump.io.processor_share import ProcessorShare
from kdump.io.token_bucket import TokenBucket

if TYPE_CHECKING:  # slow to import
    from multiprocessing.context import BaseContext

_rate: TokenBucket | None = None
_share: ProcessorShare | None = None
_bytes_read = 0
_requests = 0
_max_requests: int | None = None


def limit_requests(most: int | None) -> None:
    """Limit the number of requests to object stores from now on; None: no limit."""
    global _requests, _max_requests
    _requests, _max_requests = 0, most


def before_request(url: str) -> None:
    """Count a request to an object store. Raises RequestLimit if there may be no more."""
    global _requests
    if _max_requests is not None and _requests >= _max_requests:
        raise RequestLimit.at(url, f"not read: {_requests:,} requests were sent, as many as --max-requests allows")
    _requests += 1


def requests() -> int:
    """Return how many requests were counted."""
    return _requests


def limit_rate(rate: TokenBucket | None) -> None:
    """Limit the rate of all reads of this process from now on; None: no limit. Worker processes begin with it, so
    what the process has used of the processors before does not count."""
    global _rate, _share
    _rate, _share = rate, None


def max_rate() -> int | None:
    """Return the limit of this process in bytes per second; None without a limit."""
    return None if _rate is None else _rate.per_second


@contextmanager
def limited_to(per_second: int | None) -> Iterator[None]:
    """Limit all reads of this process to this many bytes per second within the block; None changes nothing."""
    before = _rate
    if per_second is not None:
        limit_rate(TokenBucket(per_second))
    try:
        yield
    finally:
        limit_rate(before)


def rate_for_workers(context: BaseContext) -> TokenBucket | None:
    """Return the limit for `limit_rate` in worker processes, to be passed when they start: they and this process share
    it. Raises OSError if shared memory is not available."""
    if _rate is not None and not _rate.is_shared:
        limit_rate(_rate.shared(context))
    return _rate


def bytes_read() -> int:
    """Return how many bytes this process has read of files so far."""
    return _bytes_read


def before_read(count: int) -> None:
    """Wait until `count` more bytes may be read."""
    global _share
    if _rate is not None:
        _rate.take(count)
    if is_idle():
        _share = _share or ProcessorShare()
        _share.wait()


def after_read(count: int) -> None:
    """Count the bytes that a read returned."""
    global _bytes_read
    _bytes_read += count
