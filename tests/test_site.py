"""The documentation as a site: every page is in the navigation, every link leads to a page, and nothing is fetched."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.site.__main__ import DOCS, INCIDENTS, MOVED, ROOT, build, contents, incidents, stage

FETCHED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """Links of a page, names of its anchors, and what a browser fetches for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := values.get(name)))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if tag in FETCHED and values.get(FETCHED[tag]):
            self.fetched.append(str(values[FETCHED[tag]]))


def test_every_page_has_its_place(tmp_path: Path) -> None:
    stage(tmp_path / "pages")  # exits if a link leads nowhere
    listed = [name for names in contents().values() for name in names] + [f"incidents/{name}" for name in incidents()]
    there = {
        path.relative_to(tmp_path / "pages").with_suffix("").as_posix() for path in (tmp_path / "pages").rglob("*.md")
    }
    assert len(listed) == len(set(listed))
    assert {"index", *listed} == there
    assert len(incidents()) == len(list((DOCS / "incidents").glob("*.md"))) - 1
    assert INCIDENTS in listed
    assert all((ROOT / path).is_file() for path in MOVED)


@pytest.mark.site
def test_the_site(tmp_path: Path) -> None:
    out = tmp_path / "site"
    assert build(out, tmp_path / "pages") == 0
    pages = {path: Page(path) for path in out.rglob("*.html")}
    reached, todo = set(), [out / "index.html"]
    while todo:
        path = todo.pop()
        if path in reached:
            continue
        reached.add(path)
        for link in pages[path].links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {link}"
            if target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.name}: {link}"
                todo.append(target)
    assert {path for path in pages if path.name not in ("genindex.html", "search.html")} <= reached
    for path, page in pages.items():
        for each in page.fetched:
            parts = urlsplit(each)
            if each == "#":
                continue
            assert not parts.scheme + parts.netloc, f"{path.name}: {each}"
            assert (path.parent / unquote(parts.path)).resolve().is_file(), f"{path.name}: {each}"
    for style in [*out.rglob("*.css"), *out.rglob("*.svg")]:
        assert "url(http" not in style.read_text(encoding="utf-8").replace('"', ""), style
