"""Answers are declared once: keys, their order and their JSON objects derive from the fields of a class."""

from __future__ import annotations

import ast
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import pytest

from kdump.all_answers import TYPES
from kdump.answer import (
    ABSENT,
    ANSWERS,
    BYTES,
    INLINE,
    NESTED,
    OFFSET,
    Doc,
    Key,
    PathText,
    Shown,
    answer,
    answer_keys,
    answer_object,
    of_fact,
    shown_keys,
)
from kdump.format.layout import INT32, Field, layout
from tests.conftest import ROOT
from tests.sources import nodes


class Inner(NamedTuple):
    name: str
    file: PathText


class Worded(NamedTuple):
    kind: Annotated[str, Doc("a, b")]
    is_usual: Annotated[bool, Doc()]


Shared = Annotated[int | None, Doc("of the record", OFFSET)]


class Outer(NamedTuple):
    file: Annotated[PathText, Doc("the segment")]
    offset: Shared
    other: Annotated[Shared, Doc("said anew")]
    size_on_disk: Annotated[int, Doc("of it", BYTES)]
    inner: Annotated[Inner | None, Doc(NESTED)]
    all: Annotated[tuple[Inner, ...], Doc("of {…}: all")]
    worded: Annotated[list[Worded], Doc("of {…}")]
    counts: Annotated[dict[str, int], Doc("by name")]
    by_name: Annotated[dict[str, Inner | None], Doc("by name", name="named")]
    ratio: Annotated[float | None, Doc("a share", optional=True)]
    value: Annotated[Any, Doc("anything", optional=True)]
    inside: int = 0


@pytest.fixture
def declared() -> Any:
    yield answer("testOuter")(Outer)
    del ANSWERS["testOuter"]


ODD = os.fsdecode(b"a\xff")


def test_the_keys_derive_from_the_fields(declared: type) -> None:
    assert answer_keys(declared) == (
        Key("file", "string", "", "the segment"),
        Key("offset", "number or null", "offset", "of the record"),
        Key("other", "number or null", "", "said anew"),
        Key("sizeOnDisk", "number", "bytes", "of it"),
        Key("inner", "object or null", "", "{name, file}"),
        Key("all", "array", "", "of {name, file}: all"),
        Key("worded", "array", "", "of {kind (a, b), isUsual}"),
        Key("counts", "object", "", "by name"),
        Key("named", "object", "", "by name"),
        Key("ratio", "number", "", "a share", True, is_float=True),
        Key("value", "any", "", "anything", True),
    )


def test_the_object_has_the_keys_in_their_order(declared: type) -> None:
    inner = Inner("n", ODD)
    found = Outer(ODD, None, 1, 2, inner, (inner,), [Worded("a", True)], {"x": 1}, {"y": inner, "z": None}, 0.5, [1])
    plain = {"name": "n", "file": "a\\xff"}
    assert list(answer_object(found).items()) == [
        ("type", "testOuter"),
        ("file", "a\\xff"),
        ("offset", None),
        ("other", 1),
        ("sizeOnDisk", 2),
        ("inner", plain),
        ("all", [plain]),
        ("worded", [{"kind": "a", "isUsual": True}]),
        ("counts", {"x": 1}),
        ("named", {"y": plain, "z": None}),
        ("ratio", 0.5),
        ("value", [1]),
    ]
    assert "ratio" not in answer_object(found._replace(ratio=None))
    assert answer_object(found._replace(value=None))["value"] is None
    assert "value" not in answer_object(found._replace(value=ABSENT))
    assert answer_object(found._replace(inner=None))["inner"] is None


def test_a_property_is_a_key_where_it_says_so() -> None:
    @dataclass
    class Sums:
        parts: Annotated[list[int], Doc("what adds up")] = field(default_factory=list)
        notes: Annotated[list[str], Doc("what else")] = field(default_factory=list)

        @property
        def total(self) -> Annotated[int, Doc("of the parts", after="parts")]:
            return sum(self.parts)

        @property
        def inside(self) -> int:
            return 0

    answer("testSums")(Sums)
    del ANSWERS["testSums"]
    assert answer_object(Sums([1, 2])) == {"type": "testSums", "parts": [1, 2], "total": 3, "notes": []}
    assert [key.name for key in answer_keys(Sums)] == ["parts", "total", "notes"]


class Kinds(NamedTuple):
    name: str
    number: int


class Around(NamedTuple):
    first: Annotated[int, Doc("moved", after="file")]
    inner: Annotated[Inner, Doc(inline=True)]
    kind: Annotated[Kinds, Doc("its name", of="name")]
    second: Annotated[int, Doc("after what is moved", after="first")]


def test_keys_of_a_nested_answer_may_stand_among_the_others() -> None:
    answer("testAround")(Around)
    del ANSWERS["testAround"]
    found = answer_object(Around(1, Inner("n", ODD), Kinds("log", 3), 2))
    assert list(found.items()) == [
        ("type", "testAround"),
        ("name", "n"),
        ("file", "a\\xff"),
        ("first", 1),
        ("second", 2),
        ("kind", "log"),
    ]
    assert [key.type for key in answer_keys(Around)] == ["string", "string", "number", "number", "string"]


class Header(NamedTuple):
    epoch: Annotated[int, Field(INT32, "epoch of the leader")]
    flags: Annotated[int, Field(INT32, "flags", "hex")]


class Read:
    """Not a NamedTuple, but a class that a reader creates from bytes."""

    flags: Annotated[int | None, layout(Header, "").field("flags")]
    size: Annotated[int, Doc("its length", BYTES)]
    inside: str = ""

    def __init__(self, flags: int | None, size: int) -> None:
        self.flags, self.size = flags, size


class Placed(NamedTuple):
    file: PathText
    header: Annotated[Header, INLINE]
    read: Annotated[Read, INLINE]


def test_a_field_of_a_layout_says_what_it_means() -> None:
    answer("testPlaced")(Placed)
    del ANSWERS["testPlaced"]
    assert answer_keys(Header) == (
        Key("epoch", "number", "", "epoch of the leader"),
        Key("flags", "number", "bits", "flags"),
    )
    assert answer_keys(Read) == (
        Key("flags", "number or null", "bits", "flags"),
        Key("size", "number", "bytes", "its length"),
    )
    assert [key.name for key in answer_keys(Placed)] == ["epoch", "flags", "flags", "size"]
    assert answer_object(Placed("f", Header(7, 1), Read(None, 3))) == {
        "type": "testPlaced",
        "epoch": 7,
        "flags": None,
        "size": 3,
    }


class InTable(NamedTuple):
    first: Annotated[int, Doc("not a column")]
    second: Annotated[int, Doc("the third column"), Shown("2nd", 5, after="fourth")]
    third: Annotated[int, Doc("the first column"), Shown(blank=0)]
    fourth: Annotated[int, Doc("the second column"), Shown()]
    fifth: Annotated[int, Doc("a column where rows are sorted by it"), Shown(only="fifth")]
    sixth: Annotated[int, Doc("a column of other objects"), Shown(only="other")]
    seventh: Annotated[int, Doc("a column of these"), Shown(only="testInTable", after="")]


def test_a_field_says_how_tables_show_it() -> None:
    answer("testInTable")(InTable)
    del ANSWERS["testInTable"]
    assert [key.name for key in shown_keys(InTable)] == ["seventh", "third", "fourth", "second"]
    assert [key.name for key in shown_keys(InTable, "fifth")] == ["seventh", "third", "fourth", "second", "fifth"]
    assert shown_keys(InTable)[3].shown == Shown("2nd", 5, after="fourth")
    assert [key.name for key in answer_keys(InTable)] == list(InTable._fields), "the order of keys is another"


def test_a_key_that_follows_none_is_refused() -> None:
    class Wrong(NamedTuple):
        value: Annotated[int, Doc("wrong", after="nothing")]

    with pytest.raises(TypeError, match="nothing"):
        answer_keys(Wrong)


@pytest.mark.parametrize("hint", [int | str, bytes, object])
def test_a_type_that_is_none_of_jsons_is_refused(hint: Any) -> None:
    class Wrong(NamedTuple):
        value: Any

    Wrong.__annotations__["value"] = Annotated[hint, Doc("wrong")]
    with pytest.raises(TypeError):
        answer_keys(Wrong)


def test_every_answer_is_among_all() -> None:
    assert {name: answer_keys(cls) for name, cls in ANSWERS.items()} == TYPES


class Counted(NamedTuple):
    records: int
    size: int


class OfFacts(NamedTuple):
    name: str
    records: int | None
    size: int | None
    file: str = "-"


def test_an_answer_takes_what_its_facts_have() -> None:
    inner = Inner("n", "f")
    assert of_fact(OfFacts, Counted(1, 2), inner, size=3) == OfFacts("n", 1, 3, "f")
    assert of_fact(OfFacts, None, inner) == OfFacts("n", None, None, "f")  # a fact that is None has nothing
    with pytest.raises(TypeError, match="records"):
        of_fact(OfFacts, inner)


COPYING = {
    "kdump/questions/cluster/answer.py": "the image's names are those of its module, not the specification's",
    "kdump/questions/stats/answer.py": "kdump.stats yields the fact, whose names are frozen as those of the keys are",
}
"""Files with a call of more than eight keywords of which five or more are fields of one object, and why."""


def test_no_long_call_copies_fields() -> None:
    """A fact has the names of the answer's fields, and of_fact or INLINE takes them."""
    copying, long = set(), 0
    for path in sorted((ROOT / "kdump").rglob("*.py")):
        for call in nodes(path):
            if isinstance(call, ast.Call) and len(call.keywords) > 8:
                long += 1
                values = [each.value for each in call.keywords if each.arg]
                copied = Counter(ast.unparse(each.value) for each in values if isinstance(each, ast.Attribute))
                if max(copied.values(), default=0) >= 5:
                    copying.add(str(path.relative_to(ROOT)))
    assert copying == COPYING.keys()
    assert long <= 50, "the others compute what they pass on"
