"""`kdump inspect` as a search for keys, values and headers: what "nothing matches" is worth."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump.log.file_kinds import CLEAN_MARK, OFFSET_CHECKPOINTS, OWN_NAMES, REMOTE_CACHE
from kdump.log.log_directory import META
from tests import craft
from tests.command import refused, run
from tests.conftest import few, segment
from tools.incident import lay_out

OLD = f"{194:020}.log.deleted"
FORMS = [[], ["--records"], ["--json"], ["--records", "--json"], ["--records", "--limit", "9"], ["-f", "%o\n"]]
"""Each is written by other code: tables, JSON from columns, JSON of batches, row by row, templates."""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    lay_out("key-is-gone", tmp_path / "it")
    return tmp_path / "it" / "disk-1"


def test_all_files_are_searched(disk: Path) -> None:
    """The segment that is being deleted has values that the live ones do not have."""
    result = run("inspect", disk / "users-0", "--records", "--json", "--key", "u7", "--all-files")
    found = [(Path(row["file"]).name, row["offset"]) for row in map(json.loads, result.stdout.splitlines())]
    assert found == [
        (f"{0:020}.log", 246),
        (f"{254:020}.log", 255),
        *((OLD, offset) for offset in (201, 216, 231, 246)),
    ]
    assert (result.exit_code, result.stderr) == (0, "")


def test_what_is_left_out_is_noted(disk: Path) -> None:
    """Files of other topics are not."""
    note = "kdump: 1 .deleted, .swap or .cleaned segment not searched; add --all-files"
    for arguments in (["--key", "u7"], ["--key", "nobody"], ["--key", "u7", "--topic", "users"]):
        assert run("inspect", disk, *arguments).stderr.splitlines()[-1] == note
    assert ".deleted" not in run("inspect", disk, "--key", "u7", "--topic", "pay*").stderr
    assert ".deleted" not in run("inspect", disk, "--offset", "0").stderr, "no search"


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_damage_is_not_taken_for_absence(disk: Path, form: list[str]) -> None:
    result = run("inspect", disk, "--key", "nobody", *form)
    assert result.exit_code == 2
    assert "kdump: nothing matches in what could be searched: 10 files, 415 batches" in result.stderr
    gap = f"NOT SEARCHED: 1 damaged batch of 1.4 KiB ({disk}/orders-zstd-0/{0:020}.log at byte 3189)"
    assert gap in result.stderr
    found = run("inspect", disk, "--key", "u7", *form)
    assert found.exit_code == 0
    assert gap in found.stderr, "there may be more"
    intact = run("inspect", disk / "users-0", "--key", "nobody", *form)
    assert (intact.exit_code, intact.stdout) == (1, "")
    assert "kdump: nothing matches in 2 files, 11 batches" in intact.stderr
    assert "NOT SEARCHED" not in intact.stderr


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_bytes_without_a_batch_are_not_searched(tmp_path: Path, form: list[str]) -> None:
    data = segment("clean-1/users-0").read_bytes()
    (tmp_path / "users-0").mkdir()
    log = craft.write_file(tmp_path / "users-0" / f"{0:020}.log", data[:540] + bytes(61) + data[601:])
    assert "without a readable batch" in refused("inspect", log, "--key", "nobody", *form)
    log.write_bytes(data)
    assert run("inspect", log, "--key", "nobody", *form).exit_code == 1


def test_a_foreign_file_is_not_searched(disk: Path) -> None:
    shutil.copytree(disk / "users-0", disk.parent / "one" / "users-0")
    one = disk.parent / "one"
    assert run("inspect", one, "--key", "nobody", "--all-files").exit_code == 1
    for number in range(5):
        (one / "users-0" / f"copy-{number}.bak").write_bytes(b"x")
    result = run("inspect", one, "--key", "nobody", "--all-files")
    assert result.exit_code == 2
    assert "NOT SEARCHED: 5 files that are not Kafka's" in result.stderr
    assert result.stderr.count(".bak") == 3
    assert "and 2 more" in result.stderr


def test_a_file_that_cannot_be_opened(disk: Path) -> None:
    """A directory in place of a segment: its result is not that of a complete search."""
    (disk / "users-0" / f"{900:020}.log").mkdir()
    result = run("inspect", disk / "users-0", "--key", "nobody")
    assert result.exit_code == 2
    assert "nothing matches in what could be searched: 2 files" in result.stderr


def test_an_offset_range_reads_all_generations(tmp_path: Path) -> None:
    """A segment that is being deleted ends anywhere, whatever the name of the next one."""
    place = tmp_path / "t-0"
    place.mkdir()
    for name, first in ((f"{0:020}.log", 0), (f"{5:020}.log.deleted", 5), (f"{8:020}.log", 8)):
        batch = craft.batch([craft.record(n, key=b"k") for n in range(4)])
        (place / name).write_bytes(craft.rebase(batch, first))
    result = run("inspect", place, "--records", "--json", "--all-files", "--offset", "8..8")
    assert [Path(json.loads(line)["file"]).name for line in result.stdout.splitlines()] == [
        f"{8:020}.log",
        f"{5:020}.log.deleted",
    ]


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_zeros_contain_no_key(tmp_path: Path, form: list[str]) -> None:
    """The zeros at the end of a preallocated segment do not make a search incomplete; half a batch does."""
    (tmp_path / "users-0").mkdir()
    log = tmp_path / "users-0" / f"{0:020}.log"
    data = segment("clean-1/users-0").read_bytes()
    log.write_bytes(data + bytes(4096))
    assert run("inspect", log, "--key", "nobody", *form).exit_code == 1
    for offsets, status in (([], 2), (["--offset", "250.."], 2), (["--offset", "..60"], 1)):
        log.write_bytes(data + data[540:600])
        assert run("inspect", log, "--key", "nobody", *form, *offsets).exit_code == status


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize(
    "search", [["--key", "u7"], ["--key-regex", "^u7$"], ["--key", "u7", "--offset", "246"]], ids=" ".join
)
def test_a_bit_flipped_in_the_key_is_not_taken_for_absence(disk: Path, form: list[str], search: list[str]) -> None:
    """All records of the batch decode, and none has the key: only the checksum tells that one of them had it."""
    damaged = disk / "users-0" / f"{0:020}.log"
    data = bytearray(damaged.read_bytes())
    data[data.index(b"u7")] ^= 2
    damaged.write_bytes(data)
    result = run("inspect", damaged, *search, *form)
    assert result.exit_code == 2
    assert f"NOT SEARCHED: 1 damaged batch of 563 bytes ({damaged} at byte 540)" in result.stderr
    assert "kdump: nothing matches in what could be searched: 1 file, 9 batches" in result.stderr


def test_segments_in_remote_storage_without_a_topic_name_are_not_taken_for_other_topics(tmp_path: Path) -> None:
    """Some plugins of remote storage have only the topic ID in the path: any topic may be the one that is searched."""
    topic_id = "wAa01FzqTkayNnf6QOm_2w"
    stored = tmp_path / topic_id / "0" / f"{0:020}-PYLQAkwIRYKEnzbu2TPAqw.log"
    stored.parent.mkdir(parents=True)
    shutil.copy(segment("clean-1/users-0"), stored)
    shutil.copytree(segment("clean-1/users-0").parent, tmp_path / "disk" / "users-0")
    result = run("inspect", tmp_path, "--topic", "users", "--key", "nobody")
    assert result.exit_code == 2
    assert f"NOT SEARCHED: 1 segment whose path has only a topic ID, {topic_id}" in result.stderr
    assert "nothing matches in what could be searched: 2 files" in result.stderr
    assert "NOT SEARCHED" in run("inspect", tmp_path, "--topic", "users", "--key", "u7").stderr, "there may be more"
    both = run("inspect", tmp_path, "--topic", "users", "--topic", topic_id, "--key", "nobody")
    assert (both.exit_code, "NOT SEARCHED" in both.stderr) == (1, False)


def test_a_topic_that_is_not_there_is_not_searched(disk: Path) -> None:
    """If one of several patterns matches no topic, nothing can be said of it."""
    assert run("inspect", disk, "--topic", "users", "--key", "nobody").exit_code == 1
    assert run("inspect", disk, "--topic", "users", "--topic", "usres", "--key", "nobody").exit_code == 2


NEEDLE = b"user-7"
IGNORED = "after the compressed records or in the key of the message around them"


def _gzip_with(name: bytes, comment: bytes, data: bytes) -> bytes:
    """Return a gzip member with these optional fields in its header."""
    plain = gzip.compress(data, 1)
    return plain[:3] + b"\x18" + plain[4:10] + name + b"\0" + comment + b"\0" + plain[10:]


def _ignored() -> Iterator[tuple[str, bytes]]:
    """Yield batches that contain NEEDLE where no reader of Kafka's looks: each is valid."""
    records = b"".join([craft.record(0, key=b"a", value=b"v"), craft.record(1, key=b"b", value=b"w")])
    other = craft.record(0, key=NEEDLE, value=b"v")
    for codec, rest in (
        ("gzip", NEEDLE),
        ("lz4", NEEDLE),
        ("lz4", craft.compress("lz4", other)),
        ("snappy", NEEDLE[:3]),
        ("zstd", struct.pack("<II", 0x184D2A50, len(NEEDLE)) + NEEDLE),
    ):
        yield (
            f"{codec} and {rest.hex()}",
            craft.batch(b"", codec, count=2, payload=craft.compress(codec, records) + rest),
        )
    for name, comment in ((NEEDLE, b""), (b"", NEEDLE)):
        yield (
            f"gzip {name!r} {comment!r}",
            craft.batch(b"", "gzip", count=2, payload=_gzip_with(name, comment, records)),
        )
    for magic, large in ((0, b"v"), (1, b"v"), (1, bytes(5 << 20))):
        inner = [craft.message(magic, large, offset=n, key=b"a") for n in range(2)]
        yield f"key of a v{magic} wrapper of {len(large)}", craft.wrapper(magic, inner, offset=1, key=NEEDLE)
        payload = craft.compress("lz4", b"".join(inner)) + NEEDLE
        yield (
            f"v{magic} lz4 wrapper of {len(large)}",
            craft.message(magic, payload, offset=1, attributes=craft.CODECS.index("lz4")),
        )


@pytest.mark.parametrize("form", few(FORMS, 2), ids=" ".join)
def test_bytes_that_no_reader_looks_into_are_not_searched(tmp_path: Path, form: list[str]) -> None:
    (tmp_path / "t-0").mkdir()
    log = tmp_path / "t-0" / f"{0:020}.log"
    for name, batch in _ignored():
        log.write_bytes(batch)
        result = run("inspect", log, "--key", NEEDLE.decode(), *form)
        assert result.exit_code == 2, name
        assert "NOT SEARCHED: " in result.stderr, name
        assert f" that no consumer reads, {IGNORED}, in 1 batch ({log} at byte 0)" in result.stderr, name
        assert "damaged" not in result.stderr, name
        found = run("inspect", log, "--key", "a", *form)
        assert found.exit_code == 0, name
        if set(form) & {"--records", "-f"}:  # else a batch is read up to its first match
            assert "NOT SEARCHED: " in found.stderr, "there may be more"


def test_the_files_of_a_broker_at_work_or_killed_are_kafkas_own(tmp_path: Path) -> None:
    """Of those that it leaves in a log directory, none keeps a search from being complete."""
    lay_out("key-is-gone", tmp_path / "it")
    disk = tmp_path / "one"
    shutil.copytree(tmp_path / "it" / "disk-1" / "users-0", disk / "users-0")
    for name in OWN_NAMES - {REMOTE_CACHE}:
        (disk / name).touch()
    (disk / REMOTE_CACHE).mkdir()
    for name in (CLEAN_MARK, META, *OFFSET_CHECKPOINTS):
        for ending in ("", ".tmp"):
            (disk / f"{name}{ending}").touch()
    result = run("inspect", disk, "--key", "nobody", "--all-files")
    assert "NOT SEARCHED" not in result.stderr
    assert result.exit_code == 1
