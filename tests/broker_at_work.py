"""Model of a running broker: it changes a disk step by step while kdump reads the disk.

Each change is one that a broker of Kafka 4.3 makes to its log directory, in its order: LocalLog.roll,
deleteSegmentFiles and replaceSegments (renames to .deleted, .cleaned and .swap, file by file), LogManager.asyncDelete
(-delete directories), FileRecords.append, and CheckpointFile.write (a new file replaces the old one). Small files are
also rewritten in place, like producer snapshots and indexes: for a moment they are empty or half written."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DISKS
from tests.damages import copy_disk

REAL_SLEEP = time.sleep

Step = Callable[[], object]

PARTITIONS = (
    *("__cluster_metadata-0", "__consumer_offsets-0", "__transaction_state-0", "orders-none-0", "payments-0"),
    *("trimmed-0", "users-0"),
)
SMALL = (
    *("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"),
    *("*/partition.metadata", "*/leader-epoch-checkpoint", "*/*.snapshot", "*/*.timeindex", "*/*.index"),
    "*/*.txnindex",
)
"""Files that may be rewritten in place."""
HOOKED = ("open", "scandir", "listdir", "pread")
"""Functions of the os module before whose calls the broker may take a step."""


def disk(work: Path) -> Path:
    """Return a log directory left by a broker, with a few partitions of every kind."""
    source = DISKS / "kafka-4.3" / "clean-1"
    root = work / "disk"
    root.mkdir()
    for path in source.iterdir():
        if path.is_file():
            shutil.copyfile(path, root / path.name)
        elif path.name in PARTITIONS:
            (root / path.name).mkdir()
            for file in path.iterdir():
                copy_disk(file, root / path.name / file.name)  # without a process, unless it is sparse
    # The broker runs: there is no clean-shutdown file, and checkpoints list only the partitions that are there.
    (root / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for path in root.glob("*-offset-checkpoint"):
        rows = [
            line
            for line in path.read_text().splitlines()[2:]
            if line.rpartition(" ")[0].replace(" ", "-") in PARTITIONS
        ]
        path.write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")
    return root


class Broker:
    """A broker on the disk `root`. `at`: numbers of the calls before which it takes a step."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root, self.dice = root, dice
        self.calls = 0
        self.at: set[int] = set()
        self.steps: list[Iterator[Step]] = []
        self.did: list[str] = []
        self.time = time.time_ns()
        self.times = {path.stat().st_mtime_ns for path in (root, *root.rglob("*"))}
        self.taken: set[Path] = set()
        self.half: dict[Path, Step] = {}
        """Completes a file that is being rewritten, by path."""
        self._inside = False
        often = [self.rewrite] * 3
        self.changes: list[Callable[[], Iterator[Step]]] = [
            *often,
            self.retire,
            self.replace,
            self.append,
            self.delete,
            self.clean,
        ]

    # -- changes

    def work(self, turns: int) -> None:
        """Start `turns` random changes, which run interleaved."""
        self.steps = [self.dice.choice(self.changes)() for _ in range(turns)]

    def _claims(self, path: Path) -> bool:
        """Return True if no other change uses that file or partition, and reserve it."""
        free = path not in self.taken
        self.taken.add(path)
        return free

    def step(self) -> None:
        """Run the next step of one of the changes."""
        if self._inside or not self.steps:
            return
        self._inside = True
        try:
            chosen = self.dice.choice(self.steps)
            step = next(chosen, None)
            if step is None:
                self.steps.remove(chosen)
            else:
                step()
                self._date()
        except FileNotFoundError:  # another change has deleted the file, so this one is over
            self.steps.remove(chosen)
        finally:
            self._inside = False

    def _date(self) -> None:
        """Give each change a modification time of its own, because file system clocks are slower than these steps."""
        for path in (self.root, *self.root.rglob("*")):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns not in self.times:
                    self.time += 10_000_000
                    self.times.add(self.time)
                    os.utime(path, ns=(self.time, self.time))

    def finish(self) -> None:
        while self.steps:
            self.step()

    def _partition(self, *names: str) -> Path:
        return self.root / self.dice.choice(names)

    def retire(self) -> Iterator[Step]:
        """Retention: roll the active segment and delete the ones before it."""
        here = self._partition("payments-0", "orders-none-0", "trimmed-0", "users-0")
        old = sorted({path.name.partition(".")[0] for path in here.glob("*.log")})
        end = max((int(path.name.partition(".")[0]) for path in here.glob("*.snapshot")), default=0)
        new = f"{end:020}"
        if not self._claims(here):
            return
        self.did.append(f"retire {here.name}")
        if new not in old:
            yield (here / f"{new}.log").touch
            yield lambda: (here / f"{new}.index").write_bytes(bytes(64))
            yield lambda: (here / f"{new}.timeindex").write_bytes(bytes(60))
        else:
            old.remove(new)
        for name in old:
            for ending in ("log", "index", "timeindex", "txnindex", "snapshot"):
                path = here / f"{name}.{ending}"
                if path.exists():
                    yield partial(path.rename, f"{path}.deleted")
        for name in old:
            for path in sorted(here.glob(f"{name}.*.deleted")):
                yield path.unlink

    def rewrite_at_root(self) -> Iterator[Step]:
        """Rewrite a small file of the log directory."""
        return self.rewrite("")

    def rewrite(self, below: str = "*/") -> Iterator[Step]:
        """Rewrite a small file in place: empty, half written, written."""
        patterns = [pattern for pattern in SMALL if below or "/" not in pattern]
        path = self.dice.choice([path for pattern in patterns for path in sorted(self.root.glob(pattern))])
        if not self._claims(path if path.parent == self.root else path.parent):
            return
        data = path.read_bytes()
        self.did.append(f"rewrite {path.relative_to(self.root)}")

        def put(size: int) -> None:
            with open(path, "r+b") as file:  # does not create the file again if it has been deleted
                file.truncate(0)
                file.write(data[:size])
            self.half[path] = partial(put, len(data))
            if size == len(data):
                del self.half[path]

        for _ in range(self.dice.randint(1, 3)):
            yield lambda: put(0)
            yield lambda: put(len(data) // 2)
            yield lambda: put(len(data))

    def replace_at_root(self) -> Iterator[Step]:
        """Replace a checkpoint of the log directory."""
        return self.replace("")

    def replace(self, below: str = "*/leader-epoch-checkpoint") -> Iterator[Step]:
        """Replace a checkpoint with a new file."""
        inside = sorted(self.root.glob(below)) if below else []
        path = self.dice.choice([*sorted(self.root.glob("*-checkpoint")), *inside])
        if not self._claims(path if path.parent == self.root else path.parent):
            return
        data = path.read_bytes()
        passing = path.with_name(f"{path.name}.tmp")
        self.did.append(f"replace {path.relative_to(self.root)}")
        for _ in range(3):
            yield lambda: passing.write_bytes(b"")
            yield lambda: passing.write_bytes(data)
            yield lambda: passing.replace(path) if path.exists() else passing.unlink()

    def append(self) -> Iterator[Step]:
        """Append batches, each in two writes."""
        here = self.root / "orders-none-0"
        if not self._claims(here):
            return
        path = max(here.glob("*.log"))
        data = path.read_bytes()
        at, last = 0, 0
        while at < len(data):
            last, at = at, at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        batch = data[last:]
        base, count = int.from_bytes(batch[:8], "big"), int.from_bytes(batch[57:61], "big")
        self.did.append(f"append {path.relative_to(self.root)}")

        def put(part: bytes) -> None:
            with open(path, "r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(part)

        for _ in range(4):
            base += count
            made = base.to_bytes(8, "big") + batch[8:]  # the checksum does not cover the base offset
            half = self.dice.randrange(1, len(made))
            yield partial(put, made[:half])
            yield partial(put, made[half:])

    def delete(self) -> Iterator[Step]:
        """Delete a topic's directory: rename it, rename its files, remove it."""
        here = self._partition("payments-0", "orders-none-0", "trimmed-0", "users-0")
        if not self._claims(here):
            return
        gone = here.with_name(f"{here.name}.{self.dice.randrange(16**32):032x}-delete")
        self.did.append(f"delete {here.name}")
        yield lambda: here.rename(gone)
        for path in sorted(here.iterdir()):
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
                yield partial((gone / path.name).rename, gone / f"{path.name}.deleted")
        yield lambda: shutil.rmtree(gone)

    def clean(self) -> Iterator[Step]:
        """Compaction: replace a segment with one that has been written next to it."""
        here = self.root / "users-0"
        if not self._claims(here):
            return
        name = min(path.name.partition(".")[0] for path in here.glob("*.log"))
        files = [path for path in sorted(here.glob(f"{name}.*")) if path.suffix in (".log", ".index", ".timeindex")]
        self.did.append(f"clean {here.name}/{name}")
        for path in files:
            yield partial(shutil.copyfile, path, f"{path}.cleaned")
        for path in files:
            yield partial(os.rename, f"{path}.cleaned", f"{path}.swap")
        for path in files:
            yield partial(os.rename, path, f"{path}.deleted")
        for path in files:
            yield partial(os.rename, f"{path}.swap", path)
        for path in files:
            yield partial(os.unlink, f"{path}.deleted")

    # -- scheduling

    def come_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Count the calls from now on; take a step before those in `at`, and a few while the reader sleeps."""
        for name in HOOKED:
            monkeypatch.setattr(os, name, self._hooked(getattr(os, name)))
        monkeypatch.setattr("time.sleep", self._waited)

    def _hooked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(path: Any, *arguments: Any, **options: Any) -> Any:
            if not self._inside and (isinstance(path, int) or str(path).startswith(str(self.root))):
                self.calls += 1
                if self.calls in self.at:
                    self.step()
            return call(path, *arguments, **options)

        return hooked

    def _waited(self, seconds: float) -> None:
        """Complete all files that are being rewritten before the reader has slept for long. Other threads just sleep:
        one of py4j's may still run, from an earlier test."""
        if threading.current_thread() is not threading.main_thread():
            REAL_SLEEP(seconds)
            return
        for _ in range(self.dice.randint(0, 6)):
            self.step()
        for whole in list(self.half.values()):
            whole()
        self._date()
