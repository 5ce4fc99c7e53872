"""Draws the screenshot of docs/report.md: the top of a report in Chromium. Run `python -m tools.report_capture` in the
root of the repository. KDUMP_CHROMIUM is the path of the browser if it is not on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from kdump.incident.report.html.report import report

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
POSITION, BIT = 14_000, 4
"""Position and bit of orders-none-0 that is flipped."""


def main() -> None:
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("KDUMP_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit("docs/report.png was not changed: Chromium not found")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        shutil.copytree(ROOT / "fixtures" / "disk-1", root / "disk-1")
        log = root / "disk-1" / "orders-none-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[POSITION] ^= 1 << BIT
        log.write_bytes(data)
        os.chdir(root)
        report("disk-1", "report.html", title="Post-mortem: orders, 21 November")
        with sync_playwright() as driver:
            page = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
                viewport={"width": 1100, "height": 1080}
            )
            page.goto((root / "report.html").as_uri())
            page.screenshot(path=ROOT / "docs" / "report.png")


if __name__ == "__main__":
    main()
