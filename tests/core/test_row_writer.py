"""Rows and batch objects written from columns equal those written one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kdump.cli import cli
from kdump.core import batch_scan, cells, row_plan, row_writer
from kdump.core.record_columns import RecordColumns
from kdump.log.batch_records import decode_columns
from kdump.log.batch_records import records as records_of
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.questions.inspect import columns as inspect_columns
from kdump.questions.inspect import fast_rows
from kdump.questions.inspect import show as inspect_run
from kdump.questions.inspect import views as inspect_views
from kdump.render import escape
from kdump.render.escape import bytes_text
from kdump.render.style import cut
from kdump.render.times import iso
from tests import craft
from tests.conftest import SEED, each_segment, examples, iter_regions, sample, seeded, some_segments
from tests.each_case import each_case
from tests.test_damaged_disks import DAMAGES

FORMS = [[], ["--records"], ["--json"], ["--records", "--json", "--jobs", "1"]]


def inspect(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["inspect", *map(str, arguments)])
    assert result.exit_code in (0, 2), result.exc_info
    return result.stdout


def both(*arguments: str | Path, room: int = 1 << 20) -> str:
    """Return what is written from columns, after comparing it with what is written row by row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_run, "COMPILED", True)
        patch.setattr(fast_rows, "ROOM", room)
        swift = inspect(*arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_run, "COMPILED", False)
        slow = inspect(*arguments)
    assert swift == slow
    return swift


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 48))
def test_real_segments(path: Path) -> None:
    for form in FORMS:
        both(path, *form)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the bytes that each call of the compiled functions has written."""
    sizes: list[int] = []
    for name in ("write_batch_rows", "write_record_rows", "write_batches_records"):
        function = getattr(row_writer, name)

        def counting(room, used, *more, function=function):  # type: ignore[no-untyped-def]
            row, then = function(room, used, *more)
            sizes.append(then - used)
            return row, then

        monkeypatch.setattr(fast_rows, name, counting)
    return sizes


BASE = 1_700_000_000_000
text = st.one_of(st.none(), st.binary(max_size=12), st.text(max_size=12).map(str.encode), st.just(b"trailing  "))
headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), text), max_size=2)
whole = st.tuples(text, text, headers, st.integers(-5, 5) | st.sampled_from([-(1 << 63), (1 << 63) - 1]))
batch_fields = st.fixed_dictionaries(
    {},
    optional={
        "baseTimestamp": st.sampled_from([-1, 0, BASE, -5, 253402300799999, 253402300800000, (1 << 63) - 1]),
        "maxTimestamp": st.sampled_from([-1, 0, BASE + 1, -(1 << 63), 253402300799999, 253402300800000]),
        "producerId": st.sampled_from([-1, 0, 9, (1 << 63) - 1]),
        "producerEpoch": st.sampled_from([-1, 0, 32767]),
        "baseSequence": st.sampled_from([-1, 0, 2147483646]),
        "partitionLeaderEpoch": st.sampled_from([-1, 0, 2147483647]),
        "attributes": st.sampled_from([0, 0x08, 0x10, 0x18, 0x20, 0x30, 0x40, 0x80]),
    },
)


Group = tuple[list[tuple[bytes | None, bytes | None, list[craft.Header], int]], dict[str, int]]
"""The records of a batch (key, value, headers, timestamp delta), and fields of its header."""


def segment_of(groups: list[Group], codec: str = "none") -> bytes:
    data, offset = b"", 0
    for records, fields in groups:
        parts = [craft.record(i, key, value, h, timestamp) for i, (key, value, h, timestamp) in enumerate(records)]
        attributes = fields.get("attributes", 0) | craft.CODECS.index(codec)
        data += craft.batch(parts, codec, offset=offset, **(fields | {"attributes": attributes}))
        offset += max(1, len(records))
    return data


PLAIN = [([(b"key", b"value", [], 0)] * 3, {})] * 40
"""Batches after which the columns of every table have their widths."""


@pytest.mark.sampled
@settings(max_examples=60 if SEED else 10)
@given(
    st.lists(st.tuples(st.lists(whole, max_size=4), batch_fields), max_size=6),
    st.sampled_from([1 << 20, 2048]),
    st.sampled_from(["none", "none", "zstd", "lz4"]),
)
@example([([(b"key", b"longer than the room" * 200, [], 0)] * 2, {})], 2048, "zstd")
def test_any(tmp_path_factory: pytest.TempPathFactory, groups: list[Group], room: int, codec: str) -> None:
    path = craft.write_file(
        tmp_path_factory.mktemp("any") / f"{0:020}.log", segment_of([*PLAIN, *groups, *PLAIN[:3]], codec)
    )
    for form in FORMS:
        both(path, *form, room=room)


def test_values_that_are_not_ascii(tmp_path: Path, written: list[int]) -> None:
    """Of every size of UTF-8, with all that is escaped, spaces at the end of a line, and bytes that are no text."""
    kinds = [*map(chr, range(0x180)), *"\u0378\u07ff\u0800\u200e\u2028\u202f\u3000\u65e5\ue000\ufeff\uffff\ufffd"]
    kinds += ["\U00010000", "\U0001f600", "\U0001fffe", "\U00020000", "\U000e0001", "\U0010ffff"]
    values = [kind.encode() for kind in kinds] + [f"a {kind}".encode() for kind in kinds]
    values += [bytes([byte]) for byte in range(256)] + [b"\xe6\x97", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"]
    values += [each[:-1] + bytes([byte]) for each in values[-600::7] for byte in (0x3F, 0x80, 0xBF, 0xC0)]
    rows: list[Group] = [([(value, b"v", [(b"h", value)], 0), (b"k", value, [], 0)], {}) for value in values]
    path = craft.write_file(tmp_path / f"{0:020}.log", segment_of([*PLAIN, *rows]))
    both(path, "--records")
    assert len(written) > len(values)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_most_is_written_from_columns(codec: str, tmp_path: Path, written: list[int]) -> None:
    records = [craft.record(i, b"key %d" % i, b"value" * i, [(b"h", b"x"), (b"null", None)]) for i in range(50)]
    data = b"".join(
        craft.batch(records, codec, offset=50 * i, producerId=7, producerEpoch=0, baseSequence=50 * i)
        for i in range(130)
    )
    path = craft.write_file(tmp_path / f"{0:020}.log", data)
    for form, batches_alone in ((["--json"], 0), ([], 100), (["--records"], 2)):
        written.clear()
        out = both(path, *form).splitlines()
        said = sum(written)
        assert said > 0.9 * sum(len(line) + 1 for line in out[batches_alone:])


@each_case("options", [["--offset", "30..70"], ["--key", "key"], ["--limit", "130"], ["--producer-id", "7"]])
def test_selections(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(segment_of([*PLAIN, ([(b"other", None, [], 0)] * 5, {"producerId": 7}), *PLAIN]))
    for form in FORMS:
        both(path, *form, *options)


@pytest.mark.sampled
@each_case("seed", sample(range(12), 4, "damaged"))
def test_damaged(seed: int, tmp_path: Path) -> None:
    dice = seeded(seed)
    data = bytearray(segment_of(PLAIN))
    for change in dice.choices(DAMAGES, k=2):
        change(data, dice)
    path = craft.write_file(tmp_path / f"{0:020}.log", data)
    for form in FORMS:
        both(path, *form)


LENGTHS = [-(1 << 31), -5, 0, 20, 48, 49, 1000, (1 << 31) - 1]
WITH_CODECS = [*((each, "none") for each in LENGTHS), *((each, "zstd") for each in sample(LENGTHS, 7, "lengths"))]


@pytest.mark.sampled
@each_case("length, codec", WITH_CODECS)
def test_a_length_that_the_next_batch_contradicts(length: int, codec: str, tmp_path: Path) -> None:
    pieces = craft.split(segment_of(PLAIN, codec))
    pieces[20] = craft.overwrite(pieces[20], 8, length.to_bytes(4, "big", signed=True))
    path = craft.write_file(tmp_path / f"{0:020}.log", b"".join(pieces))
    for form in FORMS:
        both(path, *form)


def test_a_file_that_is_truncated_while_its_records_are_written(tmp_path: Path) -> None:
    """The header is not read again."""
    path = tmp_path / f"{0:020}.log"
    data = craft.batch([craft.record(i, b"key", b"value" * 1000) for i in range(10)])

    def truncating(batch: DefaultRecordBatch) -> Iterator[tuple[RecordColumns, int]]:
        for piece in decode_columns(batch):
            os.truncate(path, 10)
            yield piece

    for form in FORMS[1::2]:
        path.write_bytes(data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inspect_run, "COMPILED", True)
            patch.setattr(fast_rows, "decode_columns", truncating)
            assert inspect(path, *form, "--window", "1000")


def test_several_files(tmp_path: Path) -> None:
    """Each has its own heading and its own widths."""
    for number, key in ((0, b"short"), (1, b"a much longer key")):
        records = [craft.record(i, key, b"value") for i in range(10)]
        data = b"".join(craft.batch(records, offset=10 * i) for i in range(100))
        (tmp_path / f"{number}.log").write_bytes(data)
    for form in FORMS:
        both(tmp_path / "0.log", tmp_path / "1.log", *form)


POWERS = [10**digits + more for digits in range(19) for more in (-1, 0, 1)]


@given(st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([*POWERS, *(-power for power in POWERS)]))
def test_numbers(number: int) -> None:
    data = craft.batch([craft.record()], baseTimestamp=number)
    heads = batch_scan.read_one_header(data, 0)
    plan = row_plan.RowPlan([cells.BATCH_CELLS["baseTimestamp"]], [b"", b""])
    room = bytearray(1000)
    _, used = row_writer.write_batch_rows(room, 0, heads, 0, 1, plan)
    assert room[:used] == b"%d" % number


@given(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 253402300800000))
def test_moments(milliseconds: int) -> None:
    """Every time written from columns equals that of the calendar."""
    data = craft.batch([craft.record()], maxTimestamp=milliseconds)
    heads = batch_scan.read_one_header(data, 0)
    plan = row_plan.RowPlan([cells.MOMENT_CELL], [b"", b""])
    room = bytearray(1000)
    row, used = row_writer.write_batch_rows(room, 0, heads, 0, 1, plan)
    if row:
        assert room[:used].decode() == iso(milliseconds)
    else:
        assert not 0 <= milliseconds < 253402300800000
        assert milliseconds != -1


@pytest.mark.sampled
@pytest.mark.parametrize("options", [[], ["--full"], ["--columns", "offset,value"], ["--columns", "value,offset"]])
@settings(max_examples=100 if SEED else 15)
@given(
    values=st.lists(
        st.binary(max_size=40)
        | st.text("aé \n\u202e\U00010000\u3000", max_size=30).map(str.encode)
        | st.sampled_from([b"v" * 300, "é".encode() * 150, b"x" + b" " * 50, b"\xff" * 90]),
        min_size=1,
        max_size=5,
    ),
    headers=st.lists(
        st.tuples(
            st.binary(max_size=12) | st.sampled_from([b"", b"name", "é".encode() * 9, b"k" * 30]),
            st.none() | st.binary(max_size=12) | st.just(b"v" * 40),
        ),
        max_size=5,
    ),
    large=st.integers(1, 100),
    magic=st.integers(0, 2),
)
def test_large_cells_are_written_in_pieces(
    tmp_path_factory: pytest.TempPathFactory,
    options: list[str],
    values: list[bytes],
    headers: list[tuple[bytes, bytes | None]],
    large: int,
    magic: int,
) -> None:
    """The other rows are not padded to the width of a large cell."""
    path = tmp_path_factory.mktemp("large") / f"{0:020}.log"
    if magic < 2:
        path.write_bytes(b"".join(craft.message(magic, value, offset=i) for i, value in enumerate(values)))
    else:
        made = [craft.record(i, b"key", value, headers[i:]) for i, value in enumerate(values)]
        path.write_bytes(craft.batch(made))
    expected = re.sub(" +", " ", inspect(path, "--records", *options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_views, "LARGE", large)
        patch.setattr(escape, "PIECE", 9)
        patch.setattr(inspect_columns, "PIECE", 9)
        patch.setattr(inspect_columns, "MANY", 3)
        patch.setattr(inspect_run, "COMPILED", False)
        assert re.sub(" +", " ", inspect(path, "--records", *options)) == expected


@pytest.mark.sampled
@examples()
@given(
    headers=st.lists(
        st.tuples(st.binary(max_size=700) | st.just(b"k" * 513), st.none() | st.binary(max_size=700)), max_size=60
    ),
    width=st.integers(60, 400),
)
def test_headers_are_looked_at_as_far_as_a_terminal_shows_them(
    headers: list[tuple[bytes, bytes | None]], width: int
) -> None:
    (batch,) = iter_regions(craft.batch([craft.record(headers=headers)]))
    assert isinstance(batch, Batch)
    (record,) = records_of(batch)
    (column,) = inspect_columns.record_columns(timezone.utc, ["headers"], full=False)
    text = column.cell(record)
    whole = ", ".join(f"{bytes_text(key, 512)}={bytes_text(value, 512)}" for key, value in headers)
    assert cut(text, width) == cut(whole, width)
    assert len(text) < 16_000


THREE = [craft.record(i) for i in range(3)]
USUAL = b"".join(craft.batch(THREE, offset=3 * i) for i in range(110))
"""So many batches that the columns have their widths."""


@each_case(
    "fields",
    [
        {"producerId": 4},
        {"producerId": 4, "producerEpoch": 0},
        {"producerId": 4, "producerEpoch": 0, "attributes": 0x20},
        {"attributes": 0x10},
        {"attributes": 0x80},
        {"attributes": -0x8000},
        {"recordCount": 4},
        {"recordCount": 0},
        {"recordCount": -1},
        {"recordCount": 500, "lastOffsetDelta": 499},
        {"recordCount": 500_000, "lastOffsetDelta": 499_999, "attributes": 4},
        {"lastOffsetDelta": -1},
        {"lastOffsetDelta": 7},
        {"offset": -5},
    ],
    ids=str,
)
def test_flags_of_wrong_headers(fields: dict[str, int], tmp_path: Path) -> None:
    odd = craft.batch(THREE, **{"offset": 330, **fields})
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join([USUAL, odd, *(craft.batch(THREE, offset=340 + 3 * i) for i in range(5))]))
    both(path)
    both(path, "--columns", "position,flags,size")
