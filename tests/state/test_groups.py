"""Groups and offsets: compared with kafka-dump-log's output for the coordinators' logs, crafted records, and damage."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdump.cluster.read_groups import CoordinatorLog, newest, read_groups
from kdump.core.newest_commits import NewestCommits
from kdump.core.record_columns import RecordColumns
from kdump.format.coordinator_record import CoordinatorRecord, decode_coordinator_record
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.state import group_replay, offset_replay
from kdump.state.as_of import AsOf, Change
from kdump.state.group_replay import MODERN_RECORDS
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import MAX_PROBLEMS
from tests.conftest import DISKS, FIXTURES, ORACLE, SEED, examples
from tests.craft import batch, flip, record, split, write_file
from tests.each_case import each_case

LOG = "00000000000000000000.log"
CLEAN = FIXTURES / "clean-1" / "__consumer_offsets-0" / LOG
TXN, CONTROL = 0x10, 0x20
COMMIT, ABORT = 1, 0


def log_of(path: Path, topic: str = OFFSETS_TOPIC, partition: int = 0) -> CoordinatorLog:
    return CoordinatorLog(topic, partition, str(path), (str(path),))


def read(
    tmp_path: Path, data: bytes, moment: AsOf | None = None, all_changes: list[Change] | None = None
) -> GroupCoordinatorState:
    path = write_file(tmp_path / LOG, data)
    groups = read_groups([log_of(path)], moment)
    # Where changes are reported, each commit is applied; otherwise only the newest of each group and partition.
    changes: list[Change] = []
    each = read_groups([log_of(path)], moment, on_change=changes.append)
    assert (groups.groups, dict(groups.offsets), groups.pending) == (each.groups, dict(each.offsets), each.pending)
    assert (groups.logs, groups.problems) == (each.logs, each.problems)
    if all_changes is not None:
        all_changes += changes
    return groups


# The oracle: a second, simpler replay of kafka-dump-log's output.

LINE = re.compile(r"^baseOffset: \d+ .* producerId: (-?\d+) .*$|^\| offset: (\d+) CreateTime: (\d+) (.*)$")


def oracle(words: str) -> list[tuple[int, int, int, str]]:
    """Return offset, time, producer ID and the rest of each record's line."""
    found = []
    producer = -1
    for line in words.splitlines():
        match = LINE.match(line)
        if match and match[1] is not None:
            producer = int(match[1])
        elif match:
            found.append((int(match[2]), int(match[3]), producer, match[4]))
    return found


def naive(lines: list[tuple[int, int, int, str]]) -> dict[str, Any]:
    """Return the last value of each key, taking transactions into account."""
    last: dict[str, Any] = {}
    waiting: dict[int, dict[str, Any]] = {}
    for _, _, producer, said in lines:
        marker = re.search(r"endTxnMarker: (\w+)", said)
        if marker:
            done = waiting.pop(producer, {})
            if marker[1] == "COMMIT":
                last.update(done)
            continue
        match = re.search(r"key: (\{.*\}) payload: (.*)$", said)
        assert match is not None
        key, value = match[1], None if match[2] == "<DELETE>" else json.loads(match[2])["data"]
        (waiting.setdefault(producer, {}) if producer >= 0 else last)[key] = value
    found: dict[str, Any] = {"offsets": {}, "pending": {}, "members": {}, "epochs": {}, "classic": {}}
    for key, value in last.items():
        kind, named = int(json.loads(key)["type"]), json.loads(key)["data"]
        if value is None:
            continue
        if kind == 1:
            found["offsets"][named["group"], named["topic"], named["partition"]] = value
        elif kind == 2:
            found["classic"][named["group"]] = value
        elif kind in (3, 11):
            found["epochs"][named["groupId"]] = value["epoch"]
        elif kind in (5, 10):
            found["members"].setdefault(named["groupId"], {})[named["memberId"]] = value
    for producer, commits in waiting.items():
        for key, value in commits.items():
            named = json.loads(key)["data"]
            found["pending"][producer, named["group"], named["topic"], named["partition"]] = value["offset"]
    return found


def ours(groups: GroupCoordinatorState) -> dict[str, Any]:
    offsets = {}
    for group, commits in groups.offsets.items():
        for (topic, partition), commit in commits.items():
            said = {"offset": commit.offset, "metadata": commit.metadata, "commitTimestamp": commit.commitTimestamp}
            said["leaderEpoch"] = -1 if commit.leaderEpoch is None else commit.leaderEpoch
            if commit.topicId is not None:
                said["topicId"] = commit.topicId
            offsets[group, topic, partition] = said
    classic = [group for group in groups.groups.values() if group.type == "classic" and not group.isSimple]
    modern = [group for group in groups.groups.values() if group.type != "classic"]
    return {
        "offsets": offsets,
        "pending": {
            (producer, *at): commit.offset
            for (_, producer), held in groups.pending.items()
            for at, commit in held.items()
        },
        "classic": {
            group.groupId: (group.epoch, group.protocol, group.leader, group.stateTimestamp, set(group.members))
            for group in classic
        },
        "epochs": {group.groupId: group.epoch for group in modern if group.epoch >= 0},
        "members": {
            group.groupId: {m.memberId: (m.clientId, m.clientHost) for m in group.members.values()}
            for group in modern
            if group.members
        },
    }


def theirs(found: dict[str, Any]) -> dict[str, Any]:
    return {
        **found,
        "classic": {
            name: (
                value["generation"],
                value["protocol"],
                value["leader"],
                value["currentStateTimestamp"],
                {member["memberId"] for member in value["members"]},
            )
            for name, value in found["classic"].items()
        },
        "members": {
            group: {name: (value["clientId"], value["clientHost"]) for name, value in members.items()}
            for group, members in found["members"].items()
        },
    }


@pytest.fixture
def words() -> list[tuple[int, int, int, str]]:
    at = ORACLE / "kafka-4.3-clean-1" / "__consumer_offsets-0" / f"{LOG}.txt"
    return oracle(at.read_text(encoding="utf-8"))


def test_every_offset_is_what_kafka_dump_log_says(words: list[tuple[int, int, int, str]]) -> None:
    assert len(words) == 90
    for end in range(90):
        found = read_groups([log_of(CLEAN)], AsOf(offset=end))
        assert found.problems == []
        assert ours(found) == theirs(naive(words[: end + 1])), end
        assert found.logs[0].endOffset == end + 1


def test_a_moment_is_the_log_cut_there(words: list[tuple[int, int, int, str]], tmp_path: Path) -> None:
    parts, end = split(CLEAN.read_bytes()), 0
    for count, part in enumerate(parts, 1):
        end = int.from_bytes(part[:8], "big") + int.from_bytes(part[23:27], "big")
        cut = read(tmp_path, b"".join(parts[:count]))
        for moment in (AsOf(offset=end), AsOf(time=words[end][1])):
            if moment.time is not None and words[min(end + 1, 89)][1] == moment.time and end < 89:
                continue  # the next batch has the same millisecond
            assert ours(read_groups([log_of(CLEAN)], moment)) == ours(cut), (count, moment)


def test_the_whole_of_clean_1() -> None:
    """Produce.java of the factory committed offset 42, then both groups left; payments was deleted."""
    disk = DISKS / "kafka-4.3" / "clean-1"
    logs = [log_of(disk / f"{topic}-0" / LOG, topic) for topic in (OFFSETS_TOPIC, SHARE_TOPIC)]
    groups = read_groups(logs)
    assert {name: (group.type, group.state, group.epoch) for name, group in groups.groups.items()} == {
        "tx-group": ("classic", "Empty", -1),
        "group-classic": ("classic", "Empty", 2),
        "group-consumer": ("consumer", "Empty", 3),
        "share-one": ("share", "Empty", 3),
    }
    assert {g: {at: c.offset for at, c in commits.items()} for g, commits in groups.offsets.items()} == {
        "tx-group": {("orders-none", 0): 70},
        "group-classic": {("orders-zstd", 0): 42},
        "group-consumer": {("orders-zstd", 0): 42, ("payments", 0): 120},
    }
    [(at, state)] = groups.share["share-one"].items()
    assert (at[1], state.startOffset, state.stateEpoch) == (0, -1, 2)
    assert groups.groups["share-one"].shareTopics == {"orders-lz4": "initialized"}


def test_a_group_in_the_middle_of_its_life() -> None:
    group = read_groups([log_of(CLEAN)], AsOf(offset=60)).groups["group-consumer"]
    [member] = group.members.values()
    assert (group.state, group.epoch, group.assignmentEpoch, member.memberEpoch, member.state) == (
        *("Stable", 2, 2, 2, "STABLE"),
    )
    assert member.subscribedTopicNames == ("orders-zstd", "payments")
    assert member.assigned == member.target
    assert sorted(each.partitions for each in member.assigned) == [(0,), (0,)]
    [classic] = read_groups([log_of(CLEAN)], AsOf(offset=20)).groups["group-classic"].members.values()
    assert classic.subscribedTopicNames == ("orders-zstd", "payments")
    assert {each.topic: each.partitions for each in classic.assigned} == {"orders-zstd": (0,), "payments": (0,)}


def test_history_ends_where_the_state_does() -> None:
    all_changes: list[Change] = []
    groups = read_groups([log_of(CLEAN)], on_change=all_changes.append)
    now: dict[tuple[str | None, str], Any] = {}
    for change in all_changes:
        if change.entity != "offset" or change.action in ("pending", "aborted"):
            continue
        if change.action == "removed":
            del now[change.group, change.name]
        elif "offset" in change.fields:
            assert change.fields["offset"][0] == now.get((change.group, change.name))
            now[change.group, change.name] = change.fields["offset"][1]
    assert now == {
        (group, f"{topic}-{partition}"): commit.offset
        for group, commits in groups.offsets.items()
        for (topic, partition), commit in commits.items()
    }
    assert [change.offset for change in all_changes] == sorted(change.offset for change in all_changes)
    # Commits of the same offset are not a change.
    assert not [change for change in all_changes if change.offset in range(20, 42)]


# Crafted records.


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def short(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def compact(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def commit(group: str, topic: str, partition: int, offset: int | None, version: int = 3) -> tuple[bytes, bytes | None]:
    key = short(1) + text(group) + text(topic) + partition.to_bytes(4, "big")
    if offset is None:
        return key, None
    value = short(version) + offset.to_bytes(8, "big", signed=True)
    value += (5).to_bytes(4, "big") if version >= 3 else b""
    value += (
        (compact("note") if version >= 4 else text("note"))
        + (1000).to_bytes(8, "big")
        + ((2000).to_bytes(8, "big") if version == 1 else b"")
    )
    return key, value + (b"\0" if version >= 4 else b"")


def modern(kind: int, group: str, value: bytes | None, member: str | None = None) -> tuple[bytes, bytes | None]:
    key = short(kind) + text(group) + (b"" if member is None else text(member))
    return key, None if value is None else short(0) + value


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


Step = tuple[bytes, "bytes | None"]


def segment(*steps: Step | tuple[Step, int] | tuple[int, int]) -> bytes:
    """Return a segment with one record per batch: a key and a value, with the producer ID of its transaction if it has
    one, or (marker, producer ID)."""
    data = b""
    for offset, step in enumerate(steps):
        first, second = step
        if isinstance(first, int):
            assert isinstance(second, int)
            mark = record(key=short(0) + short(first), value=short(0) + int32(0))
            data += batch([mark], offset=offset, attributes=TXN | CONTROL, producerId=second, producerEpoch=0)
        elif isinstance(first, tuple):
            assert isinstance(second, int)
            key, value = first
            fields = {"attributes": TXN, "producerId": second, "producerEpoch": 0, "baseSequence": 0}
            data += batch([record(key=key, value=value)], offset=offset, **fields)
        else:
            assert not isinstance(second, int)
            data += batch([record(key=first, value=second)], offset=offset)
    return data


def offsets(groups: GroupCoordinatorState, group: str = "g") -> dict[tuple[str, int], int]:
    return {at: found.offset for at, found in groups.offsets.get(group, {}).items()}


@each_case(
    "steps, known, pending",
    [
        ([(commit("g", "t", 0, 5), 7)], None, 5),
        ([(commit("g", "t", 0, 5), 7), (COMMIT, 7)], 5, None),
        ([(commit("g", "t", 0, 5), 7), (ABORT, 7)], None, None),
        ([commit("g", "t", 0, 3), (commit("g", "t", 0, 5), 7), (ABORT, 7)], 3, None),
        ([(commit("g", "t", 0, 5), 7), (COMMIT, 8)], None, 5),
        # The newer record counts, whichever transaction ends first.
        ([(commit("g", "t", 0, 5), 7), commit("g", "t", 0, 9), (COMMIT, 7)], 9, None),
        ([(commit("g", "t", 0, 5), 7), (commit("g", "t", 0, 6), 8), (COMMIT, 8), (COMMIT, 7)], 6, None),
        # A tombstone also removes a pending offset.
        ([(commit("g", "t", 0, 5), 7), commit("g", "t", 0, None), (COMMIT, 7)], None, None),
        ([commit("g", "t", 0, 5), commit("g", "t", 0, None)], None, None),
        ([(commit("g", "t", 0, 5), 7), (commit("g", "t", 0, 6), 7)], None, 6),
    ],
)
def test_transactions(tmp_path: Path, steps: list[Any], known: int | None, pending: int | None) -> None:
    found = read(tmp_path, segment(*steps))
    assert offsets(found).get(("t", 0)) == known
    waiting = [c.offset for held in found.pending.values() for c in held.values()]
    assert waiting == ([] if pending is None else [pending])
    # A group that has only offsets exists as long as they do.
    assert ("g" in found.groups) == (known is not None or pending is not None)
    assert found.problems == []


def test_the_versions_of_a_commit(tmp_path: Path) -> None:
    steps = [commit("g", "t", version, 10 + version, version) for version in range(5)]
    found = read(tmp_path, segment(*steps)).offsets["g"]
    assert [found["t", version].offset for version in range(5)] == [10, 11, 12, 13, 14]
    assert [found["t", version].leaderEpoch for version in range(5)] == [None, None, None, 5, 5]
    assert [found["t", version].expireTimestamp for version in range(5)] == [None, 2000, None, None, None]


EPOCH_2 = int32(2) + b"\0"
MEMBER = b"\0\0" + compact("client") + compact("/10.0.0.1") + b"\x02" + compact("t") + b"\0" + int32(300) + b"\0\0"
BEGUN = [modern(3, "g", EPOCH_2), modern(5, "g", MEMBER, "m")]


def current(epoch: int, state: int) -> bytes:
    return int32(epoch) + int32(epoch - 1) + bytes([state]) + b"\x01\x01\0"


@each_case(
    "steps, state",
    [
        ([modern(3, "g", EPOCH_2)], "Empty"),
        (BEGUN, "Assigning"),
        ([*BEGUN, modern(6, "g", EPOCH_2)], "Reconciling"),
        ([*BEGUN, modern(6, "g", EPOCH_2), modern(8, "g", current(2, 0), "m")], "Stable"),
        ([*BEGUN, modern(6, "g", EPOCH_2), modern(8, "g", current(2, 1), "m")], "Reconciling"),
    ],
)
def test_the_state_of_a_consumer_group(tmp_path: Path, steps: list[Any], state: str) -> None:
    found = read(tmp_path, segment(*steps))
    assert (found.groups["g"].type, found.groups["g"].state, found.problems) == ("consumer", state, [])


STREAMS_MEMBER = b"\0\0" + compact("c") + compact("/h") + int32(9) + int32(4) + compact("p") + b"\xff\x01\0"
TASKS = b"\x02" + compact("0") + b"\x03" + int32(1) + int32(2) + b"\0"


def test_a_streams_group(tmp_path: Path) -> None:
    topology = int32(4) + b"\x02" + compact("0") + b"\x02" + compact("in") + b"\x01\x01\x01\x01\x01\0\0"
    steps = [
        modern(19, "s", STREAMS_MEMBER, "m"),
        modern(17, "s", int32(2) + bytes(8) + b"\0"),
        modern(23, "s", topology),
    ]
    found = read(tmp_path, segment(*steps))
    assert (found.groups["s"].type, found.groups["s"].state, found.problems) == ("streams", "NotReady", [])
    steps += [
        modern(17, "s", int32(2) + bytes(8) + b"\x01\x00\x04" + int32(4)),
        modern(20, "s", EPOCH_2),
        modern(21, "s", TASKS + b"\x01\x01\0", "m"),
        modern(22, "s", int32(2) + int32(1) + b"\x01" + TASKS + b"\x01" * 5 + b"\0", "m"),
    ]
    group = read(tmp_path, segment(*steps)).groups["s"]
    assert (group.state, group.topologyEpoch, group.subtopologies) == ("Stable", 4, ("0",))
    assert group.members["m"].assigned == group.members["m"].target == (("0", (1, 2)),)
    gone = [modern(22, "s", None, "m"), modern(21, "s", None, "m"), modern(19, "s", None, "m")]
    assert read(tmp_path, segment(*steps, *gone)).groups["s"].state == "Empty"
    gone += [modern(20, "s", None), modern(23, "s", None), modern(17, "s", None)]
    assert read(tmp_path, segment(*steps, *gone)).groups == {}


def test_a_group_becomes_one_of_the_new_protocol(tmp_path: Path) -> None:
    classic = (short(2) + text("g"), short(0) + text("consumer") + int32(3) + b"\xff\xff\xff\xff" + int32(0))
    found = read(tmp_path, segment(classic, commit("g", "t", 0, 5)))
    assert (found.groups["g"].type, found.groups["g"].epoch) == ("classic", 3)
    upgraded = [classic, commit("g", "t", 0, 5), (classic[0], None), modern(3, "g", EPOCH_2)]
    found = read(tmp_path, segment(*upgraded))
    assert (found.groups["g"].type, offsets(found), found.problems) == ("consumer", {("t", 0): 5}, [])
    # Kafka throws an exception for this one, and loads nothing.
    found = read(tmp_path, segment(classic, modern(3, "g", EPOCH_2)))
    assert found.groups["g"].type == "consumer"
    assert re.findall(r"\bclassic\b|\bconsumer\b", found.problems[0]) == ["classic", "consumer"]


def test_offsets_of_a_deleted_group(tmp_path: Path) -> None:
    classic = (short(2) + text("g"), short(0) + text("consumer") + int32(3) + b"\xff\xff\xff\xff" + int32(0))
    found = read(tmp_path, segment(classic, commit("g", "t", 0, 5), (classic[0], None)))
    assert (found.groups["g"].state, offsets(found)) == ("Dead", {("t", 0): 5})
    found = read(tmp_path, segment(classic, commit("g", "t", 0, 5), (classic[0], None), commit("g", "t", 0, None)))
    assert found.groups == {}


def test_every_type_of_record_has_a_handler() -> None:
    from kdump.format.schema import load_folder
    from kdump.state.group_replay import MODERN

    others = {"OffsetCommitKey", "LegacyOffsetCommitKey", "GroupMetadataKey"}
    for name, schema in load_folder("group-coordinator").items():
        if schema.type == "coordinator-key" and name not in others:
            match = MODERN.fullmatch(name)
            assert match is not None
            assert match[2] in MODERN_RECORDS


def test_share_state(tmp_path: Path) -> None:
    def key(kind: int) -> bytes:
        return short(kind) + text("g") + b"T" * 16 + int32(3)

    def snapshot(start: int) -> bytes:
        times = (5).to_bytes(8, "big") + (6).to_bytes(8, "big")
        return short(0) + int32(1) + int32(2) + int32(3) + start.to_bytes(8, "big", signed=True) + times + b"\x01\0"

    def update(start: int, done: int) -> bytes:
        said = short(0) + int32(1) + int32(4) + start.to_bytes(8, "big", signed=True)
        return said + b"\x01" + b"\x01\x00\x04" + int32(done)

    path = write_file(tmp_path / LOG, segment((key(0), snapshot(10)), (key(1), update(-1, 3)), (key(1), update(25, 1))))
    for offset, expected in enumerate([(10, -1, 3), (10, 3, 4), (25, 1, 4)]):
        found = read_groups([log_of(path, SHARE_TOPIC)], AsOf(offset=offset))
        [state] = found.share["g"].values()
        assert (state.startOffset, state.deliveryCompleteCount, state.leaderEpoch) == expected
        assert (state.stateEpoch, found.problems) == (2, [])


def test_share_groups_that_are_gone_take_no_room(tmp_path: Path) -> None:
    said = short(0) + int32(1) * 3 + bytes(24) + b"\x01\0"
    steps: list[Step] = []
    for name in range(300):
        key = short(0) + text(f"g{name}") + b"T" * 16 + int32(3)
        steps += [(key, said), (key, None), (key, None)]
    (tmp_path / LOG).write_bytes(segment(*steps))
    found = read_groups([log_of(tmp_path / LOG, SHARE_TOPIC)], room=20_000)
    assert (found.share, found.problems) == ({}, [])


def test_copies_and_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.cluster.read_groups._end", lambda log: {"x/a": 5, "y/b": 9, "c": 0}[log.path])
    one, two = (CoordinatorLog(OFFSETS_TOPIC, 0, name, (name,)) for name in ("x/a", "y/b"))
    other = CoordinatorLog(OFFSETS_TOPIC, 3, "c", ())
    assert newest([other, one, two]) == [two, other]


# Damage.


@pytest.mark.sampled
def test_flipped_bits(tmp_path: Path) -> None:
    data = CLEAN.read_bytes()
    sound = ours(read_groups([log_of(CLEAN)]))
    dice = random.Random(5)
    unseen, count = 0, 80 if SEED else 30
    for bit in dice.sample(range(len(data) * 8), count):
        found = read(tmp_path, flip(data, bit))
        if not found.problems:
            unseen += 1
            assert ours(found).keys() == sound.keys()
    assert unseen < count * 3 // 8  # base offsets and leader epochs, which no checksum covers


def test_what_stands_behind_damage_is_read(tmp_path: Path) -> None:
    parts = split(CLEAN.read_bytes())
    middle = flip(parts[30], 700)
    found = read(tmp_path, b"".join([*parts[:30], middle, *parts[31:]]))
    assert len(found.problems) == 1
    assert found.logs[0].endOffset == 90
    assert offsets(found, "group-consumer") == {("orders-zstd", 0): 42, ("payments", 0): 120}


COMMITS = st.builds(
    commit,
    st.sampled_from(["g", "h", "gr\u00fc\u00dfe"]),
    st.sampled_from(["t", "u"]),
    st.integers(0, 1),
    st.none() | st.integers(0, 99),
    st.sampled_from([0, 1, 2, 3, 4, 4]),
)
STEPS = st.one_of(
    st.tuples(COMMITS, st.just(-1)),
    st.tuples(COMMITS, st.sampled_from([-1, -1, 0, 7])),
    st.tuples(st.sampled_from([0, 7]), st.sampled_from([COMMIT, ABORT])),
    st.just((modern(3, "g", short(0) + int32(4) + b"\0"), -1)),
    st.just((modern(3, "g", None), -1)),
    st.tuples(st.tuples(st.just(commit("g", "t", 0, 5)[0]), st.binary(max_size=30)), st.just(-1)),
)


@pytest.mark.sampled
@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=30), st.sampled_from([600, group_replay.MAX_BYTES]))
def test_only_the_newest_commit_is_decoded(tmp_path: Path, steps: list[Any], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_replay, "MAX_BYTES", limit)
        read(tmp_path, segment(*steps))


def test_commits_that_are_overwritten_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes | None] = []

    def counting(folder: str, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
        decoded.append(key)
        return decode_coordinator_record(folder, key, value)

    monkeypatch.setattr(offset_replay, "decode_coordinator_record", counting)
    path = tmp_path / LOG
    for version in (1, 2, 3, 4):
        path.write_bytes(segment(*((commit("g", "t", number % 3, number, version), -1) for number in range(300))))
        decoded.clear()
        groups = read_groups([log_of(path)])
        assert offsets(groups) == {("t", 0): 297, ("t", 1): 298, ("t", 2): 299}
        assert len(decoded) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 25), st.binary(max_size=40), st.none() | st.binary(max_size=60)), max_size=8))
def test_any_records(tmp_path: Path, said: list[tuple[int, bytes, bytes | None]]) -> None:
    steps = [(short(kind) + key, None if value is None else short(len(value) % 5) + value) for kind, key, value in said]
    all_changes: list[Change] = []
    read(tmp_path, segment(*steps), all_changes=all_changes)
    path = tmp_path / LOG
    read_groups([log_of(path, SHARE_TOPIC)])


def test_values_cut_short_never_raise(tmp_path: Path) -> None:
    steps = [commit("g", "t", 0, 5), modern(5, "g", MEMBER, "m"), modern(8, "g", current(2, 0), "m")]
    steps += [modern(19, "s", STREAMS_MEMBER, "m")]
    for key, value in steps:
        assert value is not None
        for size in range(len(value)):
            found = read(tmp_path, segment((key, value[:size])))
            assert found.problems, size
            assert not offsets(found)


def test_memory_and_problems_are_bounded(tmp_path: Path) -> None:
    data = segment(*(commit(f"g{i}", "t", 0, i) for i in range(300)))
    (tmp_path / LOG).write_bytes(data)
    found = read_groups([log_of(tmp_path / LOG)], room=20_000)
    assert 5 < sum(map(len, found.offsets.values())) < 60
    assert len(found.problems) == 1
    assert len(found.offsets) < 60  # nor is there an empty entry for each group that exceeds the room
    (tmp_path / LOG).write_bytes(segment(*((commit(f"g{i}", "t", 0, i), i) for i in range(300))))
    assert len(read_groups([log_of(tmp_path / LOG)], room=0).pending) == 0
    assert len(read(tmp_path, segment(*((b"", b"") for _ in range(300)))).problems) == MAX_PROBLEMS


def test_the_commits_that_are_kept_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and metadata may be long: their number alone bounds nothing."""
    monkeypatch.setattr(group_replay, "MAX_BYTES", 100_000)
    kept: list[int] = []

    class Counting(NewestCommits):
        """Counts the bytes of what is kept."""

        def __init__(self, most: int) -> None:
            super().__init__(most)
            self.sizes: dict[bytes | None, int] = {}

        def put(self, columns: RecordColumns, row: int, *more: Any) -> int:
            stop: int = super().put(columns, row, *more)
            for number in range(row, stop):
                key_size, value_size = columns.key_size[number], columns.value_size[number]
                start = columns.key_start[number]
                self.sizes[bytes(columns.data[start : start + key_size])] = 8 + key_size + value_size
            kept.append(sum(self.sizes.values()))
            return stop

        def take(self) -> Iterator[tuple[bytes, int, bytes]]:
            self.sizes.clear()
            return super().take()

    monkeypatch.setattr(group_replay, "NewestCommits", Counting)
    path = tmp_path / LOG
    path.write_bytes(segment(*((commit(f"{number:030000}", "t", 0, number), -1) for number in range(12))))
    assert len(read_groups([log_of(path)]).groups) == 12
    assert 60_000 < max(kept) <= 100_000
