"""A node's server.properties that is found next to its disks, and what on the disks contradicts it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.cluster.broker_configuration import PropertiesSearch, configuration, configure
from kdump.cluster.disks import Disks
from kdump.incident.doctor.disks import Disks as ExaminedDisks
from kdump.kafka.server_properties import ServerProperties, read_properties
from kdump.log.live_files import FileWatch
from kdump.state.secrets import is_secret
from tests.cluster.test_log_directories import JAVA, process, properties, root  # noqa: F401  a fixture
from tests.command import objects, run
from tests.conftest import FIXTURES, RELEASES
from tests.each_case import each_case

KRAFT = RELEASES / "4.3.1-kraft"
TAKE = ("doctor", "restart-plan", "retention", "space")
"""Commands that take the file without being asked to."""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    shutil.copytree(KRAFT / "clean", tmp_path / "node" / "data")
    return tmp_path / "node" / "data"


def beside(disk: Path, text: str = "") -> Path:
    return properties(disk.parent / "server.properties", f"node.id=1\nprocess.roles=broker\nlog.dirs={disk}\n{text}")


def found(*paths: Path, root: Path | str = "") -> tuple[str, str] | None:  # noqa: F811
    names = [str(path) for path in paths]
    taken = PropertiesSearch(names, Disks.at(names, nested=False), str(root)).find()
    assert len(taken) < 2
    return (taken[0][0].path, taken[0][1]) if taken else None


def contradictions(server: ServerProperties, *paths: Path) -> list[str]:
    return configuration(server, "", Disks.at(map(str, paths), nested=False)).contradictions


# --- Where it is found ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", TAKE)
def test_the_file_beside_the_log_directory_is_taken_and_said_first(command: str, disk: Path) -> None:
    file = beside(disk)
    done = run(command, disk)
    assert done.stdout.startswith(f"configuration: {file}, next to the log directory\n\n")
    first = json.loads(run(command, disk, "--json").stdout.splitlines()[0])
    assert (first["type"], first["path"], first["why"]) == ("serverProperties", str(file), "next to the log directory")
    assert (first["nodeId"], first["roles"], first["logDirs"]) == (1, ["broker"], [str(disk)])
    without = run(command, disk, "--json", "--properties", "/dev/null").stdout
    assert "serverProperties" not in without


@pytest.mark.parametrize("command", ["verify", "ls"])
def test_others_take_only_what_they_are_given(command: str, disk: Path) -> None:
    before = [{**row, "seconds": 0} for row in objects(command, disk)]
    beside(disk)
    assert [{**row, "seconds": 0} for row in objects(command, disk)] == before


def test_defaults_are_those_of_the_file(disk: Path) -> None:
    beside(disk, "log.retention.ms=1234567\n")
    [row] = [row for row in objects("retention", disk / "payments-0") if row["type"] == "retention"]
    assert row["settings"]["retention.ms"] == {"value": 1234567, "source": "server.properties"}


def test_recovery_takes_the_number_of_threads_of_the_file(disk: Path) -> None:
    (disk / ".kafka_cleanshutdown").unlink()
    beside(disk, "num.recovery.threads.per.data.dir=5\n")
    [row] = [row for row in objects("restart-plan", "--estimate", disk) if row["type"] == "recoveryTime"]
    assert (row["threads"], row["threadsFrom"]) == (5, "server.properties")


@each_case("text", ["log.dirs=/elsewhere\n", "", "log.dirs=/elsewhere,{disk}x\n"])
def test_a_file_that_does_not_name_the_directory_is_not_taken(text: str, disk: Path) -> None:
    properties(disk.parent / "server.properties", text.format(disk=disk))
    assert found(disk) is None


def of_node_2(disk: Path, other: Path) -> Path:
    shutil.copytree(disk, other)
    meta = other / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2").replace("directory.id=", "directory.id=B"))
    return other


def test_not_for_bundles(disk: Path) -> None:
    beside(disk)
    assert found(disk) is not None
    assert run("bundle", disk, "--out", disk.parent / "b").exit_code == 0
    assert "configuration:" not in run("doctor", disk.parent / "b").stdout


def test_each_of_several_running_brokers_has_its_own(root: Path, disk: Path, tmp_path: Path) -> None:  # noqa: F811
    paths = [disk, of_node_2(disk, tmp_path / "other")]
    for number, path in enumerate(paths, 1):
        text = f"node.id={number}\nlog.dirs={path}\nlog.retention.ms={number}\n"
        process(root, number, [*JAVA, "kafka.Kafka", str(properties(root / f"{number}.properties", text))])
    names = [*map(str, paths)]
    disks = Disks.at(names, nested=False)
    taken = PropertiesSearch(names, disks, str(root)).find()
    assert [(server.node_id, why) for server, why in taken] == [
        (1, "of the running broker (process 1)"),
        (2, "of the running broker (process 2)"),
    ]
    disks.configure([server for server, _ in taken])
    assert [disks.server_of(path) for path in names] == [server for server, _ in taken]
    assert (disks.server, disks.server_of("/elsewhere")) == (None, None)


@pytest.mark.parametrize("command", ["doctor", "restart-plan", "retention"])
def test_defaults_are_those_of_each_node(command: str, disk: Path, tmp_path: Path) -> None:
    """What one keeps for ever, and the other for a millisecond."""
    other = of_node_2(disk, tmp_path / "of-2" / "data")
    for path, retention in ((disk, "-1"), (other, "1")):
        properties(path.parent / "server.properties", f"log.dirs={path}\nlog.retention.ms={retention}\n")
    done = run(command, disk, other, "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["path"] for row in rows if row["type"] == "serverProperties"] == [
        str(path.parent / "server.properties") for path in (disk, other)
    ]
    if command == "retention":
        values = {
            row["source"]: row["settings"]["retention.ms"]["value"]
            for row in rows
            if row.get("topic") == "payments" and "settings" in row
        }
        assert values == {str(disk): -1, str(other): 1}
        return
    due = [row for row in rows if "retention.ms=1 (server.properties)" in json.dumps(row)]
    assert due
    assert not [row for row in due if str(disk) in json.dumps(row)]
    assert not [row for row in rows if "retention.ms=604800000" in json.dumps(row)]


def test_a_second_look_takes_the_files_of_several_nodes_as_the_first_one_does(disk: Path, tmp_path: Path) -> None:
    """A metadata.log.dir, with the checkpoints of the time when it was in log.dirs, too: its node misses nothing."""
    other = of_node_2(disk, tmp_path / "of-2" / "data")
    properties(disk.parent / "server.properties", f"log.dirs={tmp_path}/elsewhere\nmetadata.log.dir={disk}\n")
    properties(other.parent / "server.properties", f"log.dirs={other}\n")
    shutil.rmtree(disk / "payments-0")
    for is_missing in (True, False):
        disks = ExaminedDisks([str(disk), str(other)], Options())
        if not is_missing:
            configure(disks, disks.paths, None)
        unit = next(unit for unit in disks.units if unit.name == str(disk))
        for look in (unit, unit.again(around=True)):
            assert look is not None
            codes = {finding.code for finding in look.look(CheckTotals(), FileWatch())}
            assert ("partition-missing" in codes) == is_missing


def test_of_a_running_broker_before_any_other(root: Path, disk: Path) -> None:  # noqa: F811
    beside(disk)
    file = properties(root / "etc/kafka/server.properties", f"log.dirs={disk}\n")
    assert found(disk, root=root) == (str(disk.parent / "server.properties"), "next to the log directory")
    process(root, 7, [*JAVA, "kafka.Kafka", str(file)])
    assert found(disk, root=root) == (str(file), "of the running broker (process 7)")
    (disk.parent / "server.properties").unlink()
    shutil.rmtree(root / "proc/7")
    assert found(disk, root=root) == (str(file), "in a usual place")


def test_of_a_broker_in_another_container_that_has_mounted_the_disk_elsewhere(root: Path, disk: Path) -> None:  # noqa: F811
    """As in an ephemeral container of the pod: its own path to the same directory is another one."""
    inside = process(root, 7, [*JAVA, "kafka.Kafka", "/tmp/strimzi.properties"], other=True)
    (inside / "var/lib/kafka/data-0").mkdir(parents=True)
    (inside / "var/lib/kafka/data-0/kafka-log0").symlink_to(disk)
    text = "log.dirs=/var/lib/kafka/data-0/kafka-log0,/var/lib/kafka/data-1/kafka-log0\n"
    properties(inside / "tmp/strimzi.properties", text)
    [taken] = PropertiesSearch([str(disk)], Disks.at([str(disk)], nested=False), str(root)).find()
    assert taken[0].stated_log_dirs == [str(disk), f"{root}/proc/7/root/var/lib/kafka/data-1/kafka-log0"]
    [gone] = contradictions(taken[0], disk)
    assert "data-1/kafka-log0, which" in gone
    assert "does not exist" in gone


def test_what_config_providers_complete_is_not_known(disk: Path, tmp_path: Path) -> None:
    """As Strimzi's file has them. Paths are those that exist; the rest is named as unknown."""
    text = "node.id=${STRIMZI_BROKER_ID}\nbroker.rack=${strimzidir:/opt/kafka/init:rack.id}\n"
    text += f"log.dirs={tmp_path}/node/da${{env:X}}\nlog.retention.ms=${{env:RETENTION}}\n"
    text += "ssl.keystore.password=${strimzienv:CERTS_STORE_PASSWORD}\n"
    file = properties(disk.parent / "server.properties", text)
    server = read_properties(str(file))
    assert (server.node_id, server.stated_log_dirs) == (None, [str(disk)])
    done = run("retention", disk)
    assert done.stdout.startswith(
        f"configuration: {file}, next to the log directory\n  not known of it, because config"
    )
    assert "node.id, log.dirs, log.retention.ms" in done.stdout
    assert "password" not in done.stdout.lower()


# --- What contradicts it ----------------------------------------------------------------------------------------------


def test_nothing_contradicts_the_nodes_own_file(disk: Path) -> None:
    assert contradictions(read_properties(str(beside(disk))), disk) == []


def test_another_node(disk: Path) -> None:
    file = properties(disk.parent / "server.properties", f"node.id=5\nlog.dirs={disk}\n")
    assert contradictions(read_properties(str(file)), disk) == [f"{disk}/meta.properties has node.id 1, {file} 5"]
    first = run("doctor", disk).stdout.splitlines()[0]
    assert first == f"NOT AS CONFIGURED: {disk}/meta.properties has node.id 1, {file} 5"
    [row] = [row for row in objects("doctor", disk, status=3) if row["type"] == "serverProperties"]
    assert len(row["contradictions"]) == 1


def test_directories_that_are_missing_empty_not_examined_or_not_named(disk: Path) -> None:
    other, extra = disk.parent / "other", disk.parent / "extra"
    for path in (other, extra):
        shutil.copytree(KRAFT / "clean", path)
        for partition in [each for each in path.iterdir() if each.is_dir()]:
            shutil.rmtree(partition)
        meta = path / "meta.properties"
        meta.write_text(meta.read_text().replace("directory.id=", f"directory.id={path.name[0]}"))
    (disk.parent / "empty" / "lost+found").mkdir(parents=True)
    names = ",".join(str(disk.parent / name) for name in ("data", "other", "empty", "gone"))
    server = read_properties(str(properties(disk.parent / "x.properties", f"log.dirs={names}\n")))
    said = contradictions(server, disk, extra)
    assert [text.removeprefix(f"{disk.parent}/").replace(server.path, "FILE") for text in said] == [
        "other, which FILE names, is not examined: pass it, too",
        "empty, which FILE names, is empty: it is new, or nothing is mounted there",
        "gone, which FILE names, does not exist",
        "extra has the IDs of this node, but FILE does not name it: the node does not read it",
    ]


def test_another_cluster(disk: Path) -> None:
    other = shutil.copytree(KRAFT / "controller", disk.parent / "other")
    meta = other / "meta.properties"
    meta.write_text(
        "".join("cluster.id=x\n" if "cluster" in line else f"{line}\n" for line in meta.read_text().split())
    )
    server = read_properties(str(properties(disk.parent / "x.properties", f"log.dirs={disk},{other}\n")))
    assert any("directories of several clusters" in text for text in contradictions(server, disk, other))


def test_the_metadata_log_is_elsewhere(disk: Path) -> None:
    meta = shutil.copytree(disk, disk.parent / "meta")
    shutil.rmtree(meta / "__cluster_metadata-0")
    file = meta / "meta.properties"
    file.write_text(file.read_text().replace("directory.id=", "directory.id=B"))
    text = f"log.dirs={disk}\nmetadata.log.dir={meta}\n"
    server = read_properties(str(properties(disk.parent / "x.properties", text)))
    [said] = [text for text in contradictions(server, disk, meta) if "metadata" in text]
    assert said == f"metadata.log.dir is {meta}, which has no metadata log; {disk} has one"


def test_other_voters(disk: Path) -> None:
    """Each release as its nodes did with these files: 3.6.2 exits, 3.9.1 takes the voters of the configuration."""
    for release, status in (("3.6.2", 3), ("3.9.1", 0)):
        node = shutil.copytree(RELEASES / f"{release}-kraft" / "clean", disk.parent / release)
        text = f"node.id=1\nprocess.roles=broker\nlog.retention.ms=-1\nlog.dirs={node}\ncontroller.quorum.voters="
        file = properties(disk.parent / "server.properties", text + "2@localhost:9093\n")
        said = f"controller.quorum.voters in {file} has the nodes 2, quorum-state the voters 0"
        for command in ("doctor", "restart-plan"):
            assert run(command, node).stdout.startswith(f"NOT AS CONFIGURED: {said}\n")
        plan = run("restart-plan", node)
        assert plan.exit_code == status
        exits = "Configured voter set: [2] is different from the voter set read from the state file: [0]."
        assert (exits in " ".join(plan.stdout.split())) == (status == 3)
        properties(disk.parent / "server.properties", text + "0@localhost:9093\n")
        assert "NOT AS CONFIGURED" not in run("restart-plan", node).stdout


def test_voters_of_a_dynamic_quorum_count(disk: Path) -> None:
    node = FIXTURES / "standalone"
    text = f"process.roles=controller\nlog.dirs={node}\ncontroller.quorum.voters=7@localhost:9093\n"
    [said] = contradictions(read_properties(str(properties(disk.parent / "x.properties", text))), node)
    assert said.endswith("has the nodes 7, the metadata the voters 1, which count")


def test_names_that_are_set_several_times(disk: Path) -> None:
    file = beside(
        disk, "log.retention.ms=1\nlog.retention.ms=2\nlisteners=a\nlisteners=b\nlog.flush.ms=1\nlog.flush.ms=1\n"
    )
    server = read_properties(str(file))
    assert server.values["log.retention.ms"] == "2"
    assert contradictions(server, disk) == [f"{file} sets log.retention.ms several times; the last one counts"]


# --- Bad input, and secrets -------------------------------------------------------------------------------------------


@contextmanager
def bad_file(kind: str, path: Path) -> Iterator[None]:
    if kind == "cycle":
        path.symlink_to(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(100 << 20)
    elif kind == "binary":
        path.write_bytes(b"log.dirs=\0")
    elif kind == "directory":
        path.mkdir()
    elif kind == "escape":
        path.write_text("a=\\u12\n")
    yield


@pytest.mark.parametrize("kind", ["cycle", "large", "binary", "directory", "escape", "missing"])
def test_a_file_that_is_none(kind: str, disk: Path) -> None:
    """Asked for, it is a usage error of one line; found, it is named and not used."""
    path = disk.parent / "server.properties"
    with bad_file(kind, path):
        done = run("restart-plan", disk, "--properties", path)
        assert done.exit_code == 2
        assert str(path) in done.stderr.splitlines()[-1]
        found = run("restart-plan", disk)
        assert found.exit_code == run("restart-plan", disk, "--properties", "/dev/null").exit_code
        assert found.stderr.count("it is not used") == (kind != "missing")


def test_a_mount_point_of_nothing(disk: Path, root: Path) -> None:  # noqa: F811
    empty = disk.parent / "empty"
    empty.mkdir()
    for command in TAKE:
        done = run(command, empty)
        assert done.exit_code == 2, command
        assert str(empty) in done.stderr + done.stdout
    beside(disk)
    process(root, 7, [*JAVA, "kafka.Kafka", str(disk.parent / "server.properties")])
    (root / "proc/7/cmdline").unlink()  # it ends
    assert found(disk, root=root) == (str(disk.parent / "server.properties"), "next to the log directory")


CANARY = "c4n4ry"
SECRETS = (
    *("listener.name.sasl.scram-sha-512.sasl.jaas.config", "sasl.jaas.config", "ssl.keystore.password"),
    *("ssl.key.password", "ssl.keystore.key", "ssl.truststore.certificates"),
    *("listener.name.replication.ssl.keystore.certificate.chain", "password.encoder.secret"),
    *("confluent.license.credential", "azure.access.key"),
)


def test_no_secret_is_printed_or_bundled(disk: Path, tmp_path: Path) -> None:
    lines = "".join(f"{name}={CANARY}{number}\n{name}={CANARY}-again\n" for number, name in enumerate(SECRETS))
    file = beside(disk, lines + f"sasl.jaas.config=${{file:/x:{CANARY}}}\n")
    shutil.copy(file, disk / "server.properties")
    assert all(map(is_secret, SECRETS))
    assert CANARY not in repr(read_properties(str(file)))
    for command in (*TAKE, "verify", "ls", "explain --disk", "report"):
        name, *options = command.split()
        for arguments in ((), ("--json",)) if name != "report" else (("--out", str(tmp_path / "page.html")),):
            source = [disk] if options else []
            paths = [*options, *source, "/dev/null"] if options else [disk]
            done = run(name, *paths, *arguments)
            assert CANARY not in done.output, command
    assert run("bundle", disk, "--out", tmp_path / "b").exit_code == 0
    assert not any(CANARY.encode() in path.read_bytes() for path in tmp_path.glob("b/**/*") if path.is_file())
    assert run("ls", tmp_path / "b").exit_code == 0
