"""Prints docs/api-reference.md: signatures, fields and docstrings of what `import kdump` offers, and of the classes
that it returns, read from the source."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.all_answers import TYPES
from kdump.answer import ANSWERS, answer_type
from kdump.query import ADDS

HEAD = """# The API, name by name

Signatures of everything that `import kdump` offers, and members of the classes that it returns. [The Python
API](api.md) shows how to use it. Unless stated otherwise, sizes and positions are in bytes, times are in epoch ms, and
offsets are absolute. None means that there is no value. Members with the names of JSON keys are described there.
`paths`, unless stated otherwise: segments, partition directories, log directories, or directories above them. What
cannot be read is passed to `unreadable` of the [Run](#kdumprun), which raises it by default.

Parameters without a type are options of a command, whose types `help()` shows: durations are in ms, `as_of` is an
offset or, from 13 digits on, epoch ms, inclusive; an empty one restricts nothing; ValueError is raised for a value
that is not allowed.
"""
UNREAD = r"`run\.unreadable` is called with the SourceError for (?:each file|what|a path)(?: that)? could not be read"
USUAL = re.compile(
    r"`paths`: segments, partition directories, log directories, or directories above(?: them)?\. ?"
    rf"|; {UNREAD}(?=\.)|{UNREAD}\. ?"
    r"|What cannot be read is passed to `run\.unreadable`(?:, which raises it by default)?\. ?"
)
"""What the first paragraph states of every function."""
PACKAGE = Path(kdump.__file__).parent
DEPTH = 2
"""Classes are described that functions return, and those of their members; what these consist of is in the source."""
INNER = (
    *("format", "io", "kafka", "incident.report.html", "log.histograms", "log.paths", "log.remote_objects"),
    *("questions.restart_plan.replicas.quorum_replicas", "questions.stats.totals", "state.unknown_offsets"),
    *("questions.stats.frequent_items", "state.metadata_image", "questions.cluster.answer"),
    *(
        "questions.rescue.first_start",
        "state.groups",
        "questions.groups.answer",
        "questions.ls.answer",
        "check.summary",
    ),
)
"""Packages and modules whose classes are not described: what a program does with them goes through those above them."""
OWN = {"kdump.check.options": {"given", "open", "disks", "disks_at", "chosen", "wants"}}
"""Members by which kdump itself uses what a program makes."""
MANY = 10
"""An alias of so many types stands for itself."""
WORD = re.compile(r"[A-Za-z_][\w.]*")


class Found(NamedTuple):
    """Definition of a function, class or type alias: its module, and its node in the module's source."""

    module: str
    node: ast.FunctionDef | ast.ClassDef | ast.expr


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(source(module).read_text(encoding="utf-8"))


def source(module: str) -> Path:
    """Return the path of a module's source, whether the module is compiled or not. The path does not exist if `module`
    is not a module."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def imported(module: str) -> dict[str, tuple[str, str]]:
    """Return what a module imports from other modules of kdump, including imports for types: name -> module and name
    there."""
    names = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kdump"):
            for alias in node.names:
                names[alias.asname or alias.name] = (str(node.module), alias.name)
    return names


@cache
def definition(module: str, name: str) -> Found | None:
    """Return the definition of a name in a module, or in the module that it is imported from."""
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return Found(module, node)
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "offered":
                return _offered(module, name, ast.unparse(node.value.args[2]))
            return Found(module, node.value)
    there = imported(module).get(name)
    if there is None:
        return None
    if source(f"{there[0]}.{there[1]}").is_file():
        return None  # a module
    return definition(*there)


def _offered(module: str, name: str, answers: str) -> Found | None:
    """Return a function whose parameters are the fields of a query, as it would be written."""
    found = definition(module, answers)
    assert found is not None
    assert isinstance(found.node, ast.FunctionDef)
    function = getattr(importlib.import_module(module), name)
    asked = inspect.signature(function).parameters
    first = [each for each, about in asked.items() if about.kind is not about.KEYWORD_ONLY]
    names = sorted(asked.keys() - first, key=lambda each: (each == "run", [*asked].index(each)))
    types = {
        each.name: ": " + annotation(function.query.__module__, ast.parse(str(each.type), mode="eval").body)
        for each in dataclasses.fields(function.query)
        if not each.metadata and each.name not in ("run", *SAME)
    }
    names = [each + types.get(each, "") for each in names]
    written = ast.parse(f"def {name}({', '.join(first)}, *, {', '.join(names)}): ...").body[0]
    assert isinstance(written, ast.FunctionDef)
    node = copy.deepcopy(found.node)
    node.args = written.args
    said = node.body[0]
    assert isinstance(said, ast.Expr)
    said.value = ast.Constant(f"{ast.get_docstring(node)}\n\n{_options(function.query)}")
    return Found(found.module, node)


SAME = {"options": "`options` is the same as `run`", "is_selected": "`is_selected` a predicate for what is read"}
"""Parameters that are no option, and are in several functions."""


def _options(query: type) -> str:
    """Return which options of the command the parameters are."""
    flags = {each.name: getattr(each.metadata.get(ADDS), "flags", ()) for each in dataclasses.fields(query)}
    others = [
        f"`{each}` is `{flag[-1]}`"
        for each, flag in flags.items()
        if flag and flag[-1][2:].replace("-", "_") not in (each, each.removesuffix("s"))
    ]
    command = query.__module__.split(".")[2].replace("_", "-")
    others += [text for name, text in SAME.items() if name in flags]
    return f"Parameters are the options of `kdump {command}`" + (f"; {', '.join(others)}" if others else "") + "."


def meaning(module: str, dotted: str) -> Found | None:
    """Return the definition of a name in an annotation, including one of another module such as producers.Answer."""
    first, _, rest = dotted.partition(".")
    if not rest:
        return definition(module, first)
    there = imported(module).get(first)
    return definition(f"{there[0]}.{there[1]}", rest) if there and "." not in rest else None


def named(module: str, dotted: str) -> Found | None:
    """Return the class that a name in an annotation refers to; None if it is not a class of kdump."""
    found = meaning(module, dotted)
    return found if found is not None and isinstance(found.node, ast.ClassDef) else None


class Plain(ast.NodeTransformer):
    """Replaces Annotated[type, …] with the type."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])  # type: ignore[no-any-return]
        return self.generic_visit(node)


def annotation(module: str, node: ast.expr | None) -> str:
    """Return a type as written in the source, with the aliases of its module resolved."""
    if node is None:
        return ""
    node = Plain().visit(copy.deepcopy(node))
    text = ast.unparse(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value

    def resolved(match: re.Match[str]) -> str:
        meant = meaning(module, match[0])
        if meant is not None and isinstance(meant.node, ast.Subscript | ast.BinOp):
            whole = annotation(meant.module, meant.node)
            return whole if whole.count("|") < MANY else match[0]
        return match[0].rpartition(".")[2] if meant is not None else match[0]

    return WORD.sub(resolved, text)


def default(node: ast.expr) -> str:
    text = ast.unparse(node)
    return "..." if isinstance(node, ast.Lambda | ast.Call) else text


def signature(module: str, node: ast.FunctionDef, name: str) -> str:
    """Return a signature as it would be written, without self, on several lines if it is long."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    parts = []
    for arg, value in zip(plain, defaults):
        if arg.arg not in ("self", "cls"):
            parts.append(_argument(module, arg, value))
    if given.kwonlyargs:
        parts.append("*")
        parts += [_argument(module, arg, value) for arg, value in zip(given.kwonlyargs, given.kw_defaults)]
    back = annotation(module, node.returns)
    line = f"{name}({', '.join(parts)}) -> {back}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {back}"


def _argument(module: str, arg: ast.arg, value: ast.expr | None) -> str:
    of_type = f": {annotation(module, arg.annotation)}" if arg.annotation is not None else ""
    return arg.arg + of_type + (f" = {default(value)}" if value is not None else "")


def doc(node: ast.AST) -> str:
    """Return the docstring with its lines joined; paragraphs are kept."""
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    text = ast.get_docstring(node) or ""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def markdown(text: str) -> str:
    """Escape the characters of a docstring that are special in Markdown, except in code between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<|\[\]])", r"\\\1", part) for part in parts)


FIELDS = "`help()` shows the types of these members, and of those of answers above that are no keys of the JSON.\n"


class Member(NamedTuple):
    """Field, property or method."""

    name: str
    type: str
    said: str


def members(found: Found) -> Iterator[Member]:
    """Yield public fields, in order, then properties and methods; members of base classes in kdump come first."""
    assert isinstance(found.node, ast.ClassDef)
    for base in found.node.bases:
        above = named(found.module, ast.unparse(base))
        if above is not None:
            yield from members(above)
    body = found.node.body
    for node, following in zip(body, [*body[1:], None]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield from _field(found.module, node.target.id, node, following)
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for number, line in enumerate(node.body):
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Attribute):
                    after = node.body[number + 1] if number + 1 < len(node.body) else None
                    yield from _field(found.module, line.target.attr, line, after)
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            kinds = {ast.unparse(each) for each in node.decorator_list}
            if {"property", "cached_property"} & kinds:
                yield Member(node.name, annotation(found.module, node.returns), doc(node))
            elif not any(kind.endswith(("setter", "overload")) for kind in kinds):
                yield Member(
                    signature(found.module, node, node.name).partition(" -> ")[0],
                    annotation(found.module, node.returns),
                    doc(node),
                )


def _field(module: str, name: str, node: ast.AnnAssign, following: ast.stmt | None) -> Iterator[Member]:
    said = ""
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        said = " ".join(str(following.value.value).split())
    if not name.startswith("_"):
        yield Member(name, annotation(module, node.annotation), said)


def json_keys(found: Found) -> tuple[str, list[str]]:
    """Return the type of the JSON object of a class, and its keys; none if it has no JSON object."""
    assert isinstance(found.node, ast.ClassDef)
    name = found.node.name
    meant = getattr(importlib.import_module(found.module), name)
    kind = answer_type(meant) if meant in ANSWERS.values() else name[0].lower() + name[1:]
    return kind, [key.name for key in TYPES.get(kind, ())]


def base(found: Found) -> str:
    """Return the base class that the page describes, too; "" if it has none."""
    assert isinstance(found.node, ast.ClassDef)
    names = [ast.unparse(each) for each in found.node.bases]
    return next((name for name in names if name in kdump.API), "")


def listed(found: Found) -> list[Member]:
    """Return the members that are neither keys of the JSON object nor those of a base class on the page, without the
    methods that only change it."""
    _, keys = json_keys(found)
    last = {member.name: member for member in members(found)}
    above = named(found.module, base(found)) if base(found) else None
    inherited = {member.name for member in members(above)} if above else set[str]()
    return [
        each
        for each in last.values()
        if each.name not in keys
        and each.name.partition("(")[0] not in OWN.get(found.module, ())
        and each.name not in inherited
        and not (each.name.endswith(")") and each.type == "None")
    ]


def table(found: Found, brief: bool) -> str:
    """Return the members of a class: those with a docstring on a line of their own, unless it is to be `brief`, then
    the others, then where the JSON object describes more of them."""
    rows = [each._replace(said="") if brief else each for each in listed(found)]
    texts = {
        each.name: f"`{each.name.partition('(')[0]}`" if brief else f"`{' '.join(each.name.split())}: {each.type}`"
        for each in rows
    }
    lines = [f"- {texts[each.name]}: {markdown(' '.join(each.said.split()))}\n" for each in rows if each.said]
    plain = [texts[each.name] for each in rows if not each.said]
    if plain:
        lines.append(f"- {', '.join(plain)}\n")
    if base(found):
        lines.append(f"- the members of [{base(found)}](#kdump{base(found).lower()})\n")
    kind, keys = json_keys(found)
    names = {each.name for each in members(found)}
    shared, absent = [key for key in keys if key in names], [key for key in keys if key not in names]
    link = f"[`{kind}`](json.md#{kind.lower()})"
    if shared and len(absent) < len(shared):
        lines.append(f"- the keys of {link}" + (f", without {', '.join(absent)}" if absent else "") + "\n")
    elif shared:
        lines.append(f"- of the keys of {link}: {', '.join(shared)}\n")
    return "".join(lines)


def same_as_json(title: str, found: Found) -> str:
    kind, _ = json_keys(found)
    return f"[{title.removeprefix('kdump.')}](json.md#{kind.lower()})"


def section(title: str, found: Found, brief: bool = False) -> str:
    said = markdown(USUAL.sub("", doc(found.node)))
    if isinstance(found.node, ast.FunctionDef):
        text = signature(found.module, found.node, title)
        return f"### {title}\n\n```python\n{text}\n```\n\n{said}\n"
    inner = table(found, brief or (bool(json_keys(found)[1]) and not found.module.startswith("kdump.log.")))
    return f"### {title}\n\n{said}\n" + (f"\n{inner}" if inner else "")


def returned(found: Found) -> Iterator[Found]:
    """Yield the classes of kdump in the return type of a function, or in the types of the members of a class that the
    page lists."""
    if isinstance(found.node, ast.FunctionDef):
        yield from classes(found.module, found.node.returns)
        return
    names = {each.name for each in listed(found)}
    for node in ast.walk(found.node):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target).rpartition(".")[2] in names:
            yield from classes(found.module, node.annotation)


def classes(module: str, node: ast.expr | None) -> Iterator[Found]:
    """Yield the classes of kdump in a type, with aliases resolved."""
    if node is None:
        return
    node = Plain().visit(copy.deepcopy(node))
    text = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
    for word in WORD.findall(text):
        meant = meaning(module, word)
        if meant is not None and isinstance(meant.node, ast.ClassDef):
            yield meant
        elif meant is not None and isinstance(meant.node, ast.Subscript | ast.BinOp):
            yield from classes(meant.module, meant.node)


def is_inner(module: str) -> bool:
    return any(f"{module}.".startswith(f"kdump.{name}.") for name in INNER)


def page() -> str:
    offered: dict[str, Any] = {}
    for name, module in kdump.API.items():
        found = definition(module, name)
        assert isinstance(found, Found), name
        offered[name] = found
    functions = {name: found for name, found in offered.items() if isinstance(found.node, ast.FunctionDef)}
    kinds = {name: found for name, found in offered.items() if name not in functions}
    others: dict[str, Found] = {}
    for depth in range(DEPTH):
        for above in [*offered.values(), *others.values()] if depth else functions.values():
            for found in returned(above):
                if found not in offered.values() and not is_inner(found.module):
                    others.setdefault(f"{found.module}.{getattr(found.node, 'name', '')}", found)
    parts = [HEAD, "## Functions\n", *(section(f"kdump.{name}", found) for name, found in functions.items())]
    parts += ["## Classes\n", *(section(f"kdump.{name}", found) for name, found in kinds.items())]
    plain = {name: found for name, found in sorted(others.items()) if not listed(found) and json_keys(found)[1]}
    parts += [
        "## Classes with the keys of JSON objects\n",
        f"Below `kdump`: {', '.join(map(same_as_json, plain, plain.values()))}.\n",
    ]
    rest = [section(name, found, brief=True) for name, found in sorted(others.items()) if name not in plain]
    parts += ["## Classes of fields and results\n", FIELDS, *rest]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
