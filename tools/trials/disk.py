"""Differences that a startup makes to the files of a log directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

INDEXES = (".index", ".timeindex", ".txnindex")
Files = dict[str, tuple[int, str]]


def files(root: Path) -> Files:
    """Return size and digest of every file. The digest ignores zeros at the end, which preallocation leaves."""
    found: Files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(root))] = path.stat().st_size, _digest(path)
    return found


def _digest(path: Path) -> str:
    """Return the digest of a file up to the zeros at its end, which may be 2 GiB."""
    found, zeros = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            data = chunk.rstrip(b"\0")
            if data:
                found.update(bytes(zeros) + data)
                zeros = 0
            zeros += len(chunk) - len(data)
    return found.hexdigest()


def part(all_files: Files, directory: str) -> Files:
    return {name: facts for name, facts in all_files.items() if name.startswith(directory)}


def actions(sound: Files, before: Files, after: Files) -> list[str]:
    """Return what the broker did. `sound`: files of the undamaged disk; `before`: those of the damaged disk; `after`:
    those some seconds after startup."""
    done = []
    moved = {name.split(".")[0] for name in after if "-stray/" in name and name not in before}
    if moved:
        done.append("renames or deletes files")
    logs = [name for name in before if name.endswith(".log") and name.split("/")[0] not in moved]
    if any(name in after and after[name][0] < before[name][0] for name in logs):
        done.append("truncates the log")
    if any(name not in after for name in logs):
        done.append("deletes segments")
    damaged = [name for name in before if sound.get(name) != before[name]]
    lost = [name for name in sound if name not in before]
    for name in damaged:
        if name.endswith(INDEXES) and name in after and after[name][1] != before[name][1]:
            done.append("rebuilds the index")
        if name.endswith(".snapshot") and name in sound and after.get(name) != before[name]:
            done.append("rewrites the snapshot" if name in after else "deletes the snapshot")
        if name not in after and name not in sound and not name.endswith(".log"):
            done.append("renames or deletes files")
    if any(name.endswith(INDEXES) and name in after for name in lost):
        done.append("rebuilds the index")
    return list(dict.fromkeys(done))
