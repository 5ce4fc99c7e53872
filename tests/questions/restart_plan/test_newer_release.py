"""What only a release newer than the newest known one writes: it is named, nothing healthy is called damaged, and no
older release is chosen because of it. Disks are made here."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.release_evidence import LAST, LEVEL, first_release, highest_level
from kdump.format.kafka_release import NEWEST, newer_text, parse_release
from kdump.format.known_releases import features, newest
from kdump.questions.restart_plan.answer import OF_NEWER_RELEASE, STOPPED, UNKNOWN, RestartPlan
from tests import command
from tests.conftest import FIXTURES, few
from tests.craft import batch, record, with_metadata_record, write_file
from tests.damages import copy_disk
from tests.state.test_cluster import feature
from tests.state.test_metadata import CONTROL, NOTHING, broker, framed, log, removed, snapshot, text, topic

HIGHEST = highest_level(LEVEL, LAST)
LINE = "{}.{}".format(*LAST)
KNOWN_BY_ALL = feature(LEVEL, 27)
BEFORE = "4.2"
"""A release before the newest one, which supports level 27."""
META = "version=1\nnode.id=0\ncluster.id=FN96DRb6S3GeSIQS03itlw\ndirectory.id=JKs_-7HWPwgYeoWKkMm_sw\n"


def controller(root: Path, *values: bytes, newest: bytes | None = None) -> Path:
    """Make the disk of a controller whose log has these records; `newest`: the metadata snapshot after them."""
    folder = root / "__cluster_metadata-0"
    write_file(folder / f"{0:020}.log", log([*values]) if values else b"")
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (folder / "quorum-state").write_text(
        '{"leaderId":0,"leaderEpoch":0,"votedId":0,"clusterId":"","appliedOffset":0,"currentVoters":[{"voterId":0}],"data_version":0}'
    )
    if newest is not None:
        (folder / f"{len(values):020}-0000000000.checkpoint").write_bytes(newest)
    (root / "meta.properties").write_text(META)
    return root


def broker_of(root: Path, *values: bytes) -> Path:
    """Make the disk of a broker, which is not a voter."""
    controller(root, *values)
    quorum = root / "__cluster_metadata-0" / "quorum-state"
    quorum.write_text(quorum.read_text().replace('"voterId":0', '"voterId":9').replace('"leaderId":0', '"leaderId":9'))
    (root / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    return root


def plan(disk: Path, version: str | None = None) -> RestartPlan:
    return kdump.restart_plan([str(disk)], kafka_version=version)


def first_line(name: str, disk: Path, *options: str) -> str:
    return command.run(name, disk, *options).stdout.splitlines()[0]


def disk_line(disk: Path) -> str:
    """Return doctor's first line on the disk: after its verdict if something limits it, else after its items."""
    lines = command.run("doctor", disk).stdout.splitlines()
    return next(line.lstrip() for line in lines if line.lstrip().startswith(f"{disk}: "))


def above(name: str) -> bytes:
    """Return the record of the first level of a feature that no known release supports."""
    return feature(name, highest_level(name, LAST) + 1)


NEWER_LEVELS = [LEVEL, "share.version", "streams.version", "group.version", "transaction.version"]


@pytest.mark.parametrize("name", [*NEWER_LEVELS, "eligible.leader.replicas.version", "later.version"])
def test_a_level_above_the_known_ones(tmp_path: Path, name: str) -> None:
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL, above(name))
    highest = highest_level(name, LAST)
    number = f"{name} is {highest + 1}, "
    found = plan(disk)
    assert (found.verdict, found.status, found.verdictOfRules) == ("unknown", 2, "stopped")
    assert found.release is not None
    assert (found.release.version, found.release.diskVersion) == (NEWEST.number, f"newer than {NEWEST.number}")
    line = first_line("restart-plan", disk)
    assert "UNKNOWN WHETHER IT STARTS" in line
    for said in (line, first_line("cluster", disk), disk_line(disk)):
        assert number in said
        assert NEWEST.number in said
        assert not re.search("loses nothing|nothing is lost", said)
    doctor = command.run("doctor", disk)
    assert (doctor.exit_code, "UNKNOWN WHETHER THE BROKER STARTS: " in doctor.stdout) == (2, True)
    # What is certain: a controller of a known release refuses it.
    for version in (BEFORE, NEWEST.number):
        found = plan(disk, version)
        assert (found.verdict, found.status) == ("stopped", 3)
        stated = f"the disk is that of a release newer than {NEWEST.number}"
        assert stated in command.run("restart-plan", disk, "--kafka-version", version).stdout.splitlines()[1]
    assert plan(disk, "4.9").verdict == "unknown"
    found = [each for each in command.objects("verify", disk) if each["type"] == "finding"]
    codes = {"newer-release", "metadata-record-refused"}
    assert [(each["code"], each["offset"]) for each in found if each["code"] in codes] == [("newer-release", 1)]


def test_what_else_is_refused_in_a_newer_snapshot(tmp_path: Path) -> None:
    """A level of a newer release excuses itself alone."""
    levels = [KNOWN_BY_ALL, above(LEVEL)]
    disk = controller(tmp_path / "disk", *levels, topic("b", "B"), newest=snapshot(*levels, removed("?")))
    found = [each["code"] for each in command.objects("verify", disk, status=1) if each["type"] == "finding"]
    assert {"newer-release", "metadata-record-refused"} <= {*found}


@pytest.mark.parametrize("value", [feature(LEVEL, 1), framed(13, b"\0")])
def test_what_no_newer_release_writes_either(tmp_path: Path, value: bytes) -> None:
    """A level that newer releases dropped, and a type between those that there are, are not newer: verify reports the
    record that no node applies."""
    disk = controller(tmp_path / "disk", value, KNOWN_BY_ALL)
    found = [each for each in command.objects("verify", disk, status=1) if each["type"] == "finding"]
    assert [each["offset"] for each in found if each["code"] == "metadata-record-refused"] == [0]
    assert "newer-release" not in {each["code"] for each in found}


def test_a_log_that_cannot_be_read_although_its_level_is_taken_back(tmp_path: Path) -> None:
    """Since 4.1, a node reads the whole log first: at a record with a key it stops, committed or not."""
    keyed = [record(0, value=feature(LEVEL, HIGHEST)), record(1, key=b"k", value=topic("a", "A"))]
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL)
    path = disk / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + batch(keyed, offset=1, partitionLeaderEpoch=1))
    quorum = disk / "__cluster_metadata-0" / "quorum-state"
    quorum.write_text(quorum.read_text().replace('{"voterId":0}', '{"voterId":0},{"voterId":1},{"voterId":2}'))
    assert all("never committed" not in stop.message for stop in plan(disk, "4.1").stops)
    path.write_bytes(log([KNOWN_BY_ALL], [feature(LEVEL, HIGHEST)]))
    assert any("never committed" in stop.message for stop in plan(disk, "4.1").stops)


@pytest.mark.parametrize(
    ("value", "said", "exception"),
    [
        (framed(100, b"\0"), "MetadataRecord apiKey 100, ", "UnsupportedVersionException: Unknown metadata id 100"),
        (framed(20, b"\0", version=7), "NoOpRecord version 7, above 0", ""),
        (framed(2, topic("a", "A")[3:], version=1), "TopicRecord version 1, above 0", ""),
        (b"\x02" + topic("a", "A")[1:], "MetadataRecord frameVersion 2, above 1", "unknown frame version 2"),
    ],
)
def test_a_record_of_a_newer_release(tmp_path: Path, value: bytes, said: str, exception: str) -> None:
    """The replay goes on. A known release halts at what it cannot read; whether another one starts is unknown."""
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL, value, topic("b", "B"))
    image = read_metadata(str(disk))
    assert image is not None
    assert "b" in image.topics
    assert (list(image.newer.values()), image.problems[0].text.partition(": ")[2]) == ([1], next(iter(image.newer)))
    assert next(iter(image.newer)).startswith(said)
    for version in (None, BEFORE, NEWEST.number, "4.9"):
        found = plan(disk, version)
        if exception and version in (BEFORE, NEWEST.number):
            assert (found.verdict, found.stops[0].offset) == ("stopped", 1)
            assert exception in found.stops[0].exception
        else:
            assert (found.verdict, found.unknowns) == ("unknown", list(image.newer))
    assert said in first_line("restart-plan", disk)
    assert ("it DOES NOT START" in first_line("restart-plan", disk)) == bool(exception)
    assert disk_line(disk).startswith(f"{disk}: UNKNOWN RELEASE: {said}")
    assert "the metadata is damaged" not in command.run("doctor", disk).stdout
    cluster = command.run("cluster", disk)
    assert said in cluster.stdout.splitlines()[0]
    assert said in cluster.stderr
    for name, options in (("verify", ()), ("report", ("--out", tmp_path / "report.html"))):
        assert said in command.run(name, disk, *options).stdout.splitlines()[0]
    assert said in (tmp_path / "report.html").read_text()
    assert not [each for each in command.objects("verify", disk) if each.get("severity") == "error"]


@pytest.mark.parametrize(
    ("release", "level", "exception"),
    [
        ("3.7", 33, "IllegalArgumentException: No MetadataVersion with metadata version 33"),
        ("3.9", 33, "IllegalArgumentException: No MetadataVersion with feature level 33"),
        ("3.9", 22, "RuntimeException: Tried to apply FeatureLevelRecord"),  # an unstable level
        ("4.0", 27, "IllegalArgumentException: Unsupported metadata version"),
        ("4.0", 26, "RuntimeException: Tried to apply FeatureLevelRecord"),
        ("4.2", 33, "IllegalArgumentException: Unsupported metadata version"),
        ("4.2", 30, "RuntimeException: Tried to apply FeatureLevelRecord"),
        ("4.3", 33, "IllegalArgumentException: Unsupported metadata version"),
    ],
)
def test_how_a_release_refuses_a_level(tmp_path: Path, release: str, level: int, exception: str) -> None:
    disk = controller(tmp_path / "disk", feature(LEVEL, level))
    assert plan(disk, release).stops[0].exception.startswith(exception)


@pytest.mark.parametrize("release", ["4.1", "4.2"])
def test_a_record_that_cannot_be_read_comes_before_a_level_that_cannot_be_applied(tmp_path: Path, release: str) -> None:
    """As 4.2.0 does with a log of 4.3: an unstable level, and a broker's registration of a later version."""
    endpoint = b"\x02" + text("CLIENT") + text("localhost") + bytes(4) + b"\0"
    registered = bytes([0, 0, 0, 1, 0]) + bytes(24) + endpoint + b"\x01\0\0\0\0"
    disk = controller(tmp_path / "disk", feature(LEVEL, 30), framed(0, registered, version=4))
    (stop,) = plan(disk, release).stops
    assert stop.exception == "MetadataParseException: Failed to deserialize record with type 0"


def test_a_level_that_only_bootstrap_has(tmp_path: Path) -> None:
    """The metadata log has a level that every release knows."""
    disk = controller(tmp_path / "disk", feature(LEVEL, 7))
    path = write_file(disk / "bootstrap.checkpoint", log([feature(LEVEL, 33)]))
    for release, wording in (("3.3", "metadata version"), ("3.9", "feature level"), ("4.0.0", "feature level")):
        (stop,) = plan(disk, release).allStops
        assert (stop.file, stop.exception) == (
            str(path),
            f"IllegalArgumentException: No MetadataVersion with {wording} 33",
        )
    assert plan(disk, "4.0.1").directories[0].warnings == []
    (warning,) = plan(disk, "4.0").directories[0].warnings
    assert warning.startswith(f"Kafka 4.0.0 exits with {path}, later patches start: IllegalArgumentException")
    path.write_bytes(log([feature(LEVEL, 3)]))
    (stop,) = plan(disk, "3.9").allStops
    assert stop.exception == "RuntimeException: Bootstrap metadata.version before 3.3-IV0 are not supported."
    assert plan(disk, "4.1").verdict == "clean"


def test_what_depends_on_such_a_record_is_unknown(tmp_path: Path) -> None:
    """The record may have created the topic, so that its directory is not stray."""
    too_large = framed(20, bytes(600_000))  # for kdump, not for a node
    for value, is_stray in ((NOTHING, True), (framed(100, b"\0"), False), (too_large, False)):
        disk = broker_of(tmp_path / str(len(value)), KNOWN_BY_ALL, topic("b", "B"), broker(0, "x"), value)
        write_file(disk / "a-0" / f"{0:020}.log", log([b"v"]))
        (disk / "a-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")
        found = plan(disk)
        assert [each.stray != "" for each in found.partitions if each.topic == "a"] == [is_stray]
        assert any("which directories are stray is unknown" in text for text in found.assumptions) != is_stray


@pytest.mark.parametrize("role", [controller, broker_of])
def test_an_unfinished_migration_from_zookeeper_is_a_doubt_in_both_roles(tmp_path: Path, role: Any) -> None:
    disk = role(tmp_path / "disk", KNOWN_BY_ALL, framed(21, b"\x02\0"))
    assert any("PRE_MIGRATION" in each for each in plan(disk, LINE).unknowns)


def test_a_control_record_of_a_newer_release(tmp_path: Path) -> None:
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL)
    path = disk / "__cluster_metadata-0" / f"{0:020}.log"
    value = record(key=bytes.fromhex("00000063"), value=b"\0\0")
    path.write_bytes(path.read_bytes() + batch([value], offset=1, attributes=CONTROL))
    assert plan(disk).unknowns == [newer_text("control record type", 99, 6)]


def test_every_level_since_the_snapshot_counts(tmp_path: Path) -> None:
    """A controller refuses a level also if a later record lowered it, unless a newer snapshot covers it."""
    values = (KNOWN_BY_ALL, feature(LEVEL, 31), KNOWN_BY_ALL)
    lowered = controller(tmp_path / "lowered", *values)
    found = plan(lowered)
    assert found.release is not None
    assert (found.verdict, found.release.version) == ("clean", "4.4.0")
    assert "metadata.version was set at offset 1 to 4.4-IV0" in found.release.reason
    found = plan(lowered, "4.3")
    assert (found.verdict, found.stops[0].offset) == ("stopped", 1)
    expected = (
        "FeatureLevelRecord(name='metadata.version', featureLevel=31), but this controller only supports versions"
    )
    assert expected in found.stops[0].exception
    covered = controller(tmp_path / "covered", *values, newest=snapshot(KNOWN_BY_ALL))
    assert plan(covered, "4.3").verdict == "clean"
    # What no known release supports is named once, and where known ones halt.
    found = plan(broker_of(tmp_path / "newer", feature(LEVEL, HIGHEST + 1), KNOWN_BY_ALL))
    assert [text.partition(", ")[0] for text in found.unknowns] == [
        f"metadata.version was set at offset 0 to {HIGHEST + 1}",
        "FeatureLevelRecord at offset 0 of the metadata log",
    ]
    found = plan(tmp_path / "newer", "4.9")
    assert found.change is None or not found.change.wayBack
    # A broker does not refuse it as a controller does: what it does is not known here.
    found = plan(broker_of(tmp_path / "broker", *values), "4.3")
    assert (found.verdict, found.stops, found.status) == ("unknown", [], 2)
    assert "metadata.version was set at offset 1 to 4.4-IV0" in found.unknowns[0]
    shared = (KNOWN_BY_ALL, feature("share.version", 9), feature("share.version", 1))
    found = plan(broker_of(tmp_path / "shared", *shared), LINE)
    assert (found.verdict, found.stops, found.status) == ("unknown", [], 2)
    assert "share.version was set at offset 1 to 9" in found.unknowns[0]


def test_a_feature_that_a_controller_does_not_support(tmp_path: Path) -> None:
    disk = controller(tmp_path / "disk", feature(LEVEL, 30), feature("share.version", 2))
    assert plan(disk).verdict == "clean"
    (stop,) = plan(disk, "4.3").stops
    assert stop.exception.endswith("featureLevel=2), but this controller only supports versions 0-1")
    assert "kafka-features.sh --bootstrap-server HOST:PORT downgrade --feature share.version=1. " in stop.remedy


@pytest.mark.parametrize(
    ("levels", "version", "remedy"),
    [
        ({LEVEL: 29}, "4.1", "--bootstrap-server HOST:PORT downgrade --feature metadata.version=27. Keep it running"),
        (
            {LEVEL: 31, "share.version": 2},
            "4.3",
            "downgrade --feature metadata.version=30 --feature share.version=1. Keep",
        ),
        ({LEVEL: 33}, "4.3", "refuse to lower metadata.version, because 4.4-IV2 changed the metadata"),
        ({LEVEL: HIGHEST + 1}, LINE, "is not known, and the controllers may refuse to lower it"),
    ],
)
def test_how_a_level_is_lowered(tmp_path: Path, levels: dict[str, int], version: str, remedy: str) -> None:
    """Never with --release-version, which also sets features to the release's defaults, and fails if one of these is
    above the level that the cluster has."""
    disk = controller(tmp_path / "disk", *(feature(*each) for each in levels.items()))
    remedies = [stop.remedy for stop in plan(disk, version).stops]
    assert remedy in remedies[0]
    assert "--release-version" not in remedies[0]


def test_features_of_a_distribution_say_nothing(tmp_path: Path) -> None:
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL, feature("confluent.metadata.version", 900))
    assert (plan(disk).verdict, plan(disk, BEFORE).verdict) == ("clean", "clean")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    few(
        [
            (
                "__cluster_metadata-0/quorum-state",
                '{"data_version":2,"leaderEpoch":0}',
                "quorum-state version 2, above 1",
            ),
            ("meta.properties", META.replace("version=1", "version=2"), "meta.properties version 2, above 1"),
            ("recovery-point-offset-checkpoint", "1\n0\n", "recovery-point-offset-checkpoint version 1, above 0"),
            (".kafka_cleanshutdown", '{"version":1,"brokerEpoch":5}', ".kafka_cleanshutdown version 1, above 0"),
            ("a-0/leader-epoch-checkpoint", "1\n0\n", "leader-epoch-checkpoint version 1, above 0"),
            (
                "a-0/partition.metadata",
                "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n",
                "partition.metadata version 1, ",
            ),
            (
                "a-0/00000000000000000000.snapshot",
                b"\0\x02" + bytes(8),
                "00000000000000000000.snapshot version 2, above 1",
            ),
            ("a-0/00000000000000000000.txnindex", b"\0\x01" + bytes(32), "AbortedTxn version 1, above 0"),
        ],
        4,
    ),
)
def test_a_file_of_a_newer_version(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    """It is not damaged: the finding is a warning."""
    disk = broker_of(tmp_path / "disk", KNOWN_BY_ALL)
    write_file(disk / "a-0" / f"{0:020}.log", log([b"v"]))
    for index in ("index", "timeindex"):
        (disk / "a-0" / f"{0:020}.{index}").touch()
    (disk / "a-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")
    path = write_file(disk / name, content if isinstance(content, bytes) else content.encode())
    other = disk / "__cluster_metadata-0" / path.name
    if path.suffix in ("", ".metadata") and other.exists() and other != path:  # the newer release wrote both
        other.write_bytes(other.read_bytes().replace(b"0", b"1", 1))
    findings = [each for each in command.objects("verify", disk) if each.get("file") == str(path)]
    assert [(each["code"], each["severity"]) for each in findings] == [("newer-release", "warning")]
    assert said in findings[0]["message"]
    assert NEWEST.number in findings[0]["message"]
    said = said.removeprefix(f"{0:020}")
    found = plan(disk)
    assert (found.verdict, found.status) == ("unknown", 2)
    assert said in found.unknowns[0]
    assert found.release is not None
    assert (found.release.diskVersion, said in found.release.newer[0]) == (f"newer than {NEWEST.number}", True)
    result = command.run("restart-plan", disk)
    assert said in result.stdout.splitlines()[0]
    assert f"by the rules of Kafka {found.release.version} it" in result.stdout.splitlines()[0]
    assert "it may be any" not in result.stdout
    assert any(said in line for line in command.run("doctor", disk).stdout.splitlines() if "UNKNOWN" in line)
    doctor = command.run("doctor", disk).stdout
    for report in (result.stdout, doctor):  # nothing that writes an older version over it
        assert "do not format the directory" not in report
    stops = found.allStops
    assert [stop.actions == OF_NEWER_RELEASE.actions for stop in stops] == [True] * len(stops)
    assert all(stop.actions != OF_NEWER_RELEASE.actions for stop in plan(disk, NEWEST.number).allStops)
    if "partition.metadata" in name or name.endswith(".snapshot"):
        # A broker of a known release starts with both: it does not look at the one, and deletes the other.
        assert plan(disk, NEWEST.number).verdict == "clean"


def flipped_versions() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield files, their content up to the version, and what one flipped bit makes of a version of a release."""
    texts = {
        "__cluster_metadata-0/quorum-state": b'"data_version":',
        "meta.properties": b"version=",
        "replication-offset-checkpoint": b"",
        "recovery-point-offset-checkpoint": b"",
        "log-start-offset-checkpoint": b"",
        "cleaner-offset-checkpoint": b"",
        "orders-none-0/leader-epoch-checkpoint": b"",
        "orders-none-0/partition.metadata": b"version: ",
        "__cluster_metadata-0/leader-epoch-checkpoint": b"",
    }
    for name, before in texts.items():
        known = b"01" if "meta." in name or "quorum" in name else b"0"
        for version in {number ^ 1 << bit for number in known for bit in range(4)}.difference(known):
            if chr(version).isdigit():
                yield name, before, bytes([version])
    for version in (1 << bit for bit in range(1, 16)):
        yield "SNAPSHOT", b"", (version ^ 1).to_bytes(2, "big")


STARTS = ("partition.metadata", "SNAPSHOT")
"""Files whose version stops no broker: it reads the one, and replaces the other."""


@pytest.mark.parametrize(("name", "before", "version"), few(flipped_versions(), 4), ids=str)
def test_a_flipped_bit_of_a_version_is_damage(tmp_path: Path, name: str, before: bytes, version: bytes) -> None:
    """The other files of its kind have known versions, and the broker registered with a release that is known."""
    disk = copy_disk(FIXTURES / "disk-1", tmp_path / "disk")
    path = max((disk / "payments-0").glob("*.snapshot")) if name == "SNAPSHOT" else disk / name
    data = path.read_bytes()
    start = data.index(before) + len(before)
    path.write_bytes(data[:start] + version + data[start + len(version) :])
    findings = command.objects("verify", disk, status=1)
    assert [each["severity"] for each in findings if each.get("file") == str(path)] == ["error"]
    for question in ("verify", "restart-plan", "doctor"):
        assert "that kdump knows" not in command.run(question, disk).stdout, question
    assert (plan(disk).verdict == "clean") is name.endswith(STARTS)


@pytest.mark.parametrize(
    ("version", "code"), [("1", "newer-release"), ("2", "checkpoint-invalid"), ("8", "checkpoint-invalid")]
)
def test_a_version_that_follows_the_known_ones(tmp_path: Path, version: str, code: str) -> None:
    """Of a file alone, nothing else shows the release; but releases number versions one by one."""
    path = write_file(tmp_path / "a-0" / "leader-epoch-checkpoint", f"{version}\n1\n0 0\n".encode())
    assert [each["code"] for each in objects_of(path)] == [code]
    write_file(tmp_path / "b-0" / "leader-epoch-checkpoint", b"0\n1\n0 0\n")
    assert [each["code"] for each in objects_of(path)] == ["checkpoint-invalid"]
    write_file(tmp_path / "c-0" / "leader-epoch-checkpoint", f"{version}\n1\n0 0\n".encode())
    assert [each["code"] for each in objects_of(path)] == ["newer-release"]


def objects_of(path: Path) -> list[dict[str, Any]]:
    result = command.run("verify", path, "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in rows if row["type"] == "finding"]


def test_a_transaction_index_of_a_newer_version(tmp_path: Path) -> None:
    """Also after entries that a known release wrote. An entry before such ones, or with another first byte, is
    damaged."""

    def entry(version: int, last: int) -> bytes:
        return version.to_bytes(2, "big") + b"".join(each.to_bytes(8, "big") for each in (7, 0, last, last + 1))

    for number, (versions, codes, verdict) in enumerate(
        [
            ((0, 1, 1), ["newer-release"], "unknown"),
            ((1, 0), ["txn-index-invalid"], "clean"),
            ((256,), ["txn-index-invalid"], "stopped"),
        ]
    ):
        disk = broker_of(tmp_path / str(number), KNOWN_BY_ALL)
        folder = disk / "a-0"
        write_file(folder / f"{0:020}.log", log([b"v"]))
        for index in ("index", "timeindex"):
            (folder / f"{0:020}.{index}").touch()
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")
        path = folder / f"{0:020}.txnindex"
        path.write_bytes(b"".join(entry(version, last) for last, version in enumerate(versions)))
        found = command.objects("verify", disk, status=int(codes != ["newer-release"]))
        of_entries = [each for each in found if each.get("file") == str(path) and each["code"] != "txn-index-mismatch"]
        assert [each["code"] for each in of_entries] == codes
        assert plan(disk).verdict == verdict
        # 4.3 reads one byte of the two.
        assert plan(disk, "4.3").verdict == ("clean" if 256 not in versions else "stopped")
        assert plan(disk, NEWEST.number).verdict == "stopped"


def test_a_batch_without_records_is_named_by_its_file(tmp_path: Path) -> None:
    """Also if a snapshot was read before it."""
    disk = controller(tmp_path / "disk", newest=snapshot(KNOWN_BY_ALL))
    path = disk / "__cluster_metadata-0" / f"{0:020}.log"
    path.write_bytes(log([], [KNOWN_BY_ALL]))
    assert [failure.file for failure in plan(disk).stops] == [str(path)]


def test_what_format_writes_is_no_state(tmp_path: Path) -> None:
    """kafka-storage of 4.4 writes feature levels into the snapshot at offset 0 (KIP-1170), which 4.3 ignores."""
    disk = controller(tmp_path / "disk")
    checkpoint = disk / "__cluster_metadata-0" / f"{0:020}-{0:010}.checkpoint"
    checkpoint.write_bytes(snapshot(feature(LEVEL, 33), feature("share.version", 2)))
    image = read_metadata(str(disk))
    assert image is not None
    assert (image.features, image.levels, image.formatted) == ({}, {}, {LEVEL: 33, "share.version": 2})
    found = plan(disk)
    assert found.release is not None
    assert (found.release.version, found.verdict) == ("4.4.0", "clean")
    before = plan(disk, "4.3")
    assert before.verdict == "clean"
    assert before.change is not None
    assert "kafka-storage wrote at offset 0: metadata.version 4.4-IV2, share.version 2" in before.change.wayBack[0]
    checkpoint.write_bytes(snapshot(feature(LEVEL, HIGHEST + 1)))
    assert [plan(disk, version).verdict for version in (None, NEWEST.number, "4.3")] == ["unknown", "unknown", "clean"]


def test_a_later_release_is_accepted_with_a_warning(tmp_path: Path) -> None:
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL)
    for version in ("4.5", "4.5.1", "5.0", "v4.17.0"):
        release = parse_release(version)
        assert (release.is_newer, release.mode) == (True, "kraft")
        result = command.run("restart-plan", disk, "--kafka-version", version)
        assert result.exit_code == 0
        assert f"Kafka {release.number} is newer than Kafka {NEWEST.number}, the newest release" in result.stderr
        line = result.stdout.splitlines()[1]
        assert f"release: Kafka {release.number} (--kafka-version)" in line
        assert f"rules as of {NEWEST.number}" in line
    for version in ("4.5-zk", "4.100", "2026.1"):
        with pytest.raises(ValueError, match=r"4\.0 and later"):
            parse_release(version)


def test_every_level_has_a_release() -> None:
    for name in features():
        lines = [first_release(name, level) for level in range(1, highest_level(name, LAST) + 1)]
        assert lines == sorted(lines)
        assert first_release(name, len(lines) + 1) > LAST


def test_the_parsers_know_the_versions_of_all_files() -> None:
    """A release with another version of a small file needs a parser of it."""
    parsed = {"FileQuorumStateStore": 1, "MetaProperties": 1}
    assert {name: each.highest for name, each in newest().files.items()} == dict.fromkeys(newest().files, 0) | parsed


def test_the_way_back_names_groups_that_an_older_release_does_not_know() -> None:
    for release, groups in (("3.9", ["regex1"]), ("3.3", ["group-consumer", "share-one"])):
        change = kdump.restart_plan([str(FIXTURES / "state-1")], kafka_version=release).change
        assert change is not None
        (text,) = (text for text in change.wayBack if "groups of new types" in text)
        assert all(group in text for group in groups)
        assert "group-classic" not in text
        without = kdump.restart_plan([str(FIXTURES / "clean-2")], kafka_version=release).change
        assert without is not None
        assert "groups" not in "".join(without.wayBack)


def test_an_unfinished_migration_from_zookeeper_is_in_the_first_line(tmp_path: Path) -> None:
    for state, release, expected in (
        (2, "3.9", "are in PRE_MIGRATION: the controllers wait"),
        (2, "4.3", "is unfinished (PRE_MIGRATION)"),
        (1, "3.9", ""),
        (1, "4.0", "is unfinished (MIGRATION)"),
        (3, "4.3", ""),
    ):
        disk = copy_disk(FIXTURES / "disk-1", tmp_path / f"{state}-{release}")
        log = max((disk / "__cluster_metadata-0").glob("*.log"))
        log.write_bytes(with_metadata_record(log.read_bytes(), b"\x01\x15\x00" + bytes([state, 0])))
        plan = kdump.restart_plan([str(disk)], kafka_version=release)
        doubts = [text for text in plan.doubts if "ZooKeeper" in text]
        assert [expected in text for text in doubts] == [True] * bool(expected), (state, release)
        if plan.verdictOfRules != STOPPED and expected:
            assert plan.verdict == UNKNOWN
            assert expected in command.run("restart-plan", disk, "--kafka-version", release).stdout.splitlines()[0]


def test_registrations(tmp_path: Path) -> None:
    """The node's own registration: a feature that no known release has, or a range that ends above the known one."""
    body = broker(0, "x")
    assert body.startswith(framed(0, b"", version=3))
    supported = text(LEVEL) + (7).to_bytes(2, "big") + (HIGHEST + 1).to_bytes(2, "big") + b"\0"
    registered = broker(0, "x").replace(b"\x01\x01\0\0\0", b"\x01\x02" + supported + b"\0\0\0", 1)
    disk = broker_of(tmp_path / "disk", KNOWN_BY_ALL, registered)
    assert plan(disk).unknowns[0].startswith(f"broker 0 registered with {LEVEL} up to {HIGHEST + 1}, above {HIGHEST}")


SECRET = b"\x04key"
SCRAM_BODY = text("ann") + b"\x01" + SECRET * 3 + (4096).to_bytes(4, "big") + b"\0"


@pytest.mark.parametrize("redacts", [False, True])
def test_bundles_keep_records_of_a_newer_release(tmp_path: Path, redacts: bool) -> None:
    """The replay goes on after them in a bundle, too, and a secret is not in it."""
    values = [framed(100, b"\x02x"), topic("b", "B")]
    if not redacts:
        values[1:1] = [framed(11, SCRAM_BODY, version=1), b"\x02" + framed(11, SCRAM_BODY)[1:]]
    disk = controller(tmp_path / "disk", KNOWN_BY_ALL, *values)
    out = tmp_path / "bundle"
    assert command.run("bundle", disk, "--out", out, *(["--redact"] if redacts else [])).exit_code == 0
    said = [command.run("restart-plan", each).stdout.splitlines()[0].partition(": ")[2] for each in (disk, out)]
    assert said[0] == said[1]
    assert "MetadataRecord apiKey 100" in said[0]
    topics = [each for each in command.objects("cluster", out, "--show", "topics") if each["type"] == "clusterTopic"]
    assert len(topics) == 1
    kept = command.run("inspect", f"{out}/__cluster_metadata-0/{0:020}.log", "-f", "%s|").stdout
    assert kept.count("|") == len(values) + 1
    assert "key" not in kept
    assert ("\x01\x64\0\x02x|" in kept) != redacts


def coordinator_logs(root: Path, codec: str = "none") -> tuple[Path, Path]:
    """Make logs of coordinators with newer values at offset 0, and a newer type of key in __consumer_offsets at 1."""
    offsets = root / "__consumer_offsets-0"
    offsets.mkdir(parents=True)
    key = b"\0\1" + b"".join(len(each).to_bytes(2, "big") + each for each in (b"g", b"t")) + bytes(4)
    value = (9).to_bytes(2, "big") + bytes(8) + b"\xff\xff\xff\xff" + b"\x01" + bytes(8) + b"\0"
    unknown = (99).to_bytes(2, "big") + b"x"
    (offsets / f"{0:020}.log").write_bytes(
        batch(
            [record(0, key=key, value=value), record(1, key=unknown, value=value), record(2, key=key, value=value)],
            codec,
        )
    )
    states = root / "__transaction_state-0"
    states.mkdir()
    key, value = (
        b"\0\0\0\1x",
        (9).to_bytes(2, "big") + bytes(8) + bytes(2) + bytes(4) + b"\0" + b"\0" + bytes(16) + b"\0",
    )
    (states / f"{0:020}.log").write_bytes(batch([record(0, key=key, value=value)]))
    return offsets, states


NEWER_MESSAGES = ("OffsetCommitValue version 9, above ", "CoordinatorRecord type 99, above ")
NEWER_TRANSACTION = f"TransactionLogValue version 9, above 1, the highest in Kafka {NEWEST.number}"


def test_records_of_coordinators(tmp_path: Path) -> None:
    """A newer version is read as far as it is known; the first line says so, and the status is that of an answer that
    is not complete."""
    offsets, states = coordinator_logs(tmp_path)
    for name, path, texts in (("groups", offsets, NEWER_MESSAGES), ("transactions", tmp_path, (NEWER_TRANSACTION,))):
        result = command.run(name, path)
        assert result.exit_code == 2
        assert result.stdout.splitlines()[0].startswith("NOT ALL IS KNOWN: ")
        assert texts[0] in result.stdout.splitlines()[0]
        for each in texts:
            assert each in result.stderr
    shutil.rmtree(offsets)
    for arguments in ((states,), (tmp_path,), (tmp_path, "--coordinator"), (tmp_path, "--open")):
        result = command.run("transactions", *arguments)
        assert (result.exit_code, NEWER_TRANSACTION in result.stdout.splitlines()[0]) == (2, True)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_verify_names_records_of_coordinators(tmp_path: Path, codec: str) -> None:
    """Each is named once in a segment, at the first such record."""
    offsets, states = coordinator_logs(tmp_path, codec)
    found = [each for each in command.objects("verify", tmp_path) if each.get("code") == "newer-release"]
    at = [(each["file"], each["offset"], each["severity"], each["message"]) for each in found]
    for number, (folder, offset, message) in enumerate(
        [(offsets, 0, NEWER_MESSAGES[0]), (offsets, 1, NEWER_MESSAGES[1]), (states, 0, NEWER_TRANSACTION)]
    ):
        assert at[number][:3] == (str(folder / f"{0:020}.log"), offset, "warning")
        assert message in at[number][3]
    assert len(found) == 3
    said = " ".join(command.run("verify", tmp_path).stdout.split("\n\n")[0].split())
    assert said.startswith("NO DAMAGE: ")
    assert NEWER_MESSAGES[0] in said


def test_doctor_names_records_of_coordinators(tmp_path: Path) -> None:
    disk = broker_of(tmp_path / "disk", KNOWN_BY_ALL)
    coordinator_logs(disk)
    lines = command.run("doctor", disk).stdout.splitlines()
    assert any(line.startswith("  groups ") and NEWER_MESSAGES[0] in line for line in lines)
    assert any(line.startswith("  transactions ") and NEWER_TRANSACTION in line for line in lines)
