"""Builds the website of docs/ in build/site: python -m tools.site [OUT]. Neither building nor reading it needs a
network.

The Markdown files stay as they are shown on a code host. What the website needs in addition is generated in
build/site-pages, from which it is built: pages of the root (CONTRIBUTING, CHANGELOG) next to the others, adapted links,
and tables of contents."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from kdump.index import COMMANDS
from tools.manual import PAGES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MOVED = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "fixtures/README.md": "fixtures.md",
    "tests/README.md": "testing.md",
    "tests/corpus/README.md": "corpus.md",
    "RELEASING.md": "release.md",
    "README.md": "index.md",
}
"""Pages outside docs/ -> their paths in the website. README.md itself is not a page of it: docs/index.md takes its
place."""
LINK = re.compile(r"(?<!\\)\]\((?!\w+:)([^()\s#]+)(#[^()\s]*)?\)")
FENCED = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Return the pages of the commands, in the order of `kdump --help`; several commands may share one."""
    pages = dict.fromkeys(PAGES.get(name, name) for name in COMMANDS)
    return [page for page in pages if page != "install" and (DOCS / f"{page}.md").is_file()]


INCIDENTS = "incidents/README"


def contents() -> dict[str, list[str]]:
    """Return the parts of the website, each with its pages."""
    return {
        "Begin": ["install", "carry", "kubernetes", "cli", INCIDENTS],
        "Commands": commands(),
        "Reference": [
            *("facts", "lost", "remote", "scrub", "findings", "problems", "first-screens", "format", "messages"),
            *("json", "decoders", "api", "api-reference", "kafka-releases", "performance"),
        ],
        "The project": ["contributing", "testing", "changelog", "fixtures", "corpus", "stability", "release"],
    }


def incidents() -> list[str]:
    """Return the pages of the incidents, in the order of their table."""
    text = (DOCS / f"{INCIDENTS}.md").read_text(encoding="utf-8")
    found = dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md\)", text))
    return [name for name in found if (DOCS / "incidents" / f"{name}.md").is_file()]


def tree(names: list[str], caption: str = "") -> str:
    """Return a table of contents that only the sidebar shows."""
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "\n".join(names) + "\n```\n"


def place(path: str) -> str | None:
    """Return the path in the website of a file of the repository; None if it is not part of it."""
    if path in MOVED:
        return MOVED[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None


def moved(text: str, path: str) -> str:
    """Return a page with its links adapted to the website. Exits if a linked file is not part of the website."""
    here = os.path.dirname(place(path) or "")

    def link(match: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
        if (ROOT / target).is_dir() and (ROOT / target / "README.md").is_file():
            target += "/README.md"
        there = place(target)
        if there is None:
            raise SystemExit(f"{path}: {match[1]} is not in the site")
        return f"]({os.path.relpath(there, here or '.')}{match[2] or ''})"

    parts = FENCED.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def stage(pages: Path) -> None:
    """Copy the pages, with links and tables of contents, to an empty directory."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages)
    sources = [*DOCS.rglob("*.md"), *(ROOT / name for name in MOVED if name != "README.md")]
    for source in sources:
        path = source.relative_to(ROOT).as_posix()
        to = pages / (place(path) or "")
        to.write_text(moved(source.read_text(encoding="utf-8"), path), encoding="utf-8")
    _append(pages / "index.md", "".join(tree(names, caption) for caption, names in contents().items()))
    _append(pages / f"{INCIDENTS}.md", tree(incidents()))


def _append(page: Path, text: str) -> None:
    page.write_text(page.read_text(encoding="utf-8") + text, encoding="utf-8")


def build(out: Path, pages: Path) -> int:
    """Run Sphinx, with warnings as errors, and return its exit status."""
    from sphinx.cmd.build import build_main

    stage(pages)
    shutil.rmtree(out, ignore_errors=True)
    configuration = str(Path(__file__).parent)
    options = ["-q", "-W", "--keep-going", "-n", "-c", configuration, "-d", f"{pages}-read"]
    return int(build_main([*options, str(pages), str(out)]))


if __name__ == "__main__":
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    sys.exit(build(to, to.parent / f"{to.name}-pages"))
