"""Checks the explanations of checksums that do not match: a flipped bit is always found, and no wrong explanation is
given."""

from __future__ import annotations

import random
import re
import struct
import zlib
from itertools import pairwise

import pytest
from crc32c import crc32c

from kdump.check.diagnosis import diagnose as diagnosis
from kdump.check.diagnosis.diagnose import CERTAIN, MAX_MISMATCHES, UNKNOWN, Diagnosis, diagnose
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.crc_flip import CRC32, CRC32C, BitFlip, single_bit_flips
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import MESSAGES
from kdump.format.record import RECORD
from kdump.io.run import Limits
from kdump.log.region import Batch, make_batch, read_header
from tests import craft
from tests.conftest import (
    SEED,
    WINDOWS,
    batches,
    numbers_in,
    read_regions,
    sample,
    seeded,
    segment,
    segments,
    window_of,
)
from tests.each_case import each_case

KIB = 1024


def batch_in(data: bytes, position: int = 0, size: int | None = None, window: int = WINDOWS[0]) -> Batch:
    """Return the batch at `position`, up to the end or of `size` bytes, regardless of its length and checksum."""
    header = read_header(data[position : position + 61])
    size = len(data) - position if size is None else size
    return make_batch(window_of(data, window), position, size, Limits(), header)


def diagnosed(data: bytes, position: int = 0, size: int | None = None) -> Diagnosis:
    """Return the diagnosis of that batch, which must be the same with every window."""
    found = {diagnose(batch_in(data, position, size, window)) for window in WINDOWS}
    assert len(found) == 1
    return found.pop()


def damaged(data: bytes, *places: tuple[int, bytes]) -> bytes:
    for position, new in places:
        data = craft.overwrite(data, position, new)
    return data


def noise(count: int, seed: int = 1) -> bytes:
    """Return bytes without zeros, so that the only zeros and headers in them are those of the test."""
    return seeded(seed).randbytes(count).replace(b"\0", b"\x01").replace(b"\2", b"\3")


def many(count: int = 40, size: int = KIB, **fields: int) -> bytes:
    """Return a batch of `count` records with `size` bytes of noise each."""
    return craft.batch([craft.record(delta=i, value=noise(size, i)) for i in range(count)], **fields)


def small() -> dict[str, bytes]:
    """Return the smallest real batch or message of each format and codec, and crafted ones for what the fixtures
    lack."""
    found: dict[str, bytes] = {}
    for path in segments():
        for region in batches(read_regions(path)):
            name = f"v{region.magic}-{region.compression}"
            if name not in found or region.size < len(found[name]):
                found[name] = path.read_bytes()[region.position : region.end]
    found["control"] = next(
        batch
        for batch in craft.split(segment("clean-1/payments-0").read_bytes())
        if BATCH_HEADER.read(batch).isControlBatch
    )
    headers = [(b"trace", b"abc"), (b"null", None)]
    more = [craft.record(delta=i, key=b"k" * i, value=b"v" * 9 * i, headers=headers[:i]) for i in range(3)]
    found["headers"] = craft.batch(more, offset=1 << 40)
    found["empty"] = craft.batch([], lastOffsetDelta=5)
    found["v0-nulls"] = craft.message(0, None)
    found["v1-key"] = craft.message(1, b"value", key=b"key", offset=7)
    return found


SMALL = small()


def names(batch: bytes) -> list[str]:
    """Return, for each byte of a valid batch, the name that a finding should give to its position."""
    magic = batch[16]
    if magic < 2:
        return [span.field.name for span in MESSAGES[magic].walk(batch, 0, len(batch)) for _ in range(span.size)]
    header = BATCH_HEADER.read(batch)
    found = [span.field.name for span in BATCH_HEADER.walk(batch, 0, 61) for _ in range(span.size)]
    if header.codec:
        return found + [f"the records, compressed with {header.compression}"] * (len(batch) - 61)
    for index in range(header.recordCount):
        known = ""
        for span in RECORD.walk(batch, len(found), len(batch)):
            name = "headers" if span.depth else span.field.name
            found += [f"{name} of record {index}{known}"] * span.size
            if name == "offsetDelta":
                known = f", offset {header.baseOffset + span.value}"
    return found


def test_every_format_is_there() -> None:
    codecs = {0: ("none", "gzip", "snappy", "lz4"), 1: ("none", "gzip", "snappy", "lz4"), 2: craft.CODECS}
    assert {f"v{magic}-{codec}" for magic in codecs for codec in codecs[magic]} <= set(SMALL)


@pytest.mark.sampled
@each_case("name", SMALL)
def test_every_bit(name: str) -> None:
    sound = SMALL[name]
    start = batch_in(sound).crc_start
    places = names(sound)
    assert len(places) == len(sound)
    before = noise(100)
    one_in = 1 if len(sound) < 150 else 7  # every bit of a short batch, at least one bit of every byte of the others
    for flipped in sample(range(8 * (start - 4), 8 * len(sound)), one_in, name):
        at, bit = divmod(flipped, 8)
        wrong = craft.overwrite(sound, at, bytes([sound[at] ^ 1 << bit]))
        try:
            batch = batch_in(before + wrong, 100, window=WINDOWS[(at + bit) % len(WINDOWS)])
        except DecodeError:
            assert at == 16  # an unknown magic, so this is not a batch
            continue
        found = diagnose(batch)
        assert found.position == at + 100
        assert found.size == 1
        assert numbers_in(found.text)[:3] == [bit, at + 100, wrong[at] >> bit & 1]
        assert re.findall(r"\b0x\w\w\b", found.text) == [f"0x{wrong[at]:02x}", f"0x{sound[at]:02x}"]
        place = found.text.partition("(in ")[2].removesuffix(")")
        if at < start:
            assert found.kind == "crc-field"
        elif at == 16 and batch.magic == 2:
            assert found.kind == "flipped-bit"
            assert re.findall(r"\bmagic\b|\bv[02]\b", place) == ["magic", "v0", "v2"]
        else:
            assert (found.kind, place) == ("flipped-bit", places[at])


def test_magic_of_v2_as_v0() -> None:
    """The only other bit in v2 that the checksum does not cover and that changes how the whole batch is read."""
    batch = SMALL["v2-none"]
    found = diagnosed(craft.overwrite(batch, 16, b"\0"))
    assert found.position == 16
    assert numbers_in(found.text) == [1, 16, 0]  # the bit, its byte and its value
    assert re.findall(r"\b0x\w\w\b|\bmagic\b|\bv[02]\b", found.text) == ["0x00", "0x02", "magic", "v2", "v0"]


@each_case("name", ["v0-none", "v1-gzip", "v2-none", "v2-zstd"])
def test_windows_agree_on_a_bit(name: str) -> None:
    batch = SMALL[name]
    for bit in range(8 * 21, 8 * len(batch), 61):
        assert diagnosed(craft.flip(batch, bit)).position == bit // 8


def test_through_the_reader() -> None:
    """Flip one bit in each batch of a segment, one at a time; the reader still recognizes the batch."""
    path = segment("clean-1/orders-none-0")
    data = path.read_bytes()
    dice = random.Random(5)
    starts = [region.position for region in read_regions(path)]
    for start, end in pairwise([*starts, len(data)]):
        bit = dice.randrange(8 * (start + 21), 8 * end)
        wrong = batches(read_regions(craft.flip(data, bit)))
        bad = [batch for batch in wrong if not batch.crcValid]
        assert [batch.position for batch in bad] == [start]
        found = diagnose(bad[0])
        assert (found.kind, found.position) == ("flipped-bit", bit // 8)
        assert [diagnose(batch) for batch in wrong if batch.crcValid] == [UNKNOWN] * (len(wrong) - 1)


def test_nothing_is_noted() -> None:
    """Diagnosing twice, or before the records are read, changes nothing."""
    batch = batch_in(craft.flip(SMALL["headers"], 8 * 70))
    assert diagnose(batch) == diagnose(batch)
    assert not batch.problems


@pytest.mark.sampled
@each_case("magic", [0, 1, 2])
def test_two_bits_are_not_one(magic: int) -> None:
    """This never happens in v2, because CRC-32C detects every even number of flipped bits, and in v0 and v1 not for
    batches of this length."""
    value = noise(200)
    batch = craft.one(value) if magic == 2 else craft.message(magic, value)
    dice = random.Random(magic)
    for _ in range(2000 if SEED else 500):
        first, second = dice.sample(range(8 * batch_in(batch).crc_start, 8 * len(batch)), 2)
        if 128 <= first < 136 or 128 <= second < 136:
            continue  # magic
        wrong = craft.flip(craft.flip(batch, first), second)
        assert diagnose(batch_in(wrong)) == UNKNOWN, (first, second)


@pytest.mark.sampled
def test_no_false_claims() -> None:
    """Random bytes overwrite any part of any batch, including the header and the checksum."""
    dice = random.Random(7)
    for batch in [*SMALL.values(), many(4)]:
        start = batch_in(batch).crc_start
        for _ in range(200 if SEED else 80):
            at = dice.randrange(17 if start > 17 else 12, len(batch) - 2)
            size = dice.randrange(2, min(200, len(batch) - at) + 1)
            wrong = craft.overwrite(batch, at, dice.randbytes(size))
            if wrong == batch or bin(int.from_bytes(wrong, "big") ^ int.from_bytes(batch, "big")).count("1") < 2:
                continue
            try:
                found = diagnose(batch_in(wrong))
            except DecodeError:
                continue
            assert found == UNKNOWN, (at, size)


def test_a_batch_that_is_sound() -> None:
    assert diagnosed(SMALL["v2-none"]) == Diagnosis("", "", None, 0)


def test_the_file_ends_before_the_bit() -> None:
    """A broker has truncated the file since the header was read."""
    batch = batch_in(craft.flip(many(), 8 * 30 * KIB))
    assert batch.computedCrc != batch.crc
    batch.window = window_of(b"")
    assert diagnose(batch) == UNKNOWN


# Holes and zeros


BEFORE = craft.one(noise(300), offset=0)
BIG = many(offset=1)
FILE = BEFORE + BIG


@each_case(
    "start, size, unit",
    [(8192, 4096, "4 KiB"), (4096, 12288, "4 KiB"), (8192 + 512, 512, "512-byte"), (8192, 1536, "512-byte")],
)
def test_a_hole_of_blocks(start: int, size: int, unit: str) -> None:
    found = diagnosed(craft.overwrite(FILE, start, bytes(size)), len(BEFORE))
    text = f"{size} zero bytes from byte {start} on, aligned to {unit} blocks: "
    text += "looks like a write that never reached the disk"
    assert found == Diagnosis("block", text, start, size)


def test_a_hole_in_a_real_file() -> None:
    """The second hole begins inside a batch and includes the header of the next one."""
    data = segment("clean-1/orders-none-0").read_bytes()
    for position, end, at, size, part in ((5599, 11006, 8192, 1024, 1024), (16539, 21980, 20480, 4096, 1500)):
        found = diagnosed(craft.overwrite(data, at, bytes(size)), position, end - position)
        assert (found.kind, found.position, found.size) == ("block", at, part)


def test_zeros_of_the_data_beside_a_hole() -> None:
    wrong = damaged(FILE, (8192 - 3, bytes(3)), (8192, bytes(4096)), (12288, bytes(2)))
    found = diagnosed(wrong, len(BEFORE))
    assert (found.kind, found.position, found.size) == ("block", 8192, 4096)


@each_case("rest", [b"", bytes(4096 * 3), craft.one(b"next", offset=41)])
def test_a_hole_up_to_the_end(rest: bytes) -> None:
    """The hole is the last block of a truncated or preallocated file, or is followed by a batch in the same block."""
    at = len(FILE) // 4096 * 4096
    wrong = FILE[:at] + bytes(len(FILE) - at) + rest
    found = diagnosed(wrong, len(BEFORE), len(BIG))
    assert found.position == at
    assert found.size == len(FILE) - at
    assert found.kind == ("zeros" if any(rest) else "block")


@each_case("at, size", [(5000, 32), (5000, 4096), (9000, 77), (8192, 100)])
def test_zeros_elsewhere(at: int, size: int) -> None:
    wrong = damaged(FILE, (at - 1, b"\7"), (at, bytes(size)), (at + size, b"\7"))
    found = diagnosed(wrong, len(BEFORE))
    edge = ", which begin on a 4 KiB boundary" if at == 8192 else ""
    text = f"{size} zero bytes from byte {at} to byte {at + size - 1}{edge}: "
    text += "looks like lost data, unless a value contains zeros there"
    assert found == Diagnosis("zeros", text, at, size)


def test_few_zeros_are_nothing() -> None:
    assert diagnosed(damaged(FILE, (5000, bytes(20))), len(BEFORE)) == UNKNOWN


def test_zeros_of_a_header_are_nothing() -> None:
    batch = craft.one(b"x" * 100, baseTimestamp=0, maxTimestamp=0, producerId=0, producerEpoch=0, baseSequence=0)
    assert diagnosed(damaged(batch, (90, b"ab"))) == UNKNOWN


def test_one_run_of_zeros_among_many() -> None:
    """All values are padded with zeros: none of these zeros is damage."""
    batch = craft.batch([craft.record(delta=i, value=noise(50, i) + bytes(100 + i)) for i in range(20)])
    assert diagnosed(damaged(batch, (70, b"abc"))) == UNKNOWN


@each_case("codec", ["none", "lz4"])
def test_a_flipped_bit_beside_zeros(codec: str) -> None:
    """A value that consists of zeros, even of whole blocks of them, is not the damage."""
    values = [noise(100), bytes(16 * KIB), noise(200)]
    batch = craft.batch([craft.record(delta=i, value=value) for i, value in enumerate(values)], codec)
    for bit in (8 * 90, 8 * (len(batch) - 20) + 3):
        found = diagnosed(craft.flip(batch, bit))
        assert (found.kind, found.position) == ("flipped-bit", bit // 8)


# Bytes of another batch


ORDERS = segment("clean-1/orders-none-0").read_bytes()


def test_a_block_of_another_segment() -> None:
    """The block may come from anywhere in the segment: the first header in it identifies it."""
    block = ORDERS[4096:8192]
    first = next(region.position for region in read_regions(ORDERS) if region.position >= 4096)
    found = diagnosed(craft.overwrite(FILE, 8192, block), len(BEFORE))
    at = 8192 + first - 4096
    offset = BATCH_HEADER.read(ORDERS, first).baseOffset
    assert (found.kind, found.position) == ("foreign", at)
    assert numbers_in(found.text)[:2] == [offset, at]


@each_case("at, where", [(8192, ", on a 4 KiB boundary"), (8704, ", on a 512-byte boundary"), (9000, "")])
def test_a_whole_batch(at: int, where: str) -> None:
    inner = many(2, 700, offset=120)
    found = diagnosed(craft.overwrite(FILE, at, inner), len(BEFORE))
    text = f"bytes of another batch, with base offset 120, start at byte {at}{where}, and its checksum matches"
    assert found == Diagnosis("foreign", text, at, len(inner))


def test_the_beginning_of_a_larger_batch() -> None:
    """The block contains only the header and some records of the larger batch."""
    inner = many(100, offset=120)[:4096]
    found = diagnosed(craft.overwrite(FILE, 8192, inner), len(BEFORE))
    text = "bytes of another batch, with base offset 120, start at byte 8192, on a 4 KiB boundary"
    assert found == Diagnosis("foreign", text, 8192, len(FILE) - 8192)
    assert diagnosed(craft.overwrite(FILE, 8200, inner), len(BEFORE)).position == 8200


@each_case("magic", [0, 1])
def test_a_message_in_a_batch(magic: int) -> None:
    inner = craft.message(magic, noise(1500), offset=99)
    for at in (8192, 9000):
        found = diagnosed(craft.overwrite(FILE, at, inner), len(BEFORE))
        assert (found.kind, found.position, found.size) == ("foreign", at, len(inner))


@each_case("inner", [craft.message(1, b"abc", offset=99), many(2, 100, offset=99)], ids=["v1", "v2"])
def test_in_a_message(inner: bytes) -> None:
    outer = craft.message(1, noise(20 * KIB))
    assert diagnosed(craft.overwrite(outer, 8192, inner)).kind == "foreign"
    # Inside the only value of a message, it may be legitimate.
    assert diagnosed(craft.overwrite(outer, 8200, inner)) == UNKNOWN


def test_offsets_of_another_log() -> None:
    inner = many(2, 700, offset=1 << 33)
    assert diagnosed(craft.overwrite(FILE, 8192, inner), len(BEFORE)) == UNKNOWN


@each_case("count", [1, 30])
def test_values_that_hold_batches(count: int) -> None:
    """Such values are legal, and do not explain the two flipped bits elsewhere."""
    values = [many(2, 500, offset=i) for i in range(count)]
    batch = craft.batch(
        [craft.record(delta=i, value=value) for i, value in enumerate([noise(100), *values, noise(100)])]
    )
    wrong = craft.flip(craft.flip(batch, 8 * 80), 8 * (len(batch) - 30))
    assert diagnosed(wrong) == UNKNOWN
    # The last record may contain a batch as well, and the flipped bits may be in a batch.
    batch = craft.batch([craft.record(delta=i, value=value) for i, value in enumerate([noise(300), *values])])
    assert diagnosed(damaged(batch, (80, b"abc")) + craft.one(b"next", offset=count + 1), 0, len(batch)) == UNKNOWN
    assert diagnosed(craft.flip(craft.flip(batch, 8 * 500), 8 * 700)) == UNKNOWN


def test_a_crafted_batch_full_of_headers() -> None:
    """Bytes that look like headers everywhere cost little time and cause no error."""
    header = many(1, 1, offset=3)[:61]
    batch = craft.one(header * (4 * MAX_MISMATCHES))
    assert diagnosed(damaged(batch, (70, b"abc"), (90, b"abc"))).kind in ("", "foreign")
    record = craft.record(value=header[:40])
    batch = craft.batch([record] * 1000, count=1000)
    assert diagnosed(damaged(batch, (70, b"abc"), (90, b"abc"))) == UNKNOWN


@each_case("offset", [-1, -(1 << 63), (1 << 63) - 1, (1 << 31) - 1, 1 << 32])
def test_any_offset(offset: int) -> None:
    wrong = damaged(many(offset=offset), (300, b"abc"))
    assert diagnosed(wrong) == UNKNOWN
    found = diagnosed(craft.overwrite(wrong, 8192, many(2, 700, offset=max(0, offset - 5))))
    assert found.kind == ("" if offset < -(1 << 31) else "foreign")


def test_lies_in_the_header() -> None:
    """Impossible sizes and counts, in batches that are also damaged elsewhere."""
    for name in ("v2-none", "headers", "v0-none", "v1-key"):
        batch = SMALL[name]
        dice = seeded(name)
        for _ in range(300):
            wrong = bytearray(batch)
            for _ in range(dice.randrange(1, 9)):
                wrong[dice.randrange(len(wrong))] = dice.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
            wrong[16] = batch[16]
            diagnose(batch_in(bytes(wrong), window=61))


# The mathematics


def crc(magic: int, data: bytes) -> int:
    return crc32c(data) if magic == 2 else zlib.crc32(data)


@each_case("magic", [0, 2])
def test_flips_of_large_data(magic: int) -> None:
    size = 3_000_001
    data = bytearray(size)
    sound = crc(magic, bytes(data))
    for byte, bit in [(0, 0), (0, 7), (1, 3), (size // 2, 5), (size - 1, 0), (size - 1, 7)]:
        data[byte] ^= 1 << bit
        assert list(single_bit_flips(magic, crc(magic, bytes(data)) ^ sound, size)) == [BitFlip(byte, bit)]
        data[byte] ^= 1 << bit


def power(poly: int, exponent: int) -> int:
    """Return x to that power, computed bit by bit: x^0 is the highest bit of the register."""
    result = 1 << 31
    for bit in bin(exponent)[2:]:
        square = 0
        left = result
        for place in range(31, -1, -1):
            if result >> place & 1:
                square ^= left
            left = (left >> 1) ^ (poly if left & 1 else 0)
        result = (square >> 1) ^ (poly if square & 1 else 0) if bit == "1" else square
    return result


@each_case("poly, primes", [(CRC32, (3, 5, 17, 257, 65537)), (CRC32C, ((1 << 31) - 1,))])
def test_order(poly: object, primes: tuple[int, ...]) -> None:
    """The powers of x return to 1 after this number of steps, and not earlier."""
    assert isinstance(poly, type(CRC32))
    one = 1 << 31
    assert power(poly.value, poly.order) == one
    assert all(power(poly.value, poly.order // prime) != one for prime in primes)


def test_bits_that_cannot_be_told_apart() -> None:
    """In 256 MiB and more, bits of a v2 batch have the same effect on the checksum; this follows without computing
    one."""
    order = CRC32C.order
    (near,) = single_bit_flips(2, crc(2, b"\1") ^ crc(2, b"\0"), 1)
    assert near == BitFlip(0, 0)
    found = list(single_bit_flips(2, crc(2, b"\1") ^ crc(2, b"\0"), 1 << 30))
    assert found[0] == BitFlip((1 << 30) - 1, 0)
    powers = [8 * ((1 << 30) - flip.byte) - flip.bit for flip in found]
    assert powers == [8 + i * order for i in range(4)]


@pytest.mark.parametrize("magic", [0, 2])
def test_how_often_chance_looks_like_a_bit(magic: int) -> None:
    dice = random.Random(magic)
    for size in (100, CERTAIN):
        hits = sum(bool(list(single_bit_flips(magic, dice.getrandbits(32), size))) for _ in range(100))
        assert hits <= 2


def test_a_large_batch_is_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    value = noise(KIB) * (3 * KIB)
    wrong = craft.flip(craft.one(value), 8 * 1_000_000 + 2)
    found = diagnose(batch_in(wrong))
    assert (found.kind, found.position) == ("flipped-bit", 1_000_000)
    assert numbers_in(found.text)[-2:] == [1, 171]  # how many batches with other damage have such a bit
    # Any damage can be made to look so. That of a whole block is detected, and preferred to the guess.
    batch = bytearray(craft.overwrite(craft.one(value), 8192, bytes(4096)))
    other = bytearray(batch)
    other[2_000_000] ^= 4
    batch[17:21] = struct.pack(">I", crc32c(bytes(other[21:])))
    assert diagnose(batch_in(bytes(batch))).kind == "block"
    # For the largest batches, the guess would be right only half of the time.
    monkeypatch.setattr(diagnosis, "POSSIBLE", len(wrong) - 22)
    assert diagnose(batch_in(wrong)) == UNKNOWN
