"""Compares kdump.reindex with the output of Kafka's own LogSegment.recover for the same bytes, and checks the verdicts
on indexes that differ.

tools/reindex_trials.py wrote recovered.tsv with Kafka 4.3.1's classes: seed of the damage, segment, number of truncated
bytes or the exception, and sizes and hash of the three files."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.index_builder import IndexBuilder
from kdump.log.output_directory import OutputError
from kdump.log.region import Batch
from kdump.questions.reindex.segment import EMPTIES, SPLITS, THROWS, TRUNCATES
from kdump.questions.reindex.verdict import IDENTICAL, LEGAL, MISSING, NOT_NEEDED, REASONS, UNREAD, WRONG
from tests import craft, disks
from tests.command import objects
from tests.conftest import DISKS, FIXTURES, few, numbers_in, read_regions, sample
from tools.reindex_trials import DAMAGED, GOLDEN, copy, digest

FIRST = f"{0:020}"
PAYMENTS = FIXTURES / "indexed-1" / "payments-0"
KINDS = ("index", "timeindex", "txnindex")


@pytest.fixture
def payments(tmp_path: Path) -> Path:
    """Return a partition with its three indexes, all of which are identical to the rebuilt ones."""
    return Path(shutil.copytree(PAYMENTS, tmp_path / "disk" / "payments-0"))


def only(path: Path, **options: Any) -> kdump.Reindexed:
    (made,) = kdump.reindex(str(path), **options)
    return made


def statuses(made: kdump.Reindexed) -> list[str]:
    return [verdict.status for verdict in made.verdicts]


def verdict(path: Path, kind: str, **options: Any) -> Any:
    return only(path, **options).verdicts[KINDS.index(kind)]


def change(partition: Path, kind: str, data: bytes) -> None:
    (partition / f"{FIRST}.{kind}").write_bytes(data)


def entries(partition: Path, kind: str) -> bytes:
    return (partition / f"{FIRST}.{kind}").read_bytes()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [None, *sample(range(DAMAGED), 12, "golden")])
def test_bytes_are_those_of_kafkas_recovery(seed: int | None, tmp_path: Path) -> None:
    """Compare the three files, the truncated bytes and the exceptions, for valid and damaged segments."""
    rows = [line.split("\t") for line in GOLDEN.read_text().splitlines()]
    golden = {row[1]: (row[2], row[3]) for row in rows if row[0] == str(seed)}
    copy(FIXTURES, tmp_path, seed)
    found = {}
    for made in kdump.reindex(str(tmp_path)):
        indexes, rebuilt = made.rebuilt.indexes, made.rebuilt
        name = Path(made.file).relative_to(tmp_path).as_posix()
        said = str(rebuilt.size - rebuilt.valid) if indexes else ""
        found[name] = (said, digest(indexes.index, indexes.timeindex, indexes.txnindex) if indexes else "")
    assert len(golden) > 60
    assert found == {name: (said if said.isdigit() else "", hash) for name, (said, hash) in golden.items()}


@pytest.mark.parametrize(
    "disk", few(["clean-0", "clean-1", "clean-2", "crash-1", "diverged-1", "diverged-2", "live-1"], 2)
)
def test_brokers_own_files(disk: str) -> None:
    """No index of a healthy disk is wrong: each is identical, or differs by a named rule."""
    for made in kdump.reindex(str(DISKS / "kafka-4.3" / disk)):
        for each in made.verdicts:
            assert each.status in (IDENTICAL, LEGAL, NOT_NEEDED), (each.path, each.wrong)
            assert bool(each.reasons) == (each.status == LEGAL), each.path
        assert made.verdicts[2].status in (IDENTICAL, NOT_NEEDED)
        assert not made.is_cut


def test_older_releases_and_tiers() -> None:
    """Kafka 2.8 writes one entry for batches that were appended together."""
    reasons = set()
    for disk in ("kafka-2.8-legacy", "kafka-4.3-tiered"):
        for made in kdump.reindex(str(DISKS / disk)):
            assert made.is_valid, made.file
            reasons |= {reason for each in made.verdicts for reason in each.reasons}
    assert reasons == {"perAppend", "withIndex"}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_every_wrong_byte_is_found(payments: Path, kind: str) -> None:
    data = entries(payments, kind)
    size = len(data) // verdict(payments, kind).rebuiltEntries
    for at in sample(range(len(data)), 7, kind):  # the odd step reaches every byte of an entry
        change(payments, kind, craft.flip(data, 8 * at + 4))
        if kind == "txnindex" and at == len(data) - size + 1:
            # The low byte of the last entry's version, which a newer release may have written.
            with pytest.raises(SourceError, match=r"AbortedTxn version \d+, above 0"):
                verdict(payments, kind)
            continue
        found = verdict(payments, kind)
        assert found.status == WRONG, at
        assert any(each.number == at // size for each in found.wrong), at
        assert all(each.expected is not None for each in found.wrong), at


def test_a_wrong_entry_and_what_it_should_be(payments: Path) -> None:
    change(payments, "index", craft.overwrite(entries(payments, "index"), 4, (4225).to_bytes(4, "big")))
    (wrong,) = verdict(payments, "index").wrong
    assert (wrong.number, wrong.position) == (0, 0)
    assert (wrong.found, wrong.expected) == ({"offset": 39, "position": 4225}, {"offset": 39, "position": 4224})


def test_indexes_that_a_broker_is_writing(payments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**18)
    whole = entries(payments, "txnindex")
    change(payments, "txnindex", whole[:-34])
    monkeypatch.setattr("time.sleep", lambda _: change(payments, "txnindex", whole))
    assert only(payments).is_valid
    missing = [whole[:-34], whole[:-68], whole[:-34]]
    change(payments, "txnindex", missing[0])
    monkeypatch.setattr("time.sleep", lambda _: change(payments, "txnindex", missing.pop()))
    made = only(payments)
    assert (statuses(made), len(made.notes)) == (["identical", "identical"], 1)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_indexes_that_end_early(payments: Path, kind: str) -> None:
    """A size that is not a multiple of the entry size is wrong. One that lacks entries only makes reads slow."""
    data = entries(payments, kind)
    layout = {"index": INDEX_ENTRY, "timeindex": TIME_INDEX_ENTRY, "txnindex": TXN_INDEX_ENTRY}[kind]
    for size in sorted({*sample(range(len(data)), 7, kind), *range(0, len(data), layout.size)}):
        change(payments, kind, data[:size])
        found = verdict(payments, kind)
        if size % layout.size or kind == "txnindex":
            assert found.status == WRONG
        elif kind == "index":
            assert (found.status, list(found.reasons)) == (LEGAL, ["intervalAnew"])
        else:  # the last entry is missing until the segment is closed; the others depend on the .index
            assert (found.status, list(found.reasons)[-1]) == (LEGAL, "notClosed")
            assert ("fewerEntries" in found.reasons) == (size < 24)
    (payments / f"{FIRST}.{kind}").unlink()
    assert verdict(payments, kind).status == MISSING


def test_a_txnindex_of_a_newer_release_is_not_judged(payments: Path) -> None:
    """As by verify; one whose last entry has a known version is."""
    data = bytearray(entries(payments, "txnindex"))
    data[-33] = 1  # the second byte of the last entry's version
    change(payments, "txnindex", bytes(data))
    errors: list[Exception] = []
    made = verdict(payments, "txnindex", options=Run(unreadable=errors.append))
    assert (made.status, made.severity, made.wrongCount) == (UNREAD, None, 0)
    assert "AbortedTxn version 1, above 0" in str(errors[0])
    data[-33], data[1] = 0, 1
    change(payments, "txnindex", bytes(data))
    assert (made := verdict(payments, "txnindex")).status == WRONG
    assert made.severity == "error"


def test_zeros_behind_the_last_entry(payments: Path) -> None:
    """Preallocation leaves such zeros, but a broker truncates them in a clean shutdown."""
    for kind, size in (("index", 80), ("timeindex", 120)):
        change(payments, kind, entries(payments, kind) + bytes(size))
        assert (verdict(payments, kind).status, verdict(payments, kind).reasons) == (LEGAL, {"preallocated": 1})
    change(payments, "txnindex", entries(payments, "txnindex") + bytes(34))
    assert verdict(payments, "txnindex").status == WRONG
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        (payments.parent / name).write_text("version=1\n")
    assert statuses(only(payments)) == [WRONG] * 3


def test_closed_segments_end_with_the_largest_timestamp(payments: Path) -> None:
    """A later segment shows that this one was closed."""
    change(payments, "timeindex", entries(payments, "timeindex")[:24])
    assert verdict(payments, "timeindex").reasons == {"notClosed": 1}
    (payments / f"{120:020}.log").write_bytes(b"")
    made = next(kdump.reindex(str(payments)))
    (wrong,) = made.verdicts[1].wrong
    assert (wrong.number, wrong.expected["offset"]) == (None, 119)


def test_an_entry_of_several_batches_that_were_appended_together(payments: Path) -> None:
    """Its position is that of the first batch, its offset is that of the last one; an offset that is not the last of
    any batch is wrong."""
    batches = [each for each in read_regions((payments / f"{FIRST}.log").read_bytes()) if isinstance(each, Batch)]
    at = next(number for number, each in enumerate(batches) if each.position > 4096)
    second = entries(payments, "index")[8:]
    for ahead, status in ((1, LEGAL), (3, LEGAL)):
        change(
            payments, "index", INDEX_ENTRY.struct.pack(batches[at + ahead].lastOffset, batches[at].position) + second
        )
        found = verdict(payments, "index")
        assert (found.status, found.reasons) == (status, {"perAppend": 1})
    wide = next(number for number in range(at + 1, len(batches)) if batches[number].lastOffsetDelta)
    change(payments, "index", INDEX_ENTRY.struct.pack(batches[wide].lastOffset - 1, batches[at].position) + second)
    assert verdict(payments, "index").status == WRONG


def test_an_interval_of_its_own(payments: Path) -> None:
    made = only(payments, interval=1000)
    assert made.rebuilt.indexes is not None
    assert len(made.rebuilt.indexes.index) // 8 > 8
    assert list(made.verdicts[0].reasons) == ["intervalAnew"]
    change(payments, "index", made.rebuilt.indexes.index)
    change(payments, "timeindex", made.rebuilt.indexes.timeindex)
    assert statuses(only(payments, interval=1000)) == [IDENTICAL] * 3
    assert list(verdict(payments, "index").reasons) == ["otherInterval"]


def rolled(partition: Path, at: int) -> Path:
    """Split the partition's segment in two; the second one, whose path is returned, starts with batch number `at`."""
    log = partition / f"{FIRST}.log"
    parts = craft.split(log.read_bytes())
    second = partition / (f"{int.from_bytes(parts[at][:8], 'big'):020}" + ".log")
    log.write_bytes(b"".join(parts[:at]))
    second.write_bytes(b"".join(parts[at:]))
    return second


@pytest.mark.sampled
def test_transactions_of_the_segments_before(payments: Path) -> None:
    """Wherever the log is rolled, the .txnindex files of both segments together equal that of the single segment."""
    whole = entries(payments, "txnindex")
    data = (payments / f"{FIRST}.log").read_bytes()
    (payments / f"{120:020}.snapshot").unlink()
    for at in sample(range(1, len(craft.split(data))), 8, "rolled"):
        second = rolled(payments, at)
        parts = [made.rebuilt.indexes for made in kdump.reindex(str(payments))]
        assert b"".join(part.txnindex for part in parts if part) == whole, at
        alone = only(second).rebuilt.indexes
        assert alone == parts[1], at
        second.unlink()
        (payments / f"{FIRST}.log").write_bytes(data)


def test_an_entry_of_a_transaction_without_data(tmp_path: Path) -> None:
    """Brokers before 2.8 wrote one, which starts at the marker; none writes one that starts before it."""
    empty, data = disks.marker(3, 9, commit=False), disks.data(0, 7, count=3, transactional=False)
    for first, status, codes in ((3, LEGAL, []), (2, WRONG, ["txn-index-mismatch"])):
        made = disks.partition(tmp_path / status, data + empty + disks.data(4, 7, transactional=False))
        change(made, "txnindex", disks.txn_index((9, first, 3, 4)))
        assert verdict(made, "txnindex").status == status
        found = [each["code"] for each in objects("verify", made) if each["type"] == "finding"]
        assert [code for code in found if code.startswith("txn-")] == codes


def test_a_segment_whose_beginning_is_not_known(payments: Path) -> None:
    """Without the earlier segments, an entry whose data is missing is not called wrong, and a note says so."""
    data, whole = (payments / f"{FIRST}.log").read_bytes(), entries(payments, "txnindex")
    (payments / f"{120:020}.snapshot").unlink()
    offsets = [int.from_bytes(part[:8], "big") for part in craft.split(data)]
    second = rolled(payments, offsets.index(41))  # an ABORT marker, whose transaction began at 29
    second.with_suffix(".txnindex").write_bytes(whole[34:])
    for path in payments.glob(f"{FIRST}.*"):
        path.unlink()
    made = only(second)
    assert made.verdicts[2].status == LEGAL
    assert made.verdicts[2].reasons == {"startUnknown": 1}
    assert numbers_in(made.notes[0]) == [41]


def stop(path: Path, data: bytes, **options: Any) -> Any:
    (path / f"{FIRST}.log").write_bytes(data)
    made = only(path, **options)
    return made, made.rebuilt.ending


def test_damage_ends_what_is_rebuilt(payments: Path) -> None:
    """Rebuilding ends where recovery would end the log; what follows is indexed on request."""
    data = (payments / f"{FIRST}.log").read_bytes()
    parts = craft.split(data)
    at = sum(map(len, parts[:50]))
    made, ending = stop(payments, craft.flip(data, 8 * (at + 70)))
    assert (ending.position, ending.does, made.is_cut, made.rebuilt.valid) == (at, TRUNCATES, True, at)
    assert made.rebuilt.batches == 50
    assert statuses(made) == [IDENTICAL, LEGAL, LEGAL]
    made, _ = stop(payments, craft.flip(data, 8 * (at + 70)), past_damage=True)
    assert made.rebuilt.batches == len(parts) - 1
    assert statuses(made) == [IDENTICAL] * 3
    made, ending = stop(payments, data[:at] + b"\xff" * 40 + data[at:], past_damage=True)
    assert (ending.position, ending.sound, made.rebuilt.batches) == (at, at + 40, len(parts))
    made, ending = stop(payments, data + bytes(500))
    assert ending.is_usual
    assert not made.is_cut


def test_what_stops_a_broker(payments: Path) -> None:
    """Nothing is rebuilt where recovery throws an exception."""
    inside = craft.one(b"x", 0, producerId=7, producerEpoch=0, baseSequence=0, attributes=0x10)
    outside = craft.one(b"x", 1, producerId=7, producerEpoch=0, baseSequence=1)
    made, ending = stop(payments, inside + outside)
    assert (ending.position, ending.does, made.rebuilt.indexes) == (len(inside), THROWS, None)
    large = craft.one(bytes(5000), 10)
    made, ending = stop(payments, large + craft.rebase(large, 20) + craft.rebase(large, 15) + craft.rebase(large, 16))
    assert (ending.does, made.rebuilt.indexes) == (THROWS, None)
    made, ending = stop(payments, large + craft.rebase(large, 1 << 31))
    assert (ending.does, made.rebuilt.indexes) == (SPLITS, None)


def test_what_recovery_empties(tmp_path: Path) -> None:
    """Offsets decrease where an entry is due, or where the last entry is added at the end of the segment."""
    path = tmp_path / "__cluster_metadata-0" / f"{FIRST}.log"
    path.parent.mkdir()
    later = {"baseTimestamp": 1_800_000_000_000, "maxTimestamp": 1_800_000_000_000}
    latest = {"baseTimestamp": 1_900_000_000_000, "maxTimestamp": 1_900_000_000_000}
    rising = craft.one(bytes(5000), 10) + craft.one(bytes(5000), 20, **later)
    due = craft.one(bytes(5000), 15)
    last = rising + craft.one(b"x", 21) + craft.one(b"x", 15, **latest)
    for data, at in ((rising + due + craft.one(b"x", 16), len(rising)), (last, len(last))):
        path.write_bytes(data)
        (made,) = kdump.reindex(str(path.parent))
        assert [(each.position, each.does) for each in made.endings] == [(at, EMPTIES)]
        assert (made.validSize, made.is_rebuilt) == (0, False)


def test_the_builder_alone() -> None:
    """Use the builder as salvage does: with batches at their new positions."""
    batches = [craft.one(bytes(2000), offset, baseTimestamp=offset, maxTimestamp=offset) for offset in range(10)]
    builder = IndexBuilder(0)
    position = 0
    for each in read_regions(b"".join(batches)):
        assert isinstance(each, Batch)
        builder.add(each, position)
        position += each.size
    size = len(batches[0])
    indexes = builder.finish()
    assert list(INDEX_ENTRY.struct.iter_unpack(indexes.index)) == [
        (2, 2 * size),
        (4, 4 * size),
        (6, 6 * size),
        (8, 8 * size),
    ]
    assert list(TIME_INDEX_ENTRY.struct.iter_unpack(indexes.timeindex)) == [(2, 2), (4, 4), (6, 6), (8, 8), (9, 9)]
    assert indexes.txnindex == b""


def test_files_are_written_to_a_new_directory_only(payments: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in payments.iterdir()}
    out = tmp_path / "out"
    made = only(payments, out=str(out))
    for each in made.verdicts:
        assert each.written is not None
        assert Path(each.written).read_bytes() == entries(payments, each.kind.name)
    assert sorted(os.listdir(out / "payments-0")) == [f"{FIRST}.{kind}" for kind in KINDS]
    for wrong in (out, payments, payments / "new", payments.parent):
        with pytest.raises(OutputError):
            only(payments, out=str(wrong))
    assert {path: path.read_bytes() for path in payments.iterdir()} == before


def test_partitions_of_several_log_directories(tmp_path: Path) -> None:
    for disk in ("one", "two"):
        shutil.copytree(PAYMENTS, tmp_path / disk / "payments-0")
        (tmp_path / disk / "meta.properties").write_text("version=1\n")
    list(kdump.reindex([str(tmp_path / "one"), str(tmp_path / "two")], str(tmp_path / "out")))
    assert (tmp_path / "out" / "two" / "payments-0" / f"{FIRST}.index").is_file()
    (tmp_path / "one" / "meta.properties").unlink()
    shutil.copytree(PAYMENTS, tmp_path / "copies" / "payments-0")
    with pytest.raises(OutputError, match="same path"):
        list(kdump.reindex([str(tmp_path / "copies" / "payments-0")] * 2, str(tmp_path / "more")))


def test_every_reason_is_in_the_page() -> None:
    page = (FIXTURES.parent / "docs" / "reindex.md").read_text()
    assert [reason for reason in REASONS if f"| `{reason}` |" not in page] == []


def test_segments_that_are_no_live_ones(payments: Path) -> None:
    """Segments that are being deleted have their indexes next to them; compressed segments are read as well."""
    for path in payments.glob(f"{FIRST}.*"):
        path.rename(f"{path}.deleted")
    assert statuses(only(payments / f"{FIRST}.log.deleted")) == [IDENTICAL] * 3
    data = (payments / f"{FIRST}.log.deleted").read_bytes()
    (payments / f"{FIRST}.log.gz").write_bytes(gzip.compress(data))
    made = only(payments / f"{FIRST}.log.gz")
    assert (made.rebuilt.size, made.rebuilt.valid, made.rebuilt.batches) == (len(data), len(data), 76)
    assert made.rebuilt.indexes is not None
    assert made.rebuilt.indexes.txnindex == (PAYMENTS / f"{FIRST}.txnindex").read_bytes()


def test_indexes_of_a_deleted_segment_are_no_live_ones(tmp_path: Path) -> None:
    """Given two segments with one base offset, neither gets the indexes of the other."""
    source = tmp_path / "t-0"
    source.mkdir()
    data = craft.one(b"v")
    for ending in ("", ".deleted"):
        (source / f"{0:020}.log{ending}").write_bytes(data)
    list(kdump.reindex([str(path) for path in sorted(source.iterdir())], str(tmp_path / "out")))
    names = sorted(path.name for path in (tmp_path / "out/t-0").iterdir())
    assert names == sorted(f"{0:020}.{kind}{ending}" for kind in ("index", "timeindex") for ending in ("", ".deleted"))
