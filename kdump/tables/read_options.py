"""What a table is read from, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kdump.decode.record_decoder import DecodeOptions
from kdump.io.run import Limits
from kdump.io.window import DEFAULT_SIZE
from kdump.log.expression.terms import Expression
from kdump.tables.declarations import SparkTable

SPLIT = 64 * 1024 * 1024


class OptionError(ValueError):
    """Raised for an invalid option; the message names it."""


@dataclass(frozen=True)
class ReadOptions:
    """What to read, and how. Sizes in bytes, times in ms. In records: `decode` sets how keys and values are decoded,
    `where` the condition that they meet, and `control` whether control records are among them."""

    table: SparkTable
    paths: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    split_bytes: int = SPLIT
    parallelism: int = 1
    broker: str | None = None
    brokers: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    transaction_timeout: int = 900_000
    max_message_bytes: int | None = None
    now: int | None = None
    window: int = DEFAULT_SIZE
    decode: DecodeOptions = field(default_factory=DecodeOptions)
    where: Expression | None = None
    control: bool = True
