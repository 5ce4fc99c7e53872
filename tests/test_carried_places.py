"""Where the single file was run, as the table in docs/carry.md has it: systems, users and limits, repeated on this
machine. KDUMP_CARRIED is the file's path; KDUMP_REWRITE=1 writes the table."""

from __future__ import annotations

import ctypes
import os
import platform
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import RELEASES, ROOT
from tests.generated_table import check_table
from tests.test_many_partitions import partitions
from tools.carry import debian, emulation, image
from tools.carry.target import target_of

pytestmark = [
    pytest.mark.carried,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes users, roots, mounts and limits"),
]

PATIENCE = 600
NOBODY, BROKER, NAMELESS = 65534, 1001, 23456
HOST = platform.machine()
REFUSED = {
    "x86_64": {"memfd_create": 319, "pidfd_open": 434, "ioprio_set": 251, "fadvise64": 221, "cachestat": 451},
    "aarch64": {"memfd_create": 279, "pidfd_open": 434, "ioprio_set": 30, "fadvise64": 223, "cachestat": 451},
}
"""Numbers of the system calls that a sandbox refuses. Source: asm/unistd_64.h, asm-generic/unistd.h."""
MEMORY = Path("/sys/fs/cgroup/memory")
ENTER = """
set -e
if [ "$2" = ro ]; then mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; fi
if [ "$3" = proc ]; then mount -t proc proc "$1/proc"; fi
if [ "$4" = tmp ]; then mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"; fi
root=$1 user=$5; shift 5
CHROOT=$(command -v chroot)
exec env -i "$CHROOT" --userspec="$user:$user" "$root" "$@"
"""


@dataclass
class Place:
    """Where the file is run. `run`: called with this and the command, returns what it did."""

    system: str
    user: str
    limits: str
    command: str
    run: Callable[[Place, Path], subprocess.CompletedProcess[bytes]]
    libraries: str = "nothing"
    flags: tuple[str, str, str] = ("ro", "proc", "")
    """Whether the root is read-only, whether there is /proc, and whether there is /tmp."""
    uid: int = NOBODY
    is_stream: bool = False
    """Whether standard output is not text."""

    def row(self, done: subprocess.CompletedProcess[bytes]) -> str:
        said = done.stderr if self.is_stream or not done.stdout else done.stdout
        lines = [line for line in said.decode().splitlines() if line.strip()]
        first = re.sub(r"process \d+", "process N", lines[0] if lines else "")
        first = re.sub(r"/proc/\d+/", "/proc/N/", first)
        first = re.sub(r" in (\d+)\.\d KiB;", r" in \1 KiB;", first)  # of compressed bytes, which depend on times
        where = ", ".join((self.system, self.user, self.limits))
        return f"- {where}: `{self.command}`, exit {done.returncode}{f': `{first}`' if done.returncode == 2 else ''}\n"


def arguments(place: Place, root: Path, *command: str) -> list[str]:
    """Return the arguments that run the command in a root directory."""
    program = command or ("/bin/kdump", *place.command.split()[1:])
    return ["unshare", "--mount", "sh", "-c", ENTER, "sh", str(root), *place.flags, str(place.uid), *program]


def entered(place: Place, root: Path, before: Callable[[], object] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(arguments(place, root), capture_output=True, timeout=PATIENCE, preexec_fn=before)


def shell(place: Place, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command by the root's own shell."""
    command = arguments(place, root, "/bin/sh", "-c", f"PATH=/bin; {place.command}")
    return subprocess.run(command, capture_output=True, timeout=PATIENCE)


def in_terminal(place: Place, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Run it in a terminal, without TERM."""
    own, terminal = pty.openpty()
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    with subprocess.Popen(arguments(place, root), **streams) as process:  # type: ignore[call-overload]
        os.close(terminal)
        said = b""
        with suppress(OSError):  # the other end is closed
            while data := os.read(own, 65536):
                said += data
    os.close(own)
    assert b"\x1b" not in said
    return subprocess.CompletedProcess((), process.returncode, said, b"")


def refuse_calls() -> None:
    """Have the kernel refuse some system calls of this process and its children with EPERM."""
    numbers = REFUSED[HOST].values()
    program = [(0x20, 0, 0, 0)]  # BPF_LD | BPF_W | BPF_ABS: the number of the call
    for left, number in zip(range(len(numbers), 0, -1), numbers):
        program.append((0x15, left, 0, number))  # BPF_JMP | BPF_JEQ: to the last instruction
    program += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]  # allow; errno 1
    filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filter_mode, head, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def limited(place: Place, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Run it in a memory cgroup of 128 MiB, on a disk of 1,000 partitions. The limit must not be reached."""
    if not (MEMORY / "memory.limit_in_bytes").exists():
        pytest.skip("no memory cgroup (v1) may be made here")
    shutil.rmtree(root / "kafka")
    partitions(root / "kafka", 1000)
    subprocess.run(["chmod", "-R", "a+rX", str(root / "kafka")], check=True)
    group = MEMORY / f"kdump-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(128 << 20))
        join = partial((group / "cgroup.procs").write_text, "0")
        done = entered(place, root, join)
        assert int((group / "memory.failcnt").read_text()) == 0
        assert int((group / "memory.max_usage_in_bytes").read_text()) < 128 << 20
        return done
    finally:
        group.rmdir()


def cached_bytes(path: Path) -> int:
    said = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", str(path)], capture_output=True)
    return int(said.stdout)


def page_cache(place: Path, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Require that what was not in the page cache is not there afterwards, and what was, still is."""
    logs = [path for path in root.rglob("kafka/*/*.log") if path.stat().st_size > 1000]
    subprocess.run(["chown", "-R", f"{BROKER}:{BROKER}", str(root / "kafka")], check=True)
    os.sync()
    for path in logs[::2]:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for path in logs[1::2]:
        path.read_bytes()
    before = {path: cached_bytes(path) for path in logs}
    assert 0 in before.values()
    assert any(before.values())
    done = entered(place, root)
    assert {path: cached_bytes(path) for path in logs} == before
    return done


BESIDE = """
set -e
enter=$1 root=$2 other=$3 user=$4 drop=$5 command=$6
mount --make-rprivate /
mount -t proc proc /proc
tail -f /dev/null | unshare --mount sh -c "$enter" sh "$root" ro proc "" BROKER /bin/java inspect - kafka.Kafka \\
    /etc/kafka/kafka.properties >/dev/null 2>&1 &
broker=$!
until tr '\\0' ' ' < /proc/$broker/cmdline | grep -q '^/bin/java'; do sleep 0.05; done
sleep 0.5
exec $drop unshare --mount sh -c "$enter" sh "$other" ro proc "" "$user" /bin/$(echo "$command" | sed "s/PID/$broker/")
"""
PROPERTIES = "log.dirs=/var/lib/kafka/data\nnode.id=1\nprocess.roles=broker\nsasl.jaas.config=${env:SECRET}\n"


def beside_a_broker(place: Place, root: Path, *, drop: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run it in the PID namespace of what looks like a broker, and in another root, as an ephemeral container is. The
    broker's user is BROKER; `drop`: what runs the command without some capabilities."""
    (root / "etc/kafka").mkdir(parents=True)
    (root / "etc/kafka/kafka.properties").write_text(PROPERTIES)
    (root / "var/lib/kafka").mkdir(parents=True)
    (root / "kafka").rename(root / "var/lib/kafka/data")
    subprocess.run(["chown", "-R", f"{BROKER}:{BROKER}", str(root / "var/lib/kafka/data")], check=True)
    (root / "var/lib/kafka/data").chmod(0o700)
    (root / "bin/java").hardlink_to(root / "bin/kdump")
    with tempfile.TemporaryDirectory(prefix="kdump-debug-", dir="/var/tmp") as other:
        Path(other).chmod(0o755)
        for name in ("bin", "proc", "tmp"):
            Path(other, name).mkdir()
        shutil.copy(root / "bin/kdump", Path(other, "bin/kdump"))
        script = BESIDE.replace("BROKER", str(BROKER))
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", ENTER, str(root)]
        command += [other, str(place.uid), drop, place.command]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE)


def podman(place: Place, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the image by podman, where there is no other cgroup than version 2, which crun wants."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    archive = root / "image.tar"
    image.write([root / "bin/kdump"], {}, "localhost/kdump:test", archive)
    shutil.rmtree(root / "proc")
    script = """
        set -e
        umount -R /sys/fs/cgroup 2>/dev/null || true
        mount -t cgroup2 none /sys/fs/cgroup
        podman="podman --root $1/storage --runroot $1/run --cgroup-manager=cgroupfs"
        $podman load --quiet --input "$1/image.tar" >/dev/null 2>&1
        shift_root=$1; shift
        exec $podman run --rm --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --cgroups=disabled --read-only \\
            --network none --security-opt label=disable -v "$shift_root/kafka:/kafka:ro" localhost/kdump:test "$@"
    """
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(root), *place.command.split()[1:]]
    try:
        return subprocess.run(command, capture_output=True, timeout=PATIENCE)
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(root)], check=False)


NAMED, NO_LIMITS = "nobody", "root read-only, empty environment"
WITHOUT_PTRACE = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
# fmt: off
PLACES = [
    Place("a root with nothing in it", NAMED, NO_LIMITS, "kdump verify --crc /kafka", entered),
    Place("a root with Alpine's C library", NAMED, NO_LIMITS, "kdump verify --crc /kafka", entered,
          libraries="musl"),
    Place("a root with glibc alone", NAMED, NO_LIMITS, "kdump verify --crc /kafka", entered, libraries="glibc"),
    Place("the same with busybox, from its shell", NAMED, NO_LIMITS, "kdump ls /kafka | head -n 1", shell,
          libraries="busybox"),
    Place("a root with nothing in it", "a number without a name", f"{NO_LIMITS}, no /tmp",
          "kdump restart-plan /kafka", entered, uid=NAMELESS),
    Place("a root with nothing in it", NAMED, "no /proc, /tmp writable", "kdump doctor /kafka", entered,
          flags=("ro", "", "tmp")),
    Place("a root with nothing in it", NAMED, "neither /proc nor a directory to write to", "kdump ls /kafka",
          entered, flags=("ro", "", "")),
    Place("a terminal", NAMED, f"{NO_LIMITS}, no TERM", "kdump doctor /kafka", in_terminal),
    Place("a sandbox (seccomp)", NAMED, f"refuses {', '.join(REFUSED['x86_64'])}; /tmp writable",
          "kdump verify --crc --idle /kafka", partial(entered, before=refuse_calls), flags=("ro", "proc", "tmp")),
    Place("a memory cgroup", NAMED, "128 MiB, never reached; 1,000 partitions", "kdump doctor /kafka", limited),
    Place("a root with nothing in it", "that of the broker, who owns the files",
          "the page cache is left as it was found", "kdump verify --crc /kafka", page_cache, uid=BROKER),
    Place("next to a broker in another container", "that of the broker", "same PIDs, another root", "kdump doctor",
          beside_a_broker, uid=BROKER),
    Place("next to a broker in another container", "that of the broker", "same PIDs, another root",
          "kdump ls /proc/PID/root/var/lib/kafka/data", beside_a_broker, uid=BROKER),
    Place("next to a broker in another container", "another one", "same PIDs, another root", "kdump doctor",
          beside_a_broker, uid=NAMELESS),
    Place("next to a broker in another container", "root", "without CAP_SYS_PTRACE", "kdump doctor",
          partial(beside_a_broker, drop=WITHOUT_PTRACE), uid=0),
    Place("next to a broker in another container", "root", "without CAP_SYS_PTRACE",
          "kdump doctor /proc/PID/root/var/lib/kafka/data", partial(beside_a_broker, drop=WITHOUT_PTRACE), uid=0),
    Place("the image, run by podman", "1001, that of the image",
          "--read-only, --network none, /kafka:ro, default seccomp", "kdump doctor /kafka", podman),
    Place("a root with nothing in it", NAMED, f"{NO_LIMITS}, streamed", "kdump bundle /kafka --out -", entered,
          is_stream=True),
]
# fmt: on


@pytest.fixture(scope="module")
def carried() -> Path:
    found = os.environ.get("KDUMP_CARRIED")
    assert found, "KDUMP_CARRIED has to name the file that make pex has built"
    if target_of(Path(found)).name != HOST:
        pytest.skip("the file is for another architecture")
    assert emulation.runs(Path(found))
    return Path(found)


def root_with(carried: Path, libraries: str, root: Path) -> Path:
    """Lay out a root directory with the file and a log directory."""
    root.chmod(0o755)
    for name in ("bin", "lib", "proc", "tmp"):
        (root / name).mkdir()
    shutil.copy(carried, root / "bin/kdump")
    if libraries in ("musl", "busybox"):
        with zipfile.ZipFile(carried) as archive:
            (root / f"lib/ld-musl-{HOST}.so.1").write_bytes(archive.read("libc.so"))
    if libraries == "busybox":
        downloads = ROOT / "build/carry/downloads"
        with tempfile.TemporaryDirectory() as unpacked:
            found, _ = debian.package("busybox-static", HOST, downloads, Path(unpacked) / "busybox")
            shutil.copy(found / "usr/bin/busybox", root / "bin/busybox")
        for name in ("sh", "head"):
            (root / "bin" / name).symlink_to("busybox")
    for name in ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0") if libraries == "glibc" else ():
        asked = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        shutil.copy(asked.stdout.strip(), root / "lib" / name)
    shutil.copytree(RELEASES / "4.3.1-kraft/clean", root / "kafka")
    subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
    return root


def test_every_row_of_the_table(carried: Path) -> None:
    rows = []
    for place in PLACES:
        directory = Path(tempfile.mkdtemp(prefix="kdump-place-", dir="/var/tmp"))
        try:
            done = place.run(place, root_with(carried, place.libraries, directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        assert b"Traceback" not in done.stderr + done.stdout, (place, done)
        rows.append(place.row(done))
    check_table(ROOT / "docs/carry.md", "tests/test_carried_places.py", "".join(rows))
