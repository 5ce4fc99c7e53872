"""Tests of the search for a key in all partitions of a topic."""

from __future__ import annotations

import errno
import os
import random
import shutil
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from kdump.browse import key_search
from kdump.browse.key_search import KeySearch, plan, run_search, typed_key
from kdump.browse.listings import Cancelled
from kdump.browse.scopes import Here, ScopePart, scope_of
from kdump.browse.time_histogram import TimeBins, read_times
from kdump.format.murmur2 import partition_of
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import BLOCK, FaultTolerantSource
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.paths import target
from tests.browse.driving import Driver, drive
from tests.browse.test_bundle import bundle as bundle
from tests.browse.test_model import PAYMENTS, ZERO, listed
from tests.conftest import DISKS, FIXTURES
from tests.craft import batch, flip, record, split, write_file

CLEAN = FIXTURES / "clean-1"


def found_in(directory: Path, path: Path, text: str, scope: str = "topic") -> KeySearch:
    search = KeySearch(text, typed_key(text))
    parts = plan(search, scope_of(Here(str(path), None, str(directory)), scope))
    run_search(search, parts, PLAIN_RUN)
    search.running = False
    return search


def test_the_records_are_those_that_inspect_finds() -> None:
    keys = sorted(
        {value["key"] for value in listed(PAYMENTS / ZERO, "--records") if value["key"] and "control" not in value}
    )
    for key in keys[:20]:
        search = found_in(PAYMENTS, CLEAN, key)
        expected = listed(PAYMENTS / ZERO, "--records", "--key", key)
        assert [(hit.offset, hit.position) for hit in search.hits] == [
            (value["offset"], value["batchPosition"] if "batchPosition" in value else value["position"])
            for value in expected
        ]
        assert not search.unsearched


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    """A log directory with the partitions 0 to 5 of a topic, and one of another; keys are where the default
    partitioner puts them, and some are not."""
    disk = tmp_path / "disk"
    dice = random.Random(7)
    for number in range(6):
        path = disk / f"many-{number}" / ZERO
        path.parent.mkdir(parents=True)
        keys = [key for key in (b"key-%d" % n for n in range(60)) if partition_of(key, 6) == number]
        data = b""
        for offset in range(20):
            data += batch([record(0, dice.choice(keys), b"v"), record(1, b"every", None)], "gzip", offset=2 * offset)
        path.write_bytes(data)
    write_file(disk / "other-0" / ZERO, batch(record(0, b"every", b"x")))
    return disk


def test_a_payload_that_cannot_be_read(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, and the other segments are searched."""
    decode, failed = key_search.decode_columns, []

    def once(*arguments: Any, **options: Any) -> Any:
        if not failed:
            failed.append(arguments)
            raise SourceError("cannot read the payload")
        return decode(*arguments, **options)

    monkeypatch.setattr(key_search, "decode_columns", once)
    search = found_in(topic / "many-0", topic, "every")
    assert search.finished
    assert search.unsearched == ["cannot read the payload"]
    assert len({hit.path for hit in search.hits}) == 5


def test_the_unreadable_ranges_of_a_file_are_one_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one place that was not searched, with the number of bytes; so they are for the histogram."""
    path = tmp_path / "bad-0" / ZERO
    path.parent.mkdir()
    path.write_bytes(b"".join(batch(record(0, b"key", bytes(5000)), offset=n) for n in range(40)))
    pread = FaultTolerantSource._pread

    def broken(self: FaultTolerantSource, count: int, position: int) -> bytes:
        if any(position < (block + 1) * BLOCK and block * BLOCK < position + count for block in (9, 20, 30)):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(self, count, position)

    monkeypatch.setattr(FaultTolerantSource, "_pread", broken)
    reason = f"{path}: cannot read {3 * BLOCK} bytes, the first at byte {9 * BLOCK}: {os.strerror(errno.EIO)}"
    search = found_in(path.parent, tmp_path, "key")
    assert 30 < len(search.hits) < 40
    assert [each for each in search.unsearched if "checksum" not in each] == [reason]
    bins = TimeBins(timezone.utc)
    read_times([ScopePart("bad-0", "bad", 0, [target(str(path))])], bins, PLAIN_RUN)
    assert bins.unread == [reason]


def test_the_likely_partition_is_searched_first(topic: Path) -> None:
    search = KeySearch("key-7", typed_key("key-7"))
    parts = plan(search, scope_of(Here(str(topic), None, str(topic / "many-0")), "topic"))
    likely = partition_of(b"key-7", 6)
    assert parts[0].number == likely
    assert sorted(part.name for part in parts) == [f"many-{n}" for n in range(6)]
    assert search.likely == f"partition {likely} searched first: the default partitioner's, if the topic has 6"
    shutil.rmtree(topic / "many-3")
    search = KeySearch("key-7", typed_key("key-7"))
    plan(search, scope_of(Here(str(topic), None, str(topic / "many-0")), "topic"))
    assert search.likely == ""
    assert search.missing == "not on this disk: partition 3 of the topic"


def test_all_partitions_of_the_topic_and_no_other(topic: Path) -> None:
    search = found_in(topic / "many-2", topic, "every")
    assert sorted({hit.name for hit in search.hits}) == [f"many-{n}" for n in range(6)]
    assert len(search.hits) == 120
    assert {hit.size for hit in search.hits} == {-1}
    assert "120 records with key 'every' in 6 partitions" in search.summary()
    assert "no record with key 'nope' in 6 partitions" in found_in(topic / "many-2", topic, "nope").summary()
    assert len(found_in(topic / "many-2", topic, "0x6576657279").hits) == 120


def test_damage_is_not_called_not_found(topic: Path) -> None:
    path = topic / "many-1" / ZERO
    batches = split(path.read_bytes())
    batches[3] = flip(batches[3], 8 * (len(batches[3]) - 12))
    path.write_bytes(b"".join(batches[:5]) + b"garbage of no batch" + b"".join(batches[5:]))
    search = found_in(topic / "many-0", topic, "nope")
    assert "in what could be read of 6 partitions" in search.summary()
    assert search.summary().startswith("NOT SEARCHED: 2 places; no record with key 'nope'")
    assert "; many-1/" in search.summary()
    path.unlink()
    path.symlink_to("/nowhere")
    search = found_in(topic / "many-0", topic, "nope")
    assert "in what could be read" in search.summary()


def test_a_search_that_was_stopped_never_says_not_found(topic: Path) -> None:
    search = KeySearch("nope", typed_key("nope"))
    parts = plan(search, scope_of(Here(str(topic), None, str(topic / "many-0")), "topic"))
    count = 0

    def more(size: int) -> None:
        nonlocal count
        count += 1
        if count == 5:
            raise Cancelled

    with pytest.raises(Cancelled):
        run_search(search, parts, Run(more=more))
    assert "no record" not in search.summary()
    search.running = False
    assert search.summary().startswith("stopped; 0 records with key 'nope' in 2 of 6 partitions")


def test_a_search_that_ended_before_the_partitions_were_listed() -> None:
    search = KeySearch("nope", typed_key("nope"))
    search.running = False
    assert search.summary() == "stopped; 0 records with key 'nope' in 0 of 0 partitions, 0 bytes with 0 records read"


def test_a_flipped_bit_that_makes_a_control_batch(topic: Path) -> None:
    path = topic / "many-1" / ZERO
    batches = split(path.read_bytes())
    count = len(found_in(topic / "many-1", topic, "every").hits)
    batches[3] = flip(batches[3], 22 * 8 + 2)
    path.write_bytes(b"".join(batches))
    search = found_in(topic / "many-1", topic, "every")
    assert len(search.hits) == count
    assert [hit.doubtful for hit in search.hits].count(True) == 1
    assert "its checksum does not match" in search.unsearched[0]


def test_segments_that_are_not_searched_are_counted(topic: Path) -> None:
    for number, ending in enumerate((".deleted", ".cleaned", ".swap")):
        (topic / "many-2" / f"{number + 100:020}.log{ending}").write_bytes(batch(record(0, b"nope", b"v")))
    text = found_in(topic / "many-0", topic, "nope").summary()
    assert "3 .deleted, .swap or .cleaned segments not searched" in text


TIERED = DISKS / "kafka-4.3-tiered"


def test_offsets_in_remote_storage() -> None:
    """They are not on the disk; with the remote storage, all of them are read."""
    disk = TIERED / "disk"
    text = found_in(disk / "tiered-0", disk, "nope").summary()
    assert text.startswith("NOT SEARCHED: 1 place; no record with key 'nope' in what could be read of 1 partition")
    assert "tiered-0: offsets 110377..215208 are not here: in remote storage, unless they are lost" in text
    assert "4 .deleted" in text
    text = found_in(disk / "tiered-0", TIERED, "nope").summary()
    assert text.startswith("no record with key 'nope' in 2 partitions")


def test_a_missing_remote_segment(tmp_path: Path) -> None:
    shutil.copytree(TIERED, tmp_path / "all")
    remote = next((tmp_path / "all" / "tier").rglob("00000000000000162793-*.log"))
    remote.unlink()
    text = found_in(tmp_path / "all" / "disk" / "tiered-0", tmp_path / "all", "nope").summary()
    assert "tiered-0: offsets 162793..215208 are not here" in text


@pytest.mark.parametrize("known", ["its", "another", "none"])
def test_remote_segments_with_only_a_topic_id(known: str, tmp_path: Path) -> None:
    """They are of the topic if that is the topic ID of a partition on the disk."""
    shutil.copytree(TIERED, tmp_path / "all")
    there = next((tmp_path / "all" / "tier").rglob("tiered-0-*"))
    name = there.name.removeprefix("tiered-0-")
    (there.parent / name).mkdir()
    there.rename(there.parent / name / "0")
    partition = tmp_path / "all" / "disk" / "tiered-0"
    if known == "none":
        (partition / "partition.metadata").unlink()
    elif known == "another":
        path = partition / "partition.metadata"
        path.chmod(0o644)
        path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    text = found_in(partition, tmp_path / "all", "nope").summary()
    if known == "its":
        assert text.startswith("no record with key 'nope' in 2 partitions")
    else:
        assert text.startswith("NOT SEARCHED: ")
        assert ("may be of the topic" in text) == (known == "none")


def test_replicas_are_told_apart(topic: Path) -> None:
    shutil.copytree(topic, topic.parent / "second")
    search = found_in(topic / "many-2", topic.parent, "every")
    assert len(search.hits) == 240
    assert {hit.name for hit in search.hits} == {
        str(topic.parent / disk / f"many-{n}") for disk in ("disk", "second") for n in range(6)
    }


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_key_of_a_large_record(codec: str, tmp_path: Path) -> None:
    """Its value is not kept in memory."""
    parts = [record(0, b"small", b"v"), record(1, b"large", bytes(5 << 20)), record(2, b"large", b"v")]
    path = write_file(tmp_path / "t-0" / ZERO, batch(parts, codec) + batch(parts[:1], offset=3))
    search = found_in(path.parent, tmp_path, "large")
    assert [(hit.offset, hit.size, hit.record_index) for hit in search.hits] == [(1, 5 << 20, 1), (2, 1, 2)]
    assert [hit.offset for hit in found_in(path.parent, tmp_path, "small").hits] == [0, 3]


def test_hits_are_bounded(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_search, "MAX_HITS", 50)
    search = found_in(topic / "many-2", topic, "every")
    assert (len(search.hits), search.left_out) == (50, 70)
    assert "70 more are not listed" in search.summary()


def test_a_bundle_says_what_it_cannot_search(bundle: Path) -> None:
    search = found_in(bundle / "payments-0", bundle, "a1")
    assert "in what could be read of 1 partition" in search.summary()
    assert any("are not in the bundle" in reason for reason in search.unsearched)


def test_searching_with_keys(topic: Path) -> None:
    async def script(at: Driver) -> None:
        await at.keys("down", "K")
        shown = await at.typed("every")
        assert "key 'every' in topic many" in shown.splitlines()[0]
        shown = await at.keys("up")
        assert "120 records with key 'every' in 6 partitions" in " ".join(at.shown.split())
        await at.keys("down", "down", "enter")
        row = at.app.browser.level.row
        assert row is not None
        assert row.type == "record"
        assert row.item.key == b"every"
        assert "key 'every': many-" in at.status
        await at.keys("K", "enter", "down", "enter")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.item.key == b"every", "the last search again"
        await at.keys("K")
        await at.typed("\x1b[31mnope")
        assert "nothing" in await at.keys("u")
        await at.keys("escape", "escape")
        assert "no record with key" in at.status
        assert not any(ord(letter) < 32 for line in at.lines for letter in line)
        await at.keys(*["escape"] * 4, "home", ":")
        await at.typed("find")
        await at.keys("escape")
        assert at.app.is_running

    drive(topic, script)


def test_without_a_topic() -> None:
    async def script(at: Driver) -> None:
        await at.keys("K", "enter")
        assert "type a key" in at.status
        await at.keys("end", ":")
        await at.typed("find x")
        await at.keys("escape")
        assert at.app.is_running

    drive(CLEAN, script)
