"""The state of a schema registry, by the rules of Confluent's and of Karapace."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kdump.cluster.schema_registries import find_registries, read_registry, registry_changes
from kdump.io.run import QUIET_RUN
from kdump.state.as_of import AsOf
from kdump.state.schema_registry import CHUNK_BYTES, PackedTexts, SchemaRegistry, qualified
from tests.each_case import each_case
from tests.registry_disk import (
    ADDRESS,
    ORDER_1,
    SCHEMAS,
    USER_GUID,
    Step,
    delete_subject,
    encoded,
    key,
    reference,
    schema,
    schema_key,
    write,
)


def read(root: Path, *steps: Step | None, **options: Any) -> SchemaRegistry:
    write(root, {"_schemas-0": list(steps)})
    (found,) = find_registries([str(root)], "_schemas", QUIET_RUN).registries
    return read_registry(found, keep_gone=True, **options)


def state(registry: SchemaRegistry) -> dict[tuple[str, int], tuple[int, str]]:
    return {(each.subject, each.version): (each.id, each.state) for each in registry.versions()}


def test_the_fixture(tmp_path: Path) -> None:
    registry = read(tmp_path, *SCHEMAS)
    assert state(registry) == {
        (":.emea:orders-value", 1): (1, "live"),
        ("address", 1): (2, "live"),
        ("orders-value", 1): (1, "live"),
        ("orders-value", 2): (3, "live"),
        ("refunds-value", 1): (4, "live"),
        ("users-value", 1): (5, "softDeleted"),
    }
    gone = [(each.subject, each.version, each.id, each.state, each.removed_at) for each in registry.removed()]
    assert gone == [("trial-value", 1, 6, "hardDeleted", 12), ("late-value", 1, 4, "ignored", 14)]
    assert registry.duplicates == [(14, "late-value", 1, 4)]
    users = registry.find("users-value", 1)
    assert users is not None
    assert users.guid == USER_GUID
    assert registry.find_id(".", 1) != registry.find_id(".emea", 1)
    settings = {(each.kind, each.name): each.value for each in registry.settings.values()}
    assert settings["config", None] == {"compatibilityLevel": "BACKWARD"}  # under two compaction keys
    assert settings["mode", ":.emea:"]["mode"] == "READONLY"


def a(version: int, schema_id: int, text: str = ORDER_1, **more: Any) -> Step:
    return schema("a", version, schema_id, text, **more)


A1, A2, A3 = (a(number, number, json.dumps(f"{number}")) for number in (1, 2, 3))


DELETIONS: dict[str, tuple[list[Step], dict[int, str]]] = {
    "deleted up to a version": ([A1, A2, A3, delete_subject("a", 2)], {1: "softDeleted", 2: "softDeleted", 3: "live"}),
    "a later one alive again": ([A1, delete_subject("a", 1), A2], {1: "softDeleted", 2: "live"}),
    "the same alive again": ([A1, delete_subject("a", 1), A1], {1: "live"}),
    "deleted in its record": ([a(1, 1, deleted=True)], {1: "softDeleted"}),
    "hard-deleted by null": ([A1, A2, Step(schema_key("a", 1), None)], {2: "live"}),
    "hard-deleted by an empty value": ([A1, A2, Step(schema_key("a", 1), b"")], {2: "live"}),
    "hard-deleted by a quoted empty value": ([A1, A2, Step(schema_key("a", 1), b'""')], {2: "live"}),
    "what is not there, deleted": ([A2, Step(schema_key("a", 1), None), delete_subject("b", 9)], {2: "live"}),
    "cleared": ([A1, A2, delete_subject("a", 1), Step(key("CLEAR_SUBJECT", "a"), {"subject": "a"})], {2: "live"}),
    "nothing to clear": ([A1, Step(key("CLEAR_SUBJECT", "a"), {"subject": "a"})], {1: "live"}),
    "a tombstone of DELETE_SUBJECT": ([A1, Step(key("DELETE_SUBJECT", "a"), None)], {1: "live"}),
    "deleted up to the highest version": ([A1, delete_subject("a", 2**31 - 1)], {1: "softDeleted"}),
}


@each_case("steps, expected", DELETIONS.values(), DELETIONS)
def test_deletion(steps: list[Step], expected: dict[int, str], tmp_path: Path) -> None:
    registry = read(tmp_path, *steps)
    assert {version: found for (_, version), (_, found) in state(registry).items()} == expected
    assert registry.problems == []


def test_a_context_is_cleared_as_a_whole(tmp_path: Path) -> None:
    names = [":.c:a", ":.c:b", ":.d:a", "a"]
    steps = [schema(name, 1, number, ORDER_1) for number, name in enumerate(names)]
    steps += [delete_subject(name, 1) for name in names]
    registry = read(tmp_path, *steps, Step(key("CLEAR_SUBJECT", ":.c:"), {"subject": ":.c:"}))
    assert [subject for subject, _ in state(registry)] == [":.d:a", "a"]


def test_an_id_with_a_second_text_is_ignored_until_it_is_free(tmp_path: Path) -> None:
    other = schema("b", 1, 1, '"int"')
    registry = read(tmp_path / "1", A1, other)
    assert state(registry) == {("a", 1): (1, "live")}
    assert "is that of another schema already" in registry.problems[0]
    registry = read(tmp_path / "2", A1, Step(schema_key("a", 1), None), other)
    assert state(registry) == {("b", 1): (1, "live")}
    registry = read(tmp_path / "3", A1, delete_subject("a", 1), other)
    assert state(registry) == {("a", 1): (1, "softDeleted")}
    registry = read(tmp_path / "4", A1, schema(":.c:b", 1, 1, '"int"'))  # another context
    assert len(state(registry)) == 2


def test_subjects_share_an_id(tmp_path: Path) -> None:
    steps = [schema(name, 1, 7, ORDER_1) for name in ("a", "b", "c")]
    registry = read(tmp_path, *steps, Step(schema_key("b", 1), None))
    assert registry.versions_of_id(".", 7) == (("a", 1), ("c", 1))
    assert registry.find_id(".", 8) is None


def test_as_of_and_changes(tmp_path: Path) -> None:
    write(tmp_path / "1", {"_schemas-0": list(SCHEMAS)})
    (found,) = find_registries([str(tmp_path / "1")], "_schemas", QUIET_RUN).registries
    registry = SchemaRegistry()
    changes = list(registry_changes(found, registry, AsOf(), reports=True))
    said = [(each.offset, each.action) for each in changes if each.name == "trial-value version 1"]
    assert said == [(10, "created"), (11, "changed"), (12, "removed")]
    assert changes[0].name == "(global)"
    assert registry.end_offset == len(SCHEMAS)
    before = read(tmp_path / "2", *SCHEMAS, moment=AsOf(offset=10))
    assert ("trial-value", 1) in state(before)


SKIPPED: dict[str, tuple[Step, str]] = {
    "no JSON": (Step(b"{", b"{}"), "its key is not JSON"),
    "not an object": (Step(b"[1]", b"{}"), "its key is not a JSON object"),
    "no key": (Step(None, b"{}"), "no key"),
    "too deep": (Step(schema_key("a", 1), b"[" * 100_000), "nested too deeply"),
    "bytes": (Step(schema_key("a", 1), b"\xff\xfe\x00"), "its value is not JSON"),
    "an unknown type": (Step({"keytype": "X\x1b[2J"}, b"{}"), r"unknown key type 'X\\x1b\[2J'"),
    "an unknown magic": (Step(schema_key("a", 1) | {"magic": 7}, b"{}"), "unknown magic 7"),
    "a large ID": (a(1, 2**31), "its id 2147483648 is not between"),
    "a negative ID": (a(1, -1), "its id -1 is not between"),
    "a huge number": (Step(schema_key("a", 1), b'{"id":%s}' % (b"9" * 5000)), "its value is not JSON|its id 9+ is not"),
    "a version that is text": (Step(schema_key("a", 1) | {"version": "1"}, None), "its version is not a number"),
    "no schema": (Step(schema_key("a", 1), {"id": 1}), "its value has no schema"),
    "a subject that is a number": (Step(schema_key("a", 1) | {"subject": 5}, None), "its key has no subject"),
    "a setting of a number": (Step(key("CONFIG") | {"subject": 5}, {}), "its key has no subject"),
    "a deletion of nothing": (Step(key("DELETE_SUBJECT", "a"), {"version": 1}), "its value has no subject"),
    "too large": (Step(schema_key("a", 1), b"x" * 2**21), "too large: key"),
}


@each_case("step, problem", SKIPPED.values(), SKIPPED)
def test_records_that_a_registry_skips(step: Step, problem: str, tmp_path: Path) -> None:
    registry = read(tmp_path, A2, step, A3)
    assert len(state(registry)) == 2
    (said,) = registry.problems
    assert re.search(problem, said)
    assert said.startswith("at offset 1: skipped: ")


def test_many_problems_are_counted(tmp_path: Path) -> None:
    registry = read(tmp_path, *[Step(b"{", None)] * 150)
    assert len(registry.problems) == 101
    assert registry.problems[-1] == "… and 50 more such problems"


def test_guids_of_schemas_with_references_metadata_and_rules(tmp_path: Path) -> None:
    """The values are those of Confluent's classes for these schemas."""
    stored = a(1, 1, md5="3a3/H9FieBgj+n3hlyRE3w==")
    registry = read(tmp_path, stored, a(2, 2, '"x"', md5="no base64"), a(3, 3, '"y"', references=[7, None]))
    guids = [each.guid for each in registry.versions()]
    assert guids[0] == "ddadff1f-d162-7818-23fa-7de1972444df"
    assert len(set(guids)) == 3


def test_a_reference_is_of_the_parents_context() -> None:
    assert qualified("b", ":.c:a") == ":.c:b"
    assert qualified(":.d:b", ":.c:a") == ":.d:b"
    assert qualified("b", "a") == "b"
    assert qualified(":.:b", ":.c:a") == "b"


def test_packed_texts_are_found_again() -> None:
    texts = PackedTexts()
    data = [bytes([number % 256]) * (number * 7 % (2 * CHUNK_BYTES)) for number in range(200)]
    places = [texts.add(each) for each in data]
    assert [texts.get(place) for place in places] == data
    assert texts.memory < sum(map(len, data)) / 2


def test_references_are_kept(tmp_path: Path) -> None:
    registry = read(tmp_path, schema("b", 1, 1, ADDRESS), a(1, 2, references=[reference("b", 1, "B")]))
    (found,) = [each for each in registry.versions() if each.references]
    assert found.references == [{"name": "B", "subject": "b", "version": 1}]


def test_a_reference_without_a_version_takes_no_name_of_another(tmp_path: Path) -> None:
    references: list[dict[str, Any]] = [{"name": "A", "subject": "a"}, reference("b", 1, "B")]
    registry = read(tmp_path, schema("b", 1, 1, ADDRESS), a(1, 2, references=references))
    (found,) = [each for each in registry.versions() if each.references]
    assert list(found.referenced()) == [("B", ("b", 1))]


@each_case("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_json_in_other_encodings(encoding: str, tmp_path: Path) -> None:
    """Jackson, with which a registry reads its topic, finds them out, too."""
    step = schema("encoded", 1, 30, '"int"')
    other = Step(*(json.dumps(json.loads(encoded(part)), indent=1).encode(encoding) for part in step[:2]))
    registry = read(tmp_path, other)
    (found,) = registry.versions()
    assert (found.subject, found.id, found.text, registry.problems) == ("encoded", 30, '"int"', [])
