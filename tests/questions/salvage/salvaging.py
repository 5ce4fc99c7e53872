"""Runs salvage and checks what must be true of every run: the ledger tiles the sources, kept bytes are unchanged, and
verify reports no errors in the output except those that the ledger explains."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kdump.cli import cli
from kdump.questions.salvage.answer import Salvaged
from kdump.questions.salvage.byte_outcomes import DUPLICATE, KEPT, LOST
from kdump.questions.salvage.run import LEDGER, salvage

Line = dict[str, Any]
FOLLOWS = {"kraft-snapshot-missing", "metadata-record-refused"}
"""Errors that verify reports for the output because of what salvage leaves out; its notes mention them. And because of
what a sound record says, which salvage keeps."""


def batches_of(data: bytes) -> Iterator[bytes]:
    """Yield the batches, or messages, in bytes that contain nothing else."""
    position = 0
    while position < len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        yield data[position:end]
        position = end


class Run:
    """One run, with checks. `made`: its partitions; `lines`: those of the ledger."""

    def __init__(self, out: Path, *sources: Path, **wishes: Any) -> None:
        self.out = out
        self.made: list[Salvaged] = salvage([str(path) for path in sources], str(out), **wishes)
        self.lines: list[Line] = [json.loads(line) for line in (out / LEDGER).read_text().splitlines()]
        self.spans = [line for line in self.lines if line["type"] == "salvageSpan"]
        self.holes = [(line["offset"], line["lastOffset"]) for line in self.lines if line["type"] == "salvageHole"]
        self.tiles()
        self.is_as_it_was()
        self.duplicates_are_equal()
        if all(each.files and each.files[0].endswith(".log") for each in self.made):
            self.is_sound()

    @property
    def only(self) -> Salvaged:
        (made,) = self.made
        return made

    def fates(self) -> dict[str, int]:
        return self.only.batches

    def tiles(self) -> None:
        """Check that every byte of every source has one fate, and that the totals are the sums of the lines."""
        ends: dict[str, int] = defaultdict(int)
        sums: dict[str, int] = defaultdict(int)
        for span in sorted(self.spans, key=lambda each: (each["file"], each["position"])):
            assert span["position"] == ends[span["file"]], span
            ends[span["file"]] += span["size"]
            sums[span["fate"]] += span["size"]
        for file, end in ends.items():
            assert Path(file).stat().st_size == end, file
        total: dict[str, int] = defaultdict(int)
        for made in self.made:
            for fate, size in made.bytes.items():
                total[fate] += size
        assert {fate: size for fate, size in total.items() if size} == {f: size for f, size in sums.items() if size}

    def is_as_it_was(self) -> None:
        for span in self.spans:
            if span["fate"] == KEPT and span["outPosition"] is not None:
                was = Path(span["file"]).read_bytes()[span["position"] :][: span["size"]]
                now = (self.out / span["outFile"]).read_bytes()[span["outPosition"] :][: span["size"]]
                assert was == now, span

    def duplicates_are_equal(self) -> None:
        """Check that each batch of a duplicate is in the output, byte for byte unless the reason names a field."""
        logs = [self.out / file for made in self.made for file in made.files if file.endswith(".log")]
        written = {batch for log in logs for batch in batches_of(log.read_bytes())}
        without = {batch[:12] + batch[16:] for batch in written}
        for span in self.spans if logs else ():
            if span["fate"] != DUPLICATE:
                continue
            for batch in batches_of(Path(span["file"]).read_bytes()[span["position"] :][: span["size"]]):
                if span["reason"] == "byte for byte equal":
                    assert batch in written, span
                else:
                    assert batch not in written, span
                if span["reason"] == "equal except for partitionLeaderEpoch":
                    assert batch[:12] + batch[16:] in without, span

    def is_sound(self) -> None:
        said = {code for made in self.made for code in made.odd}
        result = CliRunner().invoke(cli, ["verify", str(self.out), "--json"])
        found = [json.loads(line) for line in result.stdout.splitlines()]
        wrong = [each for each in found if each["type"] == "finding" and each["severity"] == "error"]
        wrong = [each for each in wrong if not self.is_known_gap(each)]
        assert {each["code"] for each in wrong} <= said | FOLLOWS, wrong
        names = {path.name for made in self.made for path in (self.out / made.directory).iterdir()}
        assert not any(name.endswith((".snapshot", ".kdump-part")) for name in names)

    def is_known_gap(self, finding: Line) -> bool:
        """Return True if verify takes an offset gap of the ledger for a flipped bit in the base offset after it."""
        if finding["code"] != "offset-not-monotonic" or finding["expected"] >= finding["actual"]:
            return False
        gap = (finding["expected"], finding["actual"] - 1)
        return any(first <= gap[0] and (last is None or gap[1] <= last) for first, last in self.holes)

    def holds(self, offsets: Iterable[int]) -> None:
        """Check that those of these offsets that are missing lie in the ledger's offset gaps."""
        missing = set(offsets) - self.offsets()
        for first, last in self.holes:
            missing = {each for each in missing if each < first or (last is not None and each > last)}
        assert not missing

    def offsets(self) -> set[int]:
        return offsets(self.out / self.only.directory)

    def lost(self) -> list[Line]:
        return [span for span in self.spans if span["fate"] in LOST]


def offsets(path: Path) -> set[int]:
    """Return the offsets of the records in valid batches."""
    import kdump

    return {record.offset for record in kdump.open(str(path)).records() if record.offset is not None}
