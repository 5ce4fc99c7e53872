"""What a stranger may depend on changes on purpose only."""

from tools.surface import FILE, surface


def test_the_surface_is_as_recorded() -> None:
    recorded, now = set(FILE.read_text().splitlines()), set(surface().splitlines())
    gone, new = sorted(recorded - now), sorted(now - recorded)
    assert not gone, f"gone, which needs a deprecation first (docs/stability.md): {gone}"
    assert not new, f"new: if they may stay for years, record them with python -m tools.surface: {new}"
