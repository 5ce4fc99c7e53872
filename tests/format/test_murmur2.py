"""Tests of the partitioner's hash, with the values of Kafka's UtilsTest."""

from __future__ import annotations

from kdump.format.murmur2 import murmur2, partition_of
from tests.each_case import each_case

KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@each_case("key", KNOWN)
def test_the_hash_is_kafkas(key: bytes) -> None:
    assert murmur2(key) == KNOWN[key]
    assert partition_of(key, 12) == (KNOWN[key] & 0x7FFFFFFF) % 12
