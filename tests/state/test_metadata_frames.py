"""Records of the metadata log that no node reads, and offsets that a node counts by position (RecordsIterator,
MetadataBatchLoader)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.metadata_log import read_metadata
from kdump.state.metadata_image import MetadataImage
from tests.craft import batch, record, write_file
from tests.state.test_metadata import log, partition, topic

NO_OP = b"\x01\x14\x00\x00"


def read(tmp_path: Path, data: bytes) -> MetadataImage:
    write_file(tmp_path / "__cluster_metadata-0" / f"{0:020}.log", data)
    metadata = read_metadata(str(tmp_path))
    assert metadata is not None
    return metadata


@pytest.mark.parametrize(
    ("fields", "exception"),
    [
        ({"key": b""}, "Got key in the record when no key was expected"),
        ({"key": b"k"}, "Got key in the record when no key was expected"),
        ({"value": None}, "Missing value in the record when a value was expected"),
        ({"timestamp": 5}, "Got timestamp delta of 5, but this is invalid because it is not 0 as expected."),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
def test_a_record_that_no_node_reads(tmp_path: Path, fields: dict[str, Any], exception: str, others: int) -> None:
    """Also after others that are applied without objects for them."""
    odd = record(others, **{"value": NO_OP, **fields})
    data = batch([*(record(number, value=NO_OP) for number in range(others)), odd], partitionLeaderEpoch=1)
    (refusal,) = read(tmp_path, data).refusals
    assert (refusal.offset, refusal.reader) == (others, f"IllegalArgumentException: {exception}")


def test_an_offset_that_is_missing_in_a_batch(tmp_path: Path) -> None:
    """A node counts: the partition of the topic whose record is missing comes at its offset."""
    values = {0: NO_OP, 2: partition("a", 0, [1]), 3: NO_OP}
    data = batch(
        [record(delta, value=value) for delta, value in values.items()], partitionLeaderEpoch=1, lastOffsetDelta=3
    )
    metadata = read(tmp_path, data + log([topic("later", "b")], offset=4))
    assert [each.offset for each in metadata.refusals] == [1]
    assert (list(metadata.topics), metadata.end_offset) == (["later"], 5)
