"""The timestamp of a segment according to its .timeindex, compared with Kafka's own LogSegment (TimeIndexes.java)."""

from __future__ import annotations

from pathlib import Path

from kdump.format.index import TIME_INDEX_ENTRY
from kdump.log.indexed_timestamp import complete_timestamp, indexed_timestamp
from kdump.log.paths import target

ORACLE = Path(__file__).parent.parent / "kafka" / "time_indexes.tsv"
BASE = 100


def test_damaged_time_indexes_are_read_as_a_broker_reads_them(tmp_path: Path) -> None:
    log = tmp_path / f"{BASE:020}.log"
    log.touch()
    index = log.with_suffix(".timeindex")
    for line in ORACLE.read_text().splitlines():
        text, expected = line.split("\t")
        index.unlink(missing_ok=True)
        if text != "-":
            index.write_bytes(bytes.fromhex(text))
        found = indexed_timestamp(target(str(log)))
        assert ("file" if found is None else str(found)) == expected, line


def test_only_an_index_of_a_rolled_segment_is_complete(tmp_path: Path) -> None:
    log = tmp_path / f"{BASE:020}.log"
    index = log.with_suffix(".timeindex")
    for entries, expected in (
        ([(5, 1), (9, 3)], 9),
        ([(9, 0)], 9),
        ([], None),
        ([(5, 1), (9, 3), (0, 0)], None),
        ([(0, 0)], None),
        ([(9, 1), (5, 3)], None),
        ([(-1, 0)], None),
    ):
        index.write_bytes(b"".join(TIME_INDEX_ENTRY.struct.pack(*entry) for entry in entries))
        assert complete_timestamp(target(str(log))) == expected, entries
    index.unlink()
    assert complete_timestamp(target(str(log))) is None
