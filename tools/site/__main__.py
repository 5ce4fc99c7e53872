"""Builds the site of docs/ into build/site: python -m tools.site [OUT]. No network is needed, here or to read it.

The Markdown stays as it reads on a code host. What a site needs besides is made in build/site-pages, and built from
there: the pages of the root (CONTRIBUTING, CHANGELOG) moved beside the others, links made to fit, tables of contents.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from kdump.cli import COMMANDS
from tools.manual import PAGES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MOVED = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "fixtures/README.md": "fixtures.md",
    "tests/corpus/README.md": "corpus.md",
    "README.md": "index.md",
}
"""Pages outside docs/ -> their place in the site. README itself is no page of it: index.md is in its place."""
LINK = re.compile(r"(?<!\\)\]\((?!\w+:)([^()\s#]+)(#[^()\s]*)?\)")
FENCED = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Pages of the commands, in the order of `kdump --help`; several may share one."""
    pages = dict.fromkeys(PAGES.get(name, name) for name in COMMANDS)
    return [page for page in pages if page != "install" and (DOCS / f"{page}.md").is_file()]


INCIDENTS = "incidents/README"


def contents() -> dict[str, list[str]]:
    """The parts of the site, each with its pages."""
    return {
        "Begin": ["install", "carry", "cli", INCIDENTS],
        "Commands": commands(),
        "Reference": ["findings", "format", "messages", "json", "decoders", "api", "api-reference", "performance"],
        "The project": ["contributing", "changelog", "fixtures", "corpus", "release"],
    }


def incidents() -> list[str]:
    """The pages of the incidents, in the order of their table."""
    text = (DOCS / f"{INCIDENTS}.md").read_text(encoding="utf-8")
    found = dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md\)", text))
    return [name for name in found if (DOCS / "incidents" / f"{name}.md").is_file()]


def tree(names: list[str], caption: str = "") -> str:
    """A table of contents that only the sidebar shows."""
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "\n".join(names) + "\n```\n"


def place(path: str) -> str | None:
    """Where a file of the repository stands in the site; None if it does not."""
    if path in MOVED:
        return MOVED[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None


def moved(text: str, path: str) -> str:
    """A page of the repository with its links as they are in the site. What is not in the site is named, not linked."""
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
    """The pages as the builder takes them, in an empty directory."""
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
    """The exit status of Sphinx, to which a warning is an error."""
    from sphinx.cmd.build import build_main

    stage(pages)
    shutil.rmtree(out, ignore_errors=True)
    configuration = str(Path(__file__).parent)
    options = ["-q", "-W", "--keep-going", "-n", "-c", configuration, "-d", f"{pages}-read"]
    return int(build_main([*options, str(pages), str(out)]))


if __name__ == "__main__":
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    sys.exit(build(to, to.parent / f"{to.name}-pages"))
