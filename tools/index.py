"""Writes kdump/index.py and kdump/__init__.pyi: what the modules below kdump declare, so that nothing is imported, nor
listed by hand, to find it.

A module with a command (`@click.command`) is one: its docstring is the line in `kdump --help`, its folder or the first
part of its name is the command's name, and `listed` says where it stands. `@answer` declares JSON objects. `__all__`
names what `import kdump` offers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from kdump.command_line.find_command import SECTIONS
from kdump.command_line.help_page import HelpPage

KDUMP = Path(__file__).resolve().parents[1] / "kdump"
INDEX = '''"""What the modules below kdump declare. Do not edit: `python -m tools.index` writes this file."""

PLACES = {{
{commands}
}}
"""The module of each command, the question that it answers, and its help, in the order of `kdump --help`."""
COMMANDS = {{name: about for name, (_, _, about) in PLACES.items()}}
ANSWERS = """
{answers}
""".split()
"""The modules that declare JSON objects, in the order of the reference."""
API = {{name: module for module, names in {{
{api}
}}.items() for name in names.split()}}
"""What `import kdump` offers, and the module that defines it."""
'''
STUB = """# Do not edit: python -m tools.index writes this file.
{imports}
from kdump.version import __version__ as __version__

API: dict[str, str]
"""


def modules(declares: str) -> Iterator[str]:
    """Yield the modules with a line that begins so, sorted."""
    for path in sorted(KDUMP.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^{declares}", text, re.MULTILINE) and path.parent.name != "core":
            yield ".".join(path.relative_to(KDUMP.parent).with_suffix("").parts)


def commands() -> list[tuple[str, str, HelpPage, str]]:
    """Return the name, module, command and help of each, in the order of `kdump --help`."""
    found = []
    for module in modules(r"@click\.command\("):
        package, _, last = module.rpartition(".")
        name = package.rpartition(".")[2] if last == "command" else last.removesuffix("_command")
        declared = import_module(module)
        about = " ".join((declared.__doc__ or "").partition("\n\n")[0].split())
        found.append((name.replace("_", "-"), module, declared.command, about))
    sections = list(SECTIONS)
    return sorted(found, key=lambda each: (sections.index(each[2].listed[0]), each[2].listed[1], each[0]))


def answers(rooms: list[str]) -> list[str]:
    """Return the modules with answers: those of each command, in their order, then those of several."""
    folders = [room.rpartition(".")[0] + "." for room in rooms]

    def place(module: str) -> tuple[int, str]:
        return next((at for at, folder in enumerate(folders) if module.startswith(folder)), len(rooms)), module

    return sorted(modules(r"@answer\("), key=place)


def texts() -> dict[Path, str]:
    """Return the text of each file, by its path."""
    found = commands()
    api = {module: import_module(module).__all__ for module in modules("__all__ = ")}
    index = INDEX.format(
        commands="\n".join(
            f"    {name!r}: {(module, SECTIONS[page.listed[0]], about)}," for name, module, page, about in found
        ),
        answers=textwrap.fill(" ".join(answers([module for _, module, _, _ in found])), 120),
        api="\n".join(f"    {module!r}: {' '.join(names)!r}," for module, names in api.items()),
    )
    imports = (f"from {module} import " + ", ".join(f"{name} as {name}" for name in api[module]) for module in api)
    return {KDUMP / "index.py": index, KDUMP / "__init__.pyi": STUB.format(imports="\n".join(imports))}


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
