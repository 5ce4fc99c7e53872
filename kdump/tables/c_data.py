"""Record batches by Arrow's C data and C stream interfaces, in PyCapsules as Arrow's PyCapsule interface requires, so
that DuckDB, Polars, pandas and pyarrow read them without a copy.

What a consumer has not released yet is kept alive here, by the number in `private_data`: consumers may move the
structures. Source: "The Arrow C data interface", "The Arrow C stream interface" and "The Arrow PyCapsule Interface" of
the Arrow specifications."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from kdump.core.arrow_release import COMPILED, release_with
from kdump.tables.arrow import ArrowArray, ArrowBatch, ArrowSchema, ArrowType, Buffer

NULLABLE = 2
"""ARROW_FLAG_NULLABLE."""
EIO = 5
_kept: dict[int, Any] = {}
"""What exported structures refer to, by their `private_data`."""
_numbers = count(1)


class CSchema(ctypes.Structure):
    """struct ArrowSchema."""


class CArray(ctypes.Structure):
    """struct ArrowArray."""


class CStream(ctypes.Structure):
    """struct ArrowArrayStream."""


OnSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(CSchema))
OnArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(CArray))
OnStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(CStream))
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CSchema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CArray))
GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CStream))

CSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(CSchema))),
    ("dictionary", ctypes.POINTER(CSchema)),
    ("release", OnSchema),
    ("private_data", ctypes.c_void_p),
]
CArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    ("dictionary", ctypes.POINTER(CArray)),
    ("release", OnArray),
    ("private_data", ctypes.c_void_p),
]
CStream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", GetError),
    ("release", OnStream),
    ("private_data", ctypes.c_void_p),
]


def _released(kind: type[CSchema] | type[CArray], address: int) -> None:
    """Release a schema or an array, and the children that the consumer has not moved elsewhere."""
    made: Any = kind.from_address(address)
    for number in range(made.n_children):
        child = made.children[number]
        if child.contents.release:
            child.contents.release(child)
    _kept.pop(made.private_data, None)
    made.release = type(made.release)()


def _released_stream(address: int) -> None:
    made: Any = CStream.from_address(address)
    _kept.pop(made.private_data, None)
    made.release = OnStream()


_RELEASE = (partial(_released, CSchema), partial(_released, CArray), _released_stream)
if COMPILED:
    _release_schema, _release_array, _release_stream = (
        kind(address) for kind, address in zip((OnSchema, OnArray, OnStream), release_with(*_RELEASE))
    )
else:
    _release_schema, _release_array, _release_stream = (
        kind(lambda pointer, release=release: release(ctypes.addressof(pointer.contents)))
        for kind, release in zip((OnSchema, OnArray, OnStream), _RELEASE)
    )
_NOTHING = (ctypes.c_char * 64)()
"""What an empty buffer points to."""


def _keep(made: CSchema | CArray | CStream, *objects: object) -> None:
    made.private_data = number = next(_numbers)
    _kept[number] = objects


def _fill_schema(made: CSchema, name: str, kind: ArrowType) -> None:
    children = [CSchema() for _ in kind.children]
    for child, field in zip(children, kind.children):
        _fill_schema(child, field.name, field.type)
    pointers = (ctypes.POINTER(CSchema) * max(1, len(children)))(*map(ctypes.pointer, children))
    ctypes.memset(ctypes.addressof(made), 0, ctypes.sizeof(made))
    texts = kind.format.encode(), name.encode()
    made.format, made.name = texts
    made.flags, made.n_children, made.children = NULLABLE, len(children), pointers
    made.release = _release_schema
    _keep(made, children, pointers, texts)


def _fill_array(made: CArray, values: ArrowArray, length: int) -> None:
    """Fill in an array, of which the consumer sees `length` values."""
    ctypes.memset(ctypes.addressof(made), 0, ctypes.sizeof(made))
    inner = length if values.type.format == "+s" else None
    children = [CArray() for _ in values.children]
    for child, array_of in zip(children, values.children):
        _fill_array(child, array_of, array_of.length if inner is None else inner)
    pointers = (ctypes.POINTER(CArray) * max(1, len(children)))(*map(ctypes.pointer, children))
    holders = [None if buffer is None else _holder(buffer) for buffer in values.buffers]
    buffers = (ctypes.c_void_p * max(1, len(holders)))(
        *(None if holder is None else ctypes.addressof(holder) for holder in holders)
    )
    made.length = length
    made.null_count = values.nulls if length == values.length else -1
    made.n_buffers, made.n_children = len(holders), len(children)
    made.buffers, made.children = buffers, pointers
    made.release = _release_array
    _keep(made, children, pointers, buffers, holders)


def _holder(buffer: Buffer) -> Any:
    """Return an object that holds the address of a buffer, and keeps it from being resized."""
    return ctypes.c_char.from_buffer(buffer) if len(buffer) else _NOTHING


def _fill_batch(made: CArray, batch: ArrowBatch) -> None:
    kind = ArrowType("+s", batch.schema)
    _fill_array(made, ArrowArray(kind, batch.length, 0, (None,), batch.arrays), batch.length)


class _Stream:
    """The batches that a consumer of a stream gets, and the error that ended them."""

    def __init__(self, schema: ArrowSchema, batches: Iterator[ArrowBatch]) -> None:
        self.schema, self.batches = schema, batches
        self.error = ctypes.create_string_buffer(b"")

    def fails(self, error: BaseException) -> int:
        self.error = ctypes.create_string_buffer(str(error).encode("utf-8", "backslashreplace"))
        return EIO


def _stream(pointer: Any) -> _Stream:
    (stream,) = _kept[pointer.contents.private_data]
    assert isinstance(stream, _Stream)
    return stream


def _get_schema(pointer: Any, out: Any) -> int:
    _fill_schema(out.contents, "", ArrowType("+s", _stream(pointer).schema))
    return 0


def _get_next(pointer: Any, out: Any) -> int:
    stream = _stream(pointer)
    try:
        batch = next(stream.batches, None)
        if batch is None:
            out.contents.release = OnArray()
        else:
            _fill_batch(out.contents, batch)
    except BaseException as error:
        if not COMPILED:  # the consumer would release it while its exception is raised: see core.arrow_release
            pointer.contents.release = OnStream()
        return stream.fails(error)
    return 0


def _get_error(pointer: Any) -> int:
    return ctypes.addressof(_stream(pointer).error)


_ON_STREAM = GetSchema(_get_schema), GetNext(_get_next), GetError(_get_error), _release_stream

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAMES = {CSchema: b"arrow_schema", CArray: b"arrow_array", CStream: b"arrow_array_stream"}
_capsules: list[tuple[object, CSchema | CArray | CStream]] = []
"""The capsules that exist. None has a destructor, which must not run Python code while an exception is raised."""


def _capsule(made: CSchema | CArray | CStream) -> object:
    """Return a structure as a PyCapsule, and free those whose capsules are no longer referenced."""
    for number in reversed(range(len(_capsules))):
        if sys.getrefcount(_capsules[number][0]) <= ONLY_OURS:
            _, old = _capsules.pop(number)
            if old.release:  # no consumer has taken it
                old.release(ctypes.pointer(old))
    capsule: object = _new(ctypes.addressof(made), NAMES[type(made)], None)
    _capsules.append((capsule, made))
    return capsule


ONLY_OURS = 2
"""References to a capsule in _capsules alone, as sys.getrefcount counts them."""


def schema_capsule(schema: ArrowSchema) -> object:
    """Return a schema as a PyCapsule."""
    made = CSchema()
    _fill_schema(made, "", ArrowType("+s", schema))
    return _capsule(made)


def batch_capsules(batch: ArrowBatch) -> tuple[object, object]:
    """Return a record batch as PyCapsules, that of its schema first."""
    made = CArray()
    _fill_batch(made, batch)
    return schema_capsule(batch.schema), _capsule(made)


def stream_capsule(schema: ArrowSchema, batches: Iterator[ArrowBatch]) -> object:
    """Return record batches, which are made as they are read, as a PyCapsule."""
    made = CStream(*_ON_STREAM)
    _keep(made, _Stream(schema, batches))
    return _capsule(made)
