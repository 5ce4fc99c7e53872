"""The cluster as rebuilt from its metadata: compared with a snapshot that Kafka wrote of it, and crafted records."""

from __future__ import annotations

import random
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.metadata_files import MetadataFiles, Unreachable, metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.format.schema import load_folder
from kdump.state.as_of import AsOf, Change
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_replay import HANDLERS
from tests.conftest import FIXTURES, SEED, numbers_in, seeded
from tests.craft import flip, rebase, split
from tests.each_case import each_case
from tests.state.test_metadata import (
    ABORT,
    BEGIN,
    CHECKPOINT,
    END,
    LOG,
    NOTHING,
    broker,
    change,
    config,
    framed,
    log,
    numbers,
    partition,
    printed,
    removed,
    snapshot,
    text,
    topic,
    uuid,
)

CLEAN = FIXTURES / "clean-1" / "__cluster_metadata-0"


def files(tmp_path: Path, **data: bytes) -> MetadataFiles:
    """Return the metadata files: `s327` is the end offset of a snapshot, `l0` the base offset of a segment."""
    for name, content in data.items():
        number = int(name[1:])
        ending = ".log" if name[0] == "l" else "-0000000001.checkpoint"
        (tmp_path / f"{number:020}{ending}").write_bytes(content)
    return metadata_files(str(tmp_path))


def only(*names: str) -> MetadataFiles:
    """Return the fixture with only these files."""
    whole = metadata_files(str(CLEAN))
    return MetadataFiles(
        whole.path,
        tuple(each for each in whole.snapshots if Path(each[1]).name in names),
        tuple(path for path in whole.segments if Path(path).name in names),
    )


# The oracle: Kafka's snapshot of the log, up to an offset.


def ours(found: MetadataImage) -> dict[str, Any]:
    return {
        "topics": {name: known.id for name, known in found.topics.items()},
        "partitions": {
            (name, number): (
                *map(list, (info.replicas, info.isr)),
                info.leader,
                info.leaderEpoch,
                info.partitionEpoch,
                list(info.eligibleLeaderReplicas),
            )
            for name, known in found.topics.items()
            for number, info in known.partitions.items()
        },
        "brokers": {
            number: (known.brokerEpoch, known.fenced, known.inControlledShutdown, known.endPoints[0].port)
            for number, known in found.brokers.items()
        },
        "configs": {resource: values for resource, values in found.configs.items() if values},
        "features": found.features,
        "nextProducerId": found.producer_ids[""].nextProducerId if found.producer_ids else None,
    }


def test_the_snapshot_is_the_log_up_to_it() -> None:
    snapshot_alone = replay_metadata(only(CHECKPOINT))
    assert snapshot_alone.snapshot == snapshot_alone.end_offset == 327
    assert ours(snapshot_alone) == ours(replay_metadata(only(LOG), AsOf(offset=326)))
    both = replay_metadata(metadata_files(str(CLEAN)))
    assert (both.snapshot, both.end_offset) == (327, 329)
    assert ours(both) == ours(replay_metadata(only(LOG)))


def test_a_moment_is_the_log_cut_there(tmp_path: Path) -> None:
    parts, end = split((CLEAN / LOG).read_bytes()), 0
    dice = random.Random(1)
    for count in sorted(dice.sample(range(1, len(parts)), 25)):
        part = parts[count - 1]
        end = int.from_bytes(part[:8], "big") + int.from_bytes(part[23:27], "big")
        cut = replay_metadata(files(tmp_path, l0=b"".join(parts[:count])))
        assert ours(cut) == ours(replay_metadata(only(LOG), AsOf(offset=end)))
        latest = int.from_bytes(part[35:43], "big")
        if int.from_bytes(parts[count][27:35], "big") > latest:
            assert ours(cut) == ours(replay_metadata(only(LOG), AsOf(time=latest)))


def test_every_type_of_record_has_an_effect() -> None:
    without = {"NoOpRecord"}  # the leader writes it to advance the committed offset
    assert set(HANDLERS) == set(load_folder("metadata")) - without


def test_moments_and_snapshots(tmp_path: Path) -> None:
    found = files(
        tmp_path,
        s3=snapshot(topic("a", "A")),
        s6=snapshot(topic("b", "B")),
        l3=log([topic("c", "C"), NOTHING, NOTHING], [topic("d", "D")], offset=3),
    )
    assert found.committed == 6
    expected = {2: "a", 3: "a c", 4: "a c", 5: "b", 6: "b d"}
    for offset, names in expected.items():
        image = replay_metadata(found, AsOf(offset=offset))
        assert " ".join(image.topics) == names
        assert image.end_offset == offset + 1
    with pytest.raises(Unreachable) as caught:
        replay_metadata(found, AsOf(offset=1))
    assert numbers_in(str(caught.value)) == [3, 3]  # the start of the log, and the end of the oldest snapshot
    # With a history, as little as possible is taken from a snapshot.
    told: list[Change] = []
    assert " ".join(replay_metadata(found, on_change=told.append).topics) == "a c d"
    assert [(each.offset, each.entity, each.name) for each in told] == [(3, "topic", "c"), (6, "topic", "d")]


def test_a_moment_before_any_snapshot(tmp_path: Path) -> None:
    shutil.copy(CLEAN / CHECKPOINT, tmp_path)
    alone = metadata_files(str(tmp_path))
    for moment in (AsOf(offset=100), AsOf(time=1)):
        with pytest.raises(Unreachable) as caught:
            replay_metadata(alone, moment)
        assert numbers_in(str(caught.value)) == [327]
    assert replay_metadata(alone, AsOf(offset=326)).end_offset == 327
    # An invalid snapshot is reported, because it may be the one that is needed.
    (tmp_path / CHECKPOINT).write_bytes(b"junk")
    with pytest.raises(Unreachable, match=re.escape(CHECKPOINT)):
        replay_metadata(alone, AsOf(offset=326))


def test_damage_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    parts = split(log([topic("a", "A")], [topic("b", "B")], [topic("c", "C")]))
    found = replay_metadata(files(tmp_path, l0=parts[0] + flip(parts[1], 700) + parts[2]))
    assert " ".join(found.topics) == "a c"
    assert f"byte {len(parts[0])}" in found.problems[0].text
    assert numbers_in(found.problems[1].text.split(": ", 1)[1]) == [2, 1]  # the offset, and the expected one


# Crafted records.


def replayed(tmp_path: Path, *values: bytes, told: list[Change] | None = None) -> MetadataImage:
    found = replay_metadata(files(tmp_path, l0=log([*values])), on_change=None if told is None else told.append)
    return found


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


ACL = uuid("a") + b"\x02" + text("t") + b"\x03" + text("User:ann") + text("*") + b"\x03\x03\0"
SCRAM = text("ann") + b"\x01" + b"\x04slt" + b"\x04key" + b"\x04key" + int32(4096) + b"\0"
TIMES = b"".join(number.to_bytes(8, "big") for number in (1, 3, 2))
TOKEN = text("User:ann") + text("User:bob") + b"\x02" + text("User:eve") + TIMES + text("id-1") + b"\0"


QUOTA = text("request_percentage") + struct.pack(">d", 1.0) + b"\0\0"


def quota(name: str | None, value: float, remove: bool = False) -> bytes:
    entity = b"\x02" + text("user") + text(name) + b"\0"
    return framed(14, entity + text("request_percentage") + struct.pack(">d", value) + bytes([remove]) + b"\0")


def feature(name: str, level: int) -> bytes:
    return framed(12, text(name) + level.to_bytes(2, "big") + b"\0")


def test_acls(tmp_path: Path) -> None:
    [acl] = replayed(tmp_path, framed(18, ACL)).acls.values()
    assert acl == (printed("a"), "TOPIC", "t", "LITERAL", "User:ann", "*", "READ", "ALLOW")
    assert replayed(tmp_path, framed(18, ACL), framed(19, uuid("a") + b"\0")).acls == {}
    (problem,) = replayed(tmp_path, framed(19, uuid("a") + b"\0")).problems
    assert printed("a") in problem.text


def test_quotas(tmp_path: Path) -> None:
    found = replayed(tmp_path, quota("ann", 50.0), quota(None, 20.0), quota("ann", 60.0))
    assert found.quotas == {
        (("user", "ann"),): {"request_percentage": 60.0},
        (("user", None),): {"request_percentage": 20.0},
    }
    assert replayed(tmp_path, quota("ann", 50.0), quota("ann", 0.0, remove=True)).quotas == {}
    twice = framed(14, b"\x03" + (text("user") + text("ann") + b"\0") + (text("user") + text(None) + b"\0") + QUOTA)
    assert replayed(tmp_path, twice).quotas == {(("user", None), ("user", "ann")): {"request_percentage": 1.0}}


def test_scram_credentials_keep_no_secret(tmp_path: Path) -> None:
    told: list[Change] = []
    found = replayed(tmp_path, framed(11, SCRAM), framed(11, SCRAM.replace(b"key", b"new")), told=told)
    assert list(found.scram.values()) == [("ann", "SCRAM-SHA-256", 4096)]
    assert [each.action for each in told] == ["created", "changed"]
    assert "key" not in repr((found, told))
    assert replayed(tmp_path, framed(11, SCRAM), framed(22, text("ann") + b"\x01\0")).scram == {}


def test_delegation_tokens(tmp_path: Path) -> None:
    [token] = replayed(tmp_path, framed(10, TOKEN)).tokens.values()
    assert token == ("id-1", "User:ann", "User:bob", ("User:eve",), 1, 3, 2)
    assert replayed(tmp_path, framed(10, TOKEN), framed(26, text("id-1") + b"\0")).tokens == {}


def test_features(tmp_path: Path) -> None:
    found = replayed(tmp_path, feature("metadata.version", 20), feature("x", 1), feature("y", 2), feature("x", 0))
    assert found.features == {"metadata.version": 20, "y": 2}
    assert replayed(tmp_path, framed(21, b"\x03\0")).zk_migration == {"": "POST_MIGRATION"}


def test_fencing(tmp_path: Path) -> None:
    said = [broker(1, "x"), framed(7, int32(1) + bytes(8) + b"\0")]
    assert replayed(tmp_path, *said).brokers[1].fenced
    unfenced = framed(8, int32(1) + bytes(8) + b"\0")
    assert not replayed(tmp_path, *said, unfenced).brokers[1].fenced
    shutting_down = framed(17, int32(1) + bytes(8) + b"\x01\x01\x01\x01", version=1)
    assert replayed(tmp_path, *said, unfenced, shutting_down).brokers[1].inControlledShutdown
    found = replayed(tmp_path, *said, framed(8, int32(1) + (9).to_bytes(8, "big") + b"\0"))
    assert [numbers_in(problem.text) for problem in found.problems] == [[2, 1, 0, 9]]


def test_controllers_and_producer_ids(tmp_path: Path) -> None:
    endpoint = b"\x02" + text("C") + text("host") + (9093).to_bytes(2, "big") + b"\0\x01\0"
    registered = framed(27, int32(3) + uuid("i") + b"\0" + endpoint + b"\x01\0")
    found = replayed(tmp_path, registered, framed(15, int32(1) + bytes(8) + (5000).to_bytes(8, "big") + b"\0"))
    assert found.controllers[3].endPoints == (("C", "host", 9093, "SSL"),)
    assert found.producer_ids[""].nextProducerId == 5000


def test_clearing_elr(tmp_path: Path) -> None:
    elr = change("A", 0, version=2, isr=numbers([1])).replace(b"\x01\x00", b"\x02\x00", 1)  # one more tagged field
    elr = elr + b"\x06" + bytes([len(numbers([2]))]) + numbers([2])
    said = [topic("a", "A"), topic("b", "B"), partition("A", 0, [1, 2]), elr]
    before = replayed(tmp_path, *said).topics["a"].partitions[0]
    assert (before.isr, before.eligibleLeaderReplicas, before.partitionEpoch) == ((1,), (2,), 1)
    for name, expected in {"": (), "a": (), "b": (2,)}.items():
        after = replayed(tmp_path, *said, framed(28, text(name) + b"\0")).topics["a"].partitions[0]
        assert after.eligibleLeaderReplicas == expected


def test_history_tells_old_and_new(tmp_path: Path) -> None:
    told: list[Change] = []
    said = [topic("a", "A"), partition("A", 0, [1, 2]), change("A", 0, isr=numbers([2]), leader=int32(2))]
    said += [config(2, "a", "x", "1"), config(2, "a", "x", "2"), config(2, "a", "x", None), removed("A")]
    replayed(tmp_path, *said, told=told)
    assert [(each.offset, each.entity, each.name, each.action) for each in told] == [
        (0, "topic", "a", "created"),
        (1, "partition", "a-0", "created"),
        (2, "partition", "a-0", "changed"),
        (3, "config", "TOPIC a", "created"),
        (4, "config", "TOPIC a", "changed"),
        (5, "config", "TOPIC a", "removed"),
        (6, "topic", "a", "removed"),
    ]
    assert told[2].fields == {"isr": ((1, 2), (2,)), "leader": (1, 2), "leaderEpoch": (5, 6), "partitionEpoch": (0, 1)}
    assert told[4].fields == {"x": ("1", "2")}


def test_transactions_that_were_aborted_have_no_history(tmp_path: Path) -> None:
    told: list[Change] = []
    replayed(tmp_path, BEGIN, topic("a", "A"), ABORT, BEGIN, topic("b", "B"), END, BEGIN, topic("c", "C"), told=told)
    assert [(each.offset, each.name) for each in told] == [(4, "b")]


def test_an_open_transaction_does_not_count_as_of_its_middle(tmp_path: Path) -> None:
    found = files(tmp_path, l0=log([topic("z", "Z"), BEGIN, topic("a", "A"), END]))
    assert list(replay_metadata(found, AsOf(offset=2)).topics) == ["z"]
    assert list(replay_metadata(found, AsOf(offset=3)).topics) == ["z", "a"]


@each_case("value", [ACL, SCRAM, TOKEN])
def test_records_cut_short_are_told(tmp_path: Path, value: bytes) -> None:
    key = {ACL: 18, SCRAM: 11, TOKEN: 10}[value]
    for size in range(len(value)):
        found = replayed(tmp_path, framed(key, value[:size]))
        assert found.problems
        assert (found.acls, found.scram, found.tokens) == ({}, {}, {})


def test_a_damaged_snapshot_that_is_all_there_is(tmp_path: Path) -> None:
    data = (CLEAN / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(data[:-1])
    found = replay_metadata(metadata_files(str(tmp_path)))
    assert len(found.topics) == 44
    assert found.problems[0].text.startswith(f"{CHECKPOINT}: ")


def test_a_wrong_offset_hides_nothing(tmp_path: Path) -> None:
    parts = split(log([topic("a", "A")], [topic("b", "B")], [topic("c", "C")], [topic("d", "D")]))
    found = files(tmp_path, l0=parts[0] + rebase(parts[1], 1 << 40) + parts[2] + parts[3])
    whole = replay_metadata(found)
    assert (" ".join(whole.topics), whole.end_offset, len(whole.problems)) == ("a b c d", 4, 2)
    assert " ".join(replay_metadata(found, AsOf(offset=2)).topics) == "a c"


@pytest.mark.sampled
@each_case("name", [LOG, CHECKPOINT])
def test_flipped_bits(tmp_path: Path, name: str) -> None:
    shutil.copytree(CLEAN, tmp_path, dirs_exist_ok=True)
    data = (CLEAN / name).read_bytes()
    dice = seeded(name)
    for bit in dice.sample(range(len(data) * 8), 25 if SEED else 8):
        (tmp_path / name).write_bytes(flip(data, bit))
        told: list[Change] = []
        for moment in (AsOf(), AsOf(offset=326)):
            found = replay_metadata(metadata_files(str(tmp_path)), moment, on_change=told.append)
            assert found.features
