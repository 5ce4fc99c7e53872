"""inspect --hex --full accounts for every byte: it shows it, or a line states the range that it is in."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests import craft
from tests.command import run
from tests.conftest import sample

SHOWN = re.compile(r"^ *(\d+)[! ]((?:[0-9a-f]{2} )+)")
STATED = re.compile(r"^padding at (\d+)\.\.(\d+)|bytes of \S+ at (\d+)\.\.(\d+)\.")


def uncovered(text: str, data: bytes) -> list[int]:
    """Return the bytes that are neither shown nor stated. Those that are shown must be right."""
    seen = bytearray(len(data))
    for line in text.splitlines():
        if found := SHOWN.match(line):
            at, own = int(found[1]), bytes.fromhex(found[2])
            assert data[at : at + len(own)] == own, line
            seen[at : at + len(own)] = b"\1" * len(own)
        elif found := STATED.search(line):
            first, last = (int(each) for each in found.groups() if each)
            seen[first : last + 1] = b"\1" * (last + 1 - first)
    return [at for at, byte in enumerate(seen) if not byte]


@pytest.mark.sampled
def test_every_byte_is_accounted_for(tmp_path: Path) -> None:
    records = [craft.record(number, b"key", b"v" * 150, headers=[(b"h", b"x")]) for number in range(3)]
    whole = craft.batch(records, offset=0) + craft.batch(records, "gzip", offset=3)
    whole += craft.message(1, b"w" * 150, offset=6) + craft.batch(records, offset=7) + bytes(100)
    path = tmp_path / f"{0:020}.log"
    for seed in sample(range(2000), 100):
        dice = random.Random(seed)
        data = bytearray(whole[: dice.choice((len(whole), dice.randrange(len(whole))))])
        for _ in range(dice.randrange(3)):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 0x7F, 0xFF, dice.randrange(256)))
        if dice.random() < 0.5:  # records that do not decode in a batch whose checksum matches
            size = len(craft.batch(records, offset=0))
            if len(data) >= size:
                data[:size] = craft.fix_crc(bytes(data[:size]))
        path.write_bytes(data)
        assert uncovered(run("inspect", path, "--hex", "--full").stdout, bytes(data)) == [], seed


def test_the_contents_of_a_wrapper_with_a_wrong_size_are_shown_once(tmp_path: Path) -> None:
    data = bytearray(craft.wrapper(1, [craft.message(1, b"inner")], offset=0) + craft.message(1, b"w", offset=1))
    data[9] ^= 0x80  # of messageSize
    (path := tmp_path / f"{0:020}.log").write_bytes(data)
    assert len(re.findall(r"^ *\+0[! ]", run("inspect", path, "--hex", "--full").stdout, re.M)) == 1
