"""The single file of `make pex`, as it runs on a broker without other software. KDUMP_CARRIED is its path. A file for
another architecture is executed in the same way, but runs in QEMU, which the kernel starts
(tools/carry/emulation.py)."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest

from tests.conftest import FIXTURES
from tests.craft import write_file
from tools.carry import elf, emulation, image
from tools.carry.target import Target, target_of

pytestmark = pytest.mark.carried

LARGEST = 40_000_000
SLOWEST = 0.6
"""Maximum seconds for `--help` on a busy machine; it takes 0.1 on an idle one."""
PATIENCE = 600
"""Timeout in seconds: an emulated machine is slow, and the real one may be busy."""
NOBODY = 65534
INSTALLED = (sys.executable, "-m", "kdump")
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes user, root directory or mounts")


def target() -> Target:
    """Return the architecture that the file is for."""
    carried = os.environ.get("KDUMP_CARRIED")
    assert carried, "KDUMP_CARRIED has to name the file that make pex has built"
    return target_of(Path(carried))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that every user can read but not write: the file as `kdump`, and the fixtures."""
    carried = Path(os.environ["KDUMP_CARRIED"])
    assert emulation.runs(carried), f"python -m tools.carry.emulation {carried} says what is missing"
    directory = Path(tempfile.mkdtemp(prefix="kdump-carried-"))
    try:
        shutil.copy(carried, directory / "kdump")
        shutil.copytree(FIXTURES, directory, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "a+rX,go-w", str(directory)], check=True)
        yield directory
    finally:
        shutil.rmtree(directory)


def run(
    place: Path, *arguments: str, program: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the file, or `program`, in an empty environment as a user who owns nothing."""
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 and not program else {}
    command = [*(program or (str(place / "kdump"),)), *arguments]
    return subprocess.run(command, env=environment or {}, cwd=place, capture_output=True, timeout=PATIENCE, **nobody)  # type: ignore[call-overload,no-any-return]


def time_aside(output: bytes) -> bytes:
    """Remove durations and column widths, because the width of a column depends on which rows were ready in time."""
    return re.sub(rb"  +", b"  ", re.sub(rb" in [\d.]+ s\n", b" in s\n", output))


COMMANDS = """
--help
ls clean-1
ls clean-2 --json
inspect clean-1/payments-0
inspect clean-1/payments-0 --json --records
inspect clean-1/payments-0 --hex --limit 5
inspect clean-1/payments-0 --records --tz Europe/Berlin
inspect clean-1/no-such-thing
inspect framed/orders-avro-0 --records --key-format int64 --value-format avro --schema framed/order.avsc
inspect framed/orders-protobuf-0 --records --value-format protobuf --schema framed/order.desc
verify --crc clean-1
verify --jobs 2 clean-1 clean-2 crash-1
verify --list
schema RecordBatch
groups clean-1
cluster clean-1 --topic payments --history
transactions clean-1
stats clean-1
diff diverged-1 diverged-2
restart-plan crash-1
retention clean-1
dump-log --files clean-1/payments-0/00000000000000000000.log --print-data-log
""".strip().splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_what_the_installed_one_says(place: Path, command: str) -> None:
    carried = run(place, *command.split())
    installed = run(place, *command.split(), program=INSTALLED)
    assert b"Traceback" not in carried.stderr
    assert time_aside(carried.stdout) == time_aside(installed.stdout)
    assert carried.stderr == installed.stderr
    assert carried.returncode == installed.returncode


LOGS = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.rglob("*.log"))


def test_every_record_of_every_codec(place: Path) -> None:
    carried = run(place, "inspect", "--json", "--records", *LOGS)
    installed = run(place, "inspect", "--json", "--records", *LOGS, program=INSTALLED)
    assert carried.stdout == installed.stdout
    assert carried.returncode == installed.returncode
    batches = run(place, "inspect", "--json", *LOGS).stdout
    assert set(re.findall(rb'"compression":"(\w+)"', batches)) == {b"none", b"gzip", b"snappy", b"lz4", b"zstd"}


def test_spark_is_left_out(place: Path) -> None:
    done = run(place, "scan", "clean-1", "--out", "out")
    assert done.returncode == 2
    assert b"needs Spark" in done.stderr
    assert b"pip install" not in done.stderr
    assert b"Traceback" not in done.stderr


def test_size(place: Path) -> None:
    assert (place / "kdump").stat().st_size <= LARGEST


def test_the_core_is_compiled_and_no_variable_leads_elsewhere(place: Path) -> None:
    elsewhere = {
        "PYTHONHOME": "/nowhere",
        "PYTHONPATH": "/nowhere",
        "PYTHONSTARTUP": "/nowhere",
        "LD_LIBRARY_PATH": "/nowhere",
    }
    for environment in ({}, elsewhere):
        assert run(place, "--version", environment=environment).stdout.endswith(b", compiled core\n")


def test_nothing_in_it_needs_a_library_of_the_machine(place: Path, tmp_path: Path) -> None:
    """This applies to the launcher, the interpreter and every library in the file."""
    shutil.copy(place / "kdump", tmp_path / "launcher")
    objects = [tmp_path / "launcher"]
    with zipfile.ZipFile(place / "kdump") as archive:
        for name in archive.namelist():
            path = Path(archive.extract(name, tmp_path))
            if path.is_file() and elf.is_elf(path):
                objects.append(path)
    assert len(objects) > 25
    kind = target()
    for path in objects:
        assert elf.needed(path) == [], path
        assert elf.machine(path) == kind.elf_machine, path
        assert elf.alignment(path) >= kind.page, path


def test_with_the_largest_pages(place: Path) -> None:
    kind = target()
    if kind.name == platform.machine():
        pytest.skip("the file is for this kind of machine, whose kernel has pages of one size: QEMU can have others")
    qemu = (f"qemu-{kind.name}-static", "-p", str(kind.page), str(place / "kdump"))
    for command in ("--version", "inspect --json --records clean-1/payments-0"):
        emulated = run(place, *command.split(), program=qemu, environment={"PATH": os.environ["PATH"]})
        assert emulated.stderr == b""
        assert emulated.stdout == run(place, *command.split()).stdout


def test_start(place: Path) -> None:
    if target().name != platform.machine():
        pytest.skip("the file is for another kind of machine: how quick an emulated one is says nothing")

    def once() -> float:
        start = time.monotonic()
        assert run(place, "--help").returncode == 0
        return time.monotonic() - start

    assert min(once() for _ in range(5)) < SLOWEST


def wait_for_the_core(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has loaded a module of the compiled core, from memory of that name."""
    maps = Path(f"/proc/{process.pid}/maps")
    end = time.monotonic() + PATIENCE
    while "columns" not in maps.read_text() and time.monotonic() < end:
        time.sleep(0.02)
    assert "columns" in maps.read_text()


def test_nothing_is_written_and_nothing_stays_after_a_kill(place: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary), "HOME": str(temporary)}
    with subprocess.Popen([place / "kdump", "inspect", "-"], stdin=subprocess.PIPE, env=environment) as process:
        wait_for_the_core(process)
        assert not [*temporary.iterdir()]
        process.kill()
    assert not [*temporary.iterdir()]


def test_a_closed_pipe(place: Path) -> None:
    log = "clean-1/payments-0/00000000000000000000.log"
    with subprocess.Popen(
        [place / "kdump", "inspect", "--json", "--records", *[log] * 50],
        env={},
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_file_that_is_not_whole(place: Path, tmp_path: Path) -> None:
    cut = write_file(tmp_path / "kdump", (place / "kdump").read_bytes()[:1_000_000])
    cut.chmod(0o755)
    done = run(place, program=(str(cut),))
    assert done.returncode == 2
    assert b"unreadable or incomplete" in done.stderr


def test_it_may_be_removed_while_it_runs(place: Path, tmp_path: Path) -> None:
    if target().name != platform.machine():
        pytest.skip(
            "the file is for another kind of machine: QEMU opens /proc/self/exe by name, which a kernel does not"
        )
    copy = tmp_path / "kdump"
    shutil.copy(place / "kdump", copy)
    with subprocess.Popen(
        [copy, "verify", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
    ) as process:
        wait_for_the_core(process)
        copy.unlink()
        log = (place / "clean-1/payments-0/00000000000000000000.log").read_bytes()
        said, _ = process.communicate(log, timeout=PATIENCE)
    assert process.returncode == 0
    assert b'"type":"summary"' in said


def test_browse_in_a_terminal(place: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.execve(place / "kdump", ["kdump", "browse", "clean-1/payments-0"], {"TERM": "xterm-256color"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, end = b"", time.monotonic() + PATIENCE
    try:
        while b"baseOffset" not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 65536)
        assert b"baseOffset" in seen
        os.write(terminal, b"q")
        while os.read(terminal, 65536):
            pass
    except OSError:  # the other end is closed
        pass
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


BARE = """
set -e
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
if [ "$2" = proc ]; then mount -t proc proc "$1/proc"; fi
if [ "$3" != none ]; then mount -t tmpfs -o "mode=1777$3" tmpfs "$1/tmp"; fi
shift 3
CHROOT=$(command -v chroot)
exec env -i "$CHROOT" --userspec=65534:65534 "$@"
"""


GLIBC = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0")


@pytest.fixture(scope="module", params=["nothing", "musl", "glibc"])
def bare(place: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A root directory with the file and a log: no shell, no Python, no time zones; with no C library, or one."""
    root = Path(tempfile.mkdtemp(prefix="kdump-bare-"))
    root.chmod(0o755)
    kind = target()
    if request.param == "glibc" and kind.name != platform.machine():
        pytest.skip("only the libraries of this machine's architecture are here")
    try:
        for directory in ("lib", "proc", "tmp"):
            (root / directory).mkdir()
        if request.param == "musl":
            with zipfile.ZipFile(place / "kdump") as archive:
                (root / f"lib/ld-musl-{kind.name}.so.1").write_bytes(archive.read("libc.so"))
        for name in GLIBC if request.param == "glibc" else ():
            asked = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
            shutil.copy(asked.stdout.strip(), root / "lib" / name)
        shutil.copy(place / "kdump", root / "kdump")
        shutil.copytree(place / "clean-1", root / "clean-1")
        yield root
    finally:
        shutil.rmtree(root)


@ROOT_ONLY
@pytest.mark.parametrize(
    ("proc", "tmp"),
    [("proc", "none"), ("proc", ",noexec"), ("none", "")],
    ids=["read-only throughout", "tmp is noexec", "no proc"],
)
def test_in_an_empty_root(place: Path, bare: Path, proc: str, tmp: str) -> None:
    for command in ("inspect clean-1/payments-0 --json --records --tz Asia/Kolkata", "verify --jobs 2 clean-1"):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", BARE, "sh", str(bare), proc, tmp, str(bare), "/kdump", *command.split()],
            capture_output=True,
            timeout=PATIENCE,
        )
        installed = run(place, *command.split(), program=INSTALLED)
        assert done.stderr == b""
        assert time_aside(done.stdout) == time_aside(installed.stdout)
        assert done.returncode == installed.returncode


@ROOT_ONLY
def test_neither_memory_nor_a_directory_to_load_from(bare: Path) -> None:
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", BARE, "sh", str(bare), "none", "none", str(bare), "/kdump", "ls"],
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert b"TMPDIR" in done.stderr


def test_the_image(place: Path, tmp_path: Path) -> None:
    """Two builds of the container image are the same, each digest is right, and it holds the file and nothing else."""
    out = [tmp_path / name for name in ("first.tar", "second.tar")]
    for path in out:
        image.write([place / "kdump"], {}, "localhost/kdump:test", path)
    assert out[0].read_bytes() == out[1].read_bytes()
    with tarfile.open(out[0]) as archive:
        assert len(archive.getnames()) == len({*archive.getnames()}) == 2 + 4

    def read(descriptor: dict[str, Any]) -> bytes:
        kind, _, digest = descriptor["digest"].partition(":")
        with tarfile.open(out[0]) as archive, cast(IO[bytes], archive.extractfile(f"blobs/{kind}/{digest}")) as file:
            data = file.read()
        assert len(data) == descriptor["size"]
        assert hashlib.sha256(data).hexdigest() == digest
        return data

    with tarfile.open(out[0]) as archive, cast(IO[bytes], archive.extractfile("index.json")) as file:
        (tagged,) = json.loads(file.read())["manifests"]
    (built,) = json.loads(read(tagged))["manifests"]
    manifest = json.loads(read(built))
    config = json.loads(read(manifest["config"]))
    assert config["architecture"] == built["platform"]["architecture"]
    root = tmp_path / "root"
    for each, digest in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        assert each["digest"] == digest
        with tarfile.open(fileobj=io.BytesIO(read(each))) as files:
            files.extractall(root, filter="data")
    assert [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()] == ["bin/kdump"]
    assert config["config"]["Entrypoint"] == ["/bin/kdump"]
    assert (root / "bin/kdump").read_bytes() == (place / "kdump").read_bytes()
    assert (root / "bin/kdump").stat().st_mode & 0o777 == 0o755
