"""python -m tools.metadata_trials JARS [--only RELEASE,…] [--changed] [--compare] [--out docs/metadata-trials.json]

Mutates a metadata log that has every type of record: one record is added, removed, doubled, moved, or one field of it
is changed, also in a metadata transaction that is open or aborted. Has the classes of each release of Kafka in JARS
replay each log (ReplayMetadata.java), and compares who refuses which record, with which exception, with what kdump says
of it. Starts KafkaRaftClient on some of them, too, as the only one of one voter, which commits all, and of three, which
commits nothing: that is compared with what kdump.restart_plan says. Has LogConfig read topic configs, valid and not.
Of the newest release also logs and snapshots in which the bytes around the records are changed; --changed replays only
these, in a minute. --compare writes nothing, and exits with 1 if a result differs from the recorded one.

JARS contains a directory with the jars of tools/kafka-jars.xml for each release. Needs Java 17 and four minutes for
each release."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import refusals
from kdump.format.kafka_release import NEWEST, KafkaRelease, parse_release
from kdump.format.known_releases import KnownRelease, known
from kdump.format.message_writer import encode
from kdump.format.schema import MessageSchema, load_folder
from kdump.kafka.config_def import config_problem
from kdump.log.internal_topics import METADATA_LOG
from kdump.questions.restart_plan.node.refused_records import UNCOMMITTED
from kdump.questions.restart_plan.run import restart_plan
from tests.craft import batch, record

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "metadata-trials.json"
PROGRAM = Path(__file__).with_name("ReplayMetadata.java")
SEED_LEVEL = 21
"""metadata.version 3.9-IV0."""
CONTROL = 0x20
HEADER = record(key=bytes.fromhex("00000003"), value=bytes.fromhex("0000000001a1fd1de11f00"))
FOOTER = record(key=bytes.fromhex("00000004"), value=bytes.fromhex("000000"))
WHO = ("read", "controller", "loader")
IDS = {letter: (letter * 22)[:21] + "A" for letter in "DEFGTUVWXYZab"}
NODE = 3000
IN_BATCH = 6
"""Number of records in a batch of a log in which a batch is changed."""
FIRST_STARTED = (3, 9)
"""First release of whose classes KafkaRaftClient is started."""
NUMBERS = (-1, 0, 1, 2, 7, 99)
VALUES = (
    *("", "abc", "-3", "-1", "0", "1", "13", "1.5", " +5 ", "3000000000", "9223372036854775808", "TRUE", "NaN", "*"),
    *("delete", "compact,keep", "gzip", "LogAppendTime", "0:1,1:2", "0:"),
)
"""Values of every topic config."""
TRIED = ("3.9.1", "4.0.0", "4.3.1", "4.4.0")
RULE_SETS = ("3.6.2", "3.8.1", *TRIED[:2], "4.1.2", "4.2.2", *TRIED[2:])
"""TRIED, of which nodes are started, too, and one release of each other set of rules."""
AT = re.compile(r"(?:from|at) offset (\d+)")
IN_SNAPSHOT = re.compile(
    r"log record (\d+) in snapshot|from snapshot .* was (\d+) of .* in the batch with baseOffset (\d+)"
)
"""The number of a record in a snapshot; a controller counts from the header on, in each batch from 1."""
RECORD = re.compile(r"(?<=Record)\(.*\)|(?<=StandardAcl)\(.*\)")
UNSTATED = ("Unsupported metadata version", "Unknown metadata version for FeaturesImage")
Values = dict[str, Any]
Verdict = dict[str, tuple[int | None, str]]
"""By class (read, controller, loader): the offset of the first record that it refuses, and its exception."""


class Entry(NamedTuple):
    """A record to write; `raw`: its whole value, if no schema describes it."""

    name: str
    values: Values
    version: int | None = None
    raw: bytes | None = None


Change = Callable[[list[Values]], Values]
"""Changes the arguments of `record` of each record in a batch, and returns what it changes in its header."""


class Case(NamedTuple):
    """`entries`: the records of the log; `snapshot`: those of a snapshot before them; one in each batch. With
    `change`, several are in a batch, and it changes the records, or the header, of the batch with that number: of the
    snapshot if there is one, else of the log."""

    name: str
    entries: list[Entry]
    snapshot: list[Entry] | None = None
    change: tuple[int, Change] | None = None


class Start(NamedTuple):
    """Controller 3000 starts with the log of a case, and none of the other `voters` does."""

    name: str
    case: Case
    voters: int


def seed_level(release: KnownRelease) -> int:
    """Return the metadata.version of the log."""
    return min(SEED_LEVEL, release.features["metadata.version"].highest)


def base(release: KnownRelease) -> list[Entry]:
    """Return a log with every type of record that the release knows, which it replays without a fault."""
    listener = {"name": "PLAINTEXT", "host": "localhost", "port": 9092, "securityProtocol": 0}
    level = seed_level(release)
    feature = {"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}
    node: Values = {"endPoints": [listener], "features": [feature]}

    def broker(number: int, epoch: int, log_dir: str) -> Entry:
        own = {"brokerId": number, "incarnationId": IDS["X"], "brokerEpoch": epoch, "rack": None, "fenced": True}
        return Entry("RegisterBrokerRecord", {**node, **own, "logDirs": [IDS[log_dir]], "cordonedLogDirs": None})

    def partition(letter: str, number: int, **values: Any) -> Entry:
        numbers = {"partitionId": number, "leader": 1, "leaderEpoch": 3, "partitionEpoch": 5}
        lists = {"replicas": [1, 2], "isr": [1, 2], "directories": [IDS["D"], IDS["E"]]}
        return Entry("PartitionRecord", {"topicId": IDS[letter], **numbers, **lists, **values})

    def config(kind: int, resource: str, name: str, value: str | None) -> Entry:
        values = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
        return Entry("ConfigRecord", values)

    def quota(**values: Any) -> Entry:
        entity = [{"entityType": "user", "entityName": "ann"}]
        return Entry("ClientQuotaRecord", {"entity": entity, "key": "producer_byte_rate", "value": 1.5, **values})

    def acl(letter: str, resource: str) -> Entry:
        names = {"resourceName": resource, "principal": "User:ann", "host": "*"}
        numbers = {"resourceType": 2, "patternType": 3, "operation": 3, "permissionType": 3}
        return Entry("AccessControlEntryRecord", {"id": IDS[letter], **names, **numbers})

    def scram(user: str) -> Entry:
        keys = {"salt": b"salt", "storedKey": b"stored", "serverKey": b"server"}
        return Entry("UserScramCredentialRecord", {"name": user, "mechanism": 1, "iterations": 4096, **keys})

    times = {"issueTimestamp": 1, "maxTimestamp": 9, "expirationTimestamp": 5}
    token = {"owner": "User:ann", "requester": "User:ann", "renewers": ["User:bob"], "tokenId": "token"}
    others = [name for name in release.features if name not in ("metadata.version", "kraft.version")]
    entries = [
        Entry("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": level}),
        *(
            Entry("FeatureLevelRecord", {"name": name, "featureLevel": release.features[name].highest})
            for name in others
        ),
        Entry("RegisterControllerRecord", {**node, "controllerId": 3000, "incarnationId": IDS["Y"]}),
        broker(1, 10, "D"),
        broker(2, 11, "E"),
        Entry("UnfenceBrokerRecord", {"id": 1, "epoch": 10}),
        Entry("BrokerRegistrationChangeRecord", {"brokerId": 2, "brokerEpoch": 11, "fenced": -1}),
        Entry("ZkMigrationStateRecord", {"zkMigrationState": 0}),
        Entry("TopicRecord", {"name": "t", "topicId": IDS["T"]}),
        partition("T", 0),
        partition("T", 1, leader=2, isr=[2]),
        Entry("TopicRecord", {"name": "u", "topicId": IDS["U"]}),
        partition("U", 0),
        Entry("PartitionChangeRecord", {"partitionId": 0, "topicId": IDS["T"], "leader": 2, "isr": [2]}),
        Entry("PartitionChangeRecord", {"partitionId": 1, "topicId": IDS["T"], "isr": [2, 1]}),
        config(2, "t", "retention.ms", "1000"),
        config(4, "1", "log.cleaner.threads", "2"),
        config(4, "", "log.cleaner.threads", "3"),
        config(2, "t", "retention.ms", None),
        quota(),
        quota(remove=True),
        acl("a", "t"),
        acl("b", "u"),
        Entry("RemoveAccessControlEntryRecord", {"id": IDS["b"]}),
        scram("ann"),
        scram("bob"),
        Entry("RemoveUserScramCredentialRecord", {"name": "bob", "mechanism": 1}),
        Entry("DelegationTokenRecord", {**token, **times}),
        Entry("RemoveDelegationTokenRecord", {"tokenId": "token"}),
        Entry("ProducerIdsRecord", {"brokerId": 1, "brokerEpoch": 10, "nextProducerId": 1000}),
        Entry("ProducerIdsRecord", {"brokerId": 1, "brokerEpoch": 10, "nextProducerId": 2000}),
        Entry("TopicRecord", {"name": "v", "topicId": IDS["V"]}),
        partition("V", 0),
        Entry("RemoveTopicRecord", {"topicId": IDS["V"]}),
        Entry("FenceBrokerRecord", {"id": 2, "epoch": 11}),
        broker(3, 12, "F"),
        Entry("UnregisterBrokerRecord", {"brokerId": 3, "brokerEpoch": 12}),
        Entry("NoOpRecord", {}),
        Entry("BeginTransactionRecord", {"name": "one"}),
        config(2, "u", "cleanup.policy", "compact"),
        Entry("EndTransactionRecord", {}),
        Entry("BeginTransactionRecord", {"name": "two"}),
        Entry("TopicRecord", {"name": "w", "topicId": IDS["W"]}),
        Entry("AbortTransactionRecord", {"reason": "test"}),
        Entry("ClearElrRecord", {"topicName": "t"}),
        Entry("ClearElrRecord", {"topicName": ""}),
        Entry("UnregisterControllerRecord", {"controllerId": 3000}),
    ]
    return [each for each in entries if each.name in release.messages["metadata"]]


def cases(release: KnownRelease) -> Iterator[Case]:
    """Yield the base log and its mutations."""
    log = base(release)
    yield Case("as it is", log)
    for at, entry in enumerate(log):
        what = f"{at:02}-{entry.name.removesuffix('Record')}"
        rest = [*log[:at], *log[at + 1 :]]
        yield Case(f"{what} removed", rest)
        yield Case(f"{what} doubled", [*log[: at + 1], *log[at:]])
        yield Case(f"{what} appended", [*log, entry])
        yield Case(f"{what} moved to the end", [*rest, entry])
        yield Case(f"{what} moved to the start", [entry, *rest])
        for name, value in changes(entry, release):
            changed = entry._replace(values={**entry.values, name: value})
            yield Case(f"{what} {name} {json.dumps(value, default=str)}", [*log[:at], changed, *log[at + 1 :]])
        half = len(log) // 2
        if at > half:
            yield Case(f"{what} doubled, after a snapshot", [*log[half : at + 1], *log[at:]], stateful(log[:half]))
        if "Transaction" not in entry.name:
            begin, abort = Entry("BeginTransactionRecord", {}), Entry("AbortTransactionRecord", {})
            yield Case(f"{what} appended in an open transaction", [*log, begin, entry])
            yield Case(f"{what} doubled in an aborted transaction", [*log, begin, entry, entry, abort])
    for level in (None, 7, 13, 14, seed_level(release)):
        levels = [Entry("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": level})] if level else []
        opened = [Entry("NoOpRecord", {}), *levels, Entry("BeginTransactionRecord", {})]
        yield Case(f"open transaction at metadata.version {level}", opened)
    for name, raw in unreadable(release):
        yield Case(name, [*log[:9], Entry(name, {}, None, raw), *log[9:]])
    named = {"metadata.version": 99, "unknown.version": 1}
    named |= {name: levels.highest + 1 for name, levels in release.features.items()}
    for name, level in named.items():
        entry = Entry("FeatureLevelRecord", {"name": name, "featureLevel": level})
        lowered = {"name": name, "featureLevel": seed_level(release) if name == "metadata.version" else 1}
        yield Case(f"{name} {level} appended", [*log, entry])
        yield Case(f"{name} {level} appended and lowered", [*log, entry, entry._replace(values=lowered)])


def changed(release: KnownRelease) -> Iterator[Case]:
    """Yield logs and snapshots in which the bytes around the records of a batch are changed, as no release writes
    them; every checksum matches."""

    def of_record(number: int, **values: Any) -> Change:
        return lambda records: records[number].update(values) or {}

    def after(number: int) -> Change:
        return lambda records: records[number].update(value=records[number]["value"] + b"\0") or {}

    def without(number: int) -> Change:
        return lambda records: (records.pop(number), {"lastOffsetDelta": len(records)})[1]

    def of_header(change: Callable[[int], Values]) -> Change:
        return lambda records: change(len(records))

    changes: dict[str, Callable[[int], Change]] = {
        "has a key": lambda number: of_record(number, key=b"key"),
        "has a header": lambda number: of_record(number, headers=[(b"name", b"value")]),
        "has a later timestamp": lambda number: of_record(number, timestamp=5),
        "has no value": lambda number: of_record(number, value=None),
        "has an empty value": lambda number: of_record(number, value=b""),
        "has a byte more": after,
        "is missing": without,
    }
    headers: dict[str, Callable[[int], Values]] = {
        "is missing": lambda count: {"recordCount": -1},
        "begins 5 offsets later": lambda count: {"shift": 5},
        "begins an offset earlier": lambda count: {"shift": -1},
        "counts a record more": lambda count: {"recordCount": count + 1},
        "counts a record less": lambda count: {"recordCount": count - 1},
        "ends 3 offsets later": lambda count: {"lastOffsetDelta": count + 2},
        "has an earlier leader epoch": lambda count: {"partitionLeaderEpoch": 0},
    }
    log = base(release)
    half = len(log) // 2
    for place, entries, snapshot in (("log", log, None), ("snapshot", log[half:], stateful(log[:half]))):
        count = len(log if snapshot is None else snapshot)
        for number in range(-(-count // IN_BATCH)):
            last = min(IN_BATCH, count - number * IN_BATCH) - 1
            for at in sorted({0, last // 2, last}):
                for what, change in changes.items():
                    yield Case(f"{place}: record {number}.{at} {what}", entries, snapshot, (number, change(at)))
            for what, header in headers.items() if snapshot is None else ():
                yield Case(f"{place}: batch {number} {what}", entries, snapshot, (number, of_header(header)))


def batches_of(values: list[bytes], offset: int, change: tuple[int, Change] | None, **fields: int) -> Iterator[bytes]:
    """Yield the batches with these values of records, which begin at an offset; see Case.change."""
    size = 1 if change is None else IN_BATCH
    for number, first in enumerate(range(0, len(values), size)):
        records: list[Values] = [{"delta": at, "value": each} for at, each in enumerate(values[first : first + size])]
        header = change[1](records) if change is not None and change[0] == number else {}
        if header.get("recordCount") == -1:
            continue
        shift = header.pop("shift", 0)
        count = header.pop("recordCount", None)
        yield batch(
            [record(**each) for each in records],
            offset=offset + first + shift,
            count=count,
            **{"lastOffsetDelta": max(0, len(records) - 1), **fields, **header},
        )


def stateful(entries: list[Entry]) -> list[Entry]:
    """Return the records that a snapshot may have."""
    return [each for each in entries if "Transaction" not in each.name and each.name != "NoOpRecord"]


def changes(entry: Entry, release: KnownRelease) -> Iterator[tuple[str, Any]]:
    """Yield changes of a single field."""
    schema = load_folder("metadata")[entry.name]
    values = complete(schema, version_of(entry, release), entry.values)
    for name, value in values.items():
        if isinstance(value, bool):
            yield name, not value
        elif isinstance(value, int):
            yield from ((name, each) for each in NUMBERS if each != value)
        elif isinstance(value, str) and len(value) == 22:
            yield from ((name, IDS[each]) for each in "TUVZ" if IDS[each] != value)
        elif isinstance(value, str):
            yield from ((name, each) for each in ("", "t", "User:", "nothing") if each != value)
        elif isinstance(value, list) and value and isinstance(value[0], int):
            yield from ((name, each) for each in ([], [2, 2, 1], [-1]))
        elif isinstance(value, list) and value and isinstance(value[0], str):
            yield from ((name, each) for each in ([], [*value, IDS["Z"]], [IDS["D"]]))
        elif isinstance(value, list) and value:
            yield name, []
            yield name, [*value, *value]
            if "securityProtocol" in value[0]:
                yield name, [{**value[0], "securityProtocol": 77}]
                yield name, [{**value[0], "name": ""}]
            if "minSupportedVersion" in value[0]:
                yield name, [{**value[0], "minSupportedVersion": 50}]
                yield name, [{**value[0], "maxSupportedVersion": -1}]
            if "entityType" in value[0]:
                yield name, [{**value[0], "entityType": "planet"}]


def version_of(entry: Entry, release: KnownRelease) -> int:
    """Return the version in which the release writes a record."""
    return release.messages["metadata"][entry.name].highest if entry.version is None else entry.version


def complete(schema: MessageSchema, version: int, values: Values) -> Values:
    return {**schema.struct(version).default(), **values}


def unreadable(release: KnownRelease) -> Iterator[tuple[str, bytes]]:
    """Yield names and values of records that a release does not read."""
    topic = load_folder("metadata")["TopicRecord"]
    good = encode(topic, 0, {"name": "x", "topicId": IDS["Z"]})
    yield "unknown type", b"\x01\x7b\x00\x00"
    yield "type of the next release", bytes([1, 30, 0, 0])
    yield "TopicRecord of version 9", b"\x01\x02\x09" + good
    yield "frame of version 2", b"\x02\x02\x00" + good
    yield "frame of version 0", b"\x00\x02\x00" + good
    yield "one byte too few", b"\x01\x02\x00" + good[:-1]
    yield "one byte too many", b"\x01\x02\x00" + good + b"\x00"
    yield "unknown tag", b"\x01\x02\x00" + good[:-1] + b"\x01\x63\x01\x00"
    yield "empty", b""
    for name, versions in release.messages["metadata"].items():
        schema = load_folder("metadata")[name]
        value = encode(schema, min(versions.highest, schema.valid.highest), schema.struct(versions.highest).default())
        frame = bytes([1, schema.apiKey or 0, versions.highest + 1])
        yield f"{name} of the next version", frame + value


def value_of(entry: Entry, release: KnownRelease) -> bytes:
    if entry.raw is not None:
        return entry.raw
    schema = load_folder("metadata")[entry.name]
    version = version_of(entry, release)
    assert schema.apiKey is not None
    return bytes([1, schema.apiKey, version]) + encode(schema, version, complete(schema, version, entry.values))


def starts(release: KnownRelease) -> Iterator[Start]:
    """Yield starts with some of the logs, and with all that have an open or aborted transaction at their end."""
    if release.line < FIRST_STARTED:
        return
    logs = [each for number, each in enumerate(cases(release)) if not number % 8 or "transaction" in each.name]
    for number, case in enumerate(logs):
        yield Start(f"{case.name}, the only voter", case, 1)
        if not number % 3:
            yield Start(f"{case.name}, one of three voters", case, 3)


def write_disk(start: Start, folder: Path, release: KnownRelease) -> None:
    """Write the log directory of a controller."""
    log = folder / METADATA_LOG
    write(start.case, log, release)
    ids = [{"voterId": NODE + number} for number in range(start.voters)]
    state = {"leaderId": -1, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0, "currentVoters": ids}
    (log / "quorum-state").write_text(json.dumps({"clusterId": "", **state, "data_version": 0}))
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={IDS['X']}\nnode.id={NODE}\n")
    (folder / "voters").write_text(str(start.voters))


def write(case: Case, folder: Path, release: KnownRelease) -> None:
    """Write the metadata log of a case into a new directory."""
    folder.mkdir(parents=True)
    start = 0
    if case.snapshot is not None:
        start = len(case.snapshot)
        data = batch([HEADER], attributes=CONTROL)
        values = [value_of(entry, release) for entry in case.snapshot]
        data += b"".join(batches_of(values, 1, case.change))
        data += batch([FOOTER], offset=1 + start, attributes=CONTROL)
        (folder / f"{start:020}-0000000001.checkpoint").write_bytes(data)
    change = case.change if case.snapshot is None else None
    batches = batches_of([value_of(entry, release) for entry in case.entries], start, change, partitionLeaderEpoch=1)
    (folder / f"{start:020}.log").write_bytes(b"".join(batches))


def kafka(jars: Path, directory: Path) -> dict[str, Verdict]:
    """Have a release replay the logs in a directory; return the first fault of each class, by log."""
    command = [
        "java",
        "-XX:-OmitStackTraceInFastThrow",  # an exception that is thrown often has no message otherwise
        "-Xmx600m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        "-cp",
        f"{jars}/*",
        str(PROGRAM),
        str(directory),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    lines = done.stdout.splitlines()
    if not lines or lines[-1] != "done":
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Verdict] = {}
    for line in lines[:-1]:
        log, who, text, kind, message = line.split("\t")
        offset = AT.search(text) or AT.search(message)
        # A fault without an offset comes after all records.
        at = int(offset[1]) if offset else None
        numbers = IN_SNAPSHOT.search(text)
        if numbers:
            at = int(numbers[1]) if numbers[1] else int(numbers[2]) + int(numbers[3]) - 2
        # Up to 3.6, MetadataLoader writes the number of the record in its batch, here 0, behind the base offset.
        at = at // 10 if at and who == "loader" and parse_release(jars.name).line < (3, 7) else at
        found.setdefault(log, {}).setdefault(who, (at, plain(f"{kind}: {message}")))
    return found


def _outer(text: str) -> str:
    """Return what follows the parentheses at the start of a text, after (…)."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return "(…)" + text[at + 1 :]
    return "(…)"


def plain(exception: str) -> str:
    """Return an exception without the fields of records, and without what kdump leaves out of its text."""
    exception = RECORD.sub(lambda found: _outer(found[0]), exception)
    for start in UNSTATED:
        if start in exception:
            return exception[: exception.index(start) + len(start)]
    return exception


def kdump(folder: Path, release: KafkaRelease, in_batch: int = 1) -> Verdict:
    """Return the same as kdump states it. `in_batch`: the number of records in a batch: Kafka names a batch that
    it does not read, kdump the record; of a snapshot, it names neither."""
    found: Verdict = {}
    for each in refusals(replay_metadata(metadata_files(str(folder))), release):
        is_read = each.reader and each.offset is None  # by both classes
        exceptions = ("", each.reader, each.reader) if is_read else (each.reader, each.controller, each.loader)
        for who, exception in zip(WHO, exceptions):
            at = each.offset if each.record else None
            if at is None and each.record and not is_read:
                at = each.number
            elif at is not None and who == "read":
                at -= at % in_batch
            if exception and (who == "read" or "read" not in found):
                found.setdefault(who, (at, plain(exception)))
    return found


def says_of(case: Case, folder: Path, release: KafkaRelease) -> Verdict:
    """Return what kdump states of the log of a case."""
    return kdump(folder, release, IN_BATCH if case.change is not None else 1)


def predicted(disk: Path, release: KafkaRelease) -> Verdict:
    """Return what kdump says that a node does with this disk while no other voter runs."""
    plan = restart_plan([str(disk)], kafka_version=release)
    stop = plan.allStops[0] if plan.allStops else None
    if stop is None or UNCOMMITTED in stop.message:
        return {}
    return {"halts": (stop.offset, plain(stop.exception))}


def predicted_config(name: str, value: str, release: KnownRelease) -> Verdict:
    problem = config_problem(name, value, release.topic_rules[name])
    return {"config": (None, f"ConfigException: {problem}")} if problem else {}


def halted(faults: Verdict) -> Verdict:
    """Return the first fault of any class in the same form: each of two threads may be the first that ends the node."""
    at = min((last(offset) for offset, _ in faults.values()), default=None)
    first = [faults[who] for who in WHO if who in faults and last(faults[who][0]) == at]
    return {"halts": (first[0][0], ", or ".join(dict.fromkeys(text for _, text in first)))} if first else {}


def last(offset: int | None) -> int:
    return sys.maxsize if offset is None else offset


REASONS = (
    (
        "local.retention.",
        "up to 3.5 it is compared with retention.bytes or retention.ms; tiered storage is not released there",
        lambda release: release.line < (3, 6),
    ),
    (
        "isr [2, 2, 1]",
        "an ISR that names a broker twice upsets the controller's lists of partitions by broker (BrokersToIsrs) at the "
        "next change; no release writes one",
        lambda release: True,
    ),
    (
        '"name": ""',
        "a listener without a name is refused since 4.1 only; kdump leaves the broker out for every release, and then "
        "refuses what changes it",
        lambda release: release.line < (4, 1),
    ),
    (
        '"securityProtocol": 77',
        "an unknown security protocol is refused since 3.7 only; kdump leaves the broker out for every release, and "
        "then refuses what changes it",
        lambda release: release.line < (3, 7),
    ),
    (
        "PartitionRecord of the next version",
        "it has no directories, as no release writes it: 3.6 reads it as the version before",
        lambda release: release.line < (3, 7),
    ),
    (
        "open transaction at metadata.version None, the only voter",
        "4.0 takes the oldest level where there is none: it aborts the transaction, does not append the bootstrap "
        "records, and MetadataLoader fails at the next record; no release writes such a log",
        lambda release: release.line == (4, 0),
    ),
    (
        "counts a record",
        "no release writes it; kdump applies no record of such a batch, and states that it was not read",
        lambda release: True,
    ),
    (
        "batch 0 is missing",
        "nothing follows from what is unknown; kdump states that the log starts later, and that this was not read",
        lambda release: True,
    ),
    (
        "snapshot: record 2.2 is missing",
        "the controller counts the record by the offset of its batch, and kdump as MetadataLoader does",
        lambda release: True,
    ),
    (
        "",
        "up to 4.0, MetadataLoader applies a partition of an unknown topic, and fails when it makes the image, or at a "
        "later record; kdump names the partition's record. A controller halts there, too",
        lambda release: release.line < (4, 1),
    ),
)
"""Parts of the names of cases whose differences are known, the reasons, and for which releases they hold. The last one
is about cases in which only MetadataLoader differs."""


def reason(case: str, does: Verdict, says: Verdict, release: KafkaRelease) -> str:
    """Return why kdump says something else than Kafka does; empty if that is not known."""
    for part, why, holds in REASONS:
        alike = part or all(does.get(who) == says.get(who) for who in ("read", "controller"))
        if not part and "halts" in does and "halts" in says:
            (at, text), (offset, texts) = does["halts"], says["halts"]
            alike = at == offset and text in texts.split(", or ")
        elif not part:
            alike = alike and "halts" not in {*does, *says}
        if part in case and alike and holds(release):
            return why
    return ""


def of_logs(release: KnownRelease) -> list[Case]:
    """Return the logs that a release replays."""
    return [*cases(release), *(changed(release) if release.line == NEWEST.line else ())]


def trial(jars: Path, *, only_changed: bool = False) -> dict[str, Any]:
    """Return what a release does with each log, and the differences from what kdump says, by case."""
    release = parse_release(jars.name)
    facts = known(release.line)
    with tempfile.TemporaryDirectory() as work:
        logs = [*changed(facts)] if only_changed else of_logs(facts)
        made = {f"{number:04}": case for number, case in enumerate(logs)}
        for name, case in made.items():
            write(case, Path(work, name), facts)
        says = {case.name: says_of(case, Path(work, name), release) for name, case in made.items()}
        alone = {f"disk{number:04}": each for number, each in enumerate(() if only_changed else starts(facts))}
        for name, start in alone.items():
            write_disk(start, Path(work, name), facts)
            says[start.name] = predicted(Path(work, name), release)
        # The versions that message.format.version takes are not kept.
        configs = [(name, value) for name, rule in facts.topic_rules.items() if rule != "STRING" for value in VALUES]
        configs = [] if only_changed else configs
        Path(work, "configs").write_text("".join(f"{name}\t{value}\n" for name, value in configs))
        found = kafka(jars, Path(work))
    read = {f"{name}={value}": found.get(str(at), {}) for at, (name, value) in enumerate(configs)}
    says |= {f"{name}={value}": predicted_config(name, value, facts) for name, value in configs}
    does = {case.name: found.get(name, {}) for name, case in made.items()}
    does |= {start.name: halted(found.get(name, {})) for name, start in alone.items()}
    total = {"cases": len(does) + len(read), "refused": sum(map(bool, (*does.values(), *read.values())))}
    differ = [
        {"case": name, "kafka": done, "kdump": says[name], "reason": reason(name, done, says[name], release)}
        for name, done in (does | read).items()
        if done != says[name]
    ]
    return {**total, "does": does, "differences": differ}


def merged(before: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded result with that of some logs in place of theirs."""
    again = [does for name, does in before["does"].items() if name in result["does"]]
    return {
        "cases": before["cases"] - len(again) + result["cases"],
        "refused": before["refused"] - sum(map(bool, again)) + result["refused"],
        "does": before["does"] | result["does"],
        "differences": [each for each in before["differences"] if each["case"] not in result["does"]]
        + result["differences"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else (NEWEST.number,) if options.changed else RULE_SETS
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = dict(before)
    unexplained = 0
    for name in chosen:
        result = json.loads(json.dumps(trial(options.jars / name, only_changed=options.changed)))
        if options.changed:
            result = merged(before[name], result)
        if name != NEWEST.number:  # that of the newest is in the tests
            del result["does"]
        results[name] = result
        for each in result["differences"]:
            if not each["reason"]:
                unexplained += 1
                print(f"{name}: {each['case']}: Kafka {each['kafka']}, kdump {each['kdump']}", file=sys.stderr)
    if options.compare:
        changed = [name for name in chosen if results[name] != before.get(name)]
        print("\n".join(f"{name}: not as in {RESULTS.name}" for name in changed), file=sys.stderr)
        return int(bool(changed or unexplained))
    text = json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False)
    options.out.write_text(re.sub(r"\[\n +(\d+|null),\n +(\".*\")\n +\]", r"[\1, \2]", text) + "\n")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
