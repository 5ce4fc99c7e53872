"""`kdump bundle --redact`: no name of a person or a system is in the bundle, and commands answer from it as from the
disk, but for the names."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kdump.decode.redaction.rules import rule_for
from kdump.format.message_writer import encode
from kdump.format.schema import MessageSchema, SchemaField, SchemaStruct, by_api_key, load_folder
from kdump.format.varint import unsigned_varint
from kdump.io.bundle.names import CONTAINER, MANIFEST, container_name
from kdump.io.bundle.tree import open_bundle
from kdump.io.sorted_lines import Extent
from kdump.log.internal_topics import COORDINATOR_TOPICS, INTERNAL_TOPICS, SCHEMAS
from kdump.log.paths import PARTITION
from kdump.log.pseudonyms import Pseudonyms
from tests.command import objects, run
from tests.conftest import FIXTURES
from tests.craft import CODECS, batch, flip, message, one, patch, record, write_file
from tests.damages import aged, copy_disk
from tests.questions.bundle.test_command import (
    COMMANDS,
    TIERED,
    _no_clock,
    answer,
    contents,
    healthy,
    healthy_disks,
    in_place_of,
    rewritten,
    segment_of,
    with_regions,
)

assert _no_clock  # a fixture
KEY = b"a key of 20 bytes..."
CANARY = "canary"

# --- Each field of each message ---------------------------------------------------------------------------------------

MARKED = (f"{CANARY}-{number:04}-0123456789ab" for number in count())
KEPT = ("ConfigRecord.name", "topicConfigs[].key", "lastAssignmentConfigs[].key")
"""Names of configs."""


def marked(folder: str, name: str, version: int, **numbers: int) -> tuple[MessageSchema, bytes]:
    """Return a message with another canary in each text."""
    schema = load_folder(folder)[name]

    def value(node: SchemaField) -> Any:
        if node.inner is not None:
            return structure(node.inner)
        if node.element is not None:
            return [value(node.element), value(node.element)]
        if f"{name}.{node.path}".endswith(KEPT):
            return "retention.ms"
        if node.kind in ("string", "bytes", "records"):
            text = next(MARKED)
            assert len(text) == 24
            text = {"principal": "User:", "clientHost": "/", "owner": "Other:"}.get(node.name, "") + text
            return text if node.kind == "string" else nested(node.name, text)
        if node.kind == "uuid":
            return "AAAAAAAAAAAAAAAAAAAAAQ"
        return numbers.get(node.name, 1)

    def structure(fields: SchemaStruct) -> dict[str, Any]:
        return {node.name: value(node) for node in fields.fields}

    def nested(field: str, text: str) -> bytes:
        kinds = {
            "subscription": "ConsumerProtocolSubscription",
            "metadata": "ConsumerProtocolSubscription",
            "assignment": "ConsumerProtocolAssignment",
        }
        if field not in kinds or name.startswith("ConsumerProtocol"):
            return text.encode()
        return struct.pack(">h", 1) + marked("control", kinds[field], 1)[1]

    found = structure(schema.struct(version))
    if name == "GroupMetadataValue" and numbers.get("consumer"):
        found["protocolType"] = "consumer"
    return schema, encode(schema, version, found)


def versions(schema: MessageSchema) -> range:
    return range(schema.valid.lowest, min(schema.valid.highest, 20) + 1)


def coordinator_records(folder: str) -> Iterator[bytes]:
    schemas = load_folder(folder)
    for schema in schemas.values():
        if schema.type != "coordinator-key":
            continue
        value = next(it for it in schemas.values() if (it.type, it.apiKey) == ("coordinator-value", schema.apiKey))
        for version in versions(value):
            for consumer in (0, 1):
                prefix = struct.pack(">h", schema.apiKey or 0)
                key = prefix + marked(folder, schema.name, schema.valid.lowest)[1]
                data = struct.pack(">h", version) + marked(folder, value.name, version, consumer=consumer)[1]
                yield record(key=key, value=data)
                yield record(key=key, value=None)


def metadata_records(folder: str) -> Iterator[bytes]:
    for schema in by_api_key(folder).values():
        for version in versions(schema):
            for kind in (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 99):
                for pattern in (3, 4) if schema.name == "AccessControlEntryRecord" else (3,):
                    fields = {"resourceType": kind, "patternType": pattern}
                    data = marked(folder, schema.name, version, **fields)[1]
                    yield record(value=b"".join(map(unsigned_varint, (1, schema.apiKey or 0, version))) + data)


def quotas() -> Iterator[bytes]:
    schema = load_folder("metadata")["ClientQuotaRecord"]
    for kind in ("user", "client-id", "ip", f"{CANARY}-of-a-plugin-987654"):
        entity = [{"entityType": kind, "entityName": next(MARKED)}, {"entityType": kind, "entityName": None}]
        value = {"entity": entity, "key": "producer_byte_rate", "value": 1.0, "remove": False}
        yield record(value=bytes((1, schema.apiKey or 0, 0)) + encode(schema, 0, value))


def control_records() -> Iterator[bytes]:
    voters, data = marked("control", "VotersRecord", 0)
    assert voters.name == "VotersRecord"
    yield record(key=struct.pack(">hh", 0, 6), value=data)


def records_of(topic: str) -> list[bytes]:
    if topic in COORDINATOR_TOPICS:
        return list(coordinator_records(SCHEMAS[topic]))
    return [*metadata_records(SCHEMAS[topic]), *(quotas() if topic == "__cluster_metadata" else ())]


CONTROL = 1 << 5


def as_batches(records: list[bytes], **fields: int) -> bytes:
    return b"".join(batch(each, offset=at, **fields) for at, each in enumerate(records))


def segment(disk: Path, directory: str, data: bytes, name: str = f"{0:020}.log") -> Path:
    write_file(disk / directory / name, data)
    return disk / directory / name


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: f"{CANARY}-host-0123456789ab")


def redacted(disk: Path, out: Path, *options: object) -> dict[str, Any]:
    """Make a redacted bundle of a disk, and return the summary."""
    done = run("bundle", disk, "--out", out, "--redact", "--tar", out.with_suffix(".tar"), "--json", *options)
    assert done.exit_code in (0, 2), done.stderr
    summary = json.loads(done.stdout)
    assert isinstance(summary, dict)
    return summary


def assert_clean(out: Path) -> None:
    """Check that no canary is in a bundle, in the packed one, nor in the names of their files."""
    canary = CANARY.encode()
    everything = contents(out)
    assert len(everything) > 1000
    assert canary not in everything, everything[everything.index(canary) - 300 :][:600]
    assert not [path for path in out.rglob("*") if CANARY in path.name]
    packed = out.with_name(f"{out.name}-packed")
    packed.mkdir()
    out.with_suffix(".tar").rename(packed / "b.tar")
    assert len(contents(packed)) > len(everything)
    assert canary not in contents(packed)
    for text in (CANARY.upper(), base64.b64encode(canary).decode()[:7], canary.hex()):
        assert text.encode() not in everything


@pytest.mark.parametrize(
    ("topic", "codec"),
    [
        pytest.param(topic, codec, marks=[] if row == number % len(CODECS) else [pytest.mark.every_disk])
        for number, topic in enumerate(INTERNAL_TOPICS)
        for row, codec in enumerate(CODECS)
    ],
)
@pytest.mark.usefixtures("host")
def test_every_field_of_every_message(topic: str, codec: str, tmp_path: Path) -> None:
    records = records_of(topic)
    data = b"".join(batch([each], codec, offset=at) for at, each in enumerate(records))
    assert data.count(CANARY.encode()) > 3 or codec != "none"
    log = segment(tmp_path / "disk", f"{topic}-0", data)
    if topic == "__cluster_metadata":
        for name in (f"{5:020}-{1:010}.checkpoint", "../bootstrap.checkpoint"):
            (log.parent / name).write_bytes(data)
    segment(tmp_path / "disk", "__offsets-0", batch(record()))
    out = tmp_path / "b"
    summary = redacted(tmp_path / "disk", out)
    assert_clean(out)
    assert summary["leftOut"] == 0
    there = objects("inspect", tmp_path / "disk" / f"{topic}-0")
    here = objects("inspect", out / f"{topic}-0")
    assert [(row["position"], row["size"]) for row in here] == [(row["position"], row["size"]) for row in there]
    rows = objects("inspect", "--records", out / f"{topic}-0")
    decoded = [row for row in rows if row["type"] == "record"]
    assert len(decoded) == len(records)
    problems = [row for row in decoded if "problem" in json.dumps(row.get("decoded", {}))]
    assert not problems


def texts_of(struct_: SchemaStruct) -> Iterator[str]:
    for node in struct_.fields:
        leaf = node
        while leaf.element is not None:
            leaf = leaf.element
        if leaf.inner is not None:
            yield from texts_of(leaf.inner)
        elif leaf.kind in ("string", "bytes", "records"):
            yield leaf.path


def test_every_text_has_a_rule() -> None:
    """Those without one would be left out."""
    messages = [schema for folder in {*SCHEMAS.values(), "control"} for schema in load_folder(folder).values()]
    texts = {
        (schema.name, path) for schema in messages for at in versions(schema) for path in texts_of(schema.struct(at))
    }
    without = {f"{name}.{path}" for name, path in texts if rule_for(name, path) is None}
    assert without == {
        "GroupMetadataValue.members[].subscription",
        "GroupMetadataValue.members[].assignment",
        "DefaultPrincipalData.type",  # in requests alone
        "DefaultPrincipalData.name",
    }


def test_a_message_of_a_later_kafka_is_left_out(tmp_path: Path) -> None:
    name = f"{CANARY}-0123456789abcdefg".encode()
    key = struct.pack(">h", 2) + struct.pack(">h", 24) + name
    good = record(key=key, value=None)
    strange = [
        record(key=key, value=struct.pack(">h", 99) + name),  # version
        record(key=struct.pack(">h", 99) + name, value=name),  # type
        record(key=key + name, value=None),  # more than the message
        record(key=key, value=name),
        record(key=None, value=name),
        record(key=key, value=None, headers=[(name, name)]),
        record(key=key, value=None, headers=[(b"a", None)]),
        good + name,
    ]
    disk = tmp_path / "disk"
    damaged = patch(batch(good, offset=20), crc=False, baseTimestamp=5)
    old = [message(magic, name, key=name, offset=21 + magic) for magic in (0, 1)]
    segment(disk, "__consumer_offsets-0", as_batches([good, *strange]) + damaged + b"".join(old))
    key = struct.pack(">h", 0) + struct.pack(">h", 24) + name
    segment(disk, "__transaction_state-0", as_batches([record(key=key, value=struct.pack(">h", 1) + name)]))
    tagged = b"\1\2\0\2t" + bytes(16) + b"\1" + b"\x09" + b"\x18" + name  # TopicRecord with an unknown tag
    segment(
        disk,
        "__cluster_metadata-0",
        one(tagged) + one(name, offset=1) + one(b"\1\x63\0" + name, offset=2) + one(tagged[:20], offset=3),
    )
    control = [record(key=struct.pack(">hh", 0, 9), value=name), record(key=name, value=name), *control_records()]
    for directory in ("topic-0", "__consumer_offsets-1", "__cluster_metadata-0"):
        at = segment(disk, directory, as_batches(control, attributes=CONTROL), f"{100:020}.log")
        at.with_name(f"{200:020}.log").write_bytes(batch(name * 5, codec="zstd", attributes=CONTROL | 4))
    out = tmp_path / "b"
    summary = redacted(disk, out)
    assert_clean(out)
    assert summary["leftOut"] >= len(strange) + 10
    done = run("groups", out)
    assert done.exit_code == 2
    assert "not in the bundle" in " ".join((done.stderr + done.stdout).split())


def test_a_large_batch(tmp_path: Path) -> None:
    """It is a region of its own, and so is what follows damage."""
    records = list(coordinator_records("group-coordinator")) * 50
    data = batch(records) + b"\1" * 500 + batch(records[:3], offset=len(records))
    log = segment(tmp_path / "disk", "__consumer_offsets-0", data)
    assert len(data) > 1 << 20
    out = tmp_path / "b"
    assert redacted(tmp_path / "disk", out)["leftOut"] == 0
    assert_clean(out)
    rows = [row for row in objects("inspect", "--records", out / "__consumer_offsets-0") if row["type"] == "record"]
    assert len(rows) == len(records) + 3
    here, there = (objects("inspect", path) for path in (out / "__consumer_offsets-0", log))
    assert [(row["position"], row["size"]) for row in here] == [(row["position"], row["size"]) for row in there]


# --- Files and directories --------------------------------------------------------------------------------------------

NAME = f"{CANARY}-0123456789abcdefg"
assert len(NAME) == 24
UUID = "0123456789abcdef" * 2
FILES: dict[str, bytes] = {
    "recovery-point-offset-checkpoint": f"0\n2\n{NAME} 0 5\n__consumer_offsets 0 7\n".encode(),
    "replication-offset-checkpoint": f"0\n1\n{NAME} 0 5\n".encode(),
    "cleaner-offset-checkpoint": f"0\n1\n{NAME} 0 5\n".encode(),
    "log-start-offset-checkpoint": f"0\n1\n{NAME} x 5\n".encode(),
    "meta.properties": f"# {NAME}\nversion=1\nnode.id=1\ncluster.id={NAME}\n{NAME}={NAME}\n".encode(),
    "t-0/partition.metadata": f"version: 0\ntopic_id: {'A' * 21}Q\n# {NAME}\nname: {NAME}\n".encode(),
    "t-1/partition.metadata": f"version: {NAME}\n".encode(),
    "t-2/partition.metadata": f"version: 0\ntopic_id: {NAME}\n".encode(),
    "t-0/leader-epoch-checkpoint": f"0\n1\n0 0\n{NAME}\n".encode(),
    "t-1/leader-epoch-checkpoint": NAME.encode(),
    "t-0/quorum-state": json.dumps(
        {"clusterId": NAME, "leaderId": 1, NAME: NAME, "currentVoters": [{"voterId": 1, "host": NAME}]}
    ).encode(),
    "t-1/quorum-state": json.dumps({"leaderId": NAME}).encode(),
    "t-2/quorum-state": json.dumps({"currentVoters": [{"voterId": NAME}]}).encode(),
    ".kafka_cleanshutdown": json.dumps({"version": 0, "brokerEpoch": NAME}).encode(),
    f"t-0/{0:020}.index": NAME.encode(),
    f"t-0/{0:020}.timeindex": NAME.encode(),
    f"t-0/{0:020}.txnindex": bytes(2) + NAME.encode() + bytes(8),
    f"t-0/{0:020}.snapshot": NAME.encode(),
    f"t-1/{0:020}.index": NAME[:8].encode() + bytes(800),
    f"t-1/{0:020}.timeindex": NAME[:12].encode() + bytes(1200),
    f"t-1/{0:020}.txnindex": bytes(34) + NAME.encode() + bytes(10),
    f"t-1/{0:020}.snapshot": b"\0\1" + bytes(8) + NAME.encode(),
    f"t-0/{0:020}.log.deleted": NAME.encode(),
    f"t-0/{NAME}.txt": NAME.encode(),
    f"t-0/{NAME}.deleted": NAME.encode(),
    f"t-0/{NAME}": NAME.encode(),
    f"{NAME}-0/{0:020}.log": one(NAME.encode()),
    f"{NAME}-0.{UUID}-delete/{0:020}.log": one(NAME.encode()),
    f"{NAME}-0.{UUID}-stray/{0:020}.log": one(NAME.encode()),
    f"{NAME}-1.{UUID}-future/{0:020}.log": one(NAME.encode()),
    f"{NAME}/{NAME}/{NAME}-0/{0:020}.log": one(NAME.encode()),
    f"{NAME}-0-{'A' * 22}/{0:020}-{'B' * 22}.log": one(NAME.encode()),
}


def named_disk(root: Path) -> Path:
    disk = root / NAME / f"{CANARY}-disk"
    for name, data in FILES.items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_bytes(data)
    for number in range(3):
        segment(disk, f"t-{number}", one(NAME.encode()))
    (disk / "link-0").symlink_to(f"{NAME}-0")
    (disk / f"{CANARY}-link").symlink_to(disk / NAME)
    (disk / "broken").symlink_to(f"/home/{CANARY}-user/nothing")
    return disk


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("depth", ["crc", "headers"])
def test_no_name_of_a_file_or_in_one(depth: str, tmp_path: Path) -> None:
    disk = named_disk(tmp_path)
    key = write_file(tmp_path / "key", KEY)
    out = tmp_path / "b"
    redacted(disk, out, "--depth", depth, "--hash-key", key)
    assert_clean(out)
    names = Pseudonyms(KEY)
    listed = objects("ls", out)
    assert {row.get("topic") for row in listed} >= {names.topic(NAME), names.topic("t")}
    assert os.readlink(disk / "link-0") == f"{NAME}-0"
    bundle = open_bundle(str(out), 1)
    assert bundle.readlink(names.file("link-0")) == f"{names.topic(NAME)}-0"
    checkpoint = bundle.open("recovery-point-offset-checkpoint", "x").read_at(0, 1000)
    assert checkpoint == f"0\n2\n{names.topic(NAME)} 0 5\n__consumer_offsets 0 7\n".encode()
    assert bundle.stat("recovery-point-offset-checkpoint").st_size == len(FILES["recovery-point-offset-checkpoint"])
    metadata = bundle.open(f"{names.topic('t')}-0/partition.metadata", "x").read_at(0, 1000)
    assert metadata == f"version: 0\ntopic_id: {'A' * 21}Q\n".encode()
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest["redacted"] == names.fingerprint
    assert KEY not in contents(out)


def fully_named_disk(root: Path) -> Path:
    """Return the disk with a name in each file and directory, and in each text of each record of Kafka's own topics."""
    disk = named_disk(root)
    for topic in INTERNAL_TOPICS:
        log = segment(disk, f"{topic}-0", as_batches(records_of(topic)))
        if topic == "__cluster_metadata":
            for name in (f"{5:020}-{1:010}.checkpoint", "../bootstrap.checkpoint"):
                shutil.copy(log, log.parent / name)
    return disk


def test_no_name_is_in_a_report(tmp_path: Path) -> None:
    """Nor in its charts, in what the command prints, or in the report of a single file or directory."""
    disk = fully_named_disk(tmp_path)
    key = write_file(tmp_path / "key", KEY)
    names = ("--redact", "--redact-names", "--hash-key", key)
    for number, path in enumerate((disk, disk / "t-0", disk / f"{NAME}-0" / f"{0:020}.log")):
        page, charts = tmp_path / f"{number}.html", tmp_path / f"charts-{number}"
        done = run("report", path, "--out", page, *names, "--charts", charts, "--chart-format", "svg")
        texts = [done.stdout, page.read_text(), *(each.read_text() for each in charts.iterdir())]
        assert CANARY not in "".join(map(html.unescape, texts)).lower()
        assert number or Pseudonyms(KEY).topic(NAME) in texts[1]


@pytest.mark.parametrize("records", [(), ("--records",)])
def test_no_name_is_in_what_inspect_prints(records: tuple[str, ...], tmp_path: Path) -> None:
    disk = fully_named_disk(tmp_path)
    paths = sorted(path for path in disk.rglob("*") if path.is_file())
    done = run("inspect", *paths, "--json", "--redact", "--redact-names", *records)
    assert len(done.stdout.splitlines()) > 1000
    assert CANARY not in done.stdout.lower()


@pytest.mark.usefixtures("host")
def test_what_cannot_be_read_is_not_named(tmp_path: Path) -> None:
    disk = named_disk(tmp_path)
    (disk / f"{NAME}-0" / f"{5:020}.index").symlink_to(f"/proc/self/{CANARY}")
    (disk / f"{NAME}-0" / f"{6:020}.index").symlink_to("/proc/self/mem")
    segment(disk, f"{CANARY}-closed-0", one(b"")).parent.chmod(0)
    out = tmp_path / "b"
    try:
        redacted(disk, out)
    finally:
        (disk / f"{CANARY}-closed-0").chmod(0o700)
    assert_clean(out)


# --- The same answers -------------------------------------------------------------------------------------------------


NAMES = Pseudonyms(KEY)
BY_KEY: dict[str, Callable[[str], str]] = {
    "topic": NAMES.topic,
    "groupId": NAMES.group,
    "transactionalId": NAMES.transactional_id,
    "host": NAMES.host,
    "clientHost": NAMES.host,
    "metadata": lambda text: "",
    **{key: partial(NAMES.of, prefix) for key, prefix in (("memberId", "member"), ("clientId", "client"))},
}
"""Keys of names, and their replacements."""
OTHERWISE = {
    "summary": ("bytes",),
    "finding": ("position", "size"),
}
"""Keys that differ, by type: checkpoints have other sizes. (Findings about other files are compared by the message.)"""


class Renamed:
    """Changes an answer about a disk into that of its redacted bundle."""

    def __init__(self, disk: Path) -> None:
        self.disk = str(disk)
        self.topics = {match["topic"] for path in disk.iterdir() if (match := PARTITION.match(path.name))}
        cluster = [json.loads(line) for line in run("cluster", "--json", disk).stdout.splitlines()]
        self.topics |= {row["topic"] for row in cluster if row["type"] == "clusterTopic"}
        self.topics |= {name.rpartition("-")[0] for row in objects("ls", disk) for name in row.get("absent", ())}
        log = disk / "__transaction_state-0"
        ids = {row["transactionalId"] for row in objects("transactions", disk) if "transactionalId" in row}
        ids = ids - {None} if log.exists() else set()
        self.names = {f"{topic}-": f"{NAMES.topic(topic)}-" for topic in self.topics}
        self.names |= {name: NAMES.transactional_id(name) for name in ids}
        either = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        self.pattern = re.compile(rf"(?<![\w.-])({either or 'nothing'})(?![a-z])")

    def value(self, value: Any, key: str = "", kind: str = "") -> Any:
        if isinstance(value, dict):
            kind = value.get("resourceType", kind)
            named = key == "shareTopics"
            return {NAMES.topic(it) if named else it: self.value(each, it, kind) for it, each in value.items()}
        if isinstance(value, list):
            return [self.value(each, key, kind) for each in value]
        if not isinstance(value, str):
            return value
        if value.startswith(self.disk):
            return self.disk + NAMES.path(value[len(self.disk) :])
        if key == "resourceName":
            key = {"TOPIC": "topic", "GROUP": "groupId"}.get(kind, key)
        if key in BY_KEY:
            return BY_KEY[key](value)
        return self.pattern.sub(lambda match: self.names[match[0]], value)


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as text: they are in the order of names. In a total, what comes first is another of what is alike."""
    rows = [row for row in rows if row.get("scope") != "total"]
    for row in rows:
        for key in OTHERWISE.get(row["type"], ()):
            row.pop(key, None)
        for value in row.values():
            if isinstance(value, list):
                value.sort(key=lambda each: json.dumps(each, sort_keys=True))
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("name", healthy_disks(TIERED))
def test_the_answers_of_a_redacted_bundle(name: str, tmp_path: Path) -> None:
    disk, out = healthy(name, tmp_path), tmp_path / "b"
    (tmp_path / "key").write_bytes(KEY)
    assert redacted(disk, out, "--hash-key", tmp_path / "key")["leftOut"] == 0
    renamed = Renamed(disk)
    shown = 0
    for command in (*COMMANDS, ("groups", "--members"), ("transactions", "--coordinator")):
        code, rows = answer(disk, command)
        there = [renamed.value(row) for row in rows]
        with in_place_of(disk, out):
            here = answer(disk, command)
        assert here[0] == code, command
        found, expected = in_any_order(here[1]), in_any_order(there)
        assert sorted(set(found) - set(expected)) == sorted(set(expected) - set(found)) == [], command
        assert len(found) == len(expected)
        shown += len(rows)
    assert shown > 50
    everything = contents(out)
    for topic in renamed.topics - set(INTERNAL_TOPICS):
        if "-" in topic:  # others are words that occur anyway
            assert topic.encode() not in everything, topic


def test_the_members_of_a_group(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "b"
    segment(disk, "__consumer_offsets-0", as_batches(list(coordinator_records("group-coordinator"))))
    (tmp_path / "key").write_bytes(KEY)
    redacted(disk, out, "--hash-key", tmp_path / "key")
    code, rows = answer(disk, ("groups", "--members"))
    assert {row["type"] for row in rows} > {"groupMember"}
    renamed = Renamed(disk)
    with in_place_of(disk, out):
        here = answer(disk, ("groups", "--members"))
    assert here[0] == code
    keys = ("type", "groupId", "memberId", "clientId", "clientHost")
    for expected, found in zip(sorted_by(keys, [renamed.value(row) for row in rows]), sorted_by(keys, here[1])):
        assert [found.get(key) for key in keys] == [expected.get(key) for key in keys]


def sorted_by(keys: tuple[str, ...], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row.get(key)) for key in keys])


# --- Keys, and again --------------------------------------------------------------------------------------------------


def test_a_name_has_one_replacement_under_a_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    disk = FIXTURES / "clean-1"
    for number in range(4):
        options = ("--hash-key", tmp_path / "key") if number < 2 else ()
        redacted(disk, tmp_path / str(number), *options)
    one_, two, three, four = (objects("ls", tmp_path / str(number)) for number in range(4))
    topics = [{row.get("topic") for row in rows} for rows in (one_, two, three, four)]
    assert topics[0] == topics[1]
    assert not (topics[0] & topics[2] | topics[2] & topics[3]) - {None, *INTERNAL_TOPICS}
    assert {NAMES.topic("payments"), *INTERNAL_TOPICS} & topics[0] >= {NAMES.topic("payments"), "__consumer_offsets"}
    assert re.fullmatch(r"t-[0-9a-f]{12}", NAMES.topic("payments"))
    assert PARTITION.match(NAMES.file("payments-0"))


def test_a_second_run_with_the_same_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "other").write_bytes(KEY[::-1])
    disk, out = aged(copy_disk(FIXTURES / "clean-1", tmp_path / "disk")), tmp_path / "b"
    options = ("--redact", "--hash-key", tmp_path / "key")

    def again(*options: object) -> dict[str, Any]:
        [summary] = objects("bundle", disk, "--out", out, *options)
        return summary

    assert again(*options)["written"] > 10
    before = {path: path.read_bytes() for path in out.rglob("*" + CONTAINER)}
    assert again(*options)["written"] == 0
    log = next((disk / "payments-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-10])
    os.utime(log, (1, 1))
    assert again(*options)["written"] == 1
    assert sum(before[path] != path.read_bytes() for path in out.rglob("*" + CONTAINER)) == 1
    redacted(disk, tmp_path / "fresh", "--hash-key", tmp_path / "key")
    for path in out.rglob("*" + CONTAINER):
        assert (tmp_path / "fresh" / path.relative_to(out)).read_bytes() == path.read_bytes(), path
    for other in ((), ("--redact", "--hash-key", tmp_path / "other")):
        assert run("bundle", disk, "--out", out, *other).exit_code == 2


def test_a_second_run_with_another_key_reads_everything(tmp_path: Path) -> None:
    disk, out = aged(copy_disk(FIXTURES / "clean-1", tmp_path / "disk")), tmp_path / "b"
    [first], [second] = (objects("bundle", disk, "--out", out, "--redact") for _ in range(2))
    assert (second["written"], second["removed"]) == (first["written"], 0)
    assert len(list(out.rglob("*" + CONTAINER))) == first["directories"]
    assert run("verify", out).exit_code in (0, 1)
    assert run("bundle", disk.parent, disk, "--out", out, "--redact").exit_code == 2
    assert run("bundle", disk, "--out", out).exit_code == 2
    plain = tmp_path / "plain"
    assert run("bundle", disk, "--out", plain).exit_code == 0
    assert run("bundle", disk, "--out", plain, "--redact").exit_code == 2


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    disk = FIXTURES / "clean-1"
    (tmp_path / "short").write_bytes(KEY[:15])
    for options in (
        ("--redact", "--records", "payments"),
        ("--hash-key", tmp_path / "short"),
        ("--redact", "--hash-key", tmp_path / "short"),
        ("--redact", "--hash-key", tmp_path / "missing"),
    ):
        done = run("bundle", disk, "--out", tmp_path / "b", *options)
        assert done.exit_code == 2, options
        assert not (tmp_path / "b").exists()


def test_what_is_in_it_is_said(tmp_path: Path) -> None:
    done = run("bundle", FIXTURES / "clean-1", "--out", tmp_path / "b", "--redact")
    assert "replaced" in done.stderr
    assert "names are replaced" in run("ls", tmp_path / "b").stderr
    segment(tmp_path / "disk", "__consumer_offsets-0", one(b"what is this?"))
    done = run("bundle", tmp_path / "disk", "--out", tmp_path / "c", "--redact")
    assert "1 file or batch left out" in done.stdout
    small = run("bundle", FIXTURES / "clean-1", "--out", tmp_path / "d", "--redact", "--no-internal")
    assert small.exit_code == 0
    assert run("groups", tmp_path / "d").exit_code == 2


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
@pytest.mark.usefixtures("host")
def test_a_repaired_batch_has_no_name_either(topic: str, tmp_path: Path) -> None:
    """A bundle has the batch as it is with its bit corrected, without what it would not have of an undamaged one."""
    data = [batch(each, offset=at) for at, each in enumerate(records_of(topic))]
    segment(tmp_path / "disk", f"{topic}-0", b"".join(flip(each, 8 * len(each) - 2) for each in data))
    out = tmp_path / "b"
    redacted(tmp_path / "disk", out)
    assert b"repaired" in contents(out)
    assert_clean(out)


# --- From elsewhere ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["replaced", "repaired"])
@pytest.mark.parametrize("place", [[0, 1 << 34], [1 << 40, 80], [0, 5], [0, -1], [0], "0", None])
def test_impossible_places(place: Any, what: str, tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "b"
    key = struct.pack(">h", 2) + struct.pack(">h", 5) + b"group"
    segment(disk, "__consumer_offsets-0", as_batches([record(key=key, value=None)] * 3))
    redacted(disk, out)
    container = out / "0" / container_name("__consumer_offsets-0")

    def change(index: dict[str, Any], add: Callable[[bytes], Extent]) -> None:
        size = segment_of(index)["status"][1]
        row = {"kind": "batch", "size": size, "header": list(range(13)), what: place}
        with_regions(index, add, (0, row))

    rewritten(container, change)
    for command in (("inspect", "--records"), ("verify",), ("groups",)):
        done = run(*command, out)
        assert done.exit_code == 2
        assert "the bundle is damaged" in " ".join((done.stderr + done.stdout).split())


def test_redacted_records_are_compared_with_others_of_the_same_key(tmp_path: Path) -> None:
    """Other bytes of a record whose names were replaced are no divergence."""
    disk = FIXTURES / "clean-1"
    bundles = []
    for number, key in enumerate((KEY, KEY, b"another key of 20 bytes")):
        (tmp_path / "key").write_bytes(key)
        bundles.append(tmp_path / f"b{number}")
        redacted(disk, bundles[-1], "--hash-key", tmp_path / "key")
    for other, relation, status in ((bundles[1], "same", 0), (bundles[2], None, 2), (disk, None, 2)):
        done = run("diff", "--json", *(path / "__consumer_offsets-0" for path in (bundles[0], other)))
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [row["relation"] for row in rows if row["type"] == "diff"] == [relation], other
        assert done.exit_code == status
