"""Every place of a disk where a record may be: what is planted there is found, by each kind of comparison, with what it
is, and what was searched adds up to the size of the paths."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import lz4.frame
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import kdump
from kdump.io.errors import SourceError, is_gone
from kdump.io.run import Run
from kdump.log.expression.terms import BINARY
from kdump.questions.find import directory
from kdump.questions.find.answer import Found, NotSearched, SearchCoverage
from kdump.questions.find.coverage import AsBytes
from kdump.questions.find.report import RedactedNames
from kdump.render.redaction import Redaction
from tests import command, craft, disks
from tests.command import objects, refused, run
from tests.conftest import DISKS, FIXTURES, sample
from tests.craft import CODECS, record, write_file

LOG = "{:020}.log"
CLEANER = "the log cleaner"


class Plant(NamedTuple):
    """A planted record: its name is in its key, a field of its value, and a header. `states`: what it is."""

    name: str
    states: list[str]
    superseded: int | None = None


def planted(name: str, delta: int = 0) -> bytes:
    value = json.dumps({"who": {"name": f"p-{name}"}, "filler": "x" * 40}).encode()
    return record(delta, f"k-{name}".encode(), value, [(b"trace", f"h-{name}".encode())])


def other(delta: int = 0) -> bytes:
    return record(delta, b"k-other", b'{"who":{"name":"other"}}', [(b"trace", b"other")])


def make_disk(root: Path) -> Iterator[Plant]:
    """Write a log directory, and yield what is planted in it."""
    write_file(root / "meta.properties", b"version=1\nbroker.id=1\ncluster.id=c\n")
    for codec in CODECS:
        batch = craft.batch([other(0), planted(codec, 1), other(2)], codec)
        write_file(root / f"codec-{codec}-0" / LOG.format(0), batch)
        yield Plant(codec, ["live"])
    for magic in (0, 1):  # there are no headers
        inner = [craft.message(magic, b'{"who":{"name":"p-v%d"}}' % magic, offset=0, key=b"k-v%d" % magic)]
        write_file(root / f"old-{magic}" / LOG.format(0), craft.wrapper(magic, inner, offset=0))
    for ending, state in (("deleted", "deletedSegment"), ("swap", "swapSegment"), ("cleaned", "cleanedSegment")):
        write_file(root / "orders-0" / f"{LOG.format(5)}.{ending}", craft.batch([planted(ending)], offset=5))
        yield Plant(ending, [state])
    for ending, state in (("delete", "deletedPartition"), ("stray", "strayPartition"), ("future", "futureReplica")):
        name = f"moved-0.{'ab' * 16}-{ending}"
        write_file(root / name / LOG.format(0), craft.batch([planted(ending)]))
        yield Plant(ending, [state])
    # A log with a start offset, transactions, slack, damage, and an incomplete batch.
    log = [craft.batch([planted("below"), other(1)], offset=100), craft.batch([planted("start")], offset=102)]
    transaction = {"attributes": 0x10, "producerEpoch": 0, "baseSequence": 0}
    log.append(craft.batch([planted("aborted")], offset=103, producerId=7, **transaction))
    log.append(disks.marker(104, 7, commit=False))
    log.append(craft.batch([planted("open")], offset=105, producerId=8, **transaction))
    two = [
        craft.batch([planted("damaged"), other(1)], offset=106),
        craft.batch([planted("repaired"), other(1)], offset=108),
    ]
    broken = craft.overwrite(two[0], len(two[0]) - 3, b"###")
    log += [broken, craft.flip(two[1], len(two[1]) * 8 - 9)]
    plain = craft.batch([planted("first-frame")], "lz4", offset=110)
    frame = lz4.frame.compress(planted("second-frame"), block_linked=False, store_size=False)
    log.append(craft.fix_crc(plain[:8] + struct.pack(">i", len(plain) - 12 + len(frame)) + plain[12:] + frame))
    log += [b"\x07" * 40 + craft.batch([planted("slack")], offset=3)]
    log += [craft.batch([other()], offset=112), craft.batch([other()], offset=113)]
    log.append(craft.batch([planted("torn"), other(1)], offset=114)[:-20])
    write_file(root / "orders-0" / LOG.format(100), b"".join(log))
    write_file(root / "log-start-offset-checkpoint", b"0\n1\norders 0 102\n")
    yield Plant("below", ["belowLogStart"])
    yield Plant("start", ["live"])
    yield Plant("aborted", ["aborted"])
    yield Plant("open", ["openTransaction"])
    yield Plant("damaged", ["damagedBatch"])
    yield Plant("repaired", ["damagedBatch"])
    yield Plant("second-frame", ["afterRecords"])
    yield Plant("slack", ["outsideLog"])
    yield Plant("torn", ["incompleteBatch"])
    for codec in ("gzip", "zstd"):
        many = [planted(f"torn-{codec}"), *(record(n, value=os.urandom(3000)) for n in range(1, 200))]
        write_file(root / f"torn-{codec}-0" / LOG.format(0), craft.batch(many, codec)[:-200])
        yield Plant(f"torn-{codec}", ["incompleteBatch"])
    compacted = [craft.batch([planted("old"), other(1)]), craft.batch([record(0, b"k-old", None)], offset=9)]
    write_file(root / "state-0" / LOG.format(0), b"".join(compacted))
    write_file(root / "cleaner-offset-checkpoint", b"0\n1\nstate 0 0\n")
    yield Plant("old", ["superseded"], 9)


def du(path: Path) -> int:
    return int(subprocess.run(["du", "-sb", path], capture_output=True, check=True).stdout.split()[0])


def test_what_is_planted_anywhere_is_found_and_what_was_searched_adds_up(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    plants = list(make_disk(root))
    size = du(root)
    for index, plant in enumerate(plants):
        name = plant.name
        expressions = [f"value.who.name == 'p-{name}'", f"header.trace ~ '^h-{name}$'", f"'p-{name}\"' in any"]
        for expression in [f"key == 'k-{name}'", expressions[index % 3]]:
            *found, coverage = objects("find", expression, root)
            matches = [match for match in found if match["value"] is not None]
            assert [match["states"] for match in matches] == [plant.states], (expression, found)
            assert matches[0].get("supersededBy") == plant.superseded
            parts = ("bytes", "ruledOutBytes", "notSearchedBytes", "otherBytes", "directoryBytes")
            assert coverage["totalBytes"] == size == sum(coverage[part] for part in parts)
            assert coverage["notSearchedBytes"] == sum(gap["bytes"] for gap in coverage["notSearched"])


def test_links_are_followed_once_and_add_up(tmp_path: Path) -> None:
    """To a file and a directory of the paths, to nothing, and out of them, where nothing is read; hard links."""
    place = tmp_path / "disk"
    log = craft.batch([record(0, b"k", b"v")])
    for name in ("a-0", "b-0"):
        write_file(place / name / LOG.format(0), log)
    write_file(tmp_path / "elsewhere.log", log)
    (place / "a-0" / LOG.format(1)).symlink_to(tmp_path / "elsewhere.log")
    (place / "a-0" / LOG.format(2)).symlink_to(place / "b-0" / LOG.format(0))
    (place / "a-0" / LOG.format(3)).symlink_to("nowhere")
    (place / "a-0" / LOG.format(4)).hardlink_to(place / "a-0" / LOG.format(0))
    (place / "0-link").symlink_to(place / "b-0")
    size = int(subprocess.run(["du", "-sbL", place], capture_output=True, check=False).stdout.split()[0])
    for expression, count in (("key == 'k'", 2), ("topic == 'b'", 1), ("topic == 'a'", 1)):
        *found, coverage = map(json.loads, run("find", expression, place, "--json").stdout.splitlines())
        assert len(found) == count, expression
        assert coverage["notSearchedBytes"] == (len(log) if expression != "topic == 'b'" else 0)
        parts = ("bytes", "ruledOutBytes", "notSearchedBytes", "otherBytes", "directoryBytes")
        assert coverage["totalBytes"] == size == sum(coverage[part] for part in parts)
        assert min(coverage[part] for part in parts) >= 0


def test_what_is_in_bytes_that_kafka_does_not_read(tmp_path: Path) -> None:
    """More records than a batch states are found; where bytes that are no record have the text is stated."""

    def longer(batch: bytes, more: bytes) -> bytes:
        return craft.fix_crc(batch[:8] + struct.pack(">i", len(batch) - 12 + len(more)) + batch[12:] + more)

    three = [record(n, b"k-%d" % n, b"v") for n in range(3)]
    for codec in ("none", "gzip", "zstd"):
        batch = craft.batch(three, codec)
        place = tmp_path / f"{codec}-0"
        write_file(place / LOG.format(0), craft.fix_crc(batch[:57] + struct.pack(">i", 2) + batch[61:]))
        found, coverage = objects("find", "key == 'k-2'", place)
        assert (found["offset"], found["states"], coverage["isComplete"]) == (2, ["damagedBatch"], True)
        assert run("find", "key == 'k-3'", place).exit_code == 1
    one = craft.batch([record(0, b"k", b"v")])
    wrapper = craft.wrapper(1, [craft.message(1, b"v", offset=0)], offset=0, key=b"secret")
    for name, data, at in (
        ("t-0/" + LOG.format(0), longer(one, b"..secret"), len(one) + 2),
        ("t-0/" + LOG.format(0), one + b"....secret", len(one) + 4),
        (
            "t-0/" + LOG.format(0),
            longer(craft.batch([record()], "lz4"), b"secret"),
            len(craft.batch([record()], "lz4")),
        ),
        ("t-0/" + LOG.format(0), wrapper, wrapper.index(b"secret")),
        ("t-0/heap.hprof", b"-" * 3_000_000 + b"secret", 3_000_000),
    ):
        write_file(tmp_path / name, data)
        (coverage,) = objects("find", "'secret' in any", tmp_path / "t-0", status=2)
        (reason,) = {gap["reason"] for gap in coverage["notSearched"] if "as text, at byte" in gap["reason"]}
        assert reason.endswith(f"; what is looked for is in it as text, at byte {at}"), reason
        (coverage,) = objects("find", "'other' in any", tmp_path / "t-0", status=2)
        assert "as text" not in json.dumps(coverage)
        (tmp_path / name).unlink()


def test_status_live_limit_and_formats(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    plants = list(make_disk(root))
    live = objects("find", "value.who.name ~ '^p-'", root, "--live")
    names = {json.loads(match["value"])["who"]["name"][2:] for match in live[:-1]}
    # first-frame is after the open transaction: no read_committed consumer gets it before that ends.
    assert names == {"v0", "v1", *(p.name for p in plants if p.states in (["live"], ["superseded"]))}
    assert [len(objects("find", f"value.who.name == '{name}'", root)) for name in ("p-v0", "p-v1")] == [2, 2]
    some = objects("find", "key ~ '^k-'", root, "--limit", "3")
    assert len(some) == 4
    assert not some[-1]["isComplete"]
    assert some[-1]["totalBytes"] == du(root) == live[-1]["totalBytes"]
    # Nothing matches: 1 if everything was searched, else 2.
    assert run("find", "key == 'nobody'", root / "codec-lz4-0").exit_code == 1
    nobody = run("find", "key == 'nobody'", root / "orders-0")
    assert (nobody.exit_code, nobody.stdout) == (2, "")
    assert "NOT SEARCHED" in nobody.stderr
    assert run("find", "key == 'nobody'", root / "nowhere").exit_code == 2
    assert run("find", "key == 'k-lz4'", root, "-f", "%o %k\\n").stdout == "1 k-lz4\n"
    header, row = run("find", "key == 'k-old' and value != null", root, "--format", "csv").stdout.splitlines()
    assert dict(zip(header.split(","), row.split(",")))["supersededBy"] == "9"
    table = run("find", "key == 'k-old' and value != null", root).stdout.splitlines()
    assert table[0].split("  ")[0] == "partition"
    assert "superseded by offset 9" in table[1]
    assert "      ^" in refused("find", "key = 1", root)
    hidden = objects("find", "key == 'k-lz4'", root, "--redact-names")
    assert "k-lz4" not in json.dumps(hidden) and "codec" not in json.dumps(hidden)  # noqa: PT018


@pytest.mark.every_disk
@pytest.mark.sampled
@pytest.mark.parametrize("options", sample([(), ("--limit", "5"), ("--live",), ("--format", "csv")], 4, "jobs"))
def test_several_processes_find_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    root = tmp_path / "disk"
    list(make_disk(root))
    (root / "unreadable-0").mkdir()
    (root / "unreadable-0" / LOG.format(0)).symlink_to("nowhere")
    for expression in ("offset >= 0", "value.who.name ~ '^p-' and not isAborted", "key == 'nobody'"):
        words = ("find", expression, root, *options, *(("--json",) if "csv" not in options else ()))
        one, three = run(*words, "--jobs", "1"), run(*words, "--jobs", "3")
        assert (one.exit_code, one.stdout, one.stderr) == (three.exit_code, three.stdout, three.stderr), expression
    reports = []
    for jobs in ("1", "3"):
        run("find", "key == 'k-lz4'", root, "--report", tmp_path / "r", "--jobs", jobs)
        reports.append(json.loads((tmp_path / "r.json").read_text()) | {"written": ""})
    assert reports[0] == reports[1]


def test_the_rest_of_a_worker_that_ends_is_searched_and_it_is_named(tmp_path: Path) -> None:
    for number in range(6):  # more than a pipe holds
        batch = craft.batch([record(n, b"k", b"x" * 2000) for n in range(100)])
        write_file(tmp_path / f"t-{number}" / LOG.format(0), batch)
    errors: list[SourceError] = []
    answers = kdump.find(str(tmp_path), "key == 'k'", jobs=2, run=Run(unreadable=errors.append))
    found = list(islice(answers, 150))
    for worker in multiprocessing.active_children():
        worker.kill()
    *rest, coverage = answers
    offsets = [each.record.offset for each in (*found, *rest) if isinstance(each, Found)]
    assert offsets == [*range(100)] * 6
    assert isinstance(coverage, SearchCoverage) and coverage.isComplete  # noqa: PT018
    (error,) = errors
    assert is_gone(error) and "the worker process that read it ended" in str(error)  # noqa: PT018


@pytest.mark.parametrize("most", [300_000, 10, 1])
def test_matches_in_a_compacted_topic_are_what_the_newest_record_of_their_key_makes_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """In any later segment, with room for any number of keys; and the first does not wait for the others."""
    monkeypatch.setattr(directory, "MOST_KEYS", most)
    write_file(tmp_path / "meta.properties", b"version=1\nbroker.id=1\ncluster.id=c\n")
    write_file(tmp_path / "cleaner-offset-checkpoint", b"0\n1\nstate 0 0\n")
    newest, aborted = {}, {"attributes": 0x10, "producerEpoch": 0, "baseSequence": 0, "producerId": 7}
    for base in range(0, 3000, 1000):
        batches = []
        for offset in range(base, base + 1000, 10):
            keys = [b"k%d" % (offset % 370), b"once-%d" % offset, b"a"]
            newest |= dict(zip(keys, (offset, offset + 1, offset + 2)))
            rows = [record(n, key, b"x" * 500) for n, key in enumerate(keys)]
            batches.append(craft.batch(rows, ("none", "zstd")[offset % 20 > 0], offset=offset))
        if base == 2000:  # what was aborted supersedes nothing
            batches.append(craft.batch([record(0, b"a"), record(1, b"k0")], offset=3000, **aborted))
            batches.append(disks.marker(3002, 7, commit=False))
        write_file(tmp_path / "state-0" / LOG.format(base), b"".join(batches))
    read: list[int] = []
    answers = kdump.find(str(tmp_path), "size > 300", run=Run(more=read.append))
    first = next(answers)
    assert len(read) == 1, "the first segment"
    *others, _ = answers
    rows = [each for each in (first, *others) if isinstance(each, Found)]
    assert len(rows) == 900
    for row in rows:
        key, offset = row.record.key or b"", row.record.offset
        assert row.superseded_by == (None if newest[key] == offset else newest[key])
        assert row.states == (("live",) if newest[key] == offset else ("superseded",))


def test_what_nothing_decodes_is_compared_as_bytes_and_stated(tmp_path: Path) -> None:
    values = [b"\0\0\0\0\x07\x02a", b"\xff\xfe\xfd", b"plain", b'{"id":', b"\0\0\0\0\0\0\x12\x67", None]
    batch = craft.batch([record(n, b"k", value) for n, value in enumerate(values)])
    write_file(tmp_path / "t-0" / LOG.format(0), batch)
    *_, coverage = objects("find", "value.id == 4711", tmp_path / "t-0", status=2)
    assert sum(gap["records"] for gap in coverage["notSearched"]) == 2
    assert len(objects("find", "value == 4711", tmp_path / "t-0")) == 2
    assert run("find", "key == 'x'", tmp_path / "t-0").exit_code == 1
    assert len(objects("find", "value == null", tmp_path / "t-0")) == 2


def test_when_states_what_retention_does(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    list(make_disk(root))
    for name, goes in (("deleted", "a startup deletes the file"), ("delete", "a startup deletes the directory")):
        (match, _) = objects("find", f"key == 'k-{name}'", root, "--when")
        assert (match["goes"], match["goesAt"]) == (goes, 0)
    (match, _) = objects("find", "key == 'k-zstd'", root, "--when")
    told = [run("find", "key == 'k-zstd'", root, "--now", "-2h", *when).stderr for when in ((), ("--when",))]
    assert ["ages as of" in each for each in told] == [False, True]
    assert match["goes"].startswith("retention.ms")
    *_, tombstone, _ = objects("find", "key == 'k-old'", root, "--when")
    assert (tombstone["value"], tombstone["goes"]) == (None, f"{CLEANER}, delete.retention.ms after its first cleaning")


def test_a_search_report_is_signed_has_no_payload_and_lists_every_file(tmp_path: Path) -> None:
    root, key = tmp_path / "disk", tmp_path / "key.pem"
    list(make_disk(root))
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    done = run("find", "value.who.name ~ '^p-'", root, "--report", tmp_path / "r.json", "--sign", key, "--when")
    assert done.exit_code == 0
    text = (tmp_path / "r.json").read_text()
    report = json.loads(text)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    verified = run("find", "--verify", tmp_path / "r.json")
    assert (verified.exit_code, verified.stdout.strip()) == (0, base64.b64encode(public).decode())
    assert "p-lz4" not in text
    assert "k-lz4" not in text
    for file in report["files"]:
        assert file["sha256"] == hashlib.sha256(Path(file["file"]).read_bytes()).hexdigest()
    assert {file["file"] for file in report["files"]} == {str(path) for path in root.rglob("*.log*")}
    page = (tmp_path / "r.html").read_text()
    assert "Search report" in page and "certificate" not in page.lower()  # noqa: PT018
    (tmp_path / "r.json").write_text(text.replace('"matchCount":', '"matchCount":1'))
    assert run("find", "--verify", tmp_path / "r.json").exit_code == 2
    for found, other in (
        ('"matchCount":', '"matchCount":0,"matchCount":'),  # another reader takes the first
        ('"sha256":', '"sha256":"","sha256":'),
        ('"signature":{', '"signature":{"checkedBy":"an auditor",'),
        ('"notSearched":[', '"notSearched":[],"notSearched":['),
    ):
        assert found in text
        (tmp_path / "r.json").write_text(text.replace(found, other, 1))
        assert run("find", "--verify", tmp_path / "r.json").exit_code == 2, other
    assert run("find", "isControl", root, "--report", root / "r").exit_code == 2  # next to the source
    redacted = run("find", "key == 'k-lz4'", root, "--report", tmp_path / "s", "--redact-names")
    assert redacted.exit_code == 0
    for name in ("s.json", "s.html"):
        assert not re.search("k-lz4|codec-lz4|orders|moved", (tmp_path / name).read_text())


@pytest.mark.sampled
def test_offsets_in_remote_storage_are_not_searched_without_the_bucket(tmp_path: Path) -> None:
    """Nothing pretends that a tiered log begins with its first local segment: not find, and not a search of inspect."""
    broker = shutil.copytree(DISKS / "kafka-4.3-tiered", tmp_path / "broker")
    disk, bucket = broker / "disk", broker / "tier"
    nothing = ("key == 'nowhere' and topic == 'tiered'",)
    assert "offsets 110377..215208 are in remote storage" in (result := command.run("find", *nothing, disk)).stderr
    assert result.exit_code == 2
    assert command.run("find", *nothing, disk, bucket).exit_code == 1
    next(bucket.rglob("*110377*.log")).unlink()
    assert "offsets 110377..162792 are in" in (result := command.run("find", *nothing, disk, bucket)).stderr
    assert result.exit_code == 2
    result = command.run("inspect", disk, "--topic", "tiered", "--records", "--key", "nowhere", "--all-files")
    assert "offsets 110377..215208 of tiered-0" in result.stderr
    assert result.exit_code == 2


@pytest.mark.sampled
def test_live_is_what_a_read_committed_consumer_receives() -> None:
    """No markers, and nothing from the first open transaction on: what inspect --read-committed shows."""
    logs = sorted(path for path in FIXTURES.glob("*-1/*-0") if not path.name.startswith("__") and [*path.glob("*.log")])
    assert logs
    for log in sample(logs, 7, "live"):
        (start,) = (row["logStartOffset"] for row in objects("ls", log) if row["type"] == "partitionLog")
        shown = [row for row in objects("inspect", log, "--records", "--read-committed") if row["type"] == "record"]
        shown = [row for row in shown if row["offset"] >= start]
        result = run("find", "offset >= 0", log, "--live", "--json")
        found = [row for row in map(json.loads, result.stdout.splitlines()) if row["type"] != "searchCoverage"]
        assert [row["offset"] for row in found] == [row["offset"] for row in shown], log


def test_a_topic_that_is_not_there_is_no_proof(tmp_path: Path) -> None:
    """Neither one that is mistyped, nor a file of which no directory says whose it is."""
    log = craft.batch([record(0, b"u7", b"v")])
    write_file(tmp_path / "disk" / "users-0" / LOG.format(0), log)
    (tmp_path / "disk" / "empty-0").mkdir()
    write_file(tmp_path / "mailed.log", log)
    for expression, status, reason in (
        ("topic == 'users' and key == 'u8'", 1, ""),
        ("topic == 'empty' and key == 'u7'", 2, "no file in the paths is of a topic"),
        ("topic == 'usrs' and key == 'u7'", 2, "no partition of this topic is in the paths: usrs"),
        ("key == 'u8' and (topic == 'users' or topic == 'usrs')", 2, "is in the paths: usrs"),
        ("not (topic != 'usrs' or key == 'u7')", 2, "is in the paths: usrs"),
        ("topic != 'usrs' and key == 'u8'", 1, ""),
        ("topic ~ '^usrs' and key == 'u7'", 2, "no file in the paths is of a topic"),
        ("partition == 1", 2, "no file in the paths is of a topic"),
    ):
        (coverage,) = objects("find", expression, tmp_path / "disk", status=status)
        assert (coverage["isComplete"], bool(coverage["notSearched"])) == (status == 1, status == 2), expression
        assert reason in json.dumps(coverage["notSearched"])
    log_directory = tmp_path / "deleted" / f"users-0.{'0' * 32}-delete"
    write_file(log_directory / LOG.format(0), log)
    (coverage,) = objects("find", "key == 'u7'", log_directory, "--live", status=2)
    assert [gap["reason"] for gap in coverage["notSearched"]] == [
        "no file in the paths is live, and of a topic and partition that EXPR asks for"
    ]
    # A snapshot above all topics is of the metadata.
    shutil.copy(DISKS / "kafka-4.3" / "clean-1" / "bootstrap.checkpoint", tmp_path / "disk")
    for expression in ("topic == 'users' and offset == 5", "partition == 0 and topic == 'users' and key == 'u8'"):
        assert objects("find", expression, tmp_path / "disk", status=1)[0]["isComplete"]
    assert objects("find", "topic == '__cluster_metadata' and partition == 0", tmp_path / "disk")[0]["offset"] == 0
    hidden = run("find", "topic == 'usrs'", tmp_path / "disk", "--json", "--redact-names")
    assert "usrs" not in hidden.stdout
    for expression, records in (("topic == 'users' and key == 'u7'", 1), ("not isAborted and partition == 3", 1)):
        (coverage,) = objects("find", expression, tmp_path / "mailed.log", status=2)
        assert [gap["records"] for gap in coverage["notSearched"]] == [records]
        assert "no directory names their topic" in coverage["notSearched"][0]["reason"]
    (coverage,) = objects("find", "topic == 'users' and key == 'u8'", tmp_path / "mailed.log", status=1)


def test_why_a_value_does_not_decode_is_redacted() -> None:
    """It names schemas and directories, and may quote the value."""
    words = ("find", "value.id == 99", FIXTURES / "registry-1", "--json")
    (gap,) = objects(*words[:-1], status=2)[0]["notSearched"]
    assert "value no schema with ID 77 in " in gap["reason"]
    hidden = run(*words, "--redact-names").stdout
    assert "compared as bytes only: value does not decode" in hidden
    assert not re.search("registry-1|_schemas|orders", hidden)
    names = RedactedNames(Redaction(b"key"))
    for why, shown in (("field person.iban of Payment is not text", "does not decode"), (BINARY, BINARY)):
        gap = NotSearched("f.log", AsBytes.of("value", why), None, 0, 1)
        assert names.reason(gap) == f"compared as bytes only: value {shown}"


def test_what_was_asked_for_is_shown() -> None:
    """Numbers of the record and its batch, and why a value is shown as bytes."""
    place = FIXTURES / "live-1"
    header, first, *_ = run("find", "producer >= 0 and size > 40", place).stdout.splitlines()
    assert header.split()[:8] == ["partition", "offset", "timestamp", "what", "it", "is", "size", "producerId"]
    assert "producerId" not in run("find", "offset >= 0", place).stdout
    match, *_ = objects("find", "producer >= 0 and size > 40", place, "-n", "1")
    assert [str(match["size"]), str(match["producerId"])] == first.split()[4:6]
    chosen = run(
        "find", "isTransactional", FIXTURES / "crash-1", "--columns", "producerId,isTransactional,supersededBy"
    )
    assert chosen.stdout.splitlines()[1].split() == ["9", "yes", "-"]
    assert "  ~ value: no schema with ID 77" in run("find", "topic == 'orders'", FIXTURES / "registry-1").stdout


def test_a_file_whose_name_is_that_of_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the text of an error begins with the path that it is about."""
    monkeypatch.chdir(tmp_path)
    log = (FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log").read_bytes()
    Path("junk").write_bytes(log + b"junk" * 25)
    said = run("find", "key == 'none'", "junk").stderr
    assert f"junk at byte {len(log)}: 100 bytes: junk: " in said


def test_a_path_is_printed_once(tmp_path: Path) -> None:
    """The text of an error has its path, also of a damaged compressed file and of a directory without Kafka's files."""
    log = (FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log").read_bytes()
    packed = craft.write_file(tmp_path / "one" / f"{0:020}.log.gz", gzip.compress(log)[:-300])
    lines = run("find", "key == 'none'", packed).stderr.splitlines()
    assert sum("cannot read further" in line for line in lines) == 1
    assert {line.count(str(packed)) for line in lines} == {0, 1}
    (tmp_path / "empty").mkdir()
    said = run("export", FIXTURES / "clean-2", tmp_path / "empty", "--out", tmp_path / "out").stderr
    assert said.count(str(tmp_path / "empty")) == 1
