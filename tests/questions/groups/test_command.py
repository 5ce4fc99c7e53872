"""`kdump groups` on the command line."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.cluster.lag import (
    ABOVE_END,
    BELOW_START,
    NO_PARTITION,
    OTHER_TOPIC,
    TOPIC_DELETED,
    TOPIC_UNKNOWN,
    share_positions,
    truncated,
)
from kdump.cluster.log_offsets import LogOffsets, LogOffsetsByPartition
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.render.stdout import Output
from kdump.state.committed_offsets import OffsetAndMetadata
from kdump.state.groups import ShareState
from tests import command
from tests.conftest import DISKS, FIXTURES, numbers_in, seeded
from tests.craft import batch, record, split, write_file
from tests.disks import data, marker
from tests.disks import partition as write_partition
from tests.each_case import each_case
from tests.state.test_groups import LOG, commit, modern, segment
from tests.state.test_metadata import config, partition, topic
from tests.state.test_metadata import log as metadata_log

CLEAN = FIXTURES / "clean-1"


run = partial(command.run, "groups")
refused = partial(command.refused, "groups")


objects = partial(command.objects, "groups", types=TYPES)


def disk(tmp_path: Path, *steps: Any, name: str = "__consumer_offsets-0") -> Path:
    """Return a log directory with this log of a group coordinator."""
    folder = tmp_path / name
    write_file(folder / LOG, segment(*steps))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return tmp_path


def with_partition(root: Path, name: str, first: int, last: int) -> None:
    folder = root / name
    folder.mkdir()
    (folder / f"{first:020}.log").write_bytes(
        batch([record(i, value=b"v") for i in range(last - first + 1)], offset=first)
    )


@each_case(
    "start, remark", [(3, "2 below the log start offset: the share"), (5, ""), (9, ""), (12, "3 above the log end")]
)
def test_a_share_group_outside_of_the_log(start: int, remark: str) -> None:
    """It has no auto.offset.reset: SharePartition moves it up to the log start offset, and never back."""
    groups: Any = SimpleNamespace(share={"g": {("id", 0): ShareState(start, 1, 1, 1, 0, None, 7)}})
    end = LogOffsets(5, 9, None, "")
    context: Any = SimpleNamespace(topic_name=str, end=lambda topic, partition: end, is_now=False)
    (share,) = share_positions(groups, "g", context)
    assert share.remark.startswith(remark)
    assert bool(share.remark) == bool(remark)
    assert "auto.offset.reset" not in share.remark


def test_summary_of_clean_1() -> None:
    rows = {line.split()[0]: line.split() for line in run(CLEAN).stdout.splitlines() if not line.startswith(" ")}
    assert list(rows) == ["group", "group-classic", "group-consumer", "share-one", "tx-group"]
    assert rows["group-classic"][1:4] == ["classic", "Empty", "2"]
    assert rows["tx-group"][1:3] == ["classic", "Empty"]


def test_json_says_all_of_it() -> None:
    found = objects(CLEAN)
    assert [each["type"] for each in found] == [
        *("group", "groupOffset", "group", "groupOffset", "groupOffset", "group", "groupShare", "group"),
        "groupOffset",
    ]
    [position] = [each for each in found if each["type"] == "groupOffset" and each["groupId"] == "tx-group"]
    # The fixture has this partition: 300 records, and no checkpointed high watermark.
    assert (position["offset"], position["logEndOffset"], position["lag"], position["remark"]) == (70, 300, 230, "")
    assert [each["type"] for each in objects(CLEAN, "--members", "--group", "tx-group")] == ["group"]
    assert {each["type"] for each in objects(CLEAN, "--offsets")} == {"group", "groupOffset", "groupShare"}


def test_the_lag_is_that_of_the_whole_disk() -> None:
    """In the factory, orders-zstd got 300 records and payments 120, of which the groups read 42 and 120."""
    found = {each["groupId"]: each for each in objects(DISKS / "kafka-4.3/clean-1") if each["type"] == "group"}
    assert {name: (each["lag"], each["lagUnknown"], each["remarks"]) for name, each in found.items()} == {
        "group-classic": (258, 0, 0),
        "group-consumer": (258, 0, 0),
        "tx-group": (230, 0, 0),
        "share-one": (None, 1, 0),
    }


def test_paths_that_mean_the_same() -> None:
    whole = run(CLEAN, "--offsets").stdout
    folder = CLEAN / "__consumer_offsets-0"
    share = "share-one"
    expected = whole[: whole.index("\n\n")] if share in whole else whole
    assert run(folder, "--offsets").stdout.rstrip() == expected.rstrip()
    assert run(folder / LOG, "--offsets").stdout.rstrip() == expected.rstrip()
    twice = run(CLEAN, folder, "--offsets")
    assert twice.stdout == whole


def test_remarks(tmp_path: Path) -> None:
    steps = [commit("g", "t", 0, 3), commit("g", "t", 1, 30), commit("g", "t", 2, 5), commit("g", "gone", 0, 1)]
    root = disk(tmp_path, *steps, commit("g", "u", 0, 20))
    with_partition(root, "t-0", 5, 9)
    with_partition(root, "t-1", 0, 9)
    with_partition(root, "u-0", 10, 29)
    (root / "log-start-offset-checkpoint").write_text("0\n1\nu 0 25\n")
    (root / "replication-offset-checkpoint").write_text("0\n1\nu 0 28\n")
    (root / "__cluster_metadata-0").mkdir()
    known = [topic("t", "T"), topic("u", "U"), *(partition("T", n, [1]) for n in range(2)), partition("U", 0, [1])]
    (root / "__cluster_metadata-0" / LOG).write_bytes(metadata_log(known))
    found = {(each["topic"], each["partition"]): each for each in objects(root) if each["type"] == "groupOffset"}
    assert {at: (each["lag"], each["remark"]) for at, each in found.items()} == {
        ("t", 0): (7, BELOW_START.format(2)),
        ("t", 1): (0, ABOVE_END.format(20)),
        ("t", 2): (None, NO_PARTITION),
        ("gone", 0): (None, TOPIC_UNKNOWN),
        ("u", 0): (10, BELOW_START.format(5)),
    }
    assert (found["u", 0]["logStartOffset"], found["u", 0]["highWatermark"]) == (25, 28)


def test_a_topic_that_was_made_anew_and_one_that_is_being_deleted(tmp_path: Path) -> None:
    key, value = commit("g", "t", 0, 3, version=4)
    assert value is not None
    tagged = value[:-1] + b"\x01\x00\x10" + b"X" * 16  # the topic ID
    root = disk(tmp_path, (key, tagged), commit("g", "gone", 0, 1))
    (root / f"gone-0.{'0' * 32}-delete").mkdir()
    write_file(root / "__cluster_metadata-0" / LOG, metadata_log([topic("t", "T"), partition("T", 0, [1])]))
    found = {each["topic"]: each["remark"] for each in objects(root) if each["type"] == "groupOffset"}
    assert found == {"t": OTHER_TOPIC, "gone": TOPIC_DELETED}


def test_pending_commits_are_told(tmp_path: Path) -> None:
    root = disk(tmp_path, commit("g", "t", 0, 3), (commit("g", "t", 0, 9), 7), (commit("h", "t", 0, 4), 7))
    found = {each["groupId"]: each for each in objects(root) if each["type"] == "groupOffset"}
    assert found["g"]["offset"] == 3
    assert found["g"]["pending"] == [{"producerId": 7, "offset": 9, "recordOffset": 1}]
    assert (found["h"]["offset"], found["h"]["pending"][0]["offset"]) == (None, 4)
    assert "9 by producer 7" in run(root, "--offsets").stdout


def test_filters_and_order(tmp_path: Path) -> None:
    root = disk(tmp_path, *(commit(f"g{n}", name, 0, n) for n, name in enumerate(["a", "b", "ab"])))
    for name in ("a", "b", "ab"):
        with_partition(root, f"{name}-0", 0, 9)
    groups = [each["groupId"] for each in objects(root, "--group", "g[12]") if each["type"] == "group"]
    assert groups == ["g1", "g2"]
    assert [each["groupId"] for each in objects(root, "--topic", "a*") if each["type"] == "group"] == ["g0", "g2"]
    rows = [line.split()[0] for line in run(root, "--offsets", "--sort", "lag").stdout.splitlines()]
    assert rows == ["group", "g0", "g1", "g2"]
    rows = [line.split() for line in run(root, "--offsets", "--columns", "lag,groupId").stdout.splitlines()]
    assert rows == [["lag", "group"], ["10", "g0"], ["9", "g1"], ["8", "g2"]]


@pytest.mark.parametrize("damaged", [1, 2, 9, 20])
def test_the_end_of_a_log_that_ends_with_damage(damaged: int, tmp_path: Path) -> None:
    """Its end is after the last valid batch, as after a recovery, whatever follows: else the offset looks unusable."""
    root = disk(tmp_path, commit("g", "t", 0, 5))
    (root / "t-0").mkdir()
    whole = b"".join(batch([record(value=b"v")], offset=n) for n in range(10 + damaged))
    parts = split(whole)
    broken = [part[:-1] + bytes([part[-1] ^ 1]) for part in parts[10:]]
    (root / "t-0" / LOG).write_bytes(b"".join([*parts[:10], *broken, bytes(4096)]))
    (found,) = (each for each in objects(root) if each["type"] == "groupOffset")
    assert (found["logEndOffset"], found["lag"], found["remark"]) == (10, 5, "")


def test_a_history_shows_whose_offset_went_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns, too: the group and the move are what one looks for."""
    root = disk(tmp_path, commit("reader", "t", 0, 300), commit("reader", "t", 0, 42), commit("reader", "t", 0, 50))
    monkeypatch.setattr(Output, "width", 80)
    _, first, second, third = run(root, "--history").stdout.splitlines()[:4]
    assert all("reader" in line for line in (first, second, third))
    assert "BACK by 258: " in second
    assert "BACK" not in first + third


def test_the_summary_shows_remarks_below_their_group(tmp_path: Path) -> None:
    root = disk(tmp_path, commit("a", "t", 0, 3), *(commit("b", "t", n, 900) for n in range(5)))
    for n in range(5):
        with_partition(root, f"t-{n}", 0, 9)
    for arguments in ((), ("--sort", "lag")):
        lines = run(root, *arguments).stdout.splitlines()
        (at,) = (number for number, line in enumerate(lines) if line.startswith("b "))
        assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 4]] == ["t-0", "t-1", "t-2"]
        assert lines[at + 4].strip() == "… and 2 more: kdump groups --offsets"
        assert all("above the log end offset" in line for line in lines[at + 1 : at + 4])


def test_as_of() -> None:
    result = run(CLEAN, "--as-of", "60", "--json")
    assert numbers_in(result.stderr)[0] == 60
    member = next(json.loads(line) for line in result.stdout.splitlines() if '"groupMember"' in line)
    assert (member["groupId"], member["memberEpoch"], member["state"]) == ("group-consumer", 2, "STABLE")
    # Given a time, the result is the same: the current partitions say nothing about an earlier time.
    by_time = run(CLEAN, "--as-of", "2026-11-21T07:58:42.950Z", "--json")
    assert [json.loads(line)["groupId"] for line in by_time.stdout.splitlines()][:2] == ["group-classic"] * 2
    assert all(json.loads(line).get("lag") is None for line in by_time.stdout.splitlines())
    shares = run(CLEAN, "--as-of", "89")
    assert "share-one" in shares.stdout
    assert "an offset in __consumer_offsets does not apply" in shares.stderr
    late = run(CLEAN / "__consumer_offsets-0", "--as-of", "5000")
    assert 90 in numbers_in(late.stderr)


def test_history() -> None:
    found = objects(CLEAN, "--history", "--group", "group-consumer", "--topic", "orders-zstd")
    assert [(each["offset"], each["action"], each["fields"][0]) for each in found] == [
        (49, "created", {"name": "offset", "old": None, "new": 300}),
        (73, "changed", {"name": "offset", "old": 300, "new": 42}),
    ]
    lines = run(CLEAN, "--history", "--group", "tx-group").stdout.splitlines()
    assert "aborted" in lines[6]
    assert "offset 20 → 10" in lines[6]


@pytest.mark.parametrize(
    "options",
    [
        ["--columns", "lag", "--json"],
        ["--columns", "nope"],
        ["--columns", "lag", "--group", "g"],
        ["--history", "--offsets"],
        ["--offsets", "--members"],
        ["--sort", "nope"],
        ["--sort", "lag", "--json"],
        ["--as-of", "yesterday"],
    ],
)
def test_contradictions(options: list[str]) -> None:
    assert "Error" in refused(CLEAN, *options)


def test_an_offset_is_one_of_a_single_partition(tmp_path: Path) -> None:
    root = disk(tmp_path, commit("g", "t", 0, 3))
    disk(tmp_path, commit("h", "t", 0, 3), name="__consumer_offsets-7")
    assert [each["offsetsPartition"] for each in objects(root) if each["type"] == "group"] == [0, 7]
    result = run(root, "--as-of", "0")
    assert result.exit_code == 2
    assert 2 in numbers_in(result.stderr)


def test_segments_one_by_one_are_one_log(tmp_path: Path) -> None:
    root = disk(tmp_path, *(commit("g", "t", n, n) for n in range(6)))
    folder = root / "__consumer_offsets-0"
    parts = split((folder / LOG).read_bytes())
    (folder / LOG).write_bytes(b"".join(parts[:2]))
    (folder / "00000000000000000002.log").write_bytes(b"".join(parts[2:]))
    paths = [folder / "00000000000000000002.log", folder / LOG]
    for given in (paths, [folder], [paths[0], folder], [root, *paths]):
        found = [each["partition"] for each in objects(*given) if each["type"] == "groupOffset"]
        assert found == list(range(6))
        assert run(*given).stderr == ""
    assert len([each for each in objects(paths[0]) if each["type"] == "groupOffset"]) == 4


def test_what_is_not_there(tmp_path: Path) -> None:
    for path in (CLEAN / "payments-0", tmp_path, tmp_path / "none", Path("-"), CLEAN / "payments-0" / LOG):
        result = run(path)
        assert result.exit_code == 2, path
        assert result.stdout == ""
        assert "kdump: " in result.stderr
    assert "no __consumer_offsets found" in run(CLEAN / "payments-0").stderr
    both = run(CLEAN, tmp_path / "none")
    assert (both.exit_code, bool(both.stdout)) == (2, True)


def test_nothing_of_the_log_reaches_the_terminal_raw(tmp_path: Path) -> None:
    evil = "e\x1b[31m\u202e\n"
    root = disk(tmp_path, commit(evil, evil, 0, 3), modern(3, evil + "2", (2).to_bytes(4, "big") + b"\0"))
    for options in ([], ["--group", "*"], ["--offsets"], ["--history"], ["--json"]):
        out = run(root, *options).stdout
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.mark.parametrize("number", range(20))
def test_which_offsets_went_back(number: int, tmp_path: Path) -> None:
    """Compared with a naive replay: the summary points to the history of a group if, and only if, an offset of it went
    back and has not caught up since."""
    dice = seeded(f"rewinds {number}")
    steps = []
    now: dict[tuple[str, int], int] = {}
    largest: dict[tuple[str, int], tuple[int, int]] = {}
    for _ in range(60):
        at = (dice.choice("abc"), dice.randrange(2))
        ahead = dice.random() < 0.9
        before = now.get(at, 0)
        offset = before + dice.randrange(5) if ahead else dice.randrange(-1, before + 1)
        steps.append(commit(at[0], "orders", at[1], offset))
        if offset < before and before - offset > largest.get(at, (0, 0))[0]:
            largest[at] = before - offset, before
        now[at] = offset
    root = disk(tmp_path, *steps)
    back = {at for at, (_, before) in largest.items() if now[at] < before}
    found = {each["groupId"]: each["wentBack"] for each in objects(root) if each["type"] == "group"}
    assert found == {group: sum(at[0] == group for at in back) for group in found}
    text = run(root).stdout
    for group in "abc":
        assert (f"--group {group} --history" in text) == any(at[0] == group for at in back)
        assert (f"--group {group} --history" in run(root, "--group", group).stdout) == any(
            at[0] == group for at in back
        )


@pytest.mark.parametrize("columns", [79, 80, 95, 120, 200])
def test_a_history_shows_the_time(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "width", columns)
    lines = run(CLEAN, "--history").stdout.splitlines()
    assert {"time", "group", "name", "fields"} <= set(lines[0].split())
    assert max(map(len, lines)) <= columns
    assert all("2026-11-21T07:58" in line for line in lines[1:] if "columns more" not in line)


@each_case("seed", range(10))
def test_removed_offsets_and_groups_are_remembered(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compared with a replay one by one: each offset that was removed counts, though it was committed again. A group
    that is gone is named, and one that was made again is not."""
    root, random = tmp_path_factory.mktemp("disk"), seeded(f"removed offsets {seed}")
    state: dict[tuple[str, int], int] = {}
    steps, removed, gone = [], set(), {}
    for number in range(60):
        at = random.choice("gh"), random.randrange(3)
        offset = random.choice([None, random.randrange(100)])
        steps.append(commit(at[0], "t", at[1], offset))
        if offset is not None:
            state[at] = offset
        elif state.pop(at, None) is not None:
            removed.add(at)
            gone[at[0]] = number
    disk(root, *steps)
    groups = {each["groupId"]: each for each in objects(root) if each["type"] == "group"}
    assert {name: each["removedOffsets"] for name, each in groups.items()} == {
        name: sum(group == name for group, _ in removed) for name in {group for group, _ in state}
    }
    for name in "gh":
        result = run(root, "--group", name)
        is_gone = name not in groups and name in gone
        assert (f"{name} was removed at " in result.stderr) == is_gone
        assert (f"by offset {gone.get(name)} of __consumer_offsets-0; --history shows it" in result.stderr) == is_gone


def test_offsets_that_went_with_their_topic_are_not_removed(tmp_path: Path) -> None:
    key, value = commit("g", "t", 0, 3, version=4)
    assert value is not None
    of_other = value[:-1] + b"\x01\x00\x10" + b"X" * 16  # the topic ID
    root = disk(tmp_path, (key, of_other), commit("g", "t", 0, None), commit("g", "t", 0, 1))
    write_file(root / "__cluster_metadata-0" / LOG, metadata_log([topic("t", "T"), partition("T", 0, [1])]))
    assert [each["removedOffsets"] for each in objects(root) if each["type"] == "group"] == [0]


def test_records_in_remote_storage_are_not_counted_as_read(tmp_path: Path) -> None:
    """How many they are is unknown, and not 0: a group is behind by them, too."""
    root = disk(tmp_path, commit("g", "t", 0, 5), commit("h", "t", 0, 12))
    with_partition(root, "t-0", 10, 19)
    (root / "log-start-offset-checkpoint").write_text("0\n1\nt 0 0\n")
    records = [topic("t", "T"), config(2, "t", "remote.storage.enable", "true"), partition("T", 0, [1])]
    write_file(root / "__cluster_metadata-0" / LOG, metadata_log(records))
    rows = {each["groupId"]: each for each in objects(root) if each["type"] == "groupOffset"}
    assert {name: (each["lag"], each["recordsBehind"], each["remark"]) for name, each in rows.items()} == {
        "g": (15, None, ""),
        "h": (8, 8, ""),
    }


@each_case("seed", range(6))
def test_records_behind_are_counted_without_markers_and_gaps(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Compared with a model, for each offset that a group may have committed. Before damage, it is unknown."""
    root, random = tmp_path_factory.mktemp("disk"), seeded(f"records behind {seed}")
    log, offsets, end, known_from = [], [], 0, 0
    damaged = random.choice([None, random.randrange(1, 10)])
    for number in range(12):
        end += random.choice([0, 0, 3])  # removed by compaction
        count = random.choice([0, 1, 2, 5])
        log.append(data(end, 1, count=count) if count else marker(end, 1))
        if damaged is not None and number == damaged + 1:
            known_from = end
        if number == damaged:
            log[-1] = log[-1][:-1] + bytes([log[-1][-1] ^ 1])
        offsets += range(end, end + count)
        end += count or 1
    half = random.randrange(1, 12)
    write_partition(root, b"".join(log[:half]), b"".join(log[half:]))
    (root / "meta.properties").write_text("version=1\n")
    here = directory_at(str(root))
    assert isinstance(here, LogDirectory)
    found = LogOffsetsByPartition([here])
    last = found.end("payments", 0)
    assert last is not None
    assert last.logEndOffset == end
    for offset in range(end + 1):
        known = None if offset < max(last.logStartOffset, known_from) else sum(each >= offset for each in offsets)
        assert found.records_from("payments", 0, offset) == known


def test_the_log_end_is_in_a_segment_that_was_rolled_since(tmp_path: Path) -> None:
    """A group has committed it meanwhile: its offset is not above the log end."""
    folder = write_partition(tmp_path, data(0, 1, count=3))
    (tmp_path / "meta.properties").write_text("version=1\n")
    here = directory_at(str(tmp_path))
    assert isinstance(here, LogDirectory)
    ends = LogOffsetsByPartition([here])
    assert [len(place.segments) for place in here.partitions] == [1]
    write_file(folder / f"{3:020}.log", data(3, 1, count=2))
    end = ends.end("payments", 0)
    assert end is not None
    assert end.logEndOffset == 5


def test_offsets_whose_leader_epoch_ends_below_them() -> None:
    """A 4.3 consumer with auto.offset.reset=latest, offset 312 and epoch 0, in a log with epoch 2 from 305 on, logged
    "Truncation detected" and read from 305 (KAFKA-19902). Its group had a lag of 8."""
    cases = {
        (312, 0, "0 ends at 305"): [(2, 305)],
        (305, 0, ""): [(2, 305)],
        (312, 2, ""): [(2, 305)],
        (312, 3, ""): [(2, 305)],
        (312, None, ""): [(2, 305)],
        (312, -1, ""): [(2, 305)],
        (310, 0, ""): [(0, 0), (3, 310)],
        (311, 1, "1 ends at 310"): [(0, 0), (3, 310)],
        (312, 0, " "): [],
    }
    for (offset, epoch, expected), entries in cases.items():
        commit = OffsetAndMetadata(offset, epoch, "", 0, None, None, 0)
        found = truncated(commit, [EpochEntry(*each) for each in entries], LogOffsets(0, 320, 320, ""))
        assert expected.strip() in found, (offset, epoch)
        assert bool(found) == bool(expected.strip())


def test_clusters_are_not_mixed(tmp_path: Path) -> None:
    """Both have a partition 0 of __consumer_offsets, which are no copies of each other."""
    one = disk(tmp_path / "one", commit("a", "t", 0, 1))
    other = disk(tmp_path / "other", commit("b", "t", 0, 1), commit("b", "t", 0, 2))
    (other / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=d\n")
    for paths in ((one, other), (tmp_path,)):
        result = run(*paths)
        assert result.exit_code == 2
        assert f"different clusters: {one} of c, {other} of d; pass those of one" in result.stderr
        assert not result.stdout


def test_a_directory_that_states_no_cluster(tmp_path: Path) -> None:
    """It is of the only cluster that is stated, unless its topics are others."""
    for name in ("connect-1", "connect-2"):
        shutil.copytree(FIXTURES / name, tmp_path / name)
    (tmp_path / "connect-1" / "meta.properties").unlink()
    result = run(tmp_path / "connect-1", tmp_path / "connect-2")
    assert result.exit_code == 2
    assert "connect-1: no meta.properties states its cluster, and its topics are not those of" in result.stderr
    shutil.copytree(tmp_path / "connect-2" / "__consumer_offsets-0", tmp_path / "copy" / "__consumer_offsets-0")
    assert run(tmp_path / "copy", tmp_path / "connect-2").exit_code == 0


def test_the_end_of_a_log_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    root = disk(tmp_path, commit("g", "t", 0, 120))
    with_partition(root, "t-0", 0, 200)
    assert objects(root, "--offsets")[0]["lag"] == 81
    log = root / "t-0" / f"{0:020}.log"
    log.unlink()
    log.symlink_to("/proc/self/mem")
    found = next(each for each in objects(root, "--offsets", status=2) if "logEndOffset" in each)
    assert (found["logEndOffset"], found["lag"], found["remark"]) == (None, None, "")


def test_a_file_to_reset_offsets_from() -> None:
    """Lines of group, topic, partition and offset, as kafka-consumer-groups.sh --from-file reads them."""
    rows = [json.loads(line) for line in run(CLEAN, "--offsets", "--json").stdout.splitlines()]
    stated = [row for row in rows if row["type"] == "groupOffset"]
    expected = [f"{row['groupId']},{row['topic']},{row['partition']},{row['offset']}" for row in stated]
    assert run(CLEAN, "--format", "reset-file").stdout.splitlines() == expected
    assert expected
    result = run(CLEAN, "--format", "reset-file", "--history")
    assert (result.exit_code, "omit --history" in result.stderr) == (2, True)
