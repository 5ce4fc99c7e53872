"""--properties: a node's server.properties decides what no file on its disks states."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kdump
from kdump.check.options import Options
from kdump.kafka.server_properties import read_properties
from tests.command import refused, run
from tests.conftest import RELEASES

KRAFT = RELEASES / "4.3.1-kraft"


def properties(at: Path, **values: str) -> Path:
    path = at / "server.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in values.items()))
    return path


def test_the_file(tmp_path: Path) -> None:
    found = read_properties(str(properties(tmp_path, process_roles="broker, controller", log_dirs="/a, /b")))
    assert (found.roles, found.log_dirs, found.metadata_log_dir) == ({"broker", "controller"}, ["/a", "/b"], "/a")
    found = read_properties(str(properties(tmp_path, process_roles="controller", log_dir="/a", metadata_log_dir="/m")))
    assert (found.is_broker, found.log_dirs, found.metadata_log_dir) == (False, ["/a"], "/m")
    assert not found.has_logs("/a")
    assert read_properties(str(properties(tmp_path, log_dirs="/a"))).has_logs("/a")


def test_a_controller_may_also_be_a_broker(tmp_path: Path) -> None:
    """Without the file, both outcomes are stated."""
    disk = shutil.copytree(KRAFT / "controller", tmp_path / "disk")
    plan = kdump.restart_plan([str(disk)])
    assert any("if process.roles has broker, too" in text for text in plan.assumptions)
    for roles, is_broker in (("controller", False), ("broker,controller", True)):
        server = read_properties(str(properties(tmp_path, process_roles=roles, log_dirs=str(disk))))
        plan = kdump.restart_plan([str(disk)], Options(server=server))
        assert any("the node is a controller" in text for text in plan.assumptions) != is_broker
        assert f"log.dirs and metadata.log.dir are those in {server.path}" in plan.assumptions
        assert not any("--properties" in text for text in plan.assumptions)


@pytest.mark.parametrize(
    ("given", "assumed"),
    [
        ({"process_roles": "broker"}, "other nodes are the controllers, and still"),
        ({"controller_quorum_voters": "1@a:1,2@b:1"}, "the other controllers still have the cluster's metadata"),
        ({"controller_quorum_voters": "1@a:1"}, "the node is the cluster's only controller, as stated in"),
    ],
)
def test_no_assumption_contradicts_the_file(tmp_path: Path, given: dict[str, str], assumed: str) -> None:
    disk = shutil.copytree(KRAFT / "clean", tmp_path / "disk")
    shutil.rmtree(disk / "__cluster_metadata-0")
    values = {"node_id": "1", "process_roles": "broker,controller", "log_dirs": str(disk), **given}
    server = read_properties(str(properties(tmp_path, **values)))
    plan = kdump.restart_plan([str(disk)], Options(server=server))
    assert next(text for text in plan.assumptions if "controller" in text).startswith(assumed)
    assert sum("controller" in text for text in plan.assumptions) == 1


@pytest.mark.parametrize("own", ["one", "two"])
def test_which_of_two_metadata_logs_is_the_nodes(tmp_path: Path, own: str) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        shutil.copytree(KRAFT / "clean", path)
    meta = paths[1] / "meta.properties"
    meta.write_text(meta.read_text().replace("directory.id=", "directory.id=B"))
    file = properties(
        tmp_path, process_roles="broker", log_dirs=",".join(map(str, paths)), metadata_log_dir=str(tmp_path / own)
    )
    plan = kdump.restart_plan([*map(str, paths)], Options(server=read_properties(str(file))))
    assert [Path(each.path).name for each in plan.directories if each.metadataLogDir] == [own]
    plan = kdump.restart_plan([*map(str, paths)])
    assert any("--properties FILE decides" in text for text in plan.assumptions)


def test_a_directory_of_log_dirs_lacks_its_partitions(tmp_path: Path) -> None:
    """Without checkpoints, a directory with a metadata log alone looks like a controller's."""
    disk = shutil.copytree(KRAFT / "clean", tmp_path / "disk")
    for path in [*disk.iterdir()]:
        if path.is_dir() and path.name != "__cluster_metadata-0":
            shutil.rmtree(path)
        elif path.name.endswith("-checkpoint") or path.name.startswith(".kafka"):
            path.unlink()
    file = properties(tmp_path, process_roles="broker,controller", log_dirs=str(disk))
    assert "partition-missing" not in run("verify", disk, "--json").stdout
    assert "partition-missing" in run("verify", disk, "--json", "--properties", file).stdout
    for command in ("ls", "doctor", "restart-plan"):
        assert run(command, disk, "--json").stdout != run(command, disk, "--json", "--properties", file).stdout, command


@pytest.mark.parametrize(
    ("release", "exception"),
    [
        ("4.3.1", "RuntimeException: Stored node id 1 doesn't match previous node id 1001"),
        ("3.6-kraft", "InconsistentNodeIdException: Configured node.id `1001` doesn't match stored node.id `1'"),
        ("3.6-zookeeper", "InconsistentBrokerIdException: Configured broker.id 1001 doesn't match stored broker.id"),
    ],
)
def test_the_node_id_is_another_one(tmp_path: Path, release: str, exception: str) -> None:
    """As a start of 4.3.1 on such a disk ended, and as github.com/getsentry/snuba/issues/6562 reports of 3.x."""
    disk = shutil.copytree(RELEASES / "3.6.2-zk/clean" if "zoo" in release else KRAFT / "clean", tmp_path / "disk")
    for name, value, stops in (("node_id", "1001", True), ("node_id", "1", False), ("broker_id", "-1", False)):
        file = properties(tmp_path, **{name: value, "log_dirs": str(disk)})
        plan = kdump.restart_plan([str(disk)], Options(server=read_properties(str(file))), kafka_version=release)
        found = [stop.exception for each in plan.directories for stop in each.stops if "1001" in stop.exception]
        assert [text.startswith(exception) for text in found] == [True] * stops


def test_a_copy_is_elsewhere(tmp_path: Path) -> None:
    server = read_properties(str(properties(tmp_path, process_roles="broker", log_dirs="/elsewhere")))
    plan = kdump.restart_plan([str(KRAFT / "clean")], Options(server=server))
    assert f"{server.path} names none of these directories, as for a copy of them" in plan.assumptions


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refused("ls", KRAFT / "clean", "--properties", tmp_path / "none")
