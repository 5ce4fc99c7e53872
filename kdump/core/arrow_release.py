# cython: language_level=3
"""What consumers of exported Arrow data release it with: they do so in any thread, while an exception is raised, and
when Python has ended, all of which a callback of ctypes does not survive.

Only compiled; without a compiler, kdump.tables.c_data uses a callback of ctypes."""

from __future__ import annotations

from collections.abc import Callable

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.cpython.exc import PyErr_Fetch, PyErr_Restore
    from cython.cimports.cpython.object import PyObject
    from cython.cimports.kdump.core.arrow_release import Py_IsInitialized

COMPILED: bool = cython.compiled
_handlers: list[Callable[[int], None]] = []


def release_with(*handlers: Callable[[int], None]) -> list[int]:
    """Return the addresses of functions for schemas, arrays and streams: each calls its handler with the address that
    it is called with; once Python has ended, it only clears the member `release`, the 8th, 9th or 4th."""
    _handlers[:] = handlers
    return [
        cython.cast(cython.size_t, cython.cast(cython.p_void, _on_schema)),
        cython.cast(cython.size_t, cython.cast(cython.p_void, _on_array)),
        cython.cast(cython.size_t, cython.cast(cython.p_void, _on_stream)),
    ]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _on_schema(pointer: cython.p_void) -> cython.void:
    if Py_IsInitialized():
        _release(0, pointer)
    else:
        cython.cast(cython.p_longlong, pointer)[7] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _on_array(pointer: cython.p_void) -> cython.void:
    if Py_IsInitialized():
        _release(1, pointer)
    else:
        cython.cast(cython.p_longlong, pointer)[8] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _on_stream(pointer: cython.p_void) -> cython.void:
    if Py_IsInitialized():
        _release(2, pointer)
    else:
        cython.cast(cython.p_longlong, pointer)[3] = 0


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def _release(number: cython.Py_ssize_t, pointer: cython.p_void) -> cython.void:
    kind: cython.pointer[PyObject]
    value: cython.pointer[PyObject]
    trace: cython.pointer[PyObject]
    PyErr_Fetch(cython.address(kind), cython.address(value), cython.address(trace))  # noqa: F821
    try:  # noqa: SIM105
        _handlers[number](cython.cast(cython.size_t, pointer))
    except BaseException:
        pass
    PyErr_Restore(kind, value, trace)  # noqa: F821
