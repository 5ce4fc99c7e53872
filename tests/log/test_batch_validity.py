"""Why a batch is invalid. (tests/facts/test_facts.py: every command takes the same batches for valid.)"""

from __future__ import annotations

from kdump.log.batch_validity import CHECKSUM, OFFSETS, Invalid, invalidity, records_unknown
from kdump.log.region import Batch
from tests import craft
from tests.conftest import iter_regions, numbers_in


def test_why_a_batch_is_invalid() -> None:
    def why(data: bytes) -> Invalid | None:
        (region,) = iter_regions(data)
        assert isinstance(region, Batch)
        return invalidity(region)

    good = craft.one(b"value", 7)
    assert why(good) is None
    assert why(craft.flip(good, 8 * 70)) is CHECKSUM
    assert why(craft.patch(good, lastOffsetDelta=-2)) is OFFSETS
    assert why(craft.rebase(good, -1)) is OFFSETS
    assert why(craft.rebase(craft.message(1, b"value"), -1)) is OFFSETS
    negative = craft.patch(good, recordCount=-5)
    assert why(negative) is None
    (region,) = iter_regions(negative)
    assert isinstance(region, Batch)
    unknown = records_unknown(region)
    assert unknown is not None
    assert (unknown.code, numbers_in(unknown.reason)) == ("record-count-mismatch", [-5])
