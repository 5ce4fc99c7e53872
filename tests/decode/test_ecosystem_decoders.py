"""Decoders of the topics of Connect, MirrorMaker and Kafka Streams."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

from kdump.format.streams_record import key_structure
from tests import command
from tests.each_case import each_case
from tests.registry_disk import BEGIN, SCHEMAS, Step, encoded, framed, write

run = partial(command.run, "inspect")
ENDS = 1_795_000_060_000
TIME = struct.pack(">q", BEGIN)
LATER = struct.pack(">q", ENDS)
SEQ = struct.pack(">i", 3)


def decoded(root: Path, name: str, steps: list[Step], *arguments: Any) -> list[dict[str, Any]]:
    """Write a partition and return the decoded keys and values of its records."""
    write(root, {f"{name}-0": list(steps)})
    found = command.objects("inspect", root / f"{name}-0", "--records", *arguments)
    names = ("keyDecoded", "valueDecoded", "keyProblem", "valueProblem", "valueNote", "keyNote")
    return [{name: each[name] for name in names if name in each} for each in found if each["type"] == "record"]


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


SYNC = Step(string("t") + struct.pack(">i", 2), struct.pack(">qq", 7, 5))
CHECKPOINT = Step(string("g") + string("a.t") + struct.pack(">i", 2), struct.pack(">hqq", 0, 7, 5) + string("m"))
HEARTBEAT = Step(string("a") + string("b"), struct.pack(">hq", 0, BEGIN))


@each_case(
    "name, step, key, value",
    [
        ("mm2-offset-syncs.a.internal", SYNC, {"topic": "t", "partition": 2}, {"upstreamOffset": 7, "offset": 5}),
        ("mm2-offset-syncs_a_internal", SYNC, {"topic": "t", "partition": 2}, {"upstreamOffset": 7, "offset": 5}),
        (
            "a.checkpoints.internal",
            CHECKPOINT,
            {"group": "g", "topic": "a.t", "partition": 2},
            {"version": 0, "upstreamOffset": 7, "offset": 5, "metadata": "m"},
        ),
        (
            "heartbeats",
            HEARTBEAT,
            {"sourceClusterAlias": "a", "targetClusterAlias": "b"},
            {"version": 0, "timestamp": BEGIN},
        ),
        (
            "a.heartbeats",
            HEARTBEAT,
            {"sourceClusterAlias": "a", "targetClusterAlias": "b"},
            {"version": 0, "timestamp": BEGIN},
        ),
    ],
)
def test_mirror_maker(name: str, step: Step, key: Any, value: Any, tmp_path: Path) -> None:
    (found,) = decoded(tmp_path, name, [step])
    assert found["keyDecoded"]["data"] == key
    assert found["valueDecoded"]["data"] == value
    said = run(tmp_path / f"{name}-0", "--hex").stdout
    assert "value.offset" in said or "value.timestamp" in said


def test_names_that_others_may_have_count_only_if_the_bytes_fit(tmp_path: Path) -> None:
    steps = [Step(b"door", b"open"), Step(string("a") + string("b"), struct.pack(">hq", 1, BEGIN)), HEARTBEAT]
    found = decoded(tmp_path / "a", "door.heartbeats", steps)
    assert [list(each) for each in found] == [[], [], ["keyDecoded", "valueDecoded"]]
    found = decoded(tmp_path / "b", "my-connect-offsets", [Step(b"k", b"v"), Step(encoded(["c", {"a": 1}]), b"{}")])
    assert [list(each) for each in found] == [[], ["keyDecoded", "valueDecoded"]]
    assert run(tmp_path / "a" / "door.heartbeats-0", "--hex").exit_code == 0


def test_a_decoder_that_is_named_states_what_does_not_fit(tmp_path: Path) -> None:
    found = decoded(tmp_path / "a", "t", [Step(b"door", b"open")], "--decoder", "mm2-checkpoints")
    assert found[0]["keyProblem"].startswith("at byte 0: CheckpointKey.group: length 25711")
    found = decoded(tmp_path / "b", "t", [Step(b"k", b"v")], "--decoder", "streams-session")
    assert found[0]["keyProblem"] == "1 bytes, at least 16 needed for its window"
    found = decoded(tmp_path / "c", "t", [Step(b"k", b"v")], "--decoder", "connect-configs")
    assert found == [
        {"keyProblem": "invalid key 'k'", "valueProblem": "not JSON: Expecting value: line 1 column 1 (char 0)"}
    ]


def test_bytes_that_are_left_over_and_other_versions(tmp_path: Path) -> None:
    steps = [Step(CHECKPOINT.key, CHECKPOINT.value + b"xx"), Step(CHECKPOINT.key, b"\0\7" + CHECKPOINT.value[2:])]
    found = decoded(tmp_path, "a.checkpoints.internal", steps)
    assert [each["valueNote"] for each in found] == ["2 bytes left over", "version 7, decoded as 0"]


def test_connect(tmp_path: Path) -> None:
    """Secrets are hidden in what is decoded."""
    steps = [
        Step(b"session-key", {"key": "canary", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        Step(b"connector-c", {"properties": {"a.password": "canary", "url": "x://u:canary@h", "b": "${env:PASSWORD}"}}),
        Step(b"connector-c", None),
    ]
    found = decoded(tmp_path / "a", "connect-configs", steps)
    assert [each["valueDecoded"] for each in found] == [
        {"key": "[hidden]", "algorithm": "HmacSHA256", "creation-timestamp": 1},
        {"properties": {"a.password": "[hidden]", "url": "[hidden]", "b": "${env:PASSWORD}"}},
        None,
    ]
    found = decoded(tmp_path / "b", "connect-offsets", [Step(encoded(["c", {"file": "x"}]), {"at": 1})])
    assert found == [{"keyDecoded": ["c", {"file": "x"}], "valueDecoded": {"at": 1}}]
    found = decoded(tmp_path / "c", "connect-status", [Step(b"status-task-c-0", {"state": "RUNNING"})])
    assert found == [{"keyDecoded": "status-task-c-0", "valueDecoded": {"state": "RUNNING"}}]


def windowed(start: int = BEGIN) -> dict[str, Any]:
    return {"key": "k", "startMs": start}


CHANGELOG: dict[str, tuple[bytes, Any]] = {
    "window store": (b"k" + TIME + SEQ, windowed() | {"seqnum": 3}),
    "session store": (b"k" + LATER + TIME, {"key": "k", "endMs": ENDS, "startMs": BEGIN}),
    "windowed key": (b"k" + TIME, windowed()),
    "key value": (b"k", None),
    "a long key": (struct.pack(">q", BEGIN), None),
    "a long key in a window": (struct.pack(">q", 300) + TIME, {"key": "\0" * 6 + "\1,", "startMs": BEGIN}),
    "bytes in a window": (b"\xff" + TIME, {"key": {"base64": "/w=="}, "startMs": BEGIN}),
    "a session that ends before it starts": (
        b"k" + TIME + LATER,
        {"key": "k" + TIME.decode("latin1"), "startMs": ENDS},
    ),
}


@each_case("name", CHANGELOG)
def test_keys_of_changelogs(name: str, tmp_path: Path) -> None:
    key, expected = CHANGELOG[name]
    (found,) = decoded(tmp_path, "app-store-changelog", [Step(key, b"1")])
    if isinstance(expected, dict) and name.startswith("a session"):
        assert found["keyDecoded"]["startMs"] == ENDS
    else:
        assert found.get("keyDecoded") == expected


def test_formats_apply_inside_of_the_structure(tmp_path: Path) -> None:
    long = struct.pack(">q", 7)
    arguments = ("--key-format", "int64", "--value-format", "int64")
    (found,) = decoded(tmp_path / "a", "app-store-changelog", [Step(long + TIME + SEQ, long)], *arguments)
    assert found == {"keyDecoded": {"key": 7, "startMs": BEGIN, "seqnum": 3}, "valueDecoded": 7}
    (found,) = decoded(tmp_path / "b", "out", [Step(long + TIME, long)], *arguments, "--decoder", "streams-windowed")
    assert found["keyDecoded"] == {"key": 7, "startMs": BEGIN}
    (found,) = decoded(tmp_path / "c", "app-store-changelog", [Step(b"abc" + TIME, b"x")], *arguments)
    assert found["keyProblem"] == "at byte 3: 8 bytes needed, 3 found"
    assert found["keyDecoded"] == {"key": "abc", "startMs": BEGIN}
    write(tmp_path / "d", {"_schemas-0": SCHEMAS})
    steps = [Step(b"k" + TIME + SEQ, framed(1, b"\2"))]
    (found,) = decoded(tmp_path / "e", "app-store-changelog", steps, "--schemas", tmp_path / "d")
    assert found["valueDecoded"]["data"] == {"id": 1}
    assert found["keyDecoded"] == windowed() | {"seqnum": 3}


CHANGES: list[tuple[bytes, Any]] = [
    (b"old\0", [None, "old", True]),
    (b"new\1", ["new", None, True]),
    (b"\6newold\2", ["new", "old", True]),
    (b"old\0\3", [None, "old", False]),
    (b"new\1\4", ["new", None, True]),
    (b"\6newold\0\5", ["new", "old", False]),
    (b"", "at byte 0: Change.encodingFlag"),
    (b"x\6", "6 is not a flag"),
    (b"\xff\xff\xff\xff\x0f\2", "Change.newDataLength"),
    (b"\2", "Change.newDataLength"),
    (b"\3", "Change.isLatest"),
    (b"x\7\4", "Change.isLatest"),
]


def test_changes(tmp_path: Path) -> None:
    """KIP-904, and the formats before it."""
    steps = [Step(b"k", value) for value, _ in CHANGES]
    for root, name, arguments in (
        (tmp_path / "a", "app-by-kind-repartition", ("--decoder", "streams-change")),
        (tmp_path / "b", "app-KTABLE-AGGREGATE-STATE-STORE-0000000007-repartition", ()),
    ):
        found = decoded(root, name, steps, *arguments)
        for each, (_, expected) in zip(found, CHANGES):
            if isinstance(expected, list):
                assert list(each["valueDecoded"].values()) == expected
            else:
                assert expected in each["valueProblem"]


@each_case(
    "topic, step, classes",
    [
        (
            "a-store-changelog",
            Step(b"k" + TIME, b"x", ((b"v", b"\3"),)),
            ({"key": "k", "startMs": BEGIN}, "BufferValue"),
        ),
        ("a-b-changelog", Step(TIME + b"\1k", b"x"), ("TimestampedKeyAndJoinSide", "LeftOrRightValue")),
        ("a-b-changelog", Step(TIME + b"\2k", b"x"), (None, None)),
        ("a-j-subscription-registration-topic", Step(b"k", b"x"), (None, "SubscriptionWrapper")),
        (
            "a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000012-topic",
            Step(b"k", b"x"),
            (None, "SubscriptionResponseWrapper"),
        ),
        (
            "a-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000009-changelog",
            Step(b"k", b"x"),
            ("CombinedKey", "SubscriptionWrapper"),
        ),
        ("a-j-subscription-store-changelog", Step(b"k", None), ("CombinedKey", None)),
    ],
)
def test_what_is_named_and_not_taken_apart(topic: str, step: Step, classes: Any, tmp_path: Path) -> None:
    (found,) = decoded(tmp_path, topic, [step])
    names = []
    for part in ("keyDecoded", "valueDecoded"):
        value = found.get(part)
        names.append(value.get("name", value) if isinstance(value, dict) else value)
    assert tuple(names) == classes


def test_no_structure_without_a_plausible_time() -> None:
    assert key_structure(b"a key of twenty bytes") == ""
    assert key_structure(bytes(20)) == ""
    assert key_structure(b"") == ""
    assert key_structure(b"k" + struct.pack(">qi", BEGIN, -1)) == ""


def test_every_view_decodes_them(tmp_path: Path) -> None:
    write(tmp_path, {"connect-offsets-0": [Step(encoded(["c", {"file": "x"}]), {"at": 1})]})
    place = tmp_path / "connect-offsets-0"
    assert '["c",{"file":"x"}]' in run(place, "--records").stdout
    assert run(place, "-f", "%d %D\\n").stdout == '["c",{"file":"x"}] {"at":1}\n'
    assert json.loads(run(place, "--records", "--json", "--no-decode").stdout.splitlines()[0]).get("keyDecoded") is None
