"""`kdump registry` on the command line."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.segments import registry as versions
from kdump.all_answers import TYPES
from kdump.format.count_text import count_text
from kdump.render.stdout import Output
from tests import command
from tests.conftest import FIXTURES, seeded
from tests.craft import batch, record, write_file
from tests.each_case import each_case
from tests.registry_disk import (
    ADDRESS,
    LOG,
    ORDER_1,
    SCHEMAS,
    TOPICS,
    Step,
    delete_subject,
    framed,
    log,
    reference,
    schema,
    schema_key,
    write,
)
from tests.state.test_metadata import config, partition, topic
from tests.state.test_metadata import log as metadata_log
from tests.test_memory import LIMIT, MEASURE, STEADY

DISK = FIXTURES / "registry-1"
run = partial(command.run, "registry")
run_doctor = partial(command.run, "doctor")


def objects(*arguments: Any, status: int = 0) -> list[dict[str, Any]]:
    """Return the objects that are not notes."""
    found = command.objects("registry", *arguments, status=status)
    optional = {"metadata", "ruleSet"}
    for each in found:
        assert [key.name for key in TYPES[each["type"]] if key.name in each or key.name not in optional] == list(each)[
            1:
        ]
    return [each for each in found if each["type"] != "note"]


@pytest.mark.parametrize("policy", [None, "compact", "delete"])
def test_why_a_registry_is_empty(policy: str | None, tmp_path: Path) -> None:
    """Its topic begins above offset 0: records were deleted, and how, it says next to where they may be found."""
    write_file(tmp_path / "_schemas-0" / f"{3:020}.log", b"")
    records = [topic("_schemas", "S"), partition("S", 0, [1])]
    records += [] if policy is None else [config(2, "_schemas", "cleanup.policy", policy)]
    write_file(tmp_path / "__cluster_metadata-0" / LOG, metadata_log(records))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    notes = run(tmp_path).stderr
    assert "_schemas has no records" in notes
    assert "its log start offset is 3: offsets 0..2 were deleted" in notes
    assert ("set compact" in notes) == (policy != "compact")


def test_the_fixture_is_what_its_program_writes() -> None:
    for name, steps in TOPICS.items():
        begin = {} if name == "_schemas-0" else {"begin": 1_795_000_060_000}
        assert (DISK / name / LOG).read_bytes() == log(steps, **begin)


def test_versions_have_the_registrys_keys() -> None:
    found = [each for each in objects(DISK) if each["type"] == "schemaVersion"]
    assert [(each["subject"], each["version"], each["id"], each["deleted"]) for each in found] == [
        (":.emea:orders-value", 1, 1, False),
        ("address", 1, 2, False),
        ("orders-value", 1, 1, False),
        ("orders-value", 2, 3, False),
        ("refunds-value", 1, 4, False),
        ("users-value", 1, 5, True),
    ]
    assert found[3]["references"] == [{"name": "Address", "subject": "address", "version": 1}]
    assert found[2]["schema"] == ORDER_1
    assert found[4]["schemaType"] == "PROTOBUF"


def test_selections() -> None:
    assert [each["subject"] for each in objects(DISK, "--subject", "*orders*")] == [
        *(":.emea:orders-value", "orders-value", "orders-value")
    ]
    assert {each["subject"] for each in objects(DISK, "--id", "1")} == {":.emea:orders-value", "orders-value"}
    assert [(each["subject"], each["state"]) for each in objects(DISK, "--deleted")] == [
        *(("users-value", "softDeleted"), ("trial-value", "hardDeleted"), ("late-value", "ignored"))
    ]
    assert run(DISK, "--id", "99").exit_code == 2
    assert run(DISK, "--subject", "nothing").exit_code == 2
    assert "trial-value" in {each["subject"] for each in objects(DISK, "--as-of", "10")}


def test_a_schema_in_full_for_people() -> None:
    said = run(DISK, "--id", "3").stdout
    assert said.startswith("orders-value version 2: AVRO, ID 3, GUID ")
    assert "references Address: address version 1\n" in said
    assert '      "name": "to",\n' in said.replace("    ", "  ").replace("        ", "    ") or '"name": "to"' in said


def test_usage() -> None:
    found = {(each["topic"], each["id"] or each["guid"]): each for each in objects(DISK, "--usage")}
    assert {place: (each["state"], each["records"]) for place, each in found.items()} == {
        ("orders", 1): ("live", 4),
        ("orders", 3): ("live", 3),
        ("orders", 77): ("none", 1),
        ("refunds", 4): ("live", 1),
        ("trial", 6): ("hardDeleted", 1),
        ("users", "c51f76a8-4e24-113b-db25-6d8bab180156"): ("softDeleted", 1),
        ("totals", 106990): ("none", 1),
        ("totals", None): ("none", 2),
    }
    assert found["orders", 77]["doubt"] is None
    assert found["orders", 1]["contexts"] == [".", ".emea"]
    assert "different schemas" in found["orders", 1]["doubt"]
    assert "may be numbers" in found["totals", 106990]["doubt"]
    assert "deleted for good" in found["trial", 6]["doubt"]
    assert (found["orders", 3]["firstOffset"], found["orders", 3]["lastOffset"]) == (4, 6)
    assert {each["topic"] for each in objects(DISK, "--usage", "--topic", "orders")} == {"orders"}
    assert [each["records"] for each in objects(DISK, "--usage", "--id", "77")] == [1]


@each_case("seed", range(6))
def test_binary_values_that_begin_with_a_zero_byte_are_no_ids(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever share of a topic's values begins so: one in a record each, or frames with their length. IDs of records
    are found all the same, also those that the registry does not have; and doctor counts what the rows state."""
    root, random = tmp_path_factory.mktemp("disk"), seeded(f"binary values {seed}")
    hashes = [bytes(int(random.random() < 0.4)) + random.randbytes(32) for _ in range(200)]
    frames = [framed(random.randrange(20, 60), bytes(30)) for _ in range(400)]
    lacking = random.randrange(6)
    ids = [random.choice([1, 3, 4, *range(70, 70 + lacking)]) for _ in range(300)]
    topics: dict[str, list[Step | None]] = {
        "_schemas-0": SCHEMAS,
        "hashes-0": [Step(b"k", value) for value in hashes],
        "frames-0": [Step(b"k", value) for value in frames],
        "orders-0": [Step(b"k", framed(number, b"x")) for number in ids],
    }
    write(root, topics)
    rows = [each for each in objects(root, "--usage") if each["topic"] != "frames" or each["doubt"] is None]
    assert {each["topic"] for each in rows} == {"orders"}
    assert {each["id"] for each in rows if each["state"] == "none"} == set(ids) & set(range(70, 76))
    assert "hashes-0: values with " in run(root, "--usage").stderr
    sure = [each for each in rows if each["doubt"] is None]
    without = sum(each["state"] == "none" for each in sure)
    page = run_doctor(root).stdout
    assert (
        f"{count_text(len(sure), 'schema ID')} in the last 4 MiB of each partition, {without} without a schema" in page
    )


def test_a_deletion_of_a_subject_without_versions_is_in_the_history(tmp_path: Path) -> None:
    """A history lists every record that means something, also if nothing is left of what it was about."""
    steps = [schema("a-value", 2, 1, '"int"'), delete_subject("b-value", 3), delete_subject("a-value", 1)]
    write(tmp_path, {"_schemas-0": [*steps, delete_subject("a-value", 2)]})
    rows = [(each["offset"], each["entity"], each["name"], each["action"]) for each in objects(tmp_path, "--history")]
    assert rows == [
        (0, "schema", "a-value version 2", "created"),
        (1, "subject", "b-value", "ignored"),
        (2, "subject", "a-value", "ignored"),
        (3, "schema", "a-value version 2", "changed"),
    ]
    (only,) = objects(tmp_path, "--history", "--subject", "b-*")
    assert (only["name"], only["record"]) == ("b-value", "DELETE_SUBJECT")
    assert f"at offset {only['offset']}: DELETE_SUBJECT of b-value" in command.run("registry", tmp_path).stderr


@each_case("columns", [80, 100, 160])
def test_doubts_are_shown_on_narrow_terminals(columns: int) -> None:
    """A live schema without its doubt would comfort."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "width", property(lambda self: columns))
        lines = run(DISK, "--usage").stdout.splitlines()
    assert all(len(line) <= columns for line in lines)
    shown = " ".join(" ".join(lines).split())
    for word in ("doubt", "numbers", "contexts", "deleted", "given again"):
        assert word in shown, word


def test_columns_of_keys_that_may_be_absent() -> None:
    lines = run(DISK, "--subject", "address", "--columns", "metadata,subject,ruleSet").stdout.splitlines()
    assert [line.split() for line in lines] == [["metadata", "subject", "ruleSet"], ["address"]]


def test_a_history_has_whole_names_on_narrow_terminals() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "width", property(lambda self: 80))
        lines = run(DISK, "--history").stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(" :.emea:orders-value version 1  created " in line for line in lines)


def test_usage_without_a_registry(tmp_path: Path) -> None:
    shutil.copytree(DISK / "orders-0", tmp_path / "disk" / "orders-0")
    found = objects(tmp_path / "disk", "--topic", "orders")
    assert {(each["id"], each["state"]) for each in found} == {(1, "none"), (3, "none"), (77, "none")}
    assert "no _schemas found, so no ID resolves" in run(tmp_path / "disk", "--usage").stderr
    shutil.copy(DISK / "orders-0" / LOG, tmp_path / LOG)
    result = run(tmp_path / LOG, "--usage")
    assert (result.exit_code, result.stderr) == (2, "kdump: --usage needs a log directory\n")


def test_a_registry_that_is_lost_says_where_its_records_may_be(tmp_path: Path) -> None:
    disks = {name: tmp_path / name for name in ("empty", "none", "deleted", "again")}
    for disk in disks.values():
        shutil.copytree(DISK / "orders-0", disk / "orders-0")
    gone = f"_schemas-0.{'0' * 32}-delete"
    for name in ("empty", "again"):
        write_file(disks[name] / "_schemas-0" / LOG, b"")
    for name in ("deleted", "again"):
        shutil.copytree(DISK / "_schemas-0", disks[name] / gone)
    assert command.run("carve", DISK / "_schemas-0" / LOG, "--out", tmp_path / "carved").exit_code == 0
    said = {
        "empty": "_schemas has no records; kdump carve --out DIR",
        "none": "no _schemas found; kdump carve --out DIR",
        "deleted": "_schemas was deleted; what a broker was to remove is left: --deleted shows it",
        "again": "_schemas has no records; directories that a broker was to remove have those of an earlier one: --del",
    }
    for name, words in said.items():
        assert words in run(disks[name]).stderr
        carved = command.objects("registry", disks[name], "--deleted", "--carved", tmp_path / "carved")
        assert [each["subject"] for each in carved if each["type"] == "schemaVersion"].count("orders-value") == 2
        usage = {each["id"]: each["state"] for each in objects(disks[name], "--usage")}
        assert usage[3] == ("hardDeleted" if name in ("deleted", "again") else "none")
    assert [each["version"] for each in objects(disks["deleted"], "--deleted", "--subject", "orders-value")] == [1, 2]


def test_records_older_than_their_schema(tmp_path: Path) -> None:
    """An ID that was given again: the first schema is gone from the log."""
    write(
        tmp_path,
        {"_schemas-0": [None] * 90 + [schema("a-value", 1, 1, '"int"')], "a-0": [Step(None, framed(1, b"\2"))]},
    )
    (found,) = objects(tmp_path, "--usage")
    assert "older than the schema's record" in found["doubt"]


def test_bytes_with_many_different_first_bytes(tmp_path: Path) -> None:
    steps = [Step(None, framed(number, b"12345")) for number in range(1100)]
    write(tmp_path, {"_schemas-0": SCHEMAS, "a-0": list(steps)})
    result = run(tmp_path, "--usage", "--json")
    assert result.stdout.count('"schemaUsage"') == 1000
    assert "values with more than 1000 different first bytes: not all are listed" in result.stderr


def imported(folder: Path) -> Iterator[dict[str, Any]]:
    """Import an export as a registry does, one file after the other, and yield the requests."""
    there: set[tuple[str, int]] = set()
    for file in sorted(folder.iterdir()):
        request = json.loads(file.read_bytes())
        for each in request.get("references", ()):
            subject = each["subject"]
            if request["subject"].startswith(":.") and not subject.startswith(":."):
                subject = ":" + request["subject"].split(":")[1] + ":" + subject
            assert (subject, each["version"]) in there, file
        there.add((request["subject"], request["version"]))
        yield request


def test_an_export_resolves_every_id_as_before(tmp_path: Path) -> None:
    assert run(DISK, "--export", tmp_path / "out").exit_code == 0
    found = list(imported(tmp_path / "out"))
    steps = [schema(**_arguments(each)) for each in found]
    write(tmp_path / "new", {"_schemas-0": list(steps)})
    names = ("subject", "version", "id", "guid", "schemaType", "schema", "references")
    before, after = (
        [{name: each[name] for name in names} for each in objects(disk) if each["type"] == "schemaVersion"]
        for disk in (DISK, tmp_path / "new")
    )
    assert after == before
    assert [each["subject"] for each in found if each.get("deleted")] == ["users-value"]
    assert "not empty" in run(DISK, "--export", tmp_path / "out").stderr


class FreshRegistry:
    """A registry in mode IMPORT, as far as IDs go: a version keeps its ID, an ID has one schema in a context, and what
    a schema references must be there."""

    def __init__(self) -> None:
        self.schemas: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.versions: set[tuple[str, int]] = set()

    def post(self, subject: str, body: dict[str, Any]) -> None:
        context = f".{subject[2:].partition(':')[0]}" if subject.startswith(":.") else "."
        references = body.get("references", [])
        for each in references:
            named = each["subject"]
            named = named.removeprefix(":.:") if context == "." or named.startswith(":.") else f":{context}:{named}"
            assert (named, each["version"]) in self.versions, "the reference is not there"
        assert (subject, body["version"]) not in self.versions, "the version is there already"
        found = (body.get("schemaType", "AVRO"), body["schema"], references)
        assert self.schemas.setdefault((context, body["id"]), found) == found, "the ID has another schema"
        self.versions.add((subject, body["version"]))


def resolved(disk: Path, *states: str) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return the schemas by context and ID, as the registry on a disk resolves them."""
    return {
        (each["context"], each["id"]): (each["schemaType"], each["schema"], each["references"])
        for each in objects(disk)
        if each["type"] == "schemaVersion" and each["state"] in states
    }


def test_an_export_into_a_fresh_registry_resolves_every_id_as_before(tmp_path: Path) -> None:
    later: list[Step | None] = [
        schema("same-as-orders", 1, 1, ORDER_1),
        schema(":.emea:u", 3, 9, '["null"]', references=[reference("orders-value", 1), reference(":.:address", 1)]),
        schema("w", 7, 2147483647, "1"),
        schema("gone", 1, 50, '"float"'),
        Step(schema_key("gone", 1), None),
    ]
    write(tmp_path / "disk", {"_schemas-0": [*SCHEMAS, *later]})
    for number, (options, more) in enumerate((((), {}), (("--deleted",), {(".", 50): ("AVRO", '"float"', [])}))):
        out = tmp_path / str(number)
        assert run(tmp_path / "disk", "--export", out, *options).exit_code == 0
        fresh = FreshRegistry()
        for file in sorted(out.iterdir()):
            body = json.loads(file.read_text())
            fresh.post(body["subject"], body)
        trial = {(".", 6): ("AVRO", '"string"', [])} if options else {}  # of the fixture, deleted for good
        assert fresh.schemas == resolved(tmp_path / "disk", "live", "softDeleted") | more | trial


def test_deleted_schemas_in_what_was_carved(tmp_path: Path) -> None:
    """A registry's topic was cleaned: the old segment is found among freed blocks."""
    write(tmp_path / "disk", {"_schemas-0": [schema("a", 1, 2, '"int"')], "t-0": [Step(None, framed(1, b"\2"))]})
    old = log([schema("b", 1, 1, '"long"'), schema("a", 1, 2, '"int"')])
    other = batch([record(key=b"x", value=b"y")])
    (tmp_path / "image").write_bytes(b"noise" * 100 + old + b"noise" * 200 + other + b"noise" + old)
    assert command.run("carve", tmp_path / "image", "--out", tmp_path / "carved").exit_code == 0
    (found,) = objects(tmp_path / "disk", "--deleted", "--carved", tmp_path / "carved")
    assert (found["subject"], found["id"], found["state"]) == ("b", 1, "hardDeleted")
    assert "/carved/run-000001" in found["source"]
    (used,) = objects(tmp_path / "disk", "--usage", "--carved", tmp_path / "carved")
    assert used["state"] == "hardDeleted"
    out = tmp_path / "out"
    assert run(tmp_path / "disk", "--export", out, "--deleted", "--carved", tmp_path / "carved").exit_code == 0
    assert len(list(out.iterdir())) == 2
    assert objects_of_inspect(tmp_path / "disk" / "t-0", out) == [1]
    assert run(tmp_path / "disk", "--carved", tmp_path / "carved").exit_code == 2
    assert run(tmp_path / "disk", "--deleted", "--carved", tmp_path / "none").exit_code == 2


def objects_of_inspect(path: Path, schemas: Path) -> list[Any]:
    found = command.objects("inspect", path, "--records", "--schemas", schemas)
    return [each["valueDecoded"]["data"] for each in found]


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {name: request[name] for name in ("schemaType", "references") if name in request}
    names = {"subject": request["subject"], "version": request["version"], "schema_id": request["id"]}
    return {**names, "text": request["schema"], **more}


def test_references_in_a_circle_missing_or_deep(tmp_path: Path) -> None:
    deep = 300
    steps = [schema(f"d{each}", 1, each, ADDRESS, references=[reference(f"d{each + 1}", 1)]) for each in range(deep)]
    steps.append(schema("x", 1, deep, "1", references=[reference("y", 1), reference("none", 4)]))
    steps.append(schema("y", 1, deep + 1, "2", references=[reference("x", 1), reference("y", 1)]))
    write(tmp_path / "disk", {"_schemas-0": list(steps)})
    assert run(tmp_path / "disk", "--export", tmp_path / "out").exit_code == 0
    names = [each.name.split(".")[1] for each in sorted((tmp_path / "out").iterdir())]
    assert len(names) == deep + 2
    assert names[:2] == [f"d{deep - 1}", f"d{deep - 2}"]
    assert {*names[-2:]} == {"x", "y"}


def test_file_names_of_an_export_cannot_lead_outside(tmp_path: Path) -> None:
    write(tmp_path / "disk", {"_schemas-0": [schema("../../x\0\x1b/" + "é" * 300, 1, 1, ORDER_1)]})
    assert run(tmp_path / "disk", "--export", tmp_path / "out").exit_code == 0
    (file,) = (tmp_path / "out").iterdir()
    assert file.name.startswith("000001..._.._x___")


NESTED: Any = "x"
for _ in range(400):
    NESTED = [NESTED]
ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    2**63,
    10**400,
    "",
    "\ud800",
    "\x1b[2J",
    [],
    ["a"],
    [[]],
    [None],
    {},
    {"a": []},
    NESTED,
]
FIELDS = ["subject", "version", "id", "schema", "schemaType", "references", "deleted", "md5", "metadata", "ruleSet"]
IN_FIELDS = {
    "references": ("name", "subject", "version"),
    "metadata": ("tags", "properties", "sensitive"),
    "ruleSet": ("domainRules", "migrationRules", "enableAt"),
}


def odd_steps() -> Iterator[Step]:
    """Yield records in which one part has a type or value that no registry writes."""
    number = 100
    for odd in ODD:
        for name in FIELDS:
            inner = [{each: odd} for each in IN_FIELDS.get(name, ())]
            for value in [odd, *inner, *([each] for each in inner)]:
                number += 1
                good = {"subject": f"s{number}", "version": 1, "id": number, "schema": '"int"'}
                yield Step(schema_key(f"s{number}", 1), good | {name: value})
                yield Step(schema_key(f"s{number}", 1), good | {name: value, "schema": '"long"', "id": number + 5000})
        for name in ("keytype", "subject", "version", "magic"):
            yield Step(schema_key("k", 1) | {name: odd}, {"subject": "k", "version": 1, "id": 99, "schema": '"int"'})
        for kind in ("CONFIG", "MODE", "CONTEXT", "ASSOC", "DELETE_SUBJECT", "CLEAR_SUBJECT"):
            key = {"keytype": kind, "subject": f"s{number}", "context": ".c"}
            yield Step(key, {"subject": f"s{number}", "version": 1, "features": odd, "target": odd})
            yield Step(key, {"subject": odd, "version": odd})
            yield Step(key | {"subject": odd, "context": odd}, {"entity": odd, "fields": odd})


@each_case("options", [["--json"], [], ["--history"], ["--deleted"], ["--id", "150", "--id", "5150"]])
def test_every_field_with_every_type(options: list[str], tmp_path: Path) -> None:
    write(tmp_path, {"_schemas-0": list(odd_steps())})
    result = run(tmp_path, *options)
    assert result.exit_code == 0
    assert not {"\x1b", "\ud800"} & {*result.stdout, *result.stderr}


@each_case("options", [["bundle"], ["bundle", "--redact"], ["doctor"], ["registry", "--export"]])
def test_every_field_with_every_type_elsewhere(options: list[str], tmp_path: Path) -> None:
    write(tmp_path / "disk", {"_schemas-0": list(odd_steps())})
    name, *more = options
    out = ["--out", tmp_path / "out"] if name == "bundle" else [tmp_path / "out"] if more else []
    assert command.run(name, tmp_path / "disk", *more, *out).exit_code in (0, 1)


def test_two_clusters_are_two_registries(tmp_path: Path) -> None:
    write(tmp_path / "d" / "1", {"_schemas-0": SCHEMAS}, cluster="one")
    write(tmp_path / "d" / "2", {"_schemas-0": [schema("a", 1, 1, ORDER_1)]}, cluster="two")
    found = [each for each in objects(tmp_path / "d") if each["type"] == "schemaVersion"]
    assert {Path(each["source"]).parent.name for each in found} == {"1", "2"}
    result = run(tmp_path / "d")
    assert result.stdout.count("_schemas-0:\n") == 2
    assert run(tmp_path / "d", "--export", tmp_path / "out").exit_code == 0
    assert [len(list((tmp_path / "out" / each).iterdir())) for each in "12"] == [6, 1]
    write(tmp_path / "d" / "3", {"_schemas-0": SCHEMAS[:5]}, cluster="one")  # another replica, which is behind
    result = run(tmp_path / "d")
    assert result.stdout.count("_schemas-0:\n") == 2
    assert f"{tmp_path}/d/3/_schemas-0: not read" in result.stderr


def test_a_directory_that_states_no_cluster(tmp_path: Path) -> None:
    """It is of the cluster whose topics it has, as for the other commands, and no cluster of its own."""
    write(tmp_path / "1", {"_schemas-0": SCHEMAS}, cluster="one")
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    (tmp_path / "2" / "meta.properties").unlink()
    result = run(tmp_path / "1", tmp_path / "2")
    assert result.stdout == run(tmp_path / "1").stdout
    assert f"{tmp_path}/2/_schemas-0: not read" in result.stderr


def test_several_partitions(tmp_path: Path) -> None:
    write(tmp_path, {"_schemas-0": SCHEMAS, "_schemas-1": [schema("a", 1, 1, ORDER_1)]})
    assert "a registry rejects a topic with several partitions" in run(tmp_path).stderr


def test_a_directory_that_was_to_be_deleted(tmp_path: Path) -> None:
    gone = f"_schemas-0.{'0' * 32}-delete"
    write(tmp_path, {gone: SCHEMAS, "_schemas-0": [schema("orders-value", 1, 9, '"long"')]})
    found = objects(tmp_path, "--deleted")
    assert ("orders-value", 3, "hardDeleted") in {(each["subject"], each["id"], each["state"]) for each in found}
    assert {Path(each["source"]).name for each in found} == {gone}
    shutil.rmtree(tmp_path / "_schemas-0")  # the topic has been deleted: nothing else is left
    assert len(objects(tmp_path, "--deleted")) == 8


def test_another_name_of_the_topic(tmp_path: Path) -> None:
    write(tmp_path, {"schemas.eu-0": SCHEMAS})
    assert "no _schemas found" in run(tmp_path).stderr
    assert run(tmp_path).exit_code == 2
    assert objects(tmp_path, "--schemas-topic", "schemas.eu")


@each_case(
    "options",
    [
        ("--usage", "--history"),
        ("--usage", "--deleted"),
        ("--topic", "x", "--deleted"),
        ("--export", "out", "--history"),
        ("--export", "out", "--usage"),
    ],
)
def test_options_that_contradict_each_other(options: tuple[str, ...]) -> None:
    assert run(DISK, *options).exit_code == 2


def test_no_control_character_reaches_a_terminal(tmp_path: Path) -> None:
    nasty = "a\x1b[2J\u202eb\r\n"
    value = {
        "subject": nasty,
        "version": 1,
        "id": 1,
        "schema": nasty,
        "schemaType": nasty,
        "references": [{"name": nasty}],
    }
    config = {"compatibilityLevel": nasty, nasty: nasty}
    steps = [
        Step(schema_key(nasty, 1), value | {"metadata": {nasty: nasty}}),
        Step({"keytype": "CONFIG", "subject": nasty}, config),
    ]
    write(tmp_path, {"_schemas-0": [*steps, Step({"keytype": nasty}, None)]})
    for options in ([], ["--id", "1"], ["--history"], ["--columns", "subject,schema,schemaType,references,metadata"]):
        result = run(tmp_path, *options)
        assert not {"\x1b", "\u202e", "\r"} & {*result.stdout, *result.stderr}, options
        assert result.exit_code == 0


@pytest.mark.every_disk
def test_a_hundred_thousand_versions(tmp_path: Path) -> None:
    """Memory and time are bounded. The time is that of the CPU, with room for a busy machine."""
    count = 100_000
    versions(tmp_path, count)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured = tmp_path / "peak"
    command_line = [sys.executable, "-m", "kdump", "registry", str(tmp_path), "--json"]
    done = subprocess.run(
        [sys.executable, "-IS", "-c", MEASURE, str(measured), *command_line],
        capture_output=True,
        env=os.environ | STEADY,
        check=True,
        cwd=FIXTURES.parent,
    )
    assert done.stdout.count(b'"schemaVersion"') == count
    status, peak = map(int, measured.read_text().split())
    assert (status, peak < LIMIT) == (0, True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime < 20


def items(*paths: Any) -> dict[str, dict[str, Any]]:
    """Return what doctor says about schemas, by code."""
    found = command.run("doctor", *paths, "--json").stdout.splitlines()
    return {
        each["code"]: each for each in map(json.loads, found) if each.get("question") == "schemas" and "code" in each
    }


def test_doctor_names_ids_without_a_schema_and_ids_given_twice() -> None:
    found = items(DISK)
    assert found.keys() == {"schema-ids-unresolved", "schema-id-given-twice"}
    assert found["schema-ids-unresolved"]["evidence"] == [
        "orders-0: value with ID 77, 1 record in offsets 7..7",
        "trial-0: value with ID 6, 1 record in offsets 0..0: only a deleted schema has it",
    ]
    assert found["schema-id-given-twice"]["evidence"] == [
        "offset 14: late-value version 1 with ID 4, which is that of another schema"
    ]


def test_doctor_names_what_it_cannot_apply_although_an_id_is_given_twice_before(tmp_path: Path) -> None:
    write(tmp_path, {"_schemas-0": [*SCHEMAS, Step(schema_key("x", 1), b"{"), schema("y", 1, 4, '"int"')]})
    found = [json.loads(line) for line in command.run("doctor", tmp_path, "--json").stdout.splitlines()]
    (question,) = (each for each in found if each["type"] == "doctorQuestion" and each["question"] == "schemas")
    (said,) = question["notExamined"]
    assert said.startswith(f"the registry's topic: at offset {len(SCHEMAS)}: skipped: its value is not JSON")


def test_doctor_says_nothing_of_numbers_or_mirrored_topics_or_without_a_registry(tmp_path: Path) -> None:
    steps = [Step(None, framed(each, b"12345")) for each in range(100, 110)]
    good: dict[str, list[Step | None]] = {
        "_schemas-0": [schema("a", 1, 1, '"int"')],
        "numbers-0": [Step(None, (1_795_000_000_000 + each).to_bytes(8, "big")) for each in range(9)],
        "any-0": list(steps),
        "east.heartbeats-0": [],
        "east.a-0": [steps[0]],
        "a-0": [Step(None, framed(1, b"\2"))],
    }
    write(tmp_path / "1", good)
    assert not items(tmp_path / "1")
    write(tmp_path / "2", {name: steps for name, steps in good.items() if name != "_schemas-0"})
    assert "  schemas " not in command.run("doctor", tmp_path / "2").stdout
    again = [*good["_schemas-0"], Step(schema_key("a", 1), None), schema("b", 1, 1, '"long"')]
    write(tmp_path / "3", good | {"_schemas-0": again, "_schemas-1": []})
    evidence = items(tmp_path / "3")["schema-id-given-twice"]["evidence"]
    assert evidence == ["ID 1: a version 1 at offset 0, deleted, then b version 1 at offset 2"]


def test_doctor_reads_the_ends_of_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records before the last bytes are left to registry --usage."""
    steps = [Step(None, framed(9, b"x")), *(Step(None, framed(1, b"y" * 50)) for _ in range(40))]
    write(tmp_path, {"_schemas-0": [schema("a", 1, 1, '"int"')], "a-0": list(steps)})
    assert "schema-ids-unresolved" in items(tmp_path)
    monkeypatch.setattr("kdump.incident.doctor.schema_ids.LAST_BYTES", 1000)
    assert not items(tmp_path)


def test_a_mirrored_topic_is_said_to_have_other_ids(tmp_path: Path) -> None:
    write(
        tmp_path, {"_schemas-0": SCHEMAS, "east.checkpoints.internal-0": [], "east.a-0": [Step(None, framed(1, b"x"))]}
    )
    (found,) = objects(tmp_path, "--usage", "--topic", "east.a")
    assert found["doubt"] == "the topic is mirrored from east: the IDs are those of its registry"
