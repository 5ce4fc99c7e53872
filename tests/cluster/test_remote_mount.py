"""--remote: the segments in remote storage are read as a part of the log."""

from __future__ import annotations

import json
import shutil
import struct
import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest

from kdump.format.kafka_uuid import uuid_text
from kdump.io import aiven, file_system
from kdump.io.aiven import SEGMENT_MAX
from kdump.log.remote_objects import RemoteListing, RemoteStorage, list_objects
from tests import command
from tests.cluster.test_remote_log import DELETING, FINISHED, STARTED, TIME, TOPIC, change, tiered, write_remote_log
from tests.conftest import DISKS, FIXTURES, sample, seeded
from tests.craft import batch, compress, record, write_file
from tests.damages import copy_disk
from tests.each_case import each_case
from tests.s3_server import s3_server
from tests.state.test_groups import LOG, commit
from tests.state.test_groups import segment as segment_of

AIVEN = Path(__file__).parent / "aiven"
"""What Aiven's plugin (8fb15816) has written of `aiven_batches`, as its options for compression and encryption are."""
KEY = ("--remote-key", str(AIVEN / "key.pem"))
TIERED = DISKS / "kafka-4.3-tiered"


def segment(number: int, first: int, last: int) -> bytes:
    """Return batches of five records, whose values are the number of the segment."""
    return b"".join(
        batch([record(n, value=b"%d" % number) for n in range(5)], offset=base, baseTimestamp=TIME, maxTimestamp=TIME)
        for base in range(first, last + 1, 5)
    )


def object_at(bucket: Path, number: int, first: int, suffix: str = "log") -> Path:
    return bucket / f"t-0-{TOPIC}" / f"{first:020}-{uuid_text(number.to_bytes(16, 'big'))}.{suffix}"


def read(root: Path, bucket: Path | str, *options: str, status: int = 0) -> list[tuple[int, str]]:
    """Return the offsets and values of the records of t-0."""
    rows = command.objects("inspect", root / "t-0", "--remote", str(bucket), "--records", *options, status=status)
    return [(row["offset"], row["value"]) for row in rows if row["type"] == "record"]


@each_case("seed", range(60))
def test_each_offset_is_read_from_where_a_broker_fetches_it(seed: int, tmp_path: Path) -> None:
    """Compared with a model of RemoteLogMetadataCache: of the segments in the epochs of the log that no other contains,
    the one that begins at or below the offset, and last."""
    random = seeded(f"served {seed}")
    changes, finished = [], {}
    bucket = tmp_path / "bucket"
    for number in range(1, random.randrange(2, 8)):
        first = random.randrange(0, 30, 5)
        last = random.randrange(first, 35, 5) + 4
        epoch = random.choice([0, 0, 0, 7])
        changes.append(change(number, STARTED, first, last, size=1, epochs=[(epoch, first)]))
        if random.random() < 0.9:
            changes.append(change(number, FINISHED))
            if epoch == 0:
                finished[number] = first, last
        write_file(object_at(bucket, number, first), segment(number, first, last))
    local = random.choice([10, 20, 30])
    root = tiered(tmp_path / "disk", *changes)
    write_file(root / "t-0" / "leader-epoch-checkpoint", b"0\n1\n0 0\n")
    for base in range(0, local, 10):
        (root / "t-0" / f"{base:020}.log").unlink()
    kept = {
        number: (first, last)
        for number, (first, last) in finished.items()
        if not any(
            (low, -high, -other) < (first, -last, -number) and low <= first and last <= high
            for other, (low, high) in finished.items()
        )
    }
    expected = []
    for offset in range(local):
        below = [(first, last, number) for number, (first, last) in kept.items() if first <= offset]
        if below and offset <= max(below)[1]:
            expected.append((offset, str(max(below)[2])))
    assert read(root, bucket) == expected + [(offset, "v") for offset in range(local, 40)]
    copied = {offset for first, last in finished.values() for offset in range(first, last + 1)}
    for row in command.objects("inspect", root / "t-0", "--remote", bucket):
        base = row["baseOffset"] // 10 * 10
        both = base < 30 and copied.issuperset(range(base, base + 10))
        assert row["tier"] == ("remote" if row["baseOffset"] < local else "both" if both else "local"), row


def one_remote(tmp_path: Path, size: int = 1) -> tuple[Path, Path]:
    """Return a disk whose offsets 0..19 are in remote storage only, and the bucket, which is empty."""
    (tmp_path / "bucket").mkdir()
    changes = change(1, STARTED, 0, 19, size=size, epochs=[(0, 0)]), change(1, FINISHED)
    root = tiered(tmp_path / "disk", *changes)
    for base in (0, 10):
        (root / "t-0" / f"{base:020}.log").unlink()
    return root, tmp_path / "bucket"


def test_an_object_that_is_not_there(tmp_path: Path) -> None:
    """What the metadata states, and the bucket lacks, is not read, and nothing is complete."""
    root, bucket = one_remote(tmp_path)
    assert read(root, bucket, status=2) == [(offset, "v") for offset in range(20, 40)]
    (made, _) = command.objects("salvage", root / "t-0", "--remote", bucket, "--out", tmp_path / "out", status=1)
    assert (made["whole"], made["logStartOffset"], made["lostHoles"]) == (False, 20, 1)
    coverage = command.objects("find", "offset == 3", root / "t-0", "--remote", bucket, status=2)[-1]
    assert coverage["isComplete"] is False
    assert "the object of this segment" in command.run("ls", root / "t-0", "--remote", bucket).stderr


def test_an_object_that_expires_while_the_bucket_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, bucket = one_remote(tmp_path)

    def listed(storage: RemoteStorage) -> RemoteListing:
        copied = change(1, STARTED, 0, 19, epochs=[(0, 0)]), change(1, FINISHED)
        write_remote_log(root, *copied, change(1, DELETING))
        return list_objects(storage)

    monkeypatch.setattr("kdump.cluster.remote_mount.list_objects", listed)
    assert read(root, bucket) == [(offset, "v") for offset in range(20, 40)]


def test_records_of_groups_in_remote_storage(tmp_path: Path) -> None:
    """They are counted, also across the end of the local log; not if the object is not there, which is then stated."""
    root, bucket = one_remote(tmp_path)
    write_file(root / "__consumer_offsets-0" / LOG, segment_of(commit("g", "t", 0, 3), commit("h", "t", 0, 25)))
    shown = partial(command.objects, "groups", root, "--offsets", "--remote", bucket)
    for is_there, behind in ((False, [None, 15]), (True, [37, 15])):
        write_file(object_at(bucket, 2, 20), segment(2, 20, 39))
        if is_there:
            write_file(object_at(bucket, 1, 0), segment(1, 0, 19))
        rows = [row for row in shown(status=0 if is_there else 2) if row["type"] == "groupOffset"]
        assert [(row["recordsBehind"], row["logStartOffset"]) for row in rows] == [(each, 0) for each in behind]


def test_what_space_and_retention_state_of_remote_storage(tmp_path: Path) -> None:
    """To delete local copies costs nothing, unless their objects are gone; retention.ms deletes the objects."""
    changes = [change(n, state, 10 * n, 10 * n + 9, size=50) for n in (0, 1) for state in (STARTED, FINISHED)]
    root, bucket = tiered(tmp_path / "disk", *changes), tmp_path / "bucket"
    write_file(object_at(bucket, 0, 0), segment(0, 0, 9))
    configs = [f"--config={name}" for name in ("local.retention.ms=-1", "retention.ms=-1")]
    for listed, missing in ((False, None), (True, 1), (True, 0)):
        if missing == 0:
            write_file(object_at(bucket, 1, 10), segment(1, 10, 19))
        remote = ["--remote", str(bucket)] if listed else []
        run = command.run("space", root, "--need=1K", "--topic=t", "--now", "2027-01-01", *configs, *remote, "--json")
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        (about,) = (row for row in rows if row["type"] == "spaceTopic")
        assert (about["remoteSegments"], about["remoteOffsets"], about["remoteBytes"]) == (2, 20, 100)
        assert about["remoteMissing"] == missing
        steps = [row for row in rows if row["type"] == "spaceStep" and row["step"] == "retention"]
        assert {(row["cost"], row["files"]) for row in steps} == {("records" if missing else "nothing", 2)}
        assert ("stay in remote storage" in steps[0]["text"]) != bool(missing)
        assert steps[0]["logStartOffsets"] == []
        (row,) = command.objects("retention", root, "--topic=t", "--now", "2027-01-01", *remote, status=1)[-1:]
        keys = ("remoteSegments", "remoteBytes", "remoteDueSegments", "remoteDueBytes", "remoteDueAt", "remoteMissing")
        assert [row[key] for key in keys] == [2, 100, 2, 100, None, missing]
        assert "deletes 2 by retention.ms at the next check" in row["notes"][0]


def test_without_the_metadata_nothing_is_read(tmp_path: Path) -> None:
    root, bucket = one_remote(tmp_path)
    shutil.rmtree(root / "__remote_log_metadata-0")
    assert "no __remote_log_metadata" in command.refused("inspect", root / "t-0", "--remote", bucket)


def aiven_batches() -> list[bytes]:
    return [
        batch(
            [
                record(n, key=b"key-%d" % (base + n), value=b"value-%d-" % (base + n) + b"abcdefgh" * 20)
                for n in range(5)
            ],
            offset=base,
            baseTimestamp=TIME + base,
            maxTimestamp=TIME + base,
        )
        for base in range(0, 20, 5)
    ]


KINDS = ("plain", "zstd", "encrypted", "both")


@each_case("kind", KINDS)
def test_what_aivens_plugin_has_written(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte of the segment and of its indexes."""
    data = b"".join(aiven_batches())
    root, _ = one_remote(tmp_path, len(data))
    bucket = AIVEN / kind
    (path,) = bucket.rglob("*.log")
    made = tmp_path / "new" / "out"
    copy = write_file(tmp_path / "copy" / f"{0:020}.log", data)
    same = {"file": "", "topic": "t", "partition": 0}
    shown = [[{**row, **same} for row in command.objects("inspect", each, *KEY)] for each in (path, copy)]
    assert shown[0] == shown[1]
    assert read(root, bucket, *KEY, "--offset", "..19") == [
        (offset, f"value-{offset}-" + "abcdefgh" * 20) for offset in range(20)
    ]
    (salvaged, _) = command.objects("salvage", root / "t-0", "--remote", bucket, *KEY, "--out", made)
    assert (salvaged["whole"], salvaged["logStartOffset"], salvaged["logEndOffset"]) == (True, 0, 40)
    assert (made / "t-0" / f"{0:020}.log").read_bytes() == data
    stem = root / "t-0" / path.stem
    from kdump.io.source import open_source

    monkeypatch.setattr(aiven, "_key_files", tuple(map(str, KEY[1:])))

    expected = {
        "index": struct.pack(">iiii", 9, len(data) // 4, 14, len(data) // 2),
        "timeindex": struct.pack(">qi", TIME + 5, 9),
        "txnindex": struct.pack(">hqqqq", 0, 7, 3, 4, 5),
        "snapshot": bytes.fromhex("0001") + bytes(8),
        "leader_epoch_checkpoint": b"0\n1\n0 0\n",
    }
    for suffix, content in expected.items():
        assert open_source(str(path.with_suffix(f".{suffix}"))).read_at(0, 1000) == content, (suffix, stem)


def test_a_segment_without_its_key(tmp_path: Path) -> None:
    (path,) = (AIVEN / "both").rglob("*.log")
    assert "encrypted for the key pair 'k1'" in command.refused("inspect", path)
    other = write_file(tmp_path / "other.pem", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n")
    assert "not an RSA private key" in command.refused("inspect", path, "--remote-key", other)


@each_case("seed", range(40))
def test_damaged_objects_of_aivens_plugin(seed: int, tmp_path: Path) -> None:
    """Whatever is changed, a record is as it was written, or is not shown, and then the exit status says so."""
    random = seeded(f"damaged aiven {seed}")
    bucket = shutil.copytree(AIVEN / random.choice(KINDS), tmp_path / "bucket")
    (log,) = bucket.rglob("*.log")
    path = random.choice([log, log.with_suffix(".rsm-manifest")])
    data = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 1, 3])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data[: random.choice([len(data), len(data), random.randrange(len(data))])])
    batches = aiven_batches()
    out = tmp_path / "new" / "out"
    done = command.run("salvage", log, "--name", "t-0", *KEY, "--out", out, "--json")
    written = b"".join(each.read_bytes() for each in sorted(out.glob("t-0/*.log")))
    intact = [each for each in batches if each in written]
    assert written == b"".join(intact)
    assert (intact == batches) == (done.exit_code == 0), done.output


FIXED = ("originalChunkSize", "transformedChunkSize", "finalTransformedChunkSize")


def chunk_sizes(data: bytes) -> dict[str, Any]:
    """Return what a manifest states of one chunk of nine bytes whose list of sizes is this."""
    sizes = b64encode(compress("zstd", data)).decode()
    whole = {"originalChunkSize": 9, "originalFileSize": 9, "transformedChunks": sizes}
    return {"chunkIndex": {"type": "variable", **whole}}


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "2"},
        {"chunkIndex": {"type": "fixed", "originalChunkSize": 0}},
        {"chunkIndex": {"type": "fixed", "originalChunkSize": 1 << 30, "originalFileSize": 1 << 30}},
        {"chunkIndex": {"type": "variable", "originalChunkSize": 9, "originalFileSize": 9, "transformedChunks": "!"}},
        {"chunkIndex": {**dict.fromkeys(FIXED, 1), "type": "fixed", "originalFileSize": SEGMENT_MAX}},
        chunk_sizes(struct.pack(">iiB", (1 << 23) - 1, 5, 0) + bytes(4)),
        chunk_sizes(struct.pack(">ii", 1, -5)),
        {"segmentIndexes": 3},
        {"encryption": {"dataKey": 3, "aad": ""}},
        [],
    ],
)
def test_a_manifest_that_the_plugin_does_not_write(changed: Any, tmp_path: Path) -> None:
    bucket = shutil.copytree(AIVEN / "zstd", tmp_path / "bucket")
    (path,) = bucket.rglob("*.rsm-manifest")
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, **changed} if isinstance(changed, dict) else changed))
    tracemalloc.start()
    assert "not a manifest that Aiven's plugin writes" in command.refused("inspect", path.with_suffix(".log"))
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


@pytest.fixture
def broker(tmp_path: Path) -> tuple[Path, Path]:
    """The disk and the bucket of a real broker."""
    shutil.copytree(TIERED, tmp_path / "broker")
    return tmp_path / "broker" / "disk", tmp_path / "broker" / "tier"


def test_one_log(broker: tuple[Path, Path], tmp_path: Path) -> None:
    """The commands agree on the log of a real broker."""
    disk, bucket = broker
    place, remote = disk / "tiered-0", ("--remote", bucket)
    (row,) = (each for each in command.objects("ls", disk, *remote) if each.get("topic") == "tiered")
    assert (row["segments"], row["records"], row["logStartOffset"]) == (3, 149_623, 110_377)
    assert command.objects("inspect", disk, *remote) == command.objects("ls", disk, *remote)
    (row,) = command.objects("stats", place, *remote)
    assert (row["records"], row["firstOffset"]) == (149_623, 110_377)
    (row,) = command.objects("inspect", place, *remote, "--records", "--offset", "110380")
    assert row["file"] == f"{place}/{110377:020}-WcYB7bTLTXuTVwAYPCIYgg.log"
    found = command.objects("find", "value == 'event-110381'", disk, *remote)
    assert [each["states"] for each in found[:-1]] == [["live"], ["deletedSegment"]]
    assert found[-1]["isComplete"]
    assert command.objects("find", "value == 'none'", disk, *remote, "--jobs", "2", status=1)[-1]["isComplete"]
    assert "which is read" in command.refused("salvage", place, *remote, "--out", bucket / "out")
    (made, _) = command.objects("salvage", place, *remote, "--out", tmp_path / "out")
    assert (made["whole"], made["logStartOffset"], made["logEndOffset"]) == (True, 110_377, 260_000)


def test_replicas_that_begin_elsewhere(broker: tuple[Path, Path], tmp_path: Path) -> None:
    """What one has on its disk, and the other in remote storage only, is compared."""
    disk, bucket = broker
    other = copy_disk(disk, tmp_path / "other")
    for path in bucket.rglob(f"{162793:020}-*.log"):
        shutil.copy(path, other / "tiered-0" / f"{162793:020}.log")
    data = bytearray((other / "tiered-0" / f"{162793:020}.log").read_bytes())
    (made, _) = command.objects("diff", disk, other, "--remote", bucket, "--topic", "tiered")
    assert made["relation"] == "same"
    note = "offsets 110377..215208 are in remote storage, and not read: --remote URL reads them"
    for name, *options in (("diff", disk, copy_disk(disk, tmp_path / "third")), ("stats", disk / "tiered-0")):
        assert note in command.run(name, *options).stderr, name
        assert note not in command.run(name, *options, "--remote", bucket).stderr, name
    (other / "tiered-0" / f"{162793:020}.log").write_bytes(data[: len(data) // 2])
    (made, *_) = command.objects("diff", disk, other, "--remote", bucket, "--topic", "tiered", "--all", status=1)[-2:]
    assert made["relation"] != "same"


def test_a_partition_whose_directory_is_lost(broker: tuple[Path, Path], tmp_path: Path) -> None:
    """It is read from remote storage alone, if its path is given."""
    disk, bucket = broker
    shutil.rmtree(disk / "tiered-0")
    (made, _) = command.objects("salvage", disk / "tiered-0", "--remote", bucket, "--out", tmp_path / "out")
    assert (made["logStartOffset"], made["logEndOffset"]) == (110_377, 215_209)
    assert made["topicId"] == "wAa01FzqTkayNnf6QOm_2w"
    log = (tmp_path / "out" / "tiered-0" / f"{110377:020}.log").read_bytes()
    assert log == next(bucket.rglob(f"{110377:020}-*.log")).read_bytes()
    assert "no such file" in command.refused("salvage", disk / "other-0", "--remote", bucket, "--out", tmp_path / "2")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The bucket of a real broker in a server that implements S3."""
    import s3fs

    with s3_server("verysecret") as options:
        store = s3fs.S3FileSystem(**options)
        store.mkdir("tier")
        (partition,) = (TIERED / "tier").glob("*/tiered-0-*")
        store.put(str(partition), "tier/prefix/", recursive=True)
        store.put(str(AIVEN / "both"), "tier/", recursive=True)
        fsspec.config.conf["s3"] = options
        yield "s3://tier"
        del fsspec.config.conf["s3"]


@pytest.mark.every_disk
@pytest.mark.sampled
def test_what_a_bucket_does_not_show_is_not_missing(s3: str, broker: tuple[Path, Path]) -> None:
    """No object is missing, and nothing is damaged, because a store could not be asked for it."""
    disk, _ = broker
    for url, options in (
        ("s3://another", ()),
        *((f"{s3}/prefix", ("--max-requests", str(most))) for most in (*sample(range(1, 17), 16, "requests"), 17)),
    ):
        result = command.run("verify", disk, "--remote", url, *options, "--json")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert [row for row in rows if row["type"] == "finding" and row["severity"] != "info"] == [], options
        assert result.exit_code == (0 if options[1:] == ("17",) else 2), options
    assert "17 requests to the store" in " ".join(result.stdout.split())
    assert "--max-requests needs --remote" in command.refused("verify", disk, "--max-requests", "3")


def test_a_bucket(s3: str, broker: tuple[Path, Path], tmp_path: Path) -> None:
    disk, _ = broker
    (made, _) = command.objects("salvage", disk / "tiered-0", "--remote", f"{s3}/prefix", "--out", tmp_path / "out")
    assert (made["whole"], made["logStartOffset"], made["logEndOffset"]) == (True, 110_377, 260_000)
    quick = command.run("verify", disk, "--only", "remote", "--remote", f"{s3}/prefix", "--quick")
    assert quick.exit_code == 0
    assert "10 objects of segments, 2.0 MiB, in 1 list:" in " ".join(quick.stdout.split())
    done = command.run("find", "value == 'event-110381'", disk, "--remote", f"{s3}/prefix", "--json")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 3)
    assert "verysecret" not in done.output
    name = next((AIVEN / "both").rglob("*.log")).relative_to(AIVEN)
    (row, *_) = command.objects("inspect", f"{s3}/{name}", *KEY, "--records")
    assert (row["offset"], row["key"]) == (0, "key-0")


def test_a_later_command_reads_no_remote_storage() -> None:
    """In the same process, also if nothing of it belonged to the disks of the command before."""
    file_system.add_files({}, "s3://bucket")
    (line, *_) = command.objects("inspect", FIXTURES / "disk-1" / "payments-0")
    assert "tier" not in line


@pytest.mark.sampled
def test_a_url_that_no_package_reads() -> None:
    """It is one line with the reason, and no traceback; the disk's own segments are read."""
    disk = TIERED / "disk"
    names = ("verify", "ls", "stats", "retention", "space", "groups", "doctor", "inspect", "find offset>=0")
    for name in sample(names, 7, "no package"):
        done = command.run(*name.split(), "--remote", "wrong://bucket", disk)
        assert "Traceback" not in done.stderr + done.stdout
        assert done.exit_code, name
        assert "wrong://bucket: Protocol not known: wrong" in done.stderr + done.stdout, name
    assert "wrong://bucket: Protocol not known: wrong" in command.run("ls", "wrong://bucket").stderr
    for url in ("s3://me:secret1@bucket/x", "--remote=s3://me:secret1@bucket"):
        done = command.run("ls", url, disk)
        assert done.exit_code == 2
        assert "has a password" in done.stderr
        assert "secret1" not in done.stderr + done.stdout
    searched = command.run("inspect", disk, "--records", "--value-regex", "s3://me:secret1@bucket")
    assert "has a password" not in searched.stderr  # it is what is searched
