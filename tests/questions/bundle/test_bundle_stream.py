"""`kdump bundle --out -`: what arrives at the other end of a pipe is the bundle that would have been written here."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

import kdump
from kdump.io import frames
from kdump.io.bundle.names import MANIFEST
from kdump.io.bundle.tree import open_bundle
from kdump.io.frames import part_before
from kdump.questions.bundle import part_writer
from kdump.questions.bundle.directory_writer import DirectoryWriter
from kdump.questions.bundle.run import bundle
from tests.command import refused, run
from tests.conftest import DISKS, FIXTURES, sample, seeded
from tests.craft import split
from tests.damages import DAMAGES, DISK_PATHS, Damage, aged, copy_disk
from tests.questions.bundle.test_command import COMMANDS, _no_clock, answer, bundled, tarred  # noqa: F401  a fixture

CLEAN = FIXTURES / "clean-1"


def streaming(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kdump", "bundle", *map(str, arguments), "--out", "-"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **options})


def streamed(path: Path, *arguments: str | Path) -> str:
    """Write a bundle to standard output, which is a pipe to the file `path`, and return what stderr says."""
    with streaming(*arguments) as running:
        data, said = running.communicate()
    assert running.returncode == 0, said
    path.write_bytes(data)
    return said.decode()


def members(path: Path) -> dict[str, bytes]:
    """Return the files in a packed bundle, but for its manifest."""
    found: dict[str, bytes] = {}
    with tarred(path) as packed:
        for member in packed:
            file = packed.extractfile(member)
            found[member.name] = b"" if file is None else file.read()
    del found[MANIFEST]
    return found


@pytest.mark.every_disk
@pytest.mark.usefixtures("_no_clock")
def test_a_stream_is_the_packed_bundle(tmp_path: Path) -> None:
    bundled(CLEAN, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))
    said = streamed(tmp_path / "s.tar", CLEAN)
    assert members(tmp_path / "s.tar") == members(tmp_path / "b.tar")
    assert "standard output: 163.0 KiB of segments in" in said
    assert "It has no SCRAM credentials" in said
    for command in COMMANDS:
        there = json.dumps(answer(tmp_path / "b.tar", command)).replace(str(tmp_path / "b.tar"), "B")
        assert json.dumps(answer(tmp_path / "s.tar", command)).replace(str(tmp_path / "s.tar"), "B") == there


@pytest.mark.every_disk
def test_options_mean_the_same(tmp_path: Path) -> None:
    options = ("--redact", "--hash-key", str(FIXTURES.parent / "LICENSE"), "--depth", "records")
    disks = [DISKS / "kafka-4.3/clean-1", DISKS / "kafka-4.3/clean-2"]
    assert run("bundle", *disks, "--out", tmp_path / "b", "--tar", tmp_path / "b.tar", *options).exit_code == 0
    streamed(tmp_path / "s.tar", *disks, *options)
    assert members(tmp_path / "s.tar") == members(tmp_path / "b.tar")
    assert streamed(tmp_path / "q.tar", *disks, "--quiet") == ""


@pytest.mark.sampled
@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize("damage", sample(DAMAGES, 160, "parts"), ids=lambda damage: damage.name)
def test_a_packed_bundle_answers_as_the_directory_does(
    damage: Damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small its frames are."""
    for module in (frames, part_writer):
        monkeypatch.setattr(module, "FRAME", 777)
    disk = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    damage.apply(disk)
    done = run("bundle", aged(disk), "--out", tmp_path / "one.dir", "--tar", tmp_path / "one.tar")
    assert done.exit_code in (0, 2)
    for command in (("ls", "--segments"), ("inspect",), ("verify", "--crc"), ("transactions",)):
        here = json.dumps(answer(tmp_path / "one.dir", command))
        assert json.dumps(answer(tmp_path / "one.tar", command)).replace("one.tar", "one.dir") == here


def test_a_log_that_shrinks_after_it_went_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent of it before is not read."""
    partition = copy_disk(DISKS / "kafka-4.3/clean-1/ledger-0", tmp_path / "ledger-0")
    log = partition / f"{0:020}.log"
    whole, first = log.read_bytes(), split(log.read_bytes())[0]
    listed = DirectoryWriter._written

    def written(self: DirectoryWriter, name: str, *rest: Any) -> Any:
        found = listed(self, name, *rest)
        if name == log.name and log.stat().st_size == len(whole):
            log.write_bytes(first)
        return found

    monkeypatch.setattr(DirectoryWriter, "_written", written)
    bundled(partition, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))
    log.write_bytes(whole)
    sent = io.BytesIO()
    bundle([str(partition)], out=sent.write)
    (tmp_path / "s.tar").write_bytes(sent.getvalue())
    with tarred(tmp_path / "s.tar") as packed:
        names = [member.name for member in packed]
    assert names.count(f"ledger-0/{log.name}") == 2
    assert open_bundle(str(tmp_path / "s.tar"), 1).open(log.name, log.name).size == len(first)


def test_a_stream_that_was_cut_is_not_complete(tmp_path: Path) -> None:
    """Wherever it ends: what is missing is named. Without its manifest, it is no bundle."""
    streamed(tmp_path / "s.tar", CLEAN)
    data = (tmp_path / "s.tar").read_bytes()
    parts = [part_before(lambda position, count: data[position : position + count], len(data))]
    while parts[-1].start:
        parts.append(part_before(lambda position, count: data[position : position + count], parts[-1].start))
    last, first = parts[0].start, parts[-1]
    dice = seeded("cut")
    for size in [first.end, last - 1, last, len(data) - 1, *(dice.randrange(first.end, last) for _ in range(6))]:
        (tmp_path / "cut.tar").write_bytes(data[:size])
        done = run("ls", tmp_path / "cut.tar")
        assert done.exit_code == 2 or size >= last, size
        assert "NOT COMPLETE" in done.stderr or "No such file" in done.stderr, done.stderr
    for size in (100, first.end - 1):
        (tmp_path / "cut.tar").write_bytes(data[:size])
        assert run("ls", tmp_path / "cut.tar").exit_code == 2


def test_a_decompressed_bundle_is_recognized(tmp_path: Path) -> None:
    streamed(tmp_path / "s.tar.zst", CLEAN)
    (tmp_path / "s.tar").write_bytes(
        zstandard.ZstdDecompressor()
        .stream_reader((tmp_path / "s.tar.zst").read_bytes(), read_across_frames=True)
        .read()
    )
    assert "a bundle that was decompressed" in refused("ls", tmp_path / "s.tar")


def test_an_unpacked_bundle_is_recognized(tmp_path: Path) -> None:
    """Its segments have zeros in place of what is withheld, which are no damage."""
    streamed(tmp_path / "s.tar.zst", CLEAN)
    with tarred(tmp_path / "s.tar.zst") as packed:
        packed.extractall(tmp_path / "u", filter="data")
    assert "a bundle that was unpacked: give the path of the tar file" in refused("verify", tmp_path / "u")


def test_a_packed_bundle_of_another_format_is_refused(tmp_path: Path) -> None:
    """That of format 1 was not compressed as a whole."""
    manifest = json.dumps({"format": 1, "kdump": "1.0", "complete": False}, indent=1).encode()
    with tarfile.open(tmp_path / "old.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo(MANIFEST)
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    said = refused("verify", tmp_path / "old.tar")
    assert "a bundle of format 1, of another version of kdump" in said
    assert "make it again" in said


def lines(said: bytes) -> list[str]:
    return said.decode().splitlines()


def test_the_reader_has_gone() -> None:
    with streaming(CLEAN) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, lines(said)) == (2, ["kdump: standard output: cannot be written: Broken pipe"])


def test_the_receiver_is_full() -> None:
    with open("/dev/full", "wb") as full, streaming(CLEAN, stdout=full) as running:
        _, said = running.communicate()
    assert (running.returncode, len(lines(said))) == (2, 1)
    assert "No space left on device" in said.decode()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_it_is_ended(number: signal.Signals, status: int, tmp_path: Path) -> None:
    with streaming(CLEAN, "--max-rate", "100k", bufsize=0) as running:  # communicate() does not return what is buffered
        assert running.stdout is not None
        assert running.stderr is not None
        begin = b""
        while len(begin) < 8192:
            begin += running.stdout.read(8192)
        running.send_signal(number)
        rest, said = running.communicate()
    assert running.returncode == status
    assert lines(said) == [f"kdump: standard output: the bundle is not complete: ended by {number.name}"]
    (tmp_path / "s.tar").write_bytes(begin + rest)
    assert "NOT COMPLETE" in run("verify", tmp_path / "s.tar").stderr


def test_a_terminal_is_refused() -> None:
    own, terminal = os.openpty()
    with streaming(CLEAN, stdout=terminal) as running:
        _, said = running.communicate()
    os.close(own)
    os.close(terminal)
    assert running.returncode == 2
    assert lines(said)[-1].startswith("Error: --out -: standard output is a terminal")


@pytest.mark.parametrize("options", [("--json",), ("--format", "csv"), ("--tar", "x.tar")], ids=" ".join)
def test_nothing_else_goes_to_standard_output(options: tuple[str, ...]) -> None:
    with streaming(CLEAN, *options) as running:
        data, said = running.communicate()
    assert (running.returncode, data) == (2, b"")
    assert "cannot be combined" in said.decode()


def test_it_does_not_write_to_the_disk(tmp_path: Path) -> None:
    disk = copy_disk(CLEAN, tmp_path / "disk")
    with (disk / "out.tar").open("wb") as file, streaming(disk, stdout=file) as running:
        _, said = running.communicate()
    assert running.returncode == 2
    assert "refusing to write to" in said.decode()
    assert not (disk / "out.tar").stat().st_size


def test_what_cannot_be_read_is_in_the_exit_status(tmp_path: Path) -> None:
    disk = copy_disk(CLEAN / "payments-0", tmp_path / "payments-0")
    with (disk / "leader-epoch-checkpoint").open("wb") as file:
        file.truncate(100 << 20)
    with streaming(disk) as running:
        data, said = running.communicate()
    assert running.returncode == 2
    assert "too many for such a file" in said.decode()
    (tmp_path / "s.tar").write_bytes(data)
    assert run("ls", tmp_path / "s.tar").exit_code == 0


def test_a_pipe_that_is_set_to_not_block(tmp_path: Path) -> None:
    """As ssh sets its own: the writer waits until there is room."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with streaming(CLEAN, "--depth", "records", stdout=write) as running, open(read, "rb") as file:
        os.close(write)
        data = file.read()
        assert running.wait() == 0
    (tmp_path / "s.tar").write_bytes(data)
    assert run("ls", tmp_path / "s.tar").exit_code == 0


def test_a_bundle_with_another_name_is_recognized(tmp_path: Path) -> None:
    """It is not a segment with damage."""
    path = tmp_path / "broker-1.bundle"
    streamed(path, CLEAN)
    result = run("verify", path)
    assert result.exit_code == 2
    assert result.stderr == f"kdump: {path}: a packed bundle: give the path of a file whose name ends in .tar.zst\n"


@pytest.mark.parametrize("name", ["b.tar.gz", "b.tgz", "b.tar"])
def test_a_compressed_bundle_is_recognized(name: str, tmp_path: Path) -> None:
    """By every command that takes bundles, and by the functions."""
    streamed(tmp_path / "whole", CLEAN)
    path = tmp_path / name
    path.write_bytes(gzip.compress((tmp_path / "whole").read_bytes()))
    expected = "a compressed bundle: decompress it, then give the path of a file whose name ends in .tar.zst"
    for command in ("ls", "verify", "doctor", "restart-plan", "stats"):
        result = run(command, path)
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert f"{path}: {expected}" in result.stderr, command
    with pytest.raises(kdump.SourceError, match="a compressed bundle"):
        list(kdump.stats(str(path)))
