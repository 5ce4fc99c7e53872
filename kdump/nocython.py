"""Stand-ins, without effect, for the Cython types and decorators in compiled modules when Cython is not installed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

compiled = False
Py_ssize_t = longlong = ulonglong = uchar = uint = bint = p_uchar = p_const_uchar = p_uint = p_longlong = int
double = float
void = None


class _NoGil(nullcontext[None]):
    """Stand-in for a block or function that releases the GIL."""

    def __call__(self, function: Any) -> Any:
        return function


nogil = _NoGil()


def _as_it_is(function: Any) -> Any:
    return function


cclass = ccall = cfunc = inline = with_gil = _as_it_is


def returns(kind: Any) -> Callable[[Any], Any]:
    return _as_it_is


def exceptval(value: Any = None, check: bool = True) -> Callable[[Any], Any]:
    return _as_it_is


def cast(kind: Any, value: Any) -> Any:
    return value
