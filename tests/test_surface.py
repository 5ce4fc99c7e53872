"""What a stranger may depend on changes on purpose only."""

import pytest

from tests.conftest import ROOT
from tools.surface import FILE, changes, name, surface


def test_the_surface_is_as_recorded() -> None:
    recorded, now = set(FILE.read_text().splitlines()), set(surface().splitlines())
    gone, new = sorted(recorded - now), sorted(now - recorded)
    assert not gone, f"gone, which needs a deprecation first (docs/stability.md): {gone}"
    assert not new, f"new: if they may stay for years, record them with python -m tools.surface: {new}"


def test_the_changelog_has_each_change_since_the_freeze() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    missing = sorted(line for line in changes() if f"`{name(line)}" not in changelog)
    assert not missing, (
        f"come or gone since the names were frozen: describe them in CHANGELOG.md, or take them back: {missing}"
    )


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("json doctorItem.title: string", "doctorItem.title"),
        ("option salvage --until OFFSET|TIME", "salvage --until"),
        ("option find -n, --limit N", "find --limit"),
        ("finding crc-mismatch: error", "crc-mismatch"),
        ("api kdump.carve(out=…)", "kdump.carve"),
        ("environment KDUMP_TZ", "KDUMP_TZ"),
    ],
)
def test_how_the_changelog_names_what_changed(line: str, named: str) -> None:
    assert name(line) == named
