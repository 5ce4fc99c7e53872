"""Inner offsets of wrappers that repeat or descend: a finding exactly where a consumer skips a message."""

from __future__ import annotations

import random
from pathlib import Path

from kdump.check.rules.records import OFFSET_DELTA_INVALID
from tests import craft
from tests.each_case import each_case
from tests.questions.salvage.salvaging import Run
from tests.questions.verify.test_command import rows


def is_skipped(offsets: list[int]) -> bool:
    """Return True if a consumer skips a message, as CompletedFetch.nextFetchedRecord does: its offset is below the next
    one to fetch, which follows the last message that it returned."""
    position = offsets[0]
    for offset in offsets:
        if offset < position:
            return True
        position = offset + 1
    return False


@each_case("magic", [0, 1])
def test_offsets_of_inner_messages(magic: int, tmp_path: Path) -> None:
    dice = random.Random(f"wrapper {magic}")
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    for codec in ("gzip", "lz4", "snappy") * 4:
        offsets = [dice.randrange(4) + number for number in range(dice.randrange(2, 6))]
        inner = [craft.message(magic, b"v", offset=each) for each in offsets]
        path.write_bytes(craft.wrapper(magic, inner, codec, offset=offsets[-1]))
        code, found, _ = rows(path)
        codes = {each["code"] for each in found if each["severity"] == "error"}
        assert codes == ({OFFSET_DELTA_INVALID.code} if is_skipped(offsets) else set()), offsets
        assert code == bool(codes)


def test_salvage_keeps_what_a_broker_serves(tmp_path: Path) -> None:
    home = tmp_path / "t-0"
    home.mkdir()
    inner = [craft.message(1, b"%d" % each, offset=offset) for each, offset in enumerate((0, 0, 2))]
    (home / f"{10:020}.log").write_bytes(craft.wrapper(1, inner, offset=12))
    made = Run(tmp_path / "out", home)
    assert (made.only.records["kept"], made.only.odd) == (3, {OFFSET_DELTA_INVALID.code: 1})
