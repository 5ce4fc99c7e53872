"""`inspect --follow`: whatever a broker does to a log between two looks at it, all that the log then has was shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import pytest

from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.io.source import FileSource, open_source
from kdump.io.window import Window
from kdump.log import follow
from kdump.log.batch_records import records
from kdump.log.follow import FollowedLog
from kdump.log.paths import target
from kdump.log.region import Batch
from tests import craft
from tests.conftest import few


class Log:
    """A partition directory, written as a broker does. Each record is unique."""

    def __init__(self, directory: Path, random: Random) -> None:
        self.directory, self.random = directory, random
        directory.mkdir()
        self.segments: dict[int, list[bytes]] = {0: []}
        self.values, self.times = count(), count(1_600_000_000)
        self.start = 0
        self.written: set[tuple[int, bytes]] = set()
        self.append()

    @property
    def records(self) -> dict[int, bytes]:
        values = [(base + number, each) for base, of in self.segments.items() for number, each in enumerate(of)]
        return dict(values)

    @property
    def end(self) -> int:
        base = max(self.segments)
        return base + len(self.segments[base])

    def path(self, base: int) -> Path:
        return self.directory / f"{base:020}.log"

    def write(self, base: int, *, replaced: bool = False) -> None:
        path = self.path(base)
        data = b"".join(craft.one(value, base + number) for number, value in enumerate(self.segments[base]))
        if replaced:
            path.unlink(missing_ok=True)
        path.touch()
        with path.open("r+b") as file:
            file.truncate(min(len(data), path.stat().st_size))
            file.write(data)
        os.utime(path, (0, next(self.times)))  # two changes within a tick of the clock

    def append(self) -> None:
        base = max(self.segments)
        for _ in range(self.random.randint(1, 4)):
            value = b"%06d" % next(self.values)
            self.written.add((self.end, value))
            self.segments[base].append(value)
        self.write(base)

    def roll(self) -> None:
        self.segments.setdefault(self.end, [])
        self.write(self.end)

    def truncate(self) -> None:
        to = self.random.randint(max(min(self.segments), self.end - self.random.choice((4, 8, 100))), self.end)
        for base in sorted(self.segments, reverse=True):
            if base > to and len(self.segments) > 1:
                del self.segments[base]
                self.path(base).rename(f"{self.path(base)}.deleted")
        base = max(self.segments)
        del self.segments[base][max(0, to - base) :]
        self.write(base)
        for _ in range(self.random.randint(0, 3)):
            self.append()

    def start_anew(self) -> None:
        start = self.end + self.random.randint(0, 5)
        for base in self.segments:
            self.path(base).unlink()
        self.segments = {start: []}
        self.append()

    def delete(self) -> None:
        self.roll()
        for base in sorted(self.segments)[:-1]:
            self.path(base).unlink()
            del self.segments[base]
        self.append()

    def replace(self) -> None:
        """A copy of the last segment takes its place."""
        self.write(max(self.segments), replaced=True)
        self.append()


class Ended(Exception):
    """Enough was done."""


def shown_of(log: Log, random: Random, rounds: int, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the records that are shown while the log is changed."""
    shown: dict[int, bytes] = {}
    steps = [log.append, log.append, log.roll, log.truncate, log.truncate, log.start_anew, log.delete, log.replace]
    left = count(rounds, -1)

    waits = count()

    def on_wait() -> None:
        nonlocal waits
        missing = {offset: value for offset, value in log.records.items() if shown.get(offset) != value}
        if missing:
            assert next(waits) < 3, f"it waits, and has not shown {missing}: {notes}"
            return  # it reads on
        waits = count()
        if not next(left):
            raise Ended
        for _ in range(random.randint(1, 5)):
            random.choice(steps)()

    followed = FollowedLog(target(str(log.path(0))), Limits(), on_wait, lambda target, text: notes.append(text))
    for turn in count():
        assert turn < 100 * rounds, f"it does not go on: {sorted(set(log.records.items()) - set(shown.items()))}"
        assert followed.has_moved
        assert followed.target is not None
        try:
            source = open_source(followed.target.path)
        except SourceError:
            followed.resume()
            continue
        with closing(source):
            assert isinstance(source, FileSource)
            try:
                for region in followed.regions(Window(source)):
                    assert isinstance(region, Batch), "no region that is not on the disk"
                    for record in records(region):
                        assert record.offset is not None
                        shown[record.offset] = bytes(record.value or b"")
                        yield record.offset, shown[record.offset]
            except Ended:
                return


@pytest.mark.parametrize("seed", few(range(40), 14))
def test_nothing_is_skipped(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL", 0.0)
    random = Random(seed)
    log = Log(tmp_path / "t-0", random)
    notes: list[str] = []
    seen = list(shown_of(log, random, 25, notes))
    assert set(seen) <= log.written
    assert len(seen) == len(set(seen)) or any("truncated" in note for note in notes), "shown twice"
