"""Uuids as Kafka prints them. Source: org.apache.kafka.common.Uuid."""

from __future__ import annotations

import base64
from functools import lru_cache

ZERO_UUID = "A" * 22
"""The UUID of 16 zero bytes, which stands for no topic and no directory (Uuid.ZERO_UUID)."""


@lru_cache(4096)
def uuid_text(data: bytes) -> str:
    """Return 16 bytes as Kafka's Uuid prints them: base64 with - and _, without padding."""
    return base64.urlsafe_b64encode(data).decode()[:22]
