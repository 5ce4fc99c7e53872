"""`kdump connect` on the command line, and the rules of Connect's workers behind it."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.render.stdout import Output
from tests import command
from tests.conftest import FIXTURES
from tests.craft import batch, record, write_file
from tests.disks import marker
from tests.each_case import each_case
from tests.registry_disk import BEGIN, LATER, LOG, STEP, Step, encoded, write
from tests.state.test_metadata import config, partition, topic
from tests.state.test_metadata import log as metadata_log

run = partial(command.run, "connect")
run_doctor = partial(command.run, "doctor")
Steps = list[Step | None]


def objects(*arguments: Any, status: int = 0) -> list[dict[str, Any]]:
    """Return the objects that are not notes."""
    return [
        each for each in command.objects("connect", *arguments, status=status, types=TYPES) if each["type"] != "note"
    ]


def rows(kind: str, *arguments: Any) -> list[dict[str, Any]]:
    return [each for each in objects(*arguments) if each["type"] == kind]


def notes(*arguments: Any) -> str:
    return run(*arguments).stderr


def connector(name: str, **config: Any) -> Step:
    return Step(
        b"connector-" + name.encode(), {"properties": {name.replace("_", "."): each for name, each in config.items()}}
    )


def task(name: str, number: int, **config: Any) -> Step:
    return Step(b"task-%b-%d" % (name.encode(), number), {"properties": config})


def commit(name: str, tasks: Any) -> Step:
    return Step(b"commit-" + name.encode(), {"tasks": tasks})


def target(name: str, **state: str) -> Step:
    return Step(b"target-state-" + name.encode(), {name.replace("_", "."): each for name, each in state.items()})


def gone(key: bytes) -> Step:
    return Step(key, None)


def status(key: str, state: str, generation: int = 1, **more: Any) -> Step:
    value = {"state": state, "trace": None, "worker_id": "w:1", "generation": generation} | more
    return Step(b"status-" + key.encode(), value)


def offset(name: str, partition: Any, value: Any) -> Step:
    return Step(json.dumps([name, partition]).encode(), value)


RISK, LOST = "connector-history-retention", "connector-history-incomplete"
HISTORIES = {
    "kept": ({"retention.ms": "-1"}, 0, "", None),
    "retention by time": (
        {},
        0,
        "has retention.ms=604800000, and must keep every record",
        "connector-history-retention",
    ),
    "retention by size": (
        {"retention.ms": "-1", "retention.bytes": "9"},
        0,
        "retention.bytes=9",
        "connector-history-retention",
    ),
    "compacted": ({"cleanup.policy": "compact"}, 0, "has cleanup.policy=compact,", RISK),
    "truncated": ({"retention.ms": "-1"}, 5, "offsets 0..4 of dbh (", LOST),
    "both": ({}, 5, "schema history at risk", LOST),
    "of another cluster": (None, None, "", None),
}


@each_case("case", HISTORIES)
@pytest.mark.parametrize("key", ["schema.history.internal.kafka.topic", "database.history.kafka.topic"])
def test_a_schema_history_must_be_whole(case: str, key: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A connector that reads only a part of it fails, and no record says why."""
    configs, start, remark, code = HISTORIES[case]
    root = tmp_path_factory.mktemp("disk")
    write(root, {"connect-configs-0": [connector("c", **{key: "dbh"}), commit("c", 0)]})
    if configs is not None:
        described = [topic("dbh", "D"), partition("D", 0, [1])]
        described += [config(2, "dbh", name, value) for name, value in configs.items()]
        write_file(root / "__cluster_metadata-0" / LOG, metadata_log(described))
        write_file(root / "dbh-0" / f"{start:020}.log", batch([record(value=b"v")], offset=start))
    (row,) = rows("connector", root)
    assert bool(row["remarks"]) == bool(remark)
    assert remark in " ".join(row["remarks"])
    items = [json.loads(line) for line in run_doctor(root, "--json").stdout.splitlines()]
    codes = [(each["code"], each["connector"]) for each in items if each.get("connector")]
    assert codes == ([] if code is None else [(code, "c")])


def test_a_failure_is_its_last_cause(tmp_path: Path) -> None:
    trace = (
        "org.E: wrapper\n\tat a.b(C.java)\nCaused by: org.F: inner\n\tat d\nCaused by: org.G: the cause\n\t... 1 more\n"
    )
    traces = [trace, "org.E: alone\n\tat a", "org.E: at jdbc:x://u:secret@h/db", ""]
    steps = [status(f"task-c-{number}", "FAILED", trace=each) for number, each in enumerate(traces)]
    write(tmp_path, {"connect-configs-0": [connector("c"), commit("c", 0)], "connect-status-0": [*steps]})
    assert [each["failure"] for each in rows("connectorTask", tmp_path)] == [
        *("org.G: the cause", "org.E: alone", "[hidden]", None)
    ]
    page = run_doctor(tmp_path).stdout
    assert "connect      1 connector, 4 tasks; 4 failed" in page
    assert "connectors or tasks have failed" in page


def test_tasks_of_deleted_connectors_have_not_failed(tmp_path: Path) -> None:
    steps = {
        "connect-configs-0": [connector("c"), gone(b"connector-c")],
        "connect-status-0": [status("task-c-0", "FAILED")],
    }
    write(tmp_path, {name: [*each] for name, each in steps.items()})
    assert "connect      0 connectors, 0 tasks; none has failed" in run_doctor(tmp_path).stdout


CONFIGS: Steps = [
    Step(b"session-key", {"key": "a2V5LWNhbmFyeS0x", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
    connector("in", connector_class="FileStreamSource", file="a", tasks_max="2"),
    task("in", 0, file="a0"),
    task("in", 1, file="a1"),
    commit("in", 2),
    connector(
        "out", topics="t", db_password="canary-2", connection_url="jdbc:x://u:canary-3@h/db", key="${file:/s:key}"
    ),
    task("out", 0, topics="t"),
    commit("out", 1),
    connector("in", connector_class="FileStreamSource", file="b", tasks_max="2"),
    task("in", 0, file="b0"),
    target("out", state="PAUSED", state_v2="STOPPED"),
    connector("old", connector_class="x.OldSourceConnector"),
    task("old", 0, file="o"),
    commit("old", 1),
    gone(b"connector-old"),
    gone(b"target-state-old"),
]
STATUS: Steps = [
    status("connector-in", "RUNNING", 3, version="4.3.1"),
    status("task-in-0", "RUNNING", 3),
    status("task-in-0", "UNASSIGNED", 3),
    status("task-in-1", "FAILED", 3, trace="java.lang.Error\n\tat x"),
    Step(
        b"status-topic-t:connector-in",
        {"topic": {"name": "t", "connector": "in", "task": 0, "discoverTimestamp": BEGIN}},
    ),
    status("connector-lost", "RUNNING"),
]
OFFSETS: Steps = [
    offset("in", {"file": "a"}, {"position": 10}),
    offset("in", {"file": "a"}, {"position": 20}),
    offset("old", {"file": "o"}, {"position": 5}),
    offset("in", {"file": "z"}, {"position": 1}),
    offset("in", {"file": "z"}, None),
    offset("never", {"file": "n"}, {"position": 2}),
]


def disk(root: Path, configs: Steps = CONFIGS, statuses: Steps = STATUS, offsets: Steps = OFFSETS) -> Path:
    return write(root, {"connect-configs-0": configs, "connect-status-0": statuses, "connect-offsets-0": offsets})


def test_connectors_tasks_and_offsets(tmp_path: Path) -> None:
    disk(tmp_path)
    found = {each["name"]: each for each in rows("connector", tmp_path)}
    assert {name: (each["state"], each["targetState"], each["deleted"]) for name, each in found.items()} == {
        "in": ("RUNNING", "STARTED", False),
        "lost": ("RUNNING", None, False),
        "out": (None, "STOPPED", False),
        "old": (None, None, True),
    }
    assert [found[name]["connectorType"] for name in ("in", "out", "old", "lost")] == ["source", "sink", "source", None]
    assert found["in"]["config"]["file"] == "b"
    assert found["in"]["topics"] == ["t"]
    assert found["in"]["tasks"] == 2
    assert found["out"]["consumerGroup"] == "connect-out"
    assert (found["old"]["removedAt"], found["old"]["removedTime"]) == (14, BEGIN + LATER + 14 * STEP)
    assert found["lost"]["remarks"] == ["no config is left"]
    tasks = [
        (each["connector"], each["task"], each["committed"], each["state"]) for each in rows("connectorTask", tmp_path)
    ]
    assert tasks == [
        ("in", 0, True, "RUNNING"),
        ("in", 0, False, "RUNNING"),
        ("in", 1, True, "FAILED"),
        ("out", 0, True, None),
    ]
    offsets = [
        (each["connector"], each["partition"], each["offset"], each["state"])
        for each in rows("connectorOffset", tmp_path)
    ]
    assert offsets == [
        ("in", {"file": "a"}, {"position": 20}, "live"),
        ("in", {"file": "z"}, {"position": 1}, "deleted"),
        ("never", {"file": "n"}, {"position": 2}, "unknownConnector"),
        ("old", {"file": "o"}, {"position": 5}, "connectorDeleted"),
    ]


def test_configs_of_tasks_count_after_their_commit(tmp_path: Path) -> None:
    """The connector was changed, and one of two tasks written, before the leader died."""
    disk(tmp_path)
    (found,) = rows("connector", tmp_path, "--connector", "in")
    assert found["remarks"] == [
        "its tasks run with the config at offset 1",
        "1 config of tasks without a commit, not in effect",
    ]
    configs = [
        (each["committed"], each["config"]["file"]) for each in rows("connectorTask", tmp_path, "--connector", "in")
    ]
    assert configs == [(True, "a0"), (False, "b0"), (True, "a1")]


def test_a_commit_that_compaction_has_left_without_its_tasks(tmp_path: Path) -> None:
    """The connector is inconsistent until the next commit (KafkaConfigBackingStore.processTasksCommitRecord)."""
    steps: Steps = [connector("c", topics="t"), None, task("c", 1), commit("c", 2)]
    disk(tmp_path / "a", [*steps, task("c", 0)])
    (found,) = rows("connector", tmp_path / "a", "--connector", "c")
    assert found["remarks"][0] == "the last commit lacks configs of tasks: workers run no task"
    assert [each["committed"] for each in rows("connectorTask", tmp_path / "a", "--connector", "c")] == [False]
    assert "lacks configs of tasks" in notes(tmp_path / "a")
    disk(tmp_path / "b", [*steps, task("c", 0), commit("c", 1)])
    assert rows("connector", tmp_path / "b", "--connector", "c")[0]["remarks"] == []
    assert [each["task"] for each in rows("connectorTask", tmp_path / "b", "--connector", "c")] == [0]


def test_a_commit_without_a_connector(tmp_path: Path) -> None:
    """Compaction has removed both its config and its tombstone."""
    disk(tmp_path, [task("c", 0), commit("c", 1)], [], [])
    assert objects(tmp_path) == []


def test_fewer_tasks(tmp_path: Path) -> None:
    disk(tmp_path, [connector("c"), task("c", 0), task("c", 1), commit("c", 2), task("c", 0), commit("c", 1)], [], [])
    assert [each["task"] for each in rows("connectorTask", tmp_path)] == [0]


def test_a_connector_that_was_created_again(tmp_path: Path) -> None:
    disk(tmp_path, [connector("c", a="1"), gone(b"connector-c"), connector("c", a="2")])
    (found,) = rows("connector", tmp_path, "--connector", "c")
    assert (found["config"], found["deleted"], found["tasks"]) == ({"a": "2"}, False, None)


def test_secrets_are_hidden_everywhere(tmp_path: Path) -> None:
    disk(tmp_path)
    for arguments in ((), ("--json",), ("--history",), ("--history", "--json"), ("--deleted",), ("--full",)):
        result = run(tmp_path, *arguments)
        assert "canary" not in result.output, arguments
        assert "a2V5LWNhbmFyeS0x" not in result.output, arguments
    (found,) = rows("connector", tmp_path, "--connector", "out")
    assert found["config"] == {
        "topics": "t",
        "db.password": "[hidden]",
        "connection.url": "[hidden]",
        "key": "${file:/s:key}",
    }
    said = command.run("inspect", tmp_path / "connect-configs-0", "--records").stdout
    assert "canary" not in said
    assert "a2V5" not in said


def test_as_of_and_history(tmp_path: Path) -> None:
    disk(tmp_path)
    moment = str(BEGIN + LATER + 13 * STEP)
    assert {each["name"]: each["deleted"] for each in rows("connector", tmp_path, "--as-of", moment)} == {
        "in": False,
        "lost": False,
        "old": False,
        "out": False,
    }
    only = tmp_path / "connect-configs-0"
    assert [each["name"] for each in rows("connector", only, "--as-of", "4")] == ["in"]
    assert run(only, "--as-of", "99").exit_code == 2
    assert "applies to a single log" in run(tmp_path, "--as-of", "4").stderr
    changes = objects(tmp_path, "--history", "--connector", "old")
    assert [(each["offset"], each["record"], each["entity"], each["action"]) for each in changes] == [
        (11, "connector", "connector", "created"),
        (12, "task", "pendingTask", "created"),
        (13, "commit", "commit", "created"),
        (14, "connector", "connector", "removed"),
        (15, "target-state", "targetState", "removed"),
        (2, "offset", "sourceOffset", "created"),
    ]
    assert run(tmp_path, "--history", "--deleted").exit_code == 2


def test_what_was_deleted(tmp_path: Path) -> None:
    disk(tmp_path)
    (tmp_path / "connect-offsets-0").rename(tmp_path / f"connect-offsets-0.{'a' * 32}-delete")
    found = [(each["type"], each.get("name", each.get("connector"))) for each in objects(tmp_path, "--deleted")]
    assert found == [("connector", "old"), ("connectorOffset", "in")]
    disk(tmp_path / "b")
    assert [each["connector"] for each in rows("connectorOffset", tmp_path / "b", "--deleted")] == ["in", "old"]


def test_what_was_deleted_is_seen_on_narrow_terminals() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "width", property(lambda self: 80))
        lines = run(FIXTURES / "connect-1", "--connector", "*-*").stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    (deleted,) = (line for line in lines if line.startswith("old-in ") and "connector.class" in line)
    assert deleted.split()[1] == "yes"
    assert any("partition=0 " in line for line in lines), "which partition a sink has read"


def test_aborted_and_open_transactions_do_not_count(tmp_path: Path) -> None:
    disk(tmp_path, [], [], [])
    data, at = b"", 0
    for producer, value, ends in ((1, 10, "COMMIT"), (2, 20, "ABORT"), (1, 30, "COMMIT"), (3, 40, "")):
        body = record(key=encoded(["c", {"p": 0}]), value=encoded({"at": value}))
        data += batch([body], offset=at, producerId=producer, producerEpoch=0, baseSequence=0, attributes=1 << 4)
        at += 1
        if ends:
            data += marker(at, producer, commit=ends == "COMMIT")
            at += 1
    (tmp_path / "connect-offsets-0" / LOG).write_bytes(data)
    assert [each["offset"] for each in rows("connectorOffset", tmp_path)] == [{"at": 30}]
    assert "2 records of aborted or open transactions, or after these, are not applied" in notes(tmp_path)


BAD: dict[str, tuple[Steps, str]] = {
    "not JSON": ([Step(b"connector-a", b"{")], "skipped: not JSON"),
    "binary": ([Step(b"connector-a", b"\0\0\0\0\1\xff")], "skipped: not JSON: not UTF-8"),
    "deep": ([Step(b"connector-a", b"[" * 100_000 + b"]" * 100_000)], "skipped: JSON nested"),
    "deeper than is shown": ([Step(b"connector-a", b"[" * 60 + b"]" * 60)], "nested deeper than 50 levels"),
    "large": ([Step(b"connector-a", b'"' + b"x" * (1 << 20) + b'"')], "skipped: too large"),
    "NaN": ([Step(b"connector-a", b"NaN")], "NaN is not a JSON number"),
    "digits": ([Step(b"commit-a", b'{"tasks":' + b"9" * 5000 + b"}")], ""),
    "many tasks": ([connector("a"), commit("a", (1 << 31) - 1)], "lacks configs of tasks"),
    "no number": ([connector("a"), commit("a", "2")], "its tasks is not a number"),
    "a list": ([Step(b"connector-a", [1])], "its value is not a JSON object"),
    "no properties": ([Step(b"connector-a", {"a": 1})], "its properties are not a JSON object"),
    "a null task": ([Step(b"task-a-0", None)], "the config of a task is null"),
    "a task without a number": ([Step(b"task-a", {"properties": {}})], "invalid task"),
    "an unknown key": ([connector("a"), Step(b"colour-a", {})], "invalid key"),
    "no key": ([connector("a"), Step(None, {})], "no key"),
    "a target state": ([target("a", state="SLEEPING")], "invalid target state"),
    "nothing of a session key": ([Step(b"session-key", None)], "its value is null"),
    "escapes": ([Step(b"connector-\x1b[31m", {"properties": {"\x1b[2J": "\x1b]0;x\x07"}})], ""),
    "half characters": ([Step(b"connector-a", b'{"properties":{"a":"\\ud800"}}')], ""),
}


@each_case("name", BAD)
def test_records_that_connect_skips(name: str, tmp_path: Path) -> None:
    steps, said = BAD[name]
    disk(tmp_path, [*steps, connector("last")], [], [])
    for arguments in ((), ("--history",), ("--json",)):
        result = run(tmp_path, *arguments)
        assert said in result.stderr
        assert "last" in result.stdout
        assert "\x1b" not in result.output


def test_bad_statuses_and_offsets(tmp_path: Path) -> None:
    steps: Steps = [
        status("task-a", "RUNNING"),
        status("task-a-0", "DANCING"),
        status("connector-a", "RUNNING", 1 << 40),
        Step(b"status-topic-t", {}),
        Step(b"status-topic-t:connector-a", {"topic": 3}),
        status("connector-a", "RUNNING"),
    ]
    keys: list[Any] = [{"a": 1}, ["a"], [1, {}], ["a", 3], ["a", None], [], "text"]
    disk(tmp_path, [], steps, [*[Step(encoded(key), {"x": 1}) for key in keys], Step(None, {}), offset("a", {}, b"{")])
    assert [each["partition"] for each in rows("connectorOffset", tmp_path)] == [None]
    assert [each["state"] for each in rows("connector", tmp_path)] == ["RUNNING"]
    assert notes(tmp_path).count("skipped") == 5 + 8


def test_values_with_schemas(tmp_path: Path) -> None:
    """Workers before 2.0 may have written them: internal.value.converter.schemas.enable."""
    value = {"schema": {"type": "map"}, "payload": {"properties": {"a": "1"}}}
    disk(tmp_path, [Step(b"connector-c", value)], [], [])
    assert rows("connector", tmp_path)[0]["config"] == {"a": "1"}


def test_several_partitions_of_configs(tmp_path: Path) -> None:
    write(tmp_path, {"connect-configs-0": [connector("a")], "connect-configs-1": [connector("b")]})
    assert [each["name"] for each in rows("connector", tmp_path)] == ["a", "b"]
    assert "workers reject a config topic with several partitions" in notes(tmp_path)


def test_names_of_topics(tmp_path: Path) -> None:
    """Each Connect cluster is one of its own. Names that others may have count if the records are Connect's."""
    write(
        tmp_path,
        {
            "connect-configs-0": [connector("a")],
            "team-connect-configs-0": [connector("b")],
            "team-connect-offsets-0": [offset("b", {}, {})],
            "mm2-configs.x.internal-0": [connector("c")],
            "app-connect-offsets-0": [Step(b"k", b"{}")],
            "other-0": [connector("d")],
        },
    )
    found = {each["name"]: each["connectCluster"] for each in rows("connector", tmp_path)}
    assert found == {"a": "connect-*", "b": "team-connect-*", "c": "mm2-*.x.internal"}
    assert [each["connectCluster"] for each in rows("connectorOffset", tmp_path)] == ["team-connect-*"]
    assert {each["name"] for each in rows("connector", tmp_path, "--connect-topic", "other")} == {"a", "b", "c", "d"}
    assert "--connect-topic nothing" in notes(tmp_path, "--connect-topic", "nothing")


def test_nothing_found(tmp_path: Path) -> None:
    write(tmp_path / "a", {"t-0": [Step(b"k", b"v")]})
    result = run(tmp_path / "a")
    assert (result.exit_code, "no topics of Connect or MirrorMaker found" in result.stderr) == (2, True)
    assert run(tmp_path / "none").exit_code == 2
    disk(tmp_path / "b")
    assert run(tmp_path / "b", "--connector", "nobody").exit_code == 2


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def checkpoint(group: str, upstream: int, downstream: int) -> Step:
    key = string(group) + string("a.t") + struct.pack(">i", 0)
    return Step(key, struct.pack(">hqq", 0, upstream, downstream) + string("m"))


def test_checkpoints(tmp_path: Path) -> None:
    steps: Steps = [
        checkpoint("g", 5, 4),
        checkpoint("h", 9, 8),
        checkpoint("g", 7, 6),
        Step(b"\0", b"\0"),
        Step(None, b""),
    ]
    write(tmp_path, {"a.checkpoints.internal-0": steps})
    found = rows("mirrorCheckpoint", tmp_path)
    assert [(each["group"], each["upstreamOffset"], each["offset"], each["committedOffset"]) for each in found] == [
        ("g", 7, 6, None),
        ("h", 9, 8, None),
    ]
    assert {each["sourceClusterAlias"] for each in found} == {"a"}
    assert [each["offset"] for each in rows("mirrorCheckpoint", tmp_path, "--as-of", "1")] == [4, 8]
    assert "at offset 3: " in notes(tmp_path)


@pytest.mark.parametrize("columns", [(), ("--last", "3")])
def test_what_is_hidden_is_not_next_to_itself(columns: tuple[str, ...], tmp_path: Path) -> None:
    """The bytes of a value in which secrets are hidden are hidden, too; others are shown."""
    secret = connector("a", **{"db.password": "not-so-secret", "filler": "x" * 70_000})
    steps = [Step(b"session-key", {"key": "c2VjcmV0", "algorithm": "HmacSHA256"}), secret, connector("b", topics="t")]
    write(tmp_path, {"connect-configs-0": [*steps, connector("c", password="not-so-secret")]})
    result = command.run("inspect", tmp_path / "connect-configs-0", "--records", "--json", *columns)
    assert result.exit_code == 0
    assert "not-so-secret" not in result.stdout
    assert "c2VjcmV0" not in result.stdout
    values = [json.loads(line).get("value") for line in result.stdout.splitlines() if '"record"' in line]
    assert any('"topics"' in value for value in values)
    raw = command.run("inspect", tmp_path / "connect-configs-0", "--records", "--json", "--no-decode").stdout
    assert raw.count("not-so-secret") == 2
