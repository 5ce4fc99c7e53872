"""`kdump report`: the page is complete and inert, its charts are equal to the written ones, and its numbers equal those
of the other commands."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kdump
from kdump.check.options import Options
from kdump.cli import cli
from kdump.incident.report.facts import PostMortem
from kdump.incident.report.html import report as html_report
from kdump.incident.report.html.charts import draw_charts
from kdump.incident.report.html.drawing import AMOUNT, OFFSET, PERCENT, TIME, Chart, svg, ticks
from kdump.incident.report.html.finding_evidence import evidence
from kdump.incident.report.html.labels import PageLabels
from kdump.incident.report.run import postmortem
from kdump.io.run import QUIET_RUN, ignore
from kdump.questions.producers.answer import Producer
from kdump.questions.stats.totals import Stats
from kdump.questions.transactions.answer import PartitionTransactions, Transaction
from tests.command import unmatched
from tests.conftest import DISKS, FIXTURES, SEED, segments
from tests.craft import batch, flip, one, record, split, write_file
from tests.damages import DAMAGES as RECIPES
from tests.disks import coordinator, data, partition
from tests.test_damaged_disks import DAMAGES

FIRST = f"{0:020}.log"
NOW = 1_795_300_000_000
ALERT = "<script>alert(1)</script>"
BREAKOUT = "</script><img src=x onerror=alert(2)>"
ODD = "\u2028\u2029\x1b[31m\x00\x85\u202e'\"&`{{7*7}}"
VOID = {"meta", "link", "input", "br", "hr", "img"}
"""Elements of HTML without end tags."""


class Page(HTMLParser):
    """Contents of a page: elements in order with their attributes, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.elements if attrs.get("id")]  # type: ignore[misc]

    def scripts(self, kind: str) -> list[str]:
        """Return the texts of the scripts of that type."""
        types = iter(attrs.get("type") or "code" for attrs in self.all("script"))
        return [text for text in (text for tag, text in self.texts if tag == "script") if next(types) == kind]

    @property
    def text(self) -> str:
        return " ".join("".join(text for tag, text in self.texts if tag not in ("script", "style")).split())


def report(*args: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["report", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == status, result.output
    return result


def read(path: Path, **options: Any) -> PostMortem:
    return postmortem(str(path), Options(now=NOW, **options))


def drawn_page(made: PostMortem, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Return the page without its charts, which take most of the time."""
    monkeypatch.setattr(html_report, "svg", lambda each: "<svg></svg>")
    names = PageLabels(made)
    told = evidence(made, names, Options(now=NOW))
    return Page(html_report.page(made, draw_charts(made, names), told, names, "title"))


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with one batch overwritten, and one truncated."""
    root = shutil.copytree(FIXTURES / "disk-1", tmp_path_factory.mktemp("damaged") / "disk-1")
    log = root / "orders-none-0" / FIRST
    log.write_bytes(flip(log.read_bytes(), 14_000 * 8 + 3))
    log = root / "orders-zstd-0" / FIRST
    log.write_bytes(log.read_bytes()[:-100])
    return root


@pytest.fixture(scope="module")
def written(damaged: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Its report, and the charts."""
    out = tmp_path_factory.mktemp("report")
    said = report(damaged, "--out", out / "report.html", "--charts", out / "charts", "--chart-format", "svg")
    assert said.stdout.startswith("DAMAGED: 2 errors")
    return (out / "report.html").read_text("utf-8"), out / "charts"


# --- The page ---------------------------------------------------------------------------------------------------------


def test_every_part_is_there(written: tuple[str, Path]) -> None:
    made = Page(written[0])
    parts = ["verdict", "map", "time", "offsets", "transactions", "producers", "batches", "keys", "findings"]
    assert [each for each in made.ids if each in (*parts, "partitions")] == [*parts, "partitions"]
    assert len(set(made.ids)) == len(made.ids)
    links = [attrs["href"] for attrs in made.all("a")]
    assert links
    assert {(link or "")[1:] for link in links} <= set(made.ids)
    assert "DAMAGED" in made.text
    assert "a consumer that reaches offset" in made.text


def test_nothing_is_fetched(written: tuple[str, Path]) -> None:
    made = Page(written[0])
    for tag, attrs in made.elements:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset", "poster"):
            value = attrs.get(name) or ""
            assert value.startswith(("#", "data:,")) or not value, (tag, name, value)
        assert not [name for name in attrs if name.startswith("on")]
    assert "url(http" not in written[0]
    assert "@import" not in written[0]


def test_policy_lets_the_script_run_and_nothing_else(written: tuple[str, Path]) -> None:
    made = Page(written[0])
    (policy,) = (
        attrs["content"] or "" for attrs in made.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    scripts = made.scripts("code")
    assert len(scripts) == 1
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts}
    assert set(rules["script-src"].split()) == {f"'sha256-{each}'" for each in hashes}
    assert "eval" not in policy


def test_each_chart_has_its_picture_and_its_file(written: tuple[str, Path]) -> None:
    text, charts = written
    made = Page(text)
    figures = [attrs["id"] for attrs in made.all("figure")]
    assert len(figures) > 20
    plots = [attrs for attrs in made.all("svg") if attrs.get("class") == "view"]
    assert len(figures) == len(made.all("svg")) - len(plots)
    assert {f"{name}.svg" for name in figures} == set(os.listdir(charts))
    for path in charts.iterdir():
        root = ET.fromstring(path.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert sum(1 for _ in root.iter()) > 10, path
    for part in text.split("</figcaption>\n<svg")[1:]:
        ET.fromstring("<svg" + part[: part.index("</figure>")])


@pytest.fixture(scope="module")
def charts(damaged: Path) -> dict[str, Chart]:
    """The charts of that report, by name."""
    made = read(damaged)
    return {chart.name: chart for chart in draw_charts(made, PageLabels(made)).charts}


def test_a_codec_that_kafka_does_not_define_has_a_color(tmp_path: Path) -> None:
    write_file(tmp_path / "t-0" / f"{0:020}.log", one(b"1") + one(b"2", 1, attributes=5))
    made = read(tmp_path)
    (chart,) = (chart for chart in draw_charts(made, PageLabels(made)).charts if chart.name == "map-codec")
    assert {mark.kind for mark in chart.panels[0].marks} == {"none", "unknown(5)"} == set(chart.colours)


def test_the_hole_is_on_the_map(charts: dict[str, Chart]) -> None:
    (panel,) = charts["map-finding"].panels
    (hole,) = (
        mark for mark in panel.marks if mark.kind == "error" and panel.rows[mark.row].startswith("orders-none-0")
    )
    assert 35 < hole.a < 14_000 / 27_501 * 100 < hole.b < 65
    assert [mark for mark in charts["map-codec"].panels[0].marks if mark.kind == "not a valid batch"]
    (gap,) = {
        mark.tip["offsets"]
        for name, chart in charts.items()
        if name.startswith("over-offsets")
        for panel in chart.panels
        for mark in panel.marks
        if mark.kind == "gap: damage"
    }
    assert gap == "120..179"


def test_the_open_transaction_reaches_to_the_edge(charts: dict[str, Chart]) -> None:
    found = [chart.panels[0] for name, chart in charts.items() if name.startswith("transactions-")]
    (panel,) = (each for each in found if any(mark.kind == "open" for mark in each.marks))
    (held,) = (mark for mark in panel.marks if mark.kind == "open")
    assert (held.a, held.b, held.tip["marker"]) == (114, 120, "none")
    assert Counter(mark.kind for mark in panel.marks) == {"committed": 12, "aborted": 5, "open": 1}
    assert list(panel.lines) == [114]
    assert "last stable offset 114" in [note.text for note in panel.notes]


def test_a_mark_is_drawn_at_its_place(written: tuple[str, Path], charts: dict[str, Chart]) -> None:
    """In pixels of the picture, from the first to the last value of the axis."""
    name = next(each for each in charts if each.startswith("transactions-"))
    panel = charts[name].panels[0]
    root = ET.fromstring((written[1] / f"{name}.svg").read_text())
    view = next(each for each in root.iter() if each.get("class") == "view")
    wide = float(view.attrib["width"])
    rects = [each for each in view if len(each)]
    assert len(rects) == len(panel.marks)
    for rect, mark in zip(rects, panel.marks):
        at = (mark.a - panel.first) / (panel.last - panel.first) * wide
        size = (mark.b - mark.a) / (panel.last - panel.first) * wide
        assert float(rect.attrib["x"]) == pytest.approx(at, abs=0.1)
        assert float(rect.attrib["width"]) == pytest.approx(size, abs=0.8)
        assert rect.attrib["fill"] == charts[name].colours[mark.kind]
        assert (rect[0].text or "").splitlines()[0] == f"state: {mark.kind}"


@pytest.mark.parametrize(
    ("first", "last", "unit", "labels"),
    [
        (0, 100, PERCENT, ["0", "20", "40", "60", "80", "100"]),
        (114, 120, OFFSET, ["114", "115", "116", "117", "118", "119", "120"]),
        (0, 2_500_000, AMOUNT, ["0", "500k", "1M", "1.5M", "2M", "2.5M"]),
        (0, 7_200_000, TIME, ["01-01 00:00", "01-01 00:15", "01-01 00:30", "01-01 00:45", "01-01 01:00"]),
        ((1 << 63) - 3, (1 << 63) - 1, OFFSET, [f"{(1 << 63) - 3 + n:,}" for n in range(3)]),
    ],
)
def test_an_axis_has_few_round_values(first: int, last: int, unit: str, labels: list[str]) -> None:
    found = [text for _, text in ticks(first, last, unit)]
    assert found[: len(labels)] == labels
    assert len(found) <= 9


def test_each_error_has_its_bytes_and_what_follows(written: tuple[str, Path]) -> None:
    made = Page(written[0])
    stories = [attrs for attrs in made.all("details") if "error" in (attrs.get("class") or "")]
    assert len(stories) == 2
    wrong = [text for tag, text in made.texts if tag == "span" and "WRONG" in text]
    assert any("WRONG: one flipped bit" in text for text in wrong)
    assert "bit 4 of byte 14000 is 1, 0x75 should be" in made.text
    assert any("baseOffset" in text for tag, text in made.texts if tag == "span")
    assert written[0].count("<dt>Impact</dt>") == written[0].count("<dt>Action</dt>") >= 2


# --- Hostile bytes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory in which everything with a name contains a script."""
    root = tmp_path_factory.mktemp("hostile") / f"disk {ALERT.replace('/', '')}"
    values = [ALERT, BREAKOUT, ODD, "<!--", "]]>", "javascript:alert(3)"]
    rows = [
        record(i, key=each.encode(), value=each.encode(), headers=[(each.encode(), each.encode())])
        for i, each in enumerate(values)
    ]
    content = batch(rows) + batch([record(0, key=b"\xff\xfe<b>", value=b"\x80")], offset=6)
    for name in ("orders-0", "<svg onload=alert(4)>-0", f"{ODD[:2]}\x1b[2J'\"&-0".replace("\0", "")):
        folder = root / name
        write_file(folder / FIRST, content + flip(batch(rows, offset=7), 900))
        (folder / "<img src=x onerror=alert(5)>").write_bytes(b"x")
        (folder / "\u2028<b>.txt").write_bytes(b"x")
    name = os.fsdecode(b"bytes-\xff\xfe<i>-0")
    write_file(root / name / FIRST, content)
    coordinator(root, (f"{ALERT}\u2028\x1b", 9, 0, "Ongoing", {"payments": [0]}))
    partition(root, data(0, 9) + data(1, 9))
    (root / "meta.properties").write_text(f"version=1\ncluster.id={ALERT}\nnode.id=<b>1</b>\ndirectory.id=x\n")
    return root


def test_hostile_names_and_bytes_are_only_shown(hostile: Path, tmp_path: Path) -> None:
    report(hostile, "--out", tmp_path / "report.html", "--title", f"{ALERT}{ODD}")
    text = (tmp_path / "report.html").read_bytes().decode("utf-8")
    made = Page(text)
    assert not [tag for tag, _ in made.elements if tag in ("img", "b1", "i") or tag.startswith("svg ")]
    assert len(made.all("script")) == 1
    for _, attrs in made.elements:
        assert not [name for name in attrs if name.startswith("on")]
    assert "\u2028" not in text
    assert "\u2029" not in text
    assert "\u202e" not in text
    assert not [each for each in text if each < " " and each not in "\n\t"]
    shown = " ".join(each for tag, each in made.texts if tag not in ("script", "style"))
    assert "<svg onload=alert(4)>-0" in shown
    assert "{{7*7}}" in shown
    assert ALERT in " ".join(each for tag, each in made.texts if tag == "text"), "as the label of a key"
    assert f"{ALERT[:9]}" in shown


# --- The numbers ------------------------------------------------------------------------------------------------------


def compared(path: Path, **options: Any) -> None:
    """Compare the report with the output of the other commands."""
    made = read(path, **options)
    verify = CliRunner().invoke(cli, ["verify", "--json", str(path)])
    *findings, summary = map(json.loads, verify.stdout.splitlines())
    totals = made.totals
    names = ("files", "bytes", "batches", "records")
    assert [getattr(totals, name) for name in names] == [summary[name] for name in names]
    counted = Counter((each["severity"], each["code"]) for each in findings)
    facts = [*made.partitions, *made.others]
    told = Counter[tuple[str, str]]()
    for each in facts:
        told.update(each.codes)
        assert Counter((finding.severity, finding.code) for finding in each.findings) <= each.codes
    now = {"timestamp-in-future", "transaction-open"}  # may depend on the clock
    assert {key: n for key, n in told.items() if key[1] not in now} == {
        key: n for key, n in counted.items() if key[1] not in now
    }
    stats = {each.source: each for each in kdump.stats(str(path), Options(**options, unreadable=ignore))}
    for each in made.partitions:
        mine, theirs = each.stats, stats[each.path]
        for name in ("batches", "soundBatches", "batchBytes", "records", "controlRecords", "undecoded", "bytes"):
            assert getattr(mine, name) == getattr(theirs, name), (each.path, name)
        assert (mine.sums, mine.batchRecords, mine.batchSizes) == (theirs.sums, theirs.batchRecords, theirs.batchSizes)
        assert mine.codecs == theirs.codecs
        assert sum(size for _, (size, _) in each.offsets) == theirs.batchBytes
        assert sum(records for _, (_, records) in each.offsets) == theirs.records
        assert sum(segment.records for segment in each.segments) == theirs.records
    assert sum(records for _, time in made.series for _, (_, records) in time) + made.untimed == made.stats.records
    total = Stats("", partitions=0)
    for each in stats.values():
        total.add(each)
    assert made.stats.keys.top(50) == total.keys.top(50)
    assert made.stats.producers.top(50) == total.producers.top(50)
    for each in made.partitions:
        strips(each)


def strips(facts: Any) -> None:
    """Check that the cells of each segment cover it."""
    for segment in facts.segments:
        position = 0
        for cell in segment.cells:
            assert cell.start == position < cell.end
            position = cell.end
        assert position == segment.size, segment.path


@pytest.mark.parametrize("disk", ["disk-1", "clean-1/payments-0", "legacy/upgraded-gzip-0", "live-1/prealloc-0"])
def test_numbers_are_those_of_the_other_commands(disk: str) -> None:
    compared(FIXTURES / disk)


@pytest.mark.parametrize("window", [1 << 20, 4096])
def test_numbers_on_a_damaged_disk(damaged: Path, window: int) -> None:
    compared(damaged, window=window)


def ledger(path: Path) -> tuple[Counter[tuple[Any, ...]], list[Any]]:
    rows, ends = Counter[tuple[Any, ...]](), []
    for each in kdump.transactions(str(path), now=NOW, run=QUIET_RUN):
        if isinstance(each, Transaction):
            rows[each.topic, each.producerId, each.firstOffset, each.markerOffset, each.state, each.records] += 1
        elif isinstance(each, PartitionTransactions):
            ends.append((each.path, each.lastStableOffset, each.committed, each.aborted, each.open, each.hanging))
    return rows, ends


@pytest.mark.parametrize("disk", ["disk-1", "damaged"])
def test_transactions_are_those_of_the_ledger(disk: str, damaged: Path) -> None:
    path = FIXTURES / disk if disk != "damaged" else damaged
    rows, ends = ledger(path)
    made = read(path)
    mine = Counter(
        (row.topic, row.producerId, row.firstOffset, row.markerOffset, row.state, row.records)
        for each in made.partitions
        for row in each.transactions
        if each.topic not in ("__cluster_metadata", "__transaction_state")
    )
    assert mine == rows
    told = {each.path: each.ended for each in made.partitions}
    for path_of, *numbers in ends:
        ended = told[path_of]
        assert ended is not None
        names = ("lastStableOffset", "committed", "aborted", "open", "hanging")
        assert [getattr(ended, name) for name in names] == numbers


def test_producers_are_those_of_kdump_producers() -> None:
    said = Counter[tuple[Any, ...]]()
    for each in kdump.producers(str(FIXTURES / "disk-1"), now=NOW):
        if isinstance(each, Producer) and each.batches:
            said[each.topic, each.producerId] = (each.batches, each.records, each.bytes)  # type: ignore[assignment]
    mine: dict[tuple[Any, ...], list[int]] = {}
    for facts in read(FIXTURES / "disk-1").partitions:
        for row in facts.producers:
            sums = mine.setdefault((facts.topic, row.producerId), [0, 0, 0])
            for number, amount in enumerate((row.batches, row.records, row.bytes)):
                sums[number] += amount
    assert {key: tuple(sums) for key, sums in mine.items()} == dict(said)


def test_broken_sequences_are_drawn_in_the_row_of_their_producer(tmp_path: Path) -> None:
    written = [(1, 0, 0), (2, 0, 0), (1, 0, 5), (2, 0, 0)]
    batches = (
        batch([record()], offset=at, producerId=who, producerEpoch=epoch, baseSequence=sequence)
        for at, (who, epoch, sequence) in enumerate(written)
    )
    write_file(tmp_path / "a-0" / FIRST, b"".join(batches))
    made = read(tmp_path)
    (chart,) = draw_charts(made, PageLabels(made)).producers
    marks = [(each.row, each.tip["what"], each.a) for each in chart.panels[0].marks if "what" in each.tip]
    assert marks == [(0, "sequence gap", 2), (1, "repeated sequence", 3)]


def test_a_partition_without_segments(tmp_path: Path) -> None:
    """A coordinator has recorded transactions in it, and the markers are not there to compare."""
    shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk")
    for path in (tmp_path / "disk" / "payments-0").glob("0*"):
        path.unlink()
    assert "offsets missing" in read(tmp_path / "disk").totals.missing.text


@pytest.mark.every_disk
def test_several_processes_tell_the_same(damaged: Path) -> None:
    one, several = read(damaged), postmortem(str(damaged), Options(now=NOW), jobs=2)
    assert one.totals == several.totals
    assert [facts.findings for facts in one.partitions] == [facts.findings for facts in several.partitions]
    assert [facts.segments for facts in one.partitions] == [facts.segments for facts in several.partitions]
    assert one.stats.keys.top(9) == several.stats.keys.top(9)


# --- Damage -----------------------------------------------------------------------------------------------------------


def mutants(tmp_path: Path, count: int) -> Iterator[Path]:
    dice = random.Random(11)
    found = [path for path in segments() if path.stat().st_size < 40_000]
    for number in range(count):
        source = dice.choice(found)
        folder = shutil.copytree(source.parent, tmp_path / f"{number}" / source.parent.name)
        for path in filter(Path.is_file, folder.iterdir()):
            content = bytearray(path.read_bytes())
            if len(content) > 100:
                dice.choice(DAMAGES)(content, dice)
            path.write_bytes(content)
        yield folder


@pytest.mark.sampled
def test_damage_is_told_and_never_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in mutants(tmp_path, 40 if SEED else 12):
        made = read(folder, window=random.Random(folder.name).choice((4096, 1 << 20)))
        for facts in made.partitions:
            strips(facts)
        assert drawn_page(made, monkeypatch).text


@pytest.mark.every_disk
def test_numbers_on_many_damaged_disks(tmp_path: Path) -> None:
    for folder in mutants(tmp_path, 300):
        compared(folder)


@pytest.mark.every_disk
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_damage_is_in_the_page(recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.damages import DISK_PATHS, copy_disk, second_directory

    root = copy_disk(DISKS / DISK_PATHS[recipe.disk], tmp_path / recipe.disk)
    expected = recipe.apply(root)
    other = second_directory(root)
    options = Options(now=NOW, max_message_bytes=1_048_588)
    made = postmortem([str(root), *([str(other)] if other.exists() else [])], options)
    assert made.totals.findings[expected.severity]
    assert expected.code in drawn_page(made, monkeypatch).text


# --- Large ------------------------------------------------------------------------------------------------------------


def test_many_partitions_make_no_large_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only 60 of them are kept with all details, those with errors first."""
    source = FIXTURES / "clean-1" / "orders-none-0" / FIRST
    bad = flip(source.read_bytes(), 80_000)
    for number in range(80):
        folder = tmp_path / f"topic{number}-0"
        folder.mkdir()
        if number == 70:
            (folder / FIRST).write_bytes(bad)
        else:
            os.link(source, folder / FIRST)
    made = read(tmp_path)
    kept = [facts for facts in made.partitions if facts.segments]
    assert len(made.partitions) == 80
    assert len(kept) == 60
    assert any(facts.name == "topic70-0" for facts in kept)
    names = PageLabels(made)
    charts = draw_charts(made, names)
    assert sum(len(svg(each)) for each in charts.charts) < 1_000_000
    assert "topic70-0" in charts.maps["finding"][0].panels[0].rows[0]


def test_many_batches_make_few_cells(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    one = [
        batch([record()], offset=i, producerId=i // 1000, producerEpoch=0, baseSequence=i % 1000) for i in range(5000)
    ]
    (folder / FIRST).write_bytes(b"".join(one))
    (facts,) = read(folder).partitions
    (segment,) = facts.segments
    strips(facts)
    assert 5 <= len(segment.cells) <= 256
    assert sum(cell.batches for cell in segment.cells) == sum(cell.records for cell in segment.cells) == 5000
    assert [row.records for row in facts.producers] == [1000] * 5
    assert len(list(facts.offsets)) <= 512
    assert not facts.gapCount


# --- The command ------------------------------------------------------------------------------------------------------


def test_it_writes_over_nothing_and_not_onto_the_disk(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text("mine")
    said = report(damaged, "--out", tmp_path / "there.html", status=2)
    assert str(tmp_path / "there.html") in said.stderr
    assert (tmp_path / "there.html").read_text() == "mine"
    said = report(damaged, "--out", damaged / "report.html", status=2)
    assert str(damaged / "report.html") in said.stderr
    assert not (damaged / "report.html").exists()
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "x").write_text("")
    said = report(damaged, "--out", tmp_path / "new.html", "--charts", tmp_path / "charts", status=2)
    assert str(tmp_path / "charts") in said.stderr
    assert not (tmp_path / "new.html").exists()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    said = report(tmp_path / "nothing", "--out", tmp_path / "r.html", status=2)
    assert str(tmp_path / "nothing") in said.stderr
    assert not (tmp_path / "r.html").exists()
    said = report(FIXTURES / "disk-1", "--topic", "nosuch", "--out", tmp_path / "r.html", status=2)
    assert unmatched(said.stderr) == ["--topic nosuch"]
    assert not (tmp_path / "r.html").exists()


def test_how_to_get_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    said = report(FIXTURES / "disk-1", "--out", tmp_path / "r.html", "--charts", tmp_path / "c", status=2)
    assert (
        "need (--chart-format svg does not) vl_convert, which is not installed: pip install vl-convert-python\n"
        in said.stderr
    )
    report(FIXTURES / "disk-1", "--out", tmp_path / "s.html", "--charts", tmp_path / "c", "--chart-format", "svg")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = report(FIXTURES / "disk-1", "--out", tmp_path / "r.html", status=2)
    assert "kdump report needs jinja2, which is not installed: pip install jinja2\n" in said.stderr


def test_empty_and_odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (
        ("a-0", b""),
        ("b-0", bytes(4096)),
        ("c-0", b"#" * 100),
        ("d-0", split((FIXTURES / "clean-1" / "orders-none-0" / FIRST).read_bytes())[0][:61]),
    ):
        write_file(tmp_path / name / FIRST, content)
    made = read(tmp_path)
    text = drawn_page(made, monkeypatch).text
    for facts in made.partitions:
        strips(facts)
        assert facts.name in text


def test_extreme_numbers(tmp_path: Path) -> None:
    """Times and offsets beyond the numbers of a browser are reported, and stop nothing."""
    odd = [batch([record()], offset=i, maxTimestamp=time) for i, time in enumerate(((1 << 63) - 1, 1 << 61, -5, 0))]
    far = [batch([record()], offset=offset) for offset in (4, 1 << 62, (1 << 63) - 2)]
    wide = batch([record()], offset=(1 << 63) - 1, lastOffsetDelta=(1 << 31) - 1, producerId=(1 << 63) - 1)
    write_file(tmp_path / "t-0" / FIRST, b"".join((*odd, *far, wide)))
    report(tmp_path / "t-0", "--out", tmp_path / "r.html", "--charts", tmp_path / "c", "--chart-format", "svg")
    made = Page((tmp_path / "r.html").read_text("utf-8"))
    assert "record at 9223372036854775000" in made.text
    assert len(made.all("figure")) == len(os.listdir(tmp_path / "c"))
