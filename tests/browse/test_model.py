"""Checks that the browser's pages show what inspect --json lists: forward, backward and from anywhere, for valid and
damaged files."""

from __future__ import annotations

import json
import os
import unicodedata
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from crc32c import crc32c

from kdump.browse import browser as browsing
from kdump.browse import listings
from kdump.browse import segment_pages as paging
from kdump.browse.browser import Browser, NotFound
from kdump.browse.command import typed_selection
from kdump.browse.listings import BrowseRow, Cancelled, Level
from kdump.browse.save import row_commands, row_json
from kdump.browse.segment_pages import Pages
from kdump.cli import cli
from kdump.format.batch_header import BATCH_HEADER
from kdump.io.fault_tolerant import FaultTolerantSource
from kdump.io.run import PLAIN_RUN, Run
from tests.conftest import FIXTURES, sample, seeded
from tests.craft import batch, flip, patch, record, split, write_file
from tests.test_damaged_disks import DAMAGES

PAYMENTS = FIXTURES / "clean-1" / "payments-0"
ZERO = f"{0:020}.log"


def browse(path: Path, *into: str) -> Browser:
    """Return a browser that has entered the rows with these labels or numbers, one after the other."""
    found = Browser(str(path))
    found.settle(found.open(PLAIN_RUN))
    for name in into:
        number = next(n for n, row in enumerate(found.level.rows) if row.label.startswith(name))
        found.level.cursor = number
        levels = found.enter(found.depth, found.level.rows[number], PLAIN_RUN)
        assert levels is not None
        found.settle(levels)
    return found


def listed(path: Path, *options: str) -> list[dict[str, Any]]:
    """Return the rows of inspect, except for findings."""
    result = CliRunner().invoke(cli, ["inspect", str(path), "--json", *options])
    assert result.exit_code in (0, 2), result.output
    return [value for value in map(json.loads, result.stdout.splitlines()) if value["type"] != "finding"]


def forwards(found: Browser, count: int) -> list[BrowseRow]:
    level = found.level
    part = level.listing.head(count, PLAIN_RUN)
    rows = list(part.rows)
    while not part.last:
        part = level.listing.after(rows[-1], count, PLAIN_RUN)
        rows += part.rows
    return rows


def backwards(found: Browser, count: int) -> list[BrowseRow]:
    level = found.level
    part = level.listing.tail(count, PLAIN_RUN)
    rows = list(part.rows)
    while not part.first:
        part = level.listing.before(rows[0], count, PLAIN_RUN)
        rows = [*part.rows, *rows]
    return rows


def said(found: Browser, rows: list[BrowseRow]) -> list[dict[str, Any]]:
    return [json.loads(row_json(found, found.level, row) or "null") for row in rows]


SEGMENTS = [
    *("clean-1/payments-0", "clean-1/users-0", "clean-1/orders-zstd-0", "legacy/upgraded-gzip-0"),
    *("live-1/prealloc-0", "legacy/v1-client010-snappy-0"),
]


def segment(name: str) -> Path:
    found = sorted((FIXTURES / name).glob("*.log"))
    if not found:
        pytest.skip(f"no fixture {name}")
    return found[0]


@pytest.mark.parametrize("name", SEGMENTS)
@pytest.mark.parametrize("count", [1, 7, 64])
def test_pages_are_what_inspect_lists(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "EACH", 5)
    path = segment(name)
    expected = listed(path)
    assert expected
    found = browse(path)
    assert said(found, forwards(found, count)) == expected
    assert said(found, backwards(found, count)) == expected
    anew = browse(path)
    assert said(anew, backwards(anew, count)) == expected


def test_a_record_count_that_cannot_be_true_is_marked(tmp_path: Path) -> None:
    """The rows of such batches look damaged, although their checksums match."""
    first, second, third, *_ = split(segment("clean-1/payments-0").read_bytes())
    path = write_file(tmp_path / ZERO, first + patch(second, recordCount=-5) + patch(third, recordCount=1_000_000_007))
    found = browse(path)
    assert [row.style == "bad" for row in forwards(found, 7)] == [False, True, True]


@pytest.mark.parametrize("name", SEGMENTS)
def test_records_and_entries_are_what_inspect_lists(name: str) -> None:
    path = segment(name)
    expected = listed(path, "--records")
    found = browse(path)
    records = []
    for row in forwards(found, 64):
        if row.type != "batch":
            records += said(found, [row])
            continue
        levels = found.enter(0, row, PLAIN_RUN)
        assert levels is not None
        found.settle(levels)
        assert said(found, [each for each in backwards(found, 3) if each.type == "record"]) == said(
            found, [each for each in forwards(found, 3) if each.type == "record"]
        )
        records += said(found, [each for each in forwards(found, 16) if each.type == "record"])
        found.settle(found.levels[:1])
    assert records == expected


@pytest.mark.parametrize("name", ["clean-1", "tiered", "crash-1"])
def test_files_beside_segments(name: str) -> None:
    for path in sorted(p for p in (FIXTURES / name).rglob("*") if p.is_file() and p.suffix not in (".log", ".md")):
        found = browse(path)
        if isinstance(found.level.listing, Pages):
            continue
        rows = forwards(found, 4)
        assert [value for value in said(found, rows) if value] == listed(path), path
        assert [row.key for row in backwards(found, 4)] == [row.key for row in rows]


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 12, "test_damaged_segments"), ids=lambda damage: damage.__name__)
def test_damaged_segments(damage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is shown as by inspect, both forward from the start and when going back; every row can be dumped and
    entered."""
    monkeypatch.setattr(paging, "EACH", 4)
    dice = seeded(damage.__name__)
    for number, name in enumerate(sample(SEGMENTS, 7, damage.__name__)):
        data = bytearray(segment(name).read_bytes())
        damage(data, dice)
        path = write_file(tmp_path / f"{number}-0" / segment(name).name, data)
        expected = listed(path)
        found = browse(path)
        assert said(found, forwards(found, 5)) == expected
        rows = backwards(found, 5)
        assert said(found, rows) == expected
        anew = browse(path)
        assert [row.key for row in backwards(anew, 9)] == [row.key for row in rows]
        for row in rows[:: max(1, len(rows) // 8)]:
            everything(found, row)


def is_harmless(text: str) -> bool:
    """Return True if a terminal shows every character: spaces of other widths are not printable to Python."""
    return all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)


def everything(found: Browser, row: BrowseRow) -> None:
    """Look at a row and at everything inside it, down to its fields."""
    level = found.level
    dump = found.places.dump(row, level, 80)
    assert all(is_harmless(line.text) for line in dump.lines)
    row_json(found, level, row)
    found.places.dump(row, level, 200, full=True)
    inside = found.places.into(row, level)
    if inside is None:
        return
    inside.put(inside.listing.head(3, PLAIN_RUN))
    for each in inside.rows:
        found.places.dump(each, inside, 80) if each.type != "field" else None
        assert all(is_harmless(cell) for cell in (*each.cells, each.text, each.label))
        if each.type in ("record", "header"):
            fields = found.places.into(each, inside)
            assert fields is None or fields.listing.head(9, PLAIN_RUN).rows


@pytest.mark.parametrize(
    "options",
    [
        *("--offset 20..60", "--producer-id 9", "--key a3 --key b2", "--control", "--position 400..2000"),
        *("--value-regex sku-1", "--time 2026-11-21T07:58:22.9..", "--transactional --key-regex ^a"),
    ],
)
def test_filters_are_those_of_inspect(options: str) -> None:
    path = PAYMENTS / ZERO
    found = browse(path)
    found.places.selection = typed_selection(options, timezone.utc)
    found.settle(found.open(PLAIN_RUN))
    expected = listed(path, *options.split())
    assert said(found, forwards(found, 3)) == expected
    assert said(found, backwards(found, 3)) == expected
    for row in forwards(found, 9)[:3]:
        found.settle([*found.levels[:1], *(found.enter(0, row, PLAIN_RUN) or [])[1:]])
        records = [each for each in forwards(found, 9) if each.type == "record"]
        assert said(found, records) == listed(path, "--records", *options.split(), "--position", str(row.key)) or (
            "--position" in options
        )
        found.settle(found.levels[:1])


@pytest.mark.parametrize("text", ["--ofset 3", "--offset x", "--key-regex (", "a", "--limit 3", "--key 'a"])
def test_filters_that_are_none(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        typed_selection(text, timezone.utc)
    assert "\n" not in str(raised.value)


def test_going_to_every_offset_and_position() -> None:
    found = browse(PAYMENTS)
    for value in listed(PAYMENTS / ZERO, "--records")[::5]:
        found.settle(found.to_offset(value["offset"], PLAIN_RUN))
        row = found.level.row
        assert row is not None
        assert json.loads(row_json(found, found.level, row) or "") == value | {"file": str(PAYMENTS / ZERO)}
    for value in listed(PAYMENTS / ZERO)[::5]:
        for position in (value["position"], value["position"] + value["size"] - 1):
            found.settle(found.to_position(position, PLAIN_RUN))
            row = found.level.row
            assert row is not None
            assert row.key == value["position"]
    with pytest.raises(NotFound):
        found.to_offset(120, PLAIN_RUN)


def test_going_to_a_time() -> None:
    found = browse(PAYMENTS)
    records = listed(PAYMENTS / ZERO, "--records")
    for time in sorted({value["timestamp"] for value in records})[::7]:
        found.settle(found.to_time(time, PLAIN_RUN))
        row = found.level.row
        assert row is not None
        assert row.item.offset == next(value["offset"] for value in records if value["timestamp"] >= time)


def test_searching_keys_and_values() -> None:
    found = browse(PAYMENTS, ZERO)
    records = listed(PAYMENTS / ZERO, "--records")
    expected = [v["offset"] for v in records if not v.get("control") and ("sku-1" in (v["value"] or ""))]
    hits = []
    while True:
        try:
            found.settle(found.search("sku-1", PLAIN_RUN))
        except NotFound:
            break
        assert found.level.row is not None
        hits.append(found.level.row.item.offset)
    assert hits == expected
    found.settle(found.open(PLAIN_RUN))
    found.settle(found.search("TxnIndex", PLAIN_RUN))
    assert found.level.row is not None
    assert "txnindex" in found.level.row.label
    with pytest.raises(NotFound):
        found.search("(", PLAIN_RUN)


def test_the_command_shows_the_same() -> None:
    found = browse(FIXTURES / "clean-1", "payments-0", "0000", "2..3")
    found.settle(found.levels[:3])
    row = found.level.row
    assert row is not None
    commands = row_commands(found)
    assert len(commands) == 2
    result = CliRunner().invoke(cli, [*commands[1].split()[1:], "--json"])
    assert result.exit_code == 2  # the row of --hex is shown
    options = commands[1].replace(" --hex", " --json").split()[1:]
    shown = json.loads(CliRunner().invoke(cli, options).stdout)
    assert shown == json.loads(row_json(found, found.level, row) or "")


class Counter:
    """Counts the bytes that are read from segments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = 0

        def counted(source: FaultTolerantSource, position: int, count: int) -> bytes | None:
            data = os.pread(source.fd, count, position)
            self.read += len(data)
            return data

        monkeypatch.setattr(FaultTolerantSource, "_try", counted)

    def taken(self) -> int:
        """Return the number of bytes read since the last call."""
        read, self.read = self.read, 0
        return read


def test_a_segment_of_a_gigabyte_opens_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment has batches of 16 KiB whose payload is a sparse hole. Few bytes are read to see the first one, the
    last one, or one in between."""
    one = BATCH_HEADER.read(split((PAYMENTS / ZERO).read_bytes())[1])
    size, total = 256 * 1024, 1 << 30
    path = tmp_path / "big-0" / ZERO
    path.parent.mkdir()
    index = bytearray()
    rest = bytes(size - BATCH_HEADER.size)
    with open(path, "wb") as file:
        for number in range(total // size):
            header = one._replace(baseOffset=number, lastOffsetDelta=0, batchLength=size - 12)
            head = BATCH_HEADER.struct.pack(*header)
            head = head[:17] + crc32c(head[21:] + rest).to_bytes(4, "big") + head[21:]
            file.seek(number * size)
            file.write(head)
            if number % 8 == 4:
                index += number.to_bytes(4, "big") + (number * size).to_bytes(4, "big")
        file.truncate(total)
    (path.parent / f"{0:020}.index").write_bytes(index)
    counter, rows = Counter(monkeypatch), browsing.ROWS

    found = browse(path.parent)
    assert found.level.rows[0].label == ZERO
    assert counter.taken() == 0, "nothing before it is looked at"
    found.settle(found.enter(0, found.level.rows[0], PLAIN_RUN) or [])
    assert [row.key for row in found.level.rows] == [n * size for n in range(rows)]
    assert counter.taken() < (rows + 4) * 8192 + 2 * size, "little more than headers"
    assert all("crc?" in " ".join(row.cells) for row in found.level.rows), "a large batch is read when one stands on it"
    found.dump(found.level.rows[1], found.level, 80, full=False, run=PLAIN_RUN)
    assert "crc?" not in " ".join(found.places.maker.region(found.level.rows[1].item).cells)
    assert counter.taken() < 3 * size
    part = found.end(found.level, down=True, run=PLAIN_RUN)
    assert [row.key for row in part.rows] == [total - (rows - n) * size for n in range(rows)]
    assert counter.taken() < 4 * rows * 8192 + 8 * size
    found.settle(found.to_position(total // 2 + 1, PLAIN_RUN))
    assert found.level.row is not None
    assert found.level.row.key == total // 2
    assert counter.taken() < 8 * rows * 8192 + 16 * size


def test_reading_is_given_up_when_nobody_waits() -> None:
    def at(position: int, size: int | None) -> None:
        raise Cancelled

    gone = Run(at=at)

    found = browse(PAYMENTS / ZERO)
    with pytest.raises(Cancelled):
        found.search("nowhere to be found", gone)
    with pytest.raises(Cancelled):
        found.level.listing.tail(5, gone)
    assert len(forwards(found, 50)) == len(listed(PAYMENTS / ZERO))


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MARKS", 8)
    monkeypatch.setattr(paging, "EACH", 1)
    monkeypatch.setattr(listings, "MAX_KEPT_ROWS", 10)
    found = browse(PAYMENTS / ZERO)
    level: Level = found.level
    for _ in range(20):
        if not level.last:
            level.grow(found.more(level, down=True, count=4, run=PLAIN_RUN), down=True)
    assert level.last
    assert len(level.rows) <= 10 + browsing.ROWS
    assert isinstance(level.listing, Pages)
    assert len(level.listing._marks) <= 9
    while not level.first:
        level.grow(found.more(level, down=False, count=4, run=PLAIN_RUN), down=False)
    assert level.rows[0].key == 0


def test_a_search_says_first_what_it_did_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t-0" / ZERO
    path.parent.mkdir()
    batches = [batch(record(0, b"key-%d" % n, b"value"), "gzip", offset=n) for n in range(5)]
    batches[2] = flip(batches[2], 8 * (len(batches[2]) - 12))
    path.write_bytes(b"".join(batches) + b"garbage")
    (path.parent / f"{5:020}.log").symlink_to("/nowhere")
    found = browse(path.parent, ZERO)
    with pytest.raises(NotFound) as error:
        found.search("nope", PLAIN_RUN)
    text = str(error.value)
    assert text.startswith(f"NOT SEARCHED: 1 damaged batch of {len(batches[2])} bytes (t-0/{ZERO} at byte ")
    assert "1 region of 7 bytes without a readable batch" in text
    assert f"{5:020}.log" in text
    assert text.endswith("no record from here on matches 'nope' in the rest")
    with pytest.raises(NotFound, match=r"NOT SEARCHED: .*; all records here are older than that in the rest"):
        found.to_time(1 << 60, PLAIN_RUN)
    found.search("key-4", PLAIN_RUN)
    path.write_bytes(b"".join(batches[:2]))
    (path.parent / f"{5:020}.log").unlink()
    with pytest.raises(NotFound, match=r"^no record from here on matches 'nope'$"):
        browse(path.parent, ZERO).search("nope", PLAIN_RUN)


def test_an_offset_after_empty_segments(tmp_path: Path) -> None:
    """As compaction leaves them."""
    path = write_file(tmp_path / "t-0" / ZERO, batch(record(0, b"k", b"v")))
    for number in (10, 20):
        (path.parent / f"{number:020}.log").write_bytes(b"")
    (path.parent / f"{30:020}.log").write_bytes(batch(record(0, b"k", b"v"), offset=30))
    found = browse(path.parent)
    assert found.to_offset(5, PLAIN_RUN)[-1].row.item.offset == 30  # type: ignore[union-attr]
    with pytest.raises(NotFound, match="offset 31 is after the last offset"):
        found.to_offset(31, PLAIN_RUN)
