"""Declares an answer once: a class whose annotated fields state what each means. Everything else derives from it: the
JSON keys and their order, docs/json.md, columns of tables and of Spark, docs/api-reference.md.

    @answer("retentionHold")
    class Hold(NamedTuple):
        file: Annotated[PathText, Doc("where the evidence is")]
        offset: Annotated[int | None, Doc("of the record", OFFSET)]

A NamedTuple or a dataclass; its annotations must be importable at run time. Fields without a Doc are internal, and not
in the JSON. A property whose return type has a Doc is a key too. Where a layout of kdump.format declares what a field
means, that field stands in for a Doc:

    baseOffset: Annotated[int | None, BATCH_HEADER.field("baseOffset")]"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from itertools import repeat
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from kdump.text import path_text

OFFSET, EPOCH_MS, MS, BYTES, FILE_BYTE = "offset", "epoch ms", "ms", "bytes", "byte of the file"
"""Units. FILE_BYTE: a position in the file that the answer names."""
LAYOUT_UNITS = {"hex": "bits"}
"""Units of a layout's fields that have another name in an answer."""
NESTED = "{…}"
"""In a meaning: the keys of the nested answer that the field holds."""

Object = dict[str, Any]
T = TypeVar("T")


def put_bytes(out: Object, name: str, data: bytes | None) -> None:
    """out[name]: text if `data` is valid UTF-8, else base64 and a sibling that says so. Lossless."""
    if data is None:
        out[name] = None
        return
    try:
        out[name] = data.decode()
    except UnicodeDecodeError:
        out[name] = base64.b64encode(data).decode()
        out[name + "Encoding"] = "base64"


class Doc(NamedTuple):
    """What a field of an answer means, and its unit.

    `optional`: the key is absent if the value is None; in a field of type Any, if it is ABSENT. `name`: the JSON key,
    if it is not the field's name in camelCase. `after`: the key that it follows, if that is not the field before;
    properties come after the fields. `of`: the attribute of the value that is written (the name of a kind). `inline`:
    the keys of the nested answer are among those of this one."""

    meaning: str = ""
    unit: str = ""
    optional: bool = False
    name: str = ""
    after: str = ""
    of: str = ""
    inline: bool = False


VALUE, NAME, PATH, TEXT = "value", "name", "path", "text"
"""What a column contains, which decides how it is shortened. A value loses its end. A name or a path identifies what
the row is about: it loses its middle or its beginning, and never so much that two look alike. A text is our own
sentence: it continues below, in lines of the same row."""


class Cell(NamedTuple):
    """How tables write a field, whether or not it is shown by default. `text`: of a value that is not null; `before`:
    what precedes the cell of a row's answer; `none`: what stands for an empty value, if its table does not decide."""

    text: Callable[[Any], str] | None = None
    before: Callable[[Any], str] | None = None
    none: str | None = None


NUMBER = Cell("{:,}".format)
"""A number with separators."""


class Shown(NamedTuple):
    """How tables show a field, next to its Doc: a table of the class's objects has these fields as its columns, in the
    order of the keys.

    `label`: that of the column, if it is not the key. On a narrow terminal the columns with the lowest `rank` are left
    out first (rank 9 never). With `least`, the column shares the remaining room, is at least that wide, and is
    shortened to fit, as `cuts` (VALUE, NAME, PATH or TEXT) states. `blank`: a usual value that is not shown, such as 0,
    or Kafka's -1 for none. `after`: the column that it follows, if that is not the one of the key before; empty if it
    is the first. `only`: the type of objects that it is shown for, or the key by which their table is sorted. `right`:
    whether it is aligned to the right, if not only numbers are.

    A field that has no Doc next to it is a column, but not a key. `cell`: returns the text for an answer, in a column
    that is no field: see `columns`."""

    label: str = ""
    rank: int = 9
    least: int | None = None
    blank: int | None = None
    after: str | None = None
    only: str = ""
    cuts: str = VALUE
    right: bool | None = None
    cell: Callable[[Any], str] | None = None


INLINE = Doc(inline=True)
ABSENT: Any = object()
"""Value of an optional field of type Any whose key is absent: its None is null."""


class Key(NamedTuple):
    """A key of a JSON object: its JSON type, its unit, what it means, whether it may be absent, how tables show it
    (None: not by default), whether a number may have a fraction, and how tables write it."""

    name: str
    type: str
    unit: str
    meaning: str
    optional: bool = False
    shown: Shown | None = None
    is_float: bool = False
    cell: Cell = Cell()


class _Path(NamedTuple):
    """Marks text that has a path in it."""


PathText = Annotated[str, _Path()]
"""A path, or text that may have one in it: bytes that are not UTF-8 are escaped in JSON."""


class Unknown(NamedTuple):
    """Why a key of an answer is null. `file`: the file that would state its value, None if that is no single file."""

    key: Annotated[str, Doc("the key")]
    code: Annotated[
        str,
        Doc(
            "noFile, damagedFile, unreadableFile, noEntry, earlierTopic, notLive, noSegment, unreadSegment, notSelected"
        ),
    ]
    reason: Annotated[str, Doc()]
    file: Annotated[PathText | None, Doc("the file that would state it")]


UnknownKeys = Annotated[list[Unknown], Doc("why offsets of this object are null: each {…}"), Cell(none="")]


def unknown_keys(*unknown: Unknown | None) -> list[Unknown]:
    """Return the value of a field UnknownKeys: those that are not None."""
    return [each for each in unknown if each is not None]


ANSWERS: dict[str, type] = {}
"""The classes declared so far, by the `type` of their JSON objects; kdump.all_answers imports every one."""
_TYPE_NAMES: dict[type, str] = {}
_STYLES: dict[type, Callable[[Any], str]] = {}
_MEASURES: dict[type, Callable[[Any], Iterable[tuple[Any, ...]]]] = {}
_MADE: dict[type, dict[str, Shown]] = {}
_PROBLEMS: dict[type, Callable[[Any], bool]] = {}


def answer(
    type_name: str,
    style: Callable[[Any], str] | None = None,
    problem: Callable[[Any], bool] | None = None,
    measures: Callable[[Any], Iterable[tuple[Any, ...]]] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare the class an answer whose JSON object has this `type`. `style`: returns that of its row in a table;
    `problem`: returns whether it reports a problem, which tables of other objects do not show; `measures`: returns the
    names of metrics (kdump.render.metrics), each with a value and labels."""

    def declare(cls: type[T]) -> type[T]:
        ANSWERS[type_name] = cls
        if style is not None:
            _STYLES[cls] = style
        if problem is not None:
            _PROBLEMS[cls] = problem
        if measures is not None:
            _MEASURES[cls] = measures
        _TYPE_NAMES[cls] = type_name
        return cls

    return declare


def columns(**made: Shown) -> Callable[[type[T]], type[T]]:
    """Declare columns of the class's table that are made of several fields, by name:

    @columns(offsets=Shown(cell=lambda run: range_text(run.firstOffset, run.lastOffset), after="records"))"""

    def declare(cls: type[T]) -> type[T]:
        _MADE[cls] = made
        return cls

    return declare


def of_fact(cls: type[T], *facts: Any, **more: Any) -> T:
    """Return the answer whose fields are `more` and, by their names, the attributes of the first of `facts` that has
    each. If one of `facts` is None, what the others do not have is None."""
    key = (cls, *map(type, facts), *more)
    if key not in _PARTS:
        _PARTS[key] = _parts(cls, facts, more)
    for fact, (names, values) in zip((*facts, None), _PARTS[key]):
        more.update(zip(names, values(fact)))
    return cls(**more)


_Part = tuple[tuple[str, ...], Callable[[Any], Iterable[Any]]]
_PARTS: dict[tuple[Any, ...], list[_Part]] = {}


def _parts(cls: type, facts: tuple[Any, ...], more: Object) -> list[_Part]:
    """Return for each fact the names of the fields that it has, and what returns their values; at the end, for None."""
    left, parts = [name for name in _field_names(cls) if name not in more], list[_Part]()
    for fact in facts:
        names = tuple(name for name in left if fact is not None and hasattr(fact, name))
        left = [name for name in left if name not in names]
        parts.append((names, _values(names)))
    return [*parts, (tuple(left) if any(fact is None for fact in facts) else (), lambda _: repeat(None))]


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what returns the attributes of these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(cls.__dataclass_fields__ if is_dataclass(cls) else cls._fields)  # type: ignore[attr-defined]


def row_style(answer: Any) -> str:
    """Return the style of the row of an answer in a table; empty for none."""
    style = _STYLES.get(type(answer))
    return "" if style is None else style(answer)


def is_problem(answer: Any) -> bool:
    """Return True if an answer reports a problem, which output of other answers does not show."""
    problem = _PROBLEMS.get(type(answer))
    return problem is not None and problem(answer)


def measures_of(answer: Any) -> Iterable[tuple[Any, ...]]:
    """Return the metrics that an answer has a value for: the name of each, the value and the labels."""
    measures = _MEASURES.get(type(answer))
    return () if measures is None else measures(answer)


def answer_type(cls: type) -> str:
    """Return the `type` of the class's JSON objects. Raises KeyError if it is not an answer."""
    return _TYPE_NAMES[cls]


def answer_object(item: Any) -> Object:
    """Return the JSON object of an answer."""
    cls: type = type(item)
    return {"type": _TYPE_NAMES[cls], **_writer(cls)(item)}


def answer_from(cls: type[T], value: Object) -> T:
    """Return the answer with this JSON object, for a class whose keys are its fields. Raises KeyError or TypeError if
    it is not one."""
    return cls(**{name: _value(hint, value.get(name)) for name, hint in get_type_hints(cls).items()})


def _value(hint: Any, value: Any) -> Any:
    kinds = [each for each in get_args(hint) if each is not NoneType] if get_origin(hint) in (Union, UnionType) else []
    kind = kinds[0] if kinds else hint
    if value is None or not (_is_answer(kind) or get_origin(kind) is list):
        return value
    return answer_from(kind, value) if _is_answer(kind) else [_value(get_args(kind)[0], each) for each in value]


@cache
def answer_keys(cls: type) -> tuple[Key, ...]:
    """Return the keys of an answer's JSON object, in order, without `type`."""
    return tuple(field.key for field in _fields(cls) if field.is_key)


@cache
def shown_fields(cls: type, sorted_by: str = "") -> tuple[tuple[Key, Callable[[Any], Any]], ...]:
    """Return the columns of an answer's table, in their order there, each with what returns its value of an answer."""
    shown = ((field.key.shown, field) for field in _fields(cls) if field.key.shown is not None)
    fields = [(how.after, field) for how, field in shown if how.only in ("", _TYPE_NAMES.get(cls), sorted_by)]
    in_order = [field for after, field in fields if after is None]
    moved = [(after, field) for after, field in fields if after is not None]
    return tuple((field.key, _getter(field)) for field in _placed(in_order, moved, lambda field: field.key.name))


@cache
def values_of(cls: type) -> dict[str, Callable[[Any], Any]]:
    """Return what returns the JSON value of an answer, by key."""
    return {field.key.name: _getter(field) for field in _fields(cls) if field.is_key}


def shown_keys(cls: type, sorted_by: str = "") -> tuple[Key, ...]:
    """Return the keys of an answer that are the columns of its table, in their order there."""
    return tuple(key for key, _ in shown_fields(cls, sorted_by))


def _getter(field: _Field) -> Callable[[Any], Any]:
    get: Callable[[Any], Any] = attrgetter(field.attribute) if field.attribute else lambda item: item
    convert = field.convert
    if convert is None:
        return get
    return lambda item: None if (value := get(item)) is None else convert(value)


def keys_by_type(*classes: type) -> dict[str, tuple[Key, ...]]:
    """Return the keys of answers by the `type` of their JSON objects."""
    return {_TYPE_NAMES[cls]: answer_keys(cls) for cls in classes}


Convert = Callable[[Any], Any]


class _Field(NamedTuple):
    """A field of an answer and its key. `convert` turns a value other than None into JSON; None: it is JSON already.
    `is_key`: false if it is a column of tables only."""

    attribute: str
    key: Key
    convert: Convert | None
    is_key: bool = True


@cache
def _fields(cls: type) -> tuple[_Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    docs = {name: _doc(hint) for name, hint in hints.items()}
    if not any(docs.values()) and cls not in _TYPE_NAMES:
        docs = dict.fromkeys(docs, Doc())  # a nested answer whose names say enough
    for name, member in vars(cls).items():
        if isinstance(member, property):
            hints[name] = get_type_hints(member.fget, include_extras=True).get("return")
            docs[name] = _doc(hints[name])
    fields: list[_Field] = []
    moved: list[tuple[str, _Field]] = []
    for name, doc in docs.items():
        if doc is not None and doc.inline:
            inner = _fields(get_args(hints[name])[0])
            fields += [each._replace(attribute=f"{name}.{each.attribute}".rstrip(".")) for each in inner]
        elif doc is not None or _shown(hints[name]) is not None:
            field = _field(name, hints[name], doc or Doc())._replace(is_key=doc is not None)
            if doc is not None and doc.after:
                moved.append((doc.after, field))
            else:
                fields.append(field)
    made = _MADE.get(cls, {}).items()
    fields += [_Field("", Key(name, "any", "", "", shown=shown), None, is_key=False) for name, shown in made]
    return _placed(fields, moved, lambda field: field.key.name)


def _placed(in_order: list[T], moved: list[tuple[str, T]], name_of: Callable[[T], str]) -> tuple[T, ...]:
    """Return all of them, those in `moved` after the one of that name; after none at the start."""
    while moved:
        names = ["", *map(name_of, in_order)]
        ready = [each for each in moved if each[0] in names]
        if not ready:
            raise TypeError(f"no key {moved[0][0]!r} for another to follow")
        after, item = ready[0]
        in_order.insert(names.index(after), item)
        moved.remove(ready[0])
    return tuple(in_order)


def _doc(hint: Any) -> Doc | None:
    """Return the Doc of a hint; the last, so that Annotated[Alias, Doc(…)] replaces what the alias says."""
    docs = [doc for extra in getattr(hint, "__metadata__", ()) if (doc := _as_doc(extra)) is not None]
    return docs[-1] if docs else None


def _shown(hint: Any) -> Shown | None:
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Shown)), None)


def _as_doc(extra: Any) -> Doc | None:
    """Return an annotation as a Doc: one, or the field of a layout, which has a `wire` type; None for any other."""
    if isinstance(extra, Doc):
        return extra
    return Doc(extra.meaning, LAYOUT_UNITS.get(extra.unit, extra.unit)) if hasattr(extra, "wire") else None


def _field(attribute: str, hint: Any, doc: Doc) -> _Field:
    path = attribute
    shown = _shown(hint)
    cell = next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Cell)), Cell())
    if doc.of:
        path, hint = f"{attribute}.{doc.of}", get_type_hints(get_args(hint)[0])[doc.of]
    shape = _shape(hint)
    meaning = doc.meaning
    if NESTED in meaning:
        meaning = meaning.replace(NESTED, _listing(_nested(hint)))
    kind = shape.type.removesuffix(" or null") if doc.optional else shape.type
    name = doc.name or re.sub(r"_([a-z])", lambda match: match[1].upper(), attribute)
    return _Field(path, Key(name, kind, doc.unit, meaning, doc.optional, shown, shape.is_float, cell), shape.convert)


def _listing(cls: type) -> str:
    """Return the keys of a nested answer, in braces; what needs a word has it in parentheses."""
    keys = answer_keys(cls)
    return "{" + ", ".join(f"{key.name} ({key.meaning})" if key.meaning else key.name for key in keys) + "}"


class _Shape(NamedTuple):
    """What a type is in JSON."""

    type: str
    convert: Convert | None = None
    is_float: bool = False


PLAIN: dict[Any, _Shape] = {
    bool: _Shape("boolean"),
    int: _Shape("number"),
    float: _Shape("number", is_float=True),
    str: _Shape("string"),
    Any: _Shape("any"),
}


def _shape(hint: Any) -> _Shape:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        shape = _shape(inner[0])
        return shape._replace(convert=path_text) if any(isinstance(each, _Path) for each in inner) else shape
    if origin in (Union, UnionType):
        kinds = [each for each in inner if each is not NoneType]
        if len(kinds) > 1:
            raise TypeError(f"an answer's field has one type, not {hint}")
        shape = _shape(kinds[0])
        return shape._replace(type=f"{shape.type} or null")
    kind = origin or hint
    if kind in PLAIN:
        return PLAIN[kind]
    if _is_answer(kind):
        return _Shape("object", _writer(kind))
    if kind in (list, tuple):
        item = _shape(inner[0]).convert if inner else None
        return _Shape("array", list if item is None else _each(item))
    if isinstance(kind, type) and issubclass(kind, Mapping):
        item = _shape(inner[1]).convert if inner else None
        return _Shape("object", None if item is None else _each_value(item))
    raise TypeError(f"no JSON type for {hint}")


def _is_answer(kind: Any) -> bool:
    return isinstance(kind, type) and (hasattr(kind, "_fields") or is_dataclass(kind))


def _each(convert: Convert) -> Convert:
    return lambda values: [None if value is None else convert(value) for value in values]


def _each_value(convert: Convert) -> Convert:
    return lambda values: {name: None if value is None else convert(value) for name, value in values.items()}


def _nested(hint: Any) -> type:
    """Return the class of the nested answers in a hint: that of a list's items, of what may be None."""
    if _is_answer(hint):
        return hint  # type: ignore[no-any-return]
    for inner in get_args(hint):
        if inner not in (NoneType, Ellipsis, str) and not isinstance(inner, Doc):
            return _nested(inner)
    raise TypeError(f"no nested answer in {hint}")


@cache
def _writer(cls: type) -> Callable[[Any], Object]:
    """Return what makes the object of an answer, without its `type`."""
    fields = [field for field in _fields(cls) if field.is_key]
    names = [field.key.name for field in fields]
    converts = [(field.key.name, field.convert) for field in fields if field.convert is not None]
    optional = [(field.key.name, ABSENT if field.key.type == "any" else None) for field in fields if field.key.optional]
    values = _values(tuple(field.attribute for field in fields))

    def write(item: Any) -> Object:
        out: Object = dict(zip(names, values(item)))
        for name, convert in converts:
            value = out[name]
            if value is not None:
                out[name] = convert(value)
        for name, absent in optional:
            if out[name] is absent:
                del out[name]
        return out

    return write


@answer("note")
class Note(NamedTuple):
    """Something that could not be read or considered."""

    source: Annotated[PathText, Doc("path to which it refers; empty if the message contains it")]
    message: Annotated[PathText, Doc("what could not be read, or is inconsistent")]
