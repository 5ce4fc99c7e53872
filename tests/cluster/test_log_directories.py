"""`kdump doctor` without a path: the log directories of a running broker, or those in the usual places."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from kdump.incident.doctor.log_directories import FoundLogDirectories, find_log_directories
from kdump.io.errors import SourceError
from tests.unread import NOBODY


def process(root: Path, number: int, arguments: list[str], *, other: bool = False) -> Path:
    """Lay out a process below `root`/proc; `other`: in another mount namespace. Return its root directory."""
    place = root / "proc" / str(number)
    inside = root / f"container-{number}"
    (place / "ns").mkdir(parents=True)
    inside.mkdir()
    (place / "cmdline").write_bytes(b"\0".join(word.encode() for word in arguments) + b"\0")
    (place / "cwd").symlink_to("/opt/kafka" if other else root)
    (place / "ns/mnt").symlink_to("mnt:[2]" if other else "mnt:[1]")
    (place / "root").symlink_to(inside if other else "/")
    return inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    own = tmp_path / "proc/self"
    (own / "ns").mkdir(parents=True)
    (own / "ns/mnt").symlink_to("mnt:[1]")
    (own / "root").symlink_to("/")
    return tmp_path


def properties(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


JAVA = ["java", "-Xmx1g", "-cp", "libs/*"]


def test_of_the_running_broker_with_what_its_command_line_overrides(root: Path) -> None:
    for name in ("a", "b", "meta"):
        (root / name).mkdir()
    properties(root / "server.properties", f"log.dirs=/nowhere\nmetadata.log.dir={root}/meta\nprocess.roles=broker\n")
    override = ["--override", f"log.dirs={root}/a,{root}/b, {root}/gone"]
    process(root, 7, [*JAVA, "kafka.Kafka", "server.properties", *override])
    process(root, 8, ["grep", "kafka.Kafka"])
    found = find_log_directories(str(root))
    assert found.directories == (f"{root}/a", f"{root}/b", f"{root}/meta")
    assert f"process 7), {root}/server.properties, of which 1 is missing: {root}/gone" in found.why


def test_of_a_broker_in_another_container(root: Path) -> None:
    inside = process(root, 7, [*JAVA, "kafka.Kafka", "/tmp/strimzi.properties"], other=True)
    properties(inside / "tmp/strimzi.properties", "log.dirs=/var/lib/kafka/data-0/kafka-log0\n")
    (inside / "var/lib/kafka/data-0/kafka-log0").mkdir(parents=True)
    found = find_log_directories(str(root))
    assert found.directories == (f"{root}/proc/7/root/var/lib/kafka/data-0/kafka-log0",)


def test_in_the_usual_places(root: Path) -> None:
    for name in ("var/lib/kafka/data-0/kafka-log0", "tmp/kafka-logs", "var/lib/kafka"):
        properties(root / name / "meta.properties", "version=1\n")
    (root / "bitnami/kafka/data").mkdir(parents=True)
    expected = ("tmp/kafka-logs", "var/lib/kafka", "var/lib/kafka/data-0/kafka-log0")
    assert find_log_directories(str(root)) == FoundLogDirectories(
        tuple(f"{root}/{name}" for name in expected), "with meta.properties, in the usual places; no broker is running"
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "no path given, no broker is running"),
        ([None], "No such file or directory; or pass its log directories"),
        (["log.dirs=/gone\n"], "/gone: no such directory"),
        (["log.dirs=\\u12\n"], "a bad escape"),
        (
            ["node.id=1\nlog.dirs=/a,/b\nmetadata.log.dir=/m\n", "process.roles=controller\nlog.dirs=/c\n"],
            r"2 nodes are running; .*: broker 1 \(process 7\): /a /b /m; controller \(process 8\): /c$",
        ),
    ],
)
def test_what_cannot_be_found(root: Path, files: list[str | None], message: str) -> None:
    for number, text in enumerate(files, 7):
        file = root / f"{number}.properties"
        if text is not None:
            properties(file, text)
        process(root, number, [*JAVA, "kafka.Kafka", str(file)])
    with pytest.raises(SourceError, match=message):
        find_log_directories(str(root))


def test_of_another_user(root: Path) -> None:
    """Its command line is readable, and the links to its files are not."""
    process(root, 7, [*JAVA, "kafka.Kafka", "server.properties"])
    (root / "proc/7/cwd").unlink()
    loop = root / "proc/7/cwd"
    with pytest.MonkeyPatch.context() as patched:
        readlink = os.readlink

        def refused(path: str) -> str:
            if str(path) == str(loop):
                raise PermissionError(13, "Permission denied", path)
            return readlink(path)

        patched.setattr(os, "readlink", refused)
        with pytest.raises(SourceError, match=r"process 7\): this user may not see its files: run as its user"):
            find_log_directories(str(root))


@pytest.mark.skipif(os.geteuid() != 0, reason="root looks as another user")
@pytest.mark.parametrize("closed", ["var/lib/kafka", "mnt/data"])
def test_a_usual_place_that_may_not_be_read(closed: str) -> None:
    """It is there: nobody can say that there is no log directory."""
    with tempfile.TemporaryDirectory(prefix="kdump-closed-", dir="/var/tmp") as root:
        Path(root).chmod(0o755)
        (Path(root) / closed).mkdir(parents=True, mode=0o755)
        (Path(root) / closed).chmod(0o700)
        os.seteuid(NOBODY)
        try:
            with pytest.raises(SourceError) as raised:
                find_log_directories(root)
        finally:
            os.seteuid(0)
    place = f"{root}/{closed}"
    denial = f"{place}: Permission denied, because it is owned by root with mode drwx------; run kdump as root"
    assert (
        str(raised.value) == f"no path given, no broker is running, and {denial}; or pass the directories in log.dirs"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="root looks as another user")
def test_beside_one_that_may_be_read() -> None:
    with tempfile.TemporaryDirectory(prefix="kdump-closed-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        properties(Path(place) / "var/lib/kafka/meta.properties", "version=1\n")
        (Path(place) / "bitnami").mkdir(mode=0o700)
        os.seteuid(NOBODY)
        try:
            found = find_log_directories(place)
        finally:
            os.seteuid(0)
    assert found.directories == (f"{place}/var/lib/kafka",)
    assert found.why.endswith(f"; no broker is running; {place}/bitnami/kafka/data may not be read")


def test_a_process_that_ends_is_no_broker(root: Path) -> None:
    process(root, 7, [*JAVA, "kafka.Kafka", "server.properties"])
    (root / "proc/7/cwd").unlink()
    with pytest.raises(SourceError, match="no broker is running"):
        find_log_directories(str(root))


def test_a_real_process(tmp_path: Path) -> None:
    """Of this machine's own /proc: others may run here, so only this one's properties are looked for."""
    (tmp_path / "logs").mkdir()
    file = properties(tmp_path / "server.properties", f"log.dirs={tmp_path}/logs\n")
    waiting = ["java", "-c", "echo; read line", "kafka.Kafka", str(file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(waiting, executable="/bin/sh", **pipes) as running:  # type: ignore[call-overload]
        running.stdout.readline()
        try:
            said = " ".join(find_log_directories().directories)
        except SourceError as error:
            said = str(error)
        finally:
            os.kill(running.pid, signal.SIGKILL)
    assert said == str(tmp_path / "logs") or str(running.pid) in said
