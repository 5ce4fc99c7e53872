"""The small changes that `python -m tools.mutants` tries on a module's source: one operator, condition, constant,
return value or statement each. Annotations, docstrings and formatted strings are not changed."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import NamedTuple

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
WORD = re.compile(r"[A-Za-z][\w-]*")
"""Strings that are changed: codes, keys and names; not sentences."""
ONLY_NAMES = {"TypeVar", "NewType", "ParamSpec", "cast", "Annotated", "Literal", "getattr", "setattr", "hasattr"}
"""Calls and subscripts whose strings change nothing when the program runs, or fail at once."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPOUND = (*DEFINITIONS, ast.If, ast.While, ast.For, ast.With, ast.Try)


class Mutant(NamedTuple):
    """One change of one module. It is found again in another checkout by its lines and its function."""

    file: str
    line: int
    function: str
    """Names of the definitions around it, joined by dots; empty at the top of the module."""
    change: str
    old: list[str]
    new: list[str]
    span: list[int]
    """First and last line of the statement, without the statements in it."""
    defining: bool
    """It runs when the module is imported, not in a function."""

    @property
    def key(self) -> str:
        return f"{self.file}:{self.line} {self.change}"


def swapped(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what an expression becomes, each with a name for the change."""
    changed = copy.copy(node)
    if isinstance(node, ast.Compare) and isinstance(changed, ast.Compare) and len(node.ops) == 1:
        changed.ops = [SWAPPED[type(node.ops[0])]()]  # type: ignore[list-item]
        yield f"{type(node.ops[0]).__name__} -> {type(changed.ops[0]).__name__}", changed
    elif isinstance(node, ast.BoolOp | ast.BinOp) and isinstance(changed, ast.BoolOp | ast.BinOp):
        texts = isinstance(node, ast.BinOp) and any(
            isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and not isinstance(each.value, int))
            for each in (node.left, node.right)
        )
        if type(node.op) in SWAPPED and not texts:
            changed.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
            yield f"{type(node.op).__name__} -> {type(changed.op).__name__}", changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "without not", node.operand
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        assert isinstance(changed, ast.Call)
        changed.func = ast.Name(FUNCTIONS[node.func.id])
        yield f"{node.func.id} -> {changed.func.id}", changed
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value} -> {not node.value}", ast.Constant(not node.value)
        elif isinstance(node.value, int):
            for value in (node.value + 1, node.value - 1)[: 2 if node.value else 1]:
                yield f"{node.value} -> {value}", ast.Constant(value)
        elif isinstance(node.value, str) and WORD.fullmatch(node.value):
            yield f"{node.value!r} changed", ast.Constant(node.value + "X")


def replaced(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield (part of the statement or expression, its new source, name of the change)."""
    for what, changed in swapped(node):
        text = ast.unparse(changed)
        yield node, text if isinstance(changed, ast.Constant | ast.Name) else f"({text})", what
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, f"(not ({ast.unparse(node.test)}))", "condition negated"
    elif isinstance(node, ast.comprehension):
        for each in node.ifs:
            yield each, f"(not ({ast.unparse(each)}))", "condition negated"
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value in (None, True, False)):
            yield node, "return None", "returns None"
    elif isinstance(node, ast.Raise | ast.Continue | ast.Break | ast.Expr | ast.AugAssign) or (
        isinstance(node, ast.Assign) and not any(isinstance(each, ast.Name | ast.Tuple) for each in node.targets)
    ):
        yield node, "pass", f"{type(node).__name__} deleted"


def is_skipped(node: ast.AST) -> bool:
    """Return True for what is not changed: docstrings, formatted strings, types, and what only the compiler reads."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant | ast.Yield)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test) or "__name__" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in ("__all__", "__slots__")
    if isinstance(node, ast.Call | ast.Subscript):
        named = node.func if isinstance(node, ast.Call) else node.value
        return ast.unparse(named).rpartition(".")[2] in ONLY_NAMES
    return isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal)


def children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "format_spec", "type_params"):
            continue
        for each in value if isinstance(value, list) else [value]:
            decorates = name == "decorator_list" and ast.unparse(each).startswith("cython.")
            if isinstance(each, ast.AST) and not decorates:
                yield each


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Yield every change of a module; check those that are used with `is_change`."""
    lines = source.split("\n")

    def walk(node: ast.AST, function: str, span: list[int], defining: bool) -> Iterator[Mutant]:
        if is_skipped(node):
            return
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            if isinstance(node, COMPOUND):
                last = max(node.lineno, node.body[0].lineno - 1)
            span = [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]), last]
        for part, text, what in replaced(node):
            assert isinstance(part, ast.expr | ast.stmt)
            first, end = part.lineno - 1, part.end_lineno or part.lineno
            head = lines[first].encode()[: part.col_offset].decode()
            tail = lines[end - 1].encode()[part.end_col_offset :].decode()
            new = (head + text + tail).split("\n")
            yield Mutant(file, first + 1, function, what, lines[first:end], new, span, defining)
        for each in children(node):
            inside = isinstance(node, DEFINITIONS) and each in node.body
            name = f"{function}.{node.name}".lstrip(".") if isinstance(node, DEFINITIONS) and inside else function
            runs = inside and not isinstance(node, ast.ClassDef)
            yield from walk(each, name, span, defining and not (runs or isinstance(node, ast.Lambda)))

    yield from walk(ast.parse(source), "", [1, 1], True)


def located(mutant: Mutant, source: str) -> Mutant | None:
    """Return the mutant with the line numbers of another version of its module: the equal lines in a function of that
    name, if there are any, that are nearest to where they were. Return None if the lines have changed."""
    lines = source.split("\n")
    size = len(mutant.old)
    found = [each + 1 for each in range(len(lines)) if lines[each : each + size] == mutant.old]
    if not found:
        return None
    names = {each: enclosing(ast.parse(source), each) for each in found} if len(found) > 1 else {}
    same = [each for each in found if names.get(each, mutant.function) == mutant.function] or found
    line = min(same, key=lambda each: abs(each - mutant.line))
    return mutant._replace(line=line, span=[each + line - mutant.line for each in mutant.span])


def enclosing(tree: ast.AST, line: int) -> str:
    """Return the names of the definitions around a line, joined by dots."""
    names = [
        (each.lineno, each.name)
        for each in ast.walk(tree)
        if isinstance(each, DEFINITIONS) and each.body[0].lineno <= line <= (each.end_lineno or 0)
    ]
    return ".".join(name for _, name in sorted(names))


def applied(mutant: Mutant, source: str) -> str:
    lines = source.split("\n")
    first = mutant.line - 1
    assert lines[first : first + len(mutant.old)] == mutant.old
    return "\n".join(lines[:first] + mutant.new + lines[first + len(mutant.old) :])


def is_change(mutant: Mutant, source: str) -> bool:
    """Return True if the mutant can be compiled and is another program."""
    try:
        return ast.dump(ast.parse(applied(mutant, source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
