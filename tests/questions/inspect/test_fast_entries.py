"""Rows of index entries that are formatted many at a time: the same as those that are written one by one."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from kdump.log.entries import FIXED
from kdump.questions.inspect import fast_entries
from kdump.questions.inspect import show as inspect_run
from kdump.render.times import LAST, iso, iso_many
from tests.conftest import DISKS, FIXTURES, few, seeded
from tests.craft import write_file
from tests.test_damaged_disks import DAMAGES

FORMS = ([], ["--json"])
SHAPES = {".index": ">ii", ".timeindex": ">qi", ".txnindex": ">hqqqq"}
NOW = 1_795_247_902_867


def both(monkeypatch: pytest.MonkeyPatch, *paths: Path, forms: tuple[list[str], ...] = FORMS) -> None:
    """Compare the output of both ways."""
    for form in forms:
        found = []
        for fixed in (FIXED, {}):
            with monkeypatch.context() as patch:
                patch.setattr(inspect_run, "FIXED", fixed)
                result = CliRunner().invoke(cli, ["inspect", *map(str, paths), *form], catch_exceptions=False)
            found.append((result.exit_code, result.stdout, result.stderr))
        assert found[0] == found[1], (paths, form)


def rising(ending: str, count: int) -> bytes:
    """Return entries as a broker writes them."""
    rows = {
        ".index": lambda n: (7 * n + 3, 4100 * (n + 1)),
        ".timeindex": lambda n: (NOW + 997 * n, 7 * n + 3),
        ".txnindex": lambda n: (0, 9 + n % 4, 10 * n, 10 * n + 4, 10 * n + 4),
    }[ending]
    return b"".join(struct.pack(SHAPES[ending], *rows(n)) for n in range(count))


@pytest.mark.parametrize("ending", SHAPES)
@pytest.mark.parametrize("base", few([41, 0, (1 << 62) + 1], 1))
def test_entries(ending: str, base: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_entries, "ROWS", 64)
    path = tmp_path / "topic %d\x7fü-0" / f"{base:020}{ending}"
    path.parent.mkdir()
    size = struct.calcsize(SHAPES[ending])
    whole = rising(ending, 500)
    wild = random.Random(ending).randbytes(400 * size)
    mixed = b"".join(whole[start : start + 9 * size] + bytes(size) for start in range(0, len(whole), 9 * size))
    for data in (b"", whole[:size], whole, whole + bytes(40 * size), whole[:-3], whole + bytes(5), wild, mixed,
                 whole[: 120 * size] + bytes(7 * size) + whole[120 * size :] + bytes(3 * size + 1),
                 whole + wild, whole[::-1]):  # fmt: skip
        path.write_bytes(data)
        both(monkeypatch, path)
        both(monkeypatch, path, forms=(["--window", "4096"],)) if data is mixed else None


@pytest.mark.parametrize("ending", SHAPES)
def test_options(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path / f"{5:020}{ending}", rising(ending, 300))
    forms = (["--limit", "7"], ["--last", "3"], ["--offset", "200"], ["--tz", "Asia/Tokyo"], ["--full"], ["--csv"])
    both(monkeypatch, path, forms=forms)
    both(monkeypatch, path, FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log", path)
    both(monkeypatch, path, forms=(["--columns", "offset"], ["--color", "always"]))


@pytest.mark.sampled
def test_indexes_of_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = seeded("indexes")
    paths = [path for root in (FIXTURES, DISKS) for path in sorted(root.rglob("*index")) if path.suffix in SHAPES]
    both(monkeypatch, *dice.sample(paths, 30))
    for path in dice.sample([path for path in paths if path.stat().st_size > 40], 12):
        data = bytearray(path.read_bytes())
        dice.choice(DAMAGES)(data, dice)
        copy = Path(shutil.copy(path, tmp_path))
        copy.chmod(0o644)
        copy.write_bytes(data)
        both(monkeypatch, copy)


def test_times() -> None:
    dice = random.Random(1)
    near = [NOW + dice.randrange(10**7) for _ in range(200)]
    for times in ([], [0], [LAST], [LAST + 1, NOW], [-1], [-5, NOW], near, [dice.randrange(LAST) for _ in range(200)]):
        assert iso_many(times) == [iso(moment) for moment in times]


@pytest.mark.parametrize(("form", "most"), [([], 100), (["--json"], 0)])
def test_only_the_first_rows_are_written_one_by_one(
    form: list[str], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_file(tmp_path / f"{0:020}.timeindex", rising(".timeindex", 10_000))
    single = []
    for view in (inspect_run.TableView, inspect_run.JsonView):
        entry = view.entry
        monkeypatch.setattr(view, "entry", lambda *given, entry=entry: single.append(1) or entry(*given))
    result = CliRunner().invoke(cli, ["inspect", str(path), *form])
    assert len(result.stdout.splitlines()) == 10_000 + (not form)
    assert len(single) <= most
