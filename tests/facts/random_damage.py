"""Random damage to every kind of file that Kafka writes, for copies of the disks in tests/corpus and fixtures/."""

from __future__ import annotations

import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from kdump.format.batch_header import BATCH_HEADER, MAGIC_POSITION
from tests.conftest import FIXTURES, RELEASES
from tests.craft import fix_crc, rebase, split
from tests.damages import aged, copy_disk, second_directory

Dice = random.Random
Change = Callable[[Path, Dice], None]

SHARED = FIXTURES / "clean-1"
"""A log directory with a share group, and without meta.properties."""


def bases() -> list[Path]:
    """Return small disks of brokers and controllers of every release."""
    found = [path for release in sorted(RELEASES.iterdir()) for path in sorted(release.iterdir())]
    return [*(path for path in found if path.name != "zookeeper"), FIXTURES / "disk-1", FIXTURES / "clean-2", SHARED]


def kind(path: Path) -> str:
    """Return what kind of file it is: its ending, or its name if that has no number."""
    return path.name if path.suffix in ("", ".metadata", ".properties") else path.suffix


def files(root: Path, *kinds: str) -> list[Path]:
    """Return the files of these kinds; the small ones in the root as well."""
    found = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in found if not kinds or kind(path) in kinds)


def drawn(root: Path, dice: Dice) -> Path:
    """Return a file: each kind is as likely as the others, but the segments, which decide most facts."""
    by_kind = defaultdict(list)
    for path in files(root):
        by_kind[kind(path)].append(path)
    chosen = ".log" if dice.random() < 0.4 else dice.choice(sorted(by_kind))
    return dice.choice(by_kind[chosen] or files(root))


# --- Changes of the content of a file ---------------------------------------------------------------------------------


def flip(path: Path, dice: Dice) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 1, 3)) if data else 0):
        end = min(len(data), 1 << 16)  # not in the zeros of a preallocated index
        data[dice.randrange(end)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def flip_header(path: Path, dice: Dice) -> None:
    """Flip a bit of a batch header; of other files, one near the start."""
    data = bytearray(path.read_bytes())
    start = 0
    if path.suffix == ".log" and data:
        batches = split(bytes(data))
        start = sum(map(len, batches[: dice.randrange(len(batches))]))
    if data:
        data[min(start + dice.randrange(61), len(data) - 1)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def other_magic(path: Path, dice: Dice) -> None:
    """Flip a bit of the magic of a batch; of other files, a bit near the start."""
    data = bytearray(path.read_bytes())
    if path.suffix != ".log" or not data:
        flip_header(path, dice)
        return
    batches = split(bytes(data))
    start = sum(map(len, batches[: dice.randrange(len(batches))]))
    data[min(start + MAGIC_POSITION, len(data) - 1)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def cut(path: Path, dice: Dice) -> None:
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def cut_last(path: Path, dice: Dice) -> None:
    """Truncate a segment between two batches, or a few bytes before its end."""
    size = path.stat().st_size
    batches = split(path.read_bytes()) if path.suffix == ".log" and size else []
    kept = sum(map(len, batches[: dice.randrange(len(batches))])) if batches else max(0, size - dice.randint(1, 40))
    os.truncate(path, kept)


def zeros(path: Path, dice: Dice) -> None:
    data = bytearray(path.read_bytes())
    if data:
        start = dice.randrange(min(len(data), 1 << 16))
        size = min(dice.choice((8, 60, 512, len(data))), len(data) - start)
        data[start : start + size] = bytes(size)
    path.write_bytes(data)


def zeros_after(path: Path, dice: Dice) -> None:
    os.truncate(path, path.stat().st_size + dice.choice((1, 16, 4096)))


def empty(path: Path, dice: Dice) -> None:
    os.truncate(path, 0)


def doubled(path: Path, dice: Dice) -> None:
    data = path.read_bytes()
    if len(data) < 1 << 20:
        path.write_bytes(data + data)


def removed(path: Path, dice: Dice) -> None:
    path.unlink()


def other_numbers(path: Path, dice: Dice) -> None:
    """Change a number of a text file; of other files, flip a bit."""
    data = path.read_bytes()
    places = [at for at, byte in enumerate(data[: 1 << 16]) if 0x30 <= byte <= 0x39]
    if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint") or not places:
        flip(path, dice)
        return
    at = dice.choice(places)
    path.write_bytes(data[:at] + dice.choice((b"7", b"0", b"-", b"99", b"x", b"")) + data[at + 1 :])


# --- Changes of several files -----------------------------------------------------------------------------------------


def swapped(path: Path, dice: Dice) -> None:
    """Exchange the contents of two files of a kind, which are often in one directory."""
    others = [each for each in path.parent.iterdir() if each.is_file() and kind(each) == kind(path) and each != path]
    if not others or dice.random() < 0.3:
        others = [each for each in files(path.parent.parent) if kind(each) == kind(path) and each != path]
    if others:
        other = dice.choice(sorted(others))
        mine, theirs = path.read_bytes(), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(mine)


def renamed(path: Path, dice: Dice) -> None:
    """Give a file another base offset; of one without, change the name."""
    other = another_name(path, dice)
    if not other.exists():
        path.rename(other)


def copied(path: Path, dice: Dice) -> None:
    """Copy a file to another base offset."""
    other = another_name(path, dice)
    if not other.exists():
        shutil.copyfile(path, other)


def another_name(path: Path, dice: Dice) -> Path:
    if path.stem.isdigit():
        base = max(0, int(path.stem) + dice.choice((-7, -1, 1, 3, 50, 1000)))
        return path.with_name(f"{base:020}{path.suffix}")
    return path.with_name(path.name + dice.choice((".old", ".tmp", "1")))


CHANGES: list[Change] = [flip, flip_header, flip_header, cut, cut_last, cut_last, zeros, zeros_after, empty, doubled]
CHANGES += [removed, other_numbers, swapped, renamed, copied]
WITH_MAGIC: list[Change] = [*CHANGES, other_magic, other_magic, other_magic]
"""Also damage that a bundle, which has no payloads, has to describe."""


# --- Changes of the disk ----------------------------------------------------------------------------------------------


def partitions(root: Path) -> list[Path]:
    found = [path for path in root.iterdir() if path.is_dir() and path.name[-1].isdigit()]
    return sorted(found) or [root]


def second(root: Path) -> Path:
    """Add a second log directory of the broker, next to the first, unless there is one."""
    other = second_directory(root)
    if not other.exists():
        other.mkdir()
        for path in sorted(root.iterdir()):
            if path.is_file() and path.name != "bootstrap.checkpoint":
                shutil.copyfile(path, other / path.name)
        ids = other / "meta.properties"
        if ids.exists():
            lines = ids.read_text(errors="replace").splitlines()
            kept = [line for line in lines if not line.startswith("directory.id")]
            given = ["directory.id=second-log-directory_A"] if len(kept) < len(lines) else []
            ids.write_text("\n".join([*kept, *given, ""]))
    return other


def partition_twice(root: Path, dice: Dice) -> None:
    """Copy a partition to a second log directory."""
    place = dice.choice(partitions(root))
    if place != root and not (second(root) / place.name).exists():
        copy_disk(place, second(root) / place.name)


def older_metadata(root: Path, dice: Dice) -> None:
    """Copy the metadata to a second log directory, and make one of the two older."""
    place = root / "__cluster_metadata-0"
    if place.is_dir():
        other = second(root) / place.name
        if not other.exists():
            copy_disk(place, other)
        logs = sorted(dice.choice((place, other)).glob("*.log"))
        if logs:
            cut_last(logs[-1], dice)


def moved(root: Path, dice: Dice) -> None:
    """Move some partitions to a second log directory."""
    places = [place for place in partitions(root) if place != root and not place.name.startswith("__cluster")]
    for place in dice.sample(places, len(places) // 2):
        if not (second(root) / place.name).exists():
            place.rename(second(root) / place.name)


def other_state(root: Path, dice: Dice) -> None:
    """Rename a partition, or a copy of it, as one that is being deleted or moved, or that is stray."""
    place = dice.choice(partitions(root))
    state = dice.choice(("delete", "future", "stray"))
    other = place.with_name(f"{place.name}.{dice.getrandbits(128):032x}-{state}")
    if place != root:
        copy_disk(place, other)
        if dice.random() < 0.5:
            shutil.rmtree(place)


def partition_lost(root: Path, dice: Dice) -> None:
    place = dice.choice(partitions(root))
    if place != root:
        shutil.rmtree(place)


def segments_lost(root: Path, dice: Dice) -> None:
    """Remove all files of a partition, or its segments."""
    place = dice.choice(partitions(root))
    for path in sorted(place.iterdir()) if place != root else ():
        if path.is_file() and (path.suffix == ".log" or dice.random() < 0.5):
            path.unlink()


def unclean(root: Path, dice: Dice) -> None:
    (root / ".kafka_cleanshutdown").unlink(missing_ok=True)


OF_DISKS = [partition_twice, older_metadata, moved, other_state, other_state, partition_lost, segments_lost, unclean]


def share_beyond_log(root: Path) -> None:
    """Let the share group begin beyond the log end: nothing else here has a remark on the offset of one."""
    log = root / "__share_group_state-0" / f"{0:020}.log"
    data = log.read_bytes()
    header, records = data[: BATCH_HEADER.size], data[BATCH_HEADER.size :]
    before = (-1).to_bytes(8, "big", signed=True)
    assert records.count(before)
    log.write_bytes(data + rebase(fix_crc(header + records.replace(before, (9999).to_bytes(8, "big"), 1)), 1))


def damaged(
    number: object, source: Path, root: Path, most: int = 3, changes: list[Change] = CHANGES
) -> tuple[list[Path], list[str]]:
    """Copy a disk to `root`, and damage it in one to three places. Returns the log directories, and what was done."""
    dice = random.Random(f"facts {number}")
    copy_disk(source, root)
    if source == SHARED:
        shutil.copy(FIXTURES / "disk-1" / "meta.properties", root)
        share_beyond_log(root)
    done = []
    for _ in range(dice.randint(1, most)):
        if dice.random() < 0.25:
            change = dice.choice(OF_DISKS)
            change(root, dice)
            done.append(change.__name__)
        else:
            path, of_file = drawn(root, dice), dice.choice(changes)
            done.append(f"{of_file.__name__} {path.relative_to(root)}")
            of_file(path, dice)
    found = [each for each in (root, second_directory(root)) if each.exists()]
    for each in found:
        aged(each)
    return found, done
