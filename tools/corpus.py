"""Disks, oracles and logs of tests/corpus: packed in the repository, unpacked once into build/corpus.

    python -m tools.corpus                      unpacks them if necessary, and prints the directory
    python -m tools.corpus pack PART DIRECTORY  packs a new part, made as described in tests/corpus/README.md

An archive is a tar compressed with zstd, with sorted names and fixed times and modes, so that the same files always
give the same archive."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parents[1]
PACKED = ROOT / "tests" / "corpus"
UNPACKED = ROOT / "build" / "corpus"
PARTS = ("disks", "oracle", "logs", "releases")
MADE = 1_795_248_000
"""Modification time in epoch seconds of every file of the other parts: 2026-11-21T08:00:00Z."""
DAY = 86_400
"""The files of `releases` have the midnight after they were made, because releases are added later."""
BLOCK = 4096
"""Block size in bytes. Blocks of zeros are written as holes, because preallocated indexes contain 10 MiB of them."""
DIGEST = "sha256"
"""File next to the unpacked parts that contains the digest of their archives."""


def archive(part: str) -> Path:
    return PACKED / f"{part}.tar.zst"


def digest() -> str:
    """Return the SHA-256 of the archives in the checkout."""
    together = hashlib.sha256()
    for part in PARTS:
        together.update(archive(part).read_bytes())
    return together.hexdigest()


def unpack(target: Path = UNPACKED) -> Path:
    """Return the directory with the parts; unpacks them unless that has been done with the same archives.

    Safe for concurrent processes: each unpacks into a directory of its own and then renames it."""
    wanted = digest()
    stamp = target / DIGEST
    if stamp.is_file() and stamp.read_text() == wanted:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=target.name + "-", dir=target.parent))
    try:
        for part in PARTS:
            for member, data in _members(part):
                _write(fresh / part / member.name, member, data)
        (fresh / DIGEST).write_text(wanted)
        fresh.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        try:
            fresh.rename(target)
        except OSError:
            if not stamp.is_file() or stamp.read_text() != wanted:
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def changes(target: Path = UNPACKED) -> list[str]:
    """Return what has changed since unpacking: paths relative to `target`, each with `gone`, `changed` or `new`."""
    found = []
    for part in PARTS:
        left = {path.relative_to(target / part).as_posix() for path in (target / part).rglob("*")}
        for member, data in _members(part):
            path = target / part / member.name
            left.discard(member.name)
            if path.is_symlink() or path.is_dir() != member.isdir() or not path.exists():
                found.append(f"{part}/{member.name}: gone")
            elif member.isfile() and path.read_bytes() != data:
                found.append(f"{part}/{member.name}: changed")
        found += [f"{part}/{name}: new" for name in sorted(left)]
    return found


def pack(part: str, source: Path) -> None:
    """Pack everything below `source` into the archive of `part`, replacing the old one."""
    compressor = zstandard.ZstdCompressor(level=19, write_checksum=True, threads=0)
    with (
        archive(part).open("wb") as out,
        compressor.stream_writer(out) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted(source.rglob("*")):
            member = tar.gettarinfo(path, arcname=path.relative_to(source).as_posix())
            member.mode = 0o755 if member.isdir() else 0o644
            member.mtime = -int(-member.mtime // DAY) * DAY if part == "releases" and member.isfile() else MADE
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            with path.open("rb") if member.isfile() else open(os.devnull, "rb") as data:
                tar.addfile(member, data)


def _members(part: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the files and directories of an archive, in its order."""
    with (
        archive(part).open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as plain,
        tarfile.open(fileobj=plain, mode="r|") as tar,
    ):
        for member in tar:
            data = tar.extractfile(member) if member.isfile() else None
            yield member, data.read() if data else b""


def _write(path: Path, member: tarfile.TarInfo, data: bytes) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for at in range(0, len(data), BLOCK):
            block = data[at : at + BLOCK]
            if block.count(0) < len(block):
                file.seek(at)
                file.write(block)
        file.truncate(len(data))
    path.chmod(0o644)
    os.utime(path, (member.mtime, member.mtime))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    packing = commands.add_parser("pack")
    packing.add_argument("part", choices=PARTS)
    packing.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "pack":
        pack(arguments.part, arguments.directory)
    print(unpack())


if __name__ == "__main__":
    main()
