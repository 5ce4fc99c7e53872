"""Flips every bit of small segments of each format: the damage is found, in its batch if a checksum covers the bit, and
the repair is called exact if that of salvage is."""

from __future__ import annotations

import io
import time

import pytest

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import rules
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import CheckpointedEpoch, PartitionContext
from kdump.check.totals import CheckTotals
from kdump.io.source import SeekableSource
from kdump.io.window import Window
from kdump.log.partition_directory import PartitionDirectory, PartitionFiles, SegmentFiles
from kdump.log.paths import target
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.questions.salvage.source.damaged_records import rescue
from tests import craft
from tests.conftest import sample, segment

NAME = f"t-0/{0:020}.log"
SEGMENTS = {
    "v2": ("clean-1/trimmed-0", 3),
    "v2-lz4": ("clean-1/payments-0", 3),
    "v2-gzip": ("clean-1/kafkajs-gzip-0", 1),
    "v1": ("legacy/v1-client010-none-0", 3),
    "v1-gzip": ("legacy/v1-compacted-gzip-0", 2),
    "v0": ("legacy/v0-client09-none-0", 3),
    "v0-gzip": ("legacy/v0-client09-gzip-0", 1),
}


UNDETECTABLE = {("v2-gzip", byte) for byte in range(4, 8)}
"""The base offset of the only batch in a segment. Any value above the file's name by less than 2^31 is legal; a wrong
value is found if there is another batch after it, an index or another segment."""


def check(data: bytes) -> list[Finding]:
    at = target(NAME)
    here = PartitionDirectory("t-0", "t-0", "t", 0, "", PartitionFiles([SegmentFiles("", 0, at)]))
    epochs = (CheckpointedEpoch(0, 0, 4, 4),)
    known = PartitionContext("t", 0, clean=True, epochs=epochs, epochs_at=at, now=int(time.time() * 1000))
    options = Options(open_source=lambda path: SeekableSource(path, io.BytesIO(data)), now=known.now)
    return list(PartitionScan(here, known, options, CheckTotals(), rules, alone=True).findings())


def covered(batch: bytes, byte: int) -> bool:
    """Return True if the checksum of the batch covers that byte."""
    return byte >= (21 if batch[16] > 1 else 16)


def is_repaired_exactly(data: bytes, position: int) -> bool:
    """Return True if salvage corrects the batch there."""
    batch = next(iter(regions(Window(SeekableSource(NAME, io.BytesIO(data))), start=position)))
    made = rescue(batch) if isinstance(batch, Batch) else None
    return made is not None and bool(made[2])


@pytest.mark.sampled
@pytest.mark.parametrize("name", SEGMENTS)
def test_every_bit(name: str) -> None:
    path, count = SEGMENTS[name]
    batches = craft.split(segment(path).read_bytes())[:count]
    data = b"".join(batches)
    before = {finding.code for finding in check(data) if finding.severity != "info"}
    assert not before
    unfound = []
    position = 0
    for batch in batches:
        step = max(1, len(batch) * 8 // 3000)  # for a long batch, only some bits of the payload
        bits = [*range(100 * 8), *range(100 * 8, len(batch) * 8, step)]
        for bit in sample(bits, 39, (name, position)):  # the odd step reaches every bit of a byte
            if bit >= len(batch) * 8:
                break
            flipped = craft.flip(data, position * 8 + bit)
            findings = [one for one in check(flipped) if one.code != "transaction-open"]
            exact = {one.facts["exactRepair"] for one in findings if one.code == "crc-mismatch"}
            assert exact <= {is_repaired_exactly(flipped, position)}, (position + bit // 8, bit % 8)
            byte = position + bit // 8
            here = [one for one in findings if one.position <= byte < one.position + max(one.size, 1)]
            magic = bit // 8 == 16
            if covered(batch, bit // 8) and not magic:
                assert any(one.severity in ("error", "warning") for one in here), (byte, bit % 8, findings)
            elif not any(one.severity != "info" or one.code == "offset-gap" for one in findings):
                unfound.append((name, byte))
        position += len(batch)
    assert set(unfound) <= UNDETECTABLE


def test_a_wrong_length_or_magic_loses_no_offset() -> None:
    """And no sequence of its producer."""
    batches = [craft.batch([craft.record()], offset=n, producerId=7, producerEpoch=0, baseSequence=n) for n in range(3)]
    for bit in (*range(64, 96), *range(128, 136)):
        findings = check(b"".join((batches[0], craft.flip(batches[1], bit), batches[2])))
        codes = {one.code for one in findings}
        assert codes & {"batch-length-invalid", "magic-unknown"}, bit
        assert "offset-gap" not in codes, bit
