"""Cases of a test that are too cheap to be tests of their own."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Case = tuple[str, dict[str, Any]]
"""Its ID, and the arguments of the test."""


def each_case(
    names: str, values: Iterable[Any], ids: Callable[[Any], Any] | Iterable[Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test for each of the values, like pytest.mark.parametrize, but as a single test: each test costs pytest
    some milliseconds.

    All cases run. The failure lists those that failed, and says how to repeat the first of them. Each case has a
    tmp_path, a monkeypatch and a capsys of its own; other fixtures are shared by all cases."""
    arguments = [name.strip() for name in names.split(",")]
    cases = _cases(arguments, list(values), ids)
    assert cases, f"no case for {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        # Several decorators make one loop over all combinations.
        inner, others = getattr(test, "each_case", (test, [("", {})]))
        product = [
            ("-".join(filter(None, (name, other))), {**found, **more})
            for (name, found), (other, more) in itertools.product(cases, others)
        ]

        @functools.wraps(inner)
        def all_cases(**fixtures: Any) -> None:
            __tracebackhide__ = True
            _run(inner, product, fixtures)

        given = inspect.signature(inner)
        taken = {name for _, found in product[:1] for name in found}
        kept = [each for name, each in given.parameters.items() if name not in taken]
        all_cases.__signature__ = given.replace(parameters=kept)  # type: ignore[attr-defined]
        all_cases.each_case = (inner, product)  # type: ignore[attr-defined]
        all_cases.__dict__["pytestmark"] = list(getattr(test, "pytestmark", []))
        return all_cases

    return decorate


def _cases(names: Sequence[str], values: list[Any], ids: Callable[[Any], Any] | Iterable[Any] | None) -> list[Case]:
    given = [None] * len(values) if ids is None or callable(ids) else list(ids)
    found = []
    for number, (value, name) in enumerate(zip(values, given, strict=True)):
        if isinstance(value, type(pytest.param())):
            assert not value.marks, "a case cannot have marks"
            name, value = value.id or name, value.values if len(names) > 1 else value.values[0]
        parts = tuple(value) if len(names) > 1 else (value,)
        if name is None:
            shown = (ids(part) if callable(ids) else part for part in parts)
            name = "-".join(_shown(part, f"{names[0]}{number}") for part in shown)
        found.append((str(name), dict(zip(names, parts, strict=True))))
    return found


def _shown(value: Any, otherwise: str) -> str:
    text = getattr(value, "__name__", None) or str(value)
    return text if len(text) <= 60 and text.isprintable() and " at 0x" not in text else otherwise


def _run(test: Callable[..., None], cases: list[Case], fixtures: dict[str, Any]) -> None:
    """Run all cases, or only the one named by KDUMP_CASE."""
    __tracebackhide__ = True
    wanted = os.environ.get("KDUMP_CASE")
    chosen = [case for case in cases if wanted in (None, case[0])]
    if not chosen:
        pytest.skip(f"has no case {wanted!r}")
    failed: list[tuple[str, Exception]] = []
    for number, (name, arguments) in enumerate(chosen):
        own = dict(fixtures)
        if "tmp_path" in own:
            own["tmp_path"] = fixtures["tmp_path"] / f"case-{number}"
            own["tmp_path"].mkdir()
        if "capsys" in own:
            own["capsys"].readouterr()
        with pytest.MonkeyPatch.context() as patch:
            if "monkeypatch" in own:
                own["monkeypatch"] = patch
            try:
                test(**own, **arguments)
            except Exception as error:
                failed.append((name, error))
    if failed:
        here = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        listed = ", ".join(repr(name) for name, _ in failed[:20]) + (", …" if len(failed) > 20 else "")
        raise AssertionError(
            f"{len(failed)} of {len(chosen)} cases fail: {listed}. To repeat the first one, which is shown above:\n"
            f"KDUMP_CASE={shlex.quote(failed[0][0])} .venv/bin/python -m pytest '{here}'"
        ) from failed[0][1]
