"""The page of `kdump report` in a real browser: headless Chromium, driven by Playwright. It uses the system's Chromium
(Debian: apt-get install chromium), or the one in KDUMP_CHROMIUM. KDUMP_SCREENSHOTS=DIR keeps screenshots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kdump
from tests.conftest import FIXTURES
from tests.craft import flip, write_file
from tests.incident.report.test_command import ALERT, FIRST, hostile

pytestmark = pytest.mark.browser
__all__ = ["hostile"]
"""A fixture of other tests."""

NAMES = ("chromium", "chromium-browser", "google-chrome")
CARD = "document.querySelectorAll('figure.chart')"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = os.environ.get("KDUMP_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or KDUMP_CHROMIUM=/path/to/it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a damaged disk."""
    root = tmp_path_factory.mktemp("browser")
    shutil.copytree(FIXTURES / "disk-1", root / "disk-1")
    log = root / "disk-1" / "orders-none-0" / FIRST
    log.write_bytes(flip(log.read_bytes(), 14_000 * 8))
    out = root / "report.html"
    kdump.report(str(root / "disk-1"), str(out))
    return out


class Tab:
    """An open page. `said`: messages on the console; `asked`: URLs that it requested."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dialog)
        self.page.goto(path.as_uri())

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def until(self, true: str) -> None:
        """Wait for a condition. (Playwright's own function evaluates text in the page, which its policy forbids.)"""
        for _ in range(600):
            if self.page.evaluate(true):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"never: {true}")

    def shot(self, name: str, **options: Any) -> bytes:
        """Return a screenshot of the page."""
        self.page.evaluate("window.scrollTo(0, 0)")
        data: bytes = self.page.screenshot(full_page=True, **options)
        folder = os.environ.get("KDUMP_SCREENSHOTS")
        if folder:
            write_file(Path(folder) / f"{name}.png", data)
        return data

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def tab(chromium: Any, written: Path) -> Iterator[Tab]:
    opened = Tab(chromium, written)
    yield opened
    opened.close()


def test_every_chart_is_drawn_and_nothing_complains(tab: Tab, written: Path) -> None:
    for by in ("finding", "codec", "producer", "transaction"):
        tab.page.click(f"label[for=by-{by}]")
    count = tab.page.evaluate(f"{CARD}.length")
    assert count > 15
    drawn = tab.page.evaluate(f"Array.from({CARD}).map(e => [e.id, e.querySelectorAll('.view [data-tip]').length])")
    assert all(marks > 0 for _, marks in drawn), drawn
    assert tab.said == []
    assert tab.asked == [written.as_uri()]
    assert tab.shot("wide")


def test_it_opens_at_once(tab: Tab) -> None:
    timing = tab.page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    assert timing["loadEventEnd"] < 5_000


def test_pointing_tells_the_numbers(tab: Tab) -> None:
    tab.page.click("label[for=by-codec]")
    figure = tab.page.locator("#map-codec")
    figure.scroll_into_view_if_needed()
    tab.page.locator("#map-codec .view rect").first.hover()
    tab.page.wait_for_selector("#tip:not(:empty)")
    told = tab.page.inner_text("#tip")
    assert "codec: " in told
    assert "offsets" in told
    assert tab.said == []


def marks(tab: Tab) -> list[str]:
    found: list[str] = tab.page.evaluate(
        "Array.from(document.querySelectorAll('#over-offsets-1 .view')).map(e => e.getAttribute('viewBox'))"
        ".concat(Array.from(document.querySelectorAll('#over-offsets-1 .axis text')).map(e => e.textContent))"
    )
    return found


def test_the_wheel_zooms_with_a_key_and_scrolls_without(tab: Tab) -> None:
    tab.page.locator("#over-offsets-1").scroll_into_view_if_needed()
    box = tab.page.locator("#over-offsets-1 > svg").bounding_box()
    assert box is not None
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7  # in the lower of the two charts
    tab.page.mouse.move(*at)
    before, top = marks(tab), tab.page.evaluate("window.scrollY")
    tab.page.mouse.wheel(0, 120)
    tab.until(f"window.scrollY > {top}")
    assert marks(tab) == before
    tab.page.mouse.wheel(0, -120)
    tab.until(f"window.scrollY == {top}")
    tab.page.keyboard.down("Control")
    tab.page.mouse.wheel(0, -400)
    tab.page.wait_for_timeout(400)
    tab.page.keyboard.up("Control")
    zoomed = marks(tab)
    assert zoomed != before
    tab.page.mouse.dblclick(*at)
    tab.page.wait_for_timeout(400)
    assert marks(tab) == before
    assert tab.said == []


def test_hostile_values_do_nothing(chromium: Any, hostile: Path, tmp_path: Path) -> None:
    kdump.report(str(hostile), str(tmp_path / "report.html"), title=ALERT)
    tab = Tab(chromium, tmp_path / "report.html")
    bar = tab.page.locator("#top-keys .view rect").first
    bar.scroll_into_view_if_needed()
    bar.hover()
    tab.page.wait_for_selector("#tip:not(:empty)")
    assert tab.page.title() == ALERT
    assert "alert" in (tab.page.text_content("#top-keys svg") or "")
    assert tab.page.evaluate("document.querySelectorAll('img, svg[onload], [onerror]').length") == 0
    assert tab.page.evaluate("document.scripts.length") == 1
    assert tab.dialogs == []
    assert tab.said == []
    assert tab.asked == [(tmp_path / "report.html").as_uri()]
    tab.shot("hostile")
    tab.close()


def test_an_injected_script_is_not_run(written: Path, chromium: Any, tmp_path: Path) -> None:
    """If a script ever got into the page, the page's policy would block it."""
    broken = tmp_path / "broken.html"
    injected = "<h1><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
    broken.write_text(written.read_text("utf-8").replace("<h1>", injected, 1), "utf-8")
    tab = Tab(chromium, broken)
    assert tab.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in tab.said)
    tab.close()


def test_dark_and_light(chromium: Any, written: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        tab = Tab(chromium, written, color_scheme=scheme)
        seen[scheme] = tab.page.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('.chart svg [fill=\"#55626f\"]')).fill]"
        )
        assert tab.said == []
        tab.shot(scheme)
        tab.close()
    assert seen["light"] == ["rgb(255, 255, 255)", "rgb(85, 98, 111)"]
    assert seen["dark"] == ["rgb(18, 23, 28)", "rgb(154, 167, 180)"]


def test_on_a_phone_only_charts_scroll_sideways(chromium: Any, written: Path) -> None:
    tab = Tab(chromium, written, viewport={"width": 390, "height": 840}, device_scale_factor=2)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.said == []
    tab.shot("narrow")
    tab.close()


def test_without_scripts_the_pictures_stand(chromium: Any, written: Path) -> None:
    tab = Tab(chromium, written, java_script_enabled=False)
    assert tab.page.locator("figure.chart > svg").first.is_visible()
    tab.page.click("label[for=by-codec]")
    assert tab.page.locator("#map-codec > svg").is_visible()
    assert not tab.page.locator("#map-finding > svg").is_visible()
    tab.close()


def test_paper(tab: Tab) -> None:
    tab.page.emulate_media(media="print", color_scheme="dark")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for by in ("finding", "codec", "producer", "transaction"):
        assert tab.page.locator(f"#map-{by} > svg").is_visible()
    assert tab.page.locator("nav").is_hidden()
    data = tab.page.pdf(prefer_css_page_size=True)
    assert data.startswith(b"%PDF")
    folder = os.environ.get("KDUMP_SCREENSHOTS")
    if folder:
        (Path(folder) / "paper.pdf").write_bytes(data)
