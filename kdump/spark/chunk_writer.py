"""Writes what one task of a scan reads: a pack. After many bytes it is finished, and its rows are copied to another, so
that a scan that is interrupted loses little: the amount doubles each time, so that little is copied."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

from kdump.spark.pack_reader import entries
from kdump.spark.pack_writer import PackWriter, Ranges
from kdump.spark.packs import Pack
from kdump.spark.store import Store

SPAN = 8 * 1024 * 1024 * 1024
"""Bytes of segments after which a task saves what it has for the first time."""


class KeptRows(NamedTuple):
    """What an earlier scan has kept of a unit: rows of its pack, and the state of the check."""

    pack: Pack
    ranges: Ranges
    state: bytes | None


class ChunkWriter:
    """Writes one chunk of a scan to `pack`. `stem`: unique start of the names of its packs."""

    def __init__(self, store: Store, stem: str, group: str) -> None:
        self.store, self.group = store, group
        self.stem = f"{stem}-{secrets.token_hex(3)}"  # a task that Spark runs twice writes other files
        self.number = 0
        self.span = self.left = SPAN
        self.pack = self._new()

    def _new(self) -> PackWriter:
        return PackWriter(self.store, f"{self.stem}-{self.number}", self.group)

    def count(self, size: int) -> None:
        """Count bytes that are about to be read."""
        self.left -= size

    @property
    def is_due(self) -> bool:
        """Whether enough has been read to save it."""
        return self.left <= 0

    def save(self, entry: dict[str, Any] | None = None, prefix: dict[str, int] | None = None) -> None:
        """Finish the pack, and continue in another one that also has its rows. `entry`, `prefix`: the entry of the
        current unit, which has been read up to a segment, and the numbers of its rows. Raises StoreError."""
        own = {name: (self.pack.unit_start.get(name, 0), count) for name, count in self.pack.own_rows().items()}
        if entry is not None:
            self.pack.end(entry, prefix)
        done = self.pack.finish()
        self.number += 1
        self.span *= 2
        self.left = self.span
        self.pack = self._new()
        partial = entry["key"] if entry is not None else None
        keys = [each["key"] for each in entries(self.store, done, ["key"]) if each["key"] != partial]
        self.pack.copy_units(done, keys)
        self.pack.begin()
        if entry is not None:
            self.pack.copy_rows(done, own)
