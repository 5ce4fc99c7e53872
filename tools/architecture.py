"""Prints docs/architecture.svg: the layers of the code according to the import contract in pyproject.toml, each with
its package's docstring."""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
LAYERS = re.compile(r"^layers = (\[.*?^\])", re.MULTILINE | re.DOTALL)
WIDTH, LEFT, RIGHT, BOX, GAP, LINE = 900, 100, 100, 62, 12, 17
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .name { font: bold 15px ui-monospace, monospace; }
  .side { fill: #57606a; }
  rect { fill: #f6f8fa; stroke: #8c959f; rx: 6px; }
  .pure { fill: #ddf4ff; stroke: #54aeff; }
  path { stroke: #57606a; stroke-width: 2; fill: none; marker-end: url(#head); }
  marker path { fill: #57606a; stroke: none; marker-end: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .side { fill: #9198a1; }
    rect { fill: #161b22; stroke: #6e7681; } .pure { fill: #0c2d6b; stroke: #388bfd; }
    path { stroke: #9198a1; } marker path { fill: #9198a1; }
  }
"""


def layers() -> list[list[str]]:
    """Return the layers of the contract, highest first. Packages in the same layer do not import each other."""
    found = LAYERS.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found, "pyproject.toml has no layers"
    return [[name.strip() for name in layer.split("|")] for layer in ast.literal_eval(found[1])]


def said(module: str) -> str:
    """Return a package's docstring, or its first sentence if it is long."""
    path = ROOT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").split())
    text = text.replace("->", "→").replace("`", "")
    return text if len(text) <= 125 else re.split(r"(?<=\.) (?=[A-Z])", text)[0]


def box(module: str, x: float, y: float, width: float) -> str:
    kind = ' class="pure"' if module == "kdump.format" else ""
    lines = wrap(said(module), int((width - 150) / 6.4))
    top = y + BOX / 2 - (len(lines) - 1) * LINE / 2 + 5
    parts = [f'<rect{kind} x="{x}" y="{y}" width="{width}" height="{BOX}"/>']
    parts.append(f'<text class="name" x="{x + 14}" y="{y + BOX / 2 + 5}">{module.removeprefix("kdump.")}</text>')
    parts += [
        f'<text x="{x + 120}" y="{top + number * LINE}">{escape(line)}</text>' for number, line in enumerate(lines)
    ]
    return "\n".join(parts)


def picture() -> str:
    stack = layers()
    height = len(stack) * (BOX + GAP) + 70
    inner = WIDTH - LEFT - RIGHT
    parts = []
    for number, layer in enumerate(stack):
        width = (inner - GAP * (len(layer) - 1)) / len(layer)
        y = 35 + number * (BOX + GAP)
        parts += [box(module, LEFT + place * (width + GAP), y, width) for place, module in enumerate(layer)]
    low, high = height - 45, 45
    parts.append(f'<path d="M 60 {low} L 60 {high}"/><path d="M {WIDTH - 60} {high} L {WIDTH - 60} {low}"/>')
    parts.append(f'<text class="side" x="20" y="{high - 18}">answers: text, JSON, tables</text>')
    parts.append(f'<text class="side" x="20" y="{height - 18}">bytes of a broker\'s disk, opened read-only</text>')
    parts.append(f'<text class="side" x="{WIDTH - 20}" y="{high - 18}" text-anchor="end">imports go down only</text>')
    parts.append(
        f'<text class="side" x="{WIDTH - 20}" y="{height - 18}" text-anchor="end">imports nothing of kdump</text>'
    )
    head = '<marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" orient="auto">'
    defs = f'<defs>{head}<path d="M 0 0 L 10 5 L 0 10 z"/></marker></defs>'
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    title = "<title>The layers of kdump: each imports only those below it</title>"
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{title}\n<style>{STYLE}</style>\n{defs}\n{inside}\n</svg>\n'
    )


if __name__ == "__main__":
    print(picture(), end="")
