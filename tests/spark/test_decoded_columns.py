"""The columns of the table records with decoded keys and values: those of `kdump inspect`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdump.tables.declarations import RECORDS
from kdump.tables.read_options import OptionError
from tests import craft
from tests.conftest import FIXTURES
from tests.each_case import each_case
from tests.spark import same

NAMES = [column.name for column in RECORDS.on_request]
PLACE = ("topic", "partition", "offset")


def rows(*paths: Path, **options: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = same.rows("records", paths, [*PLACE, *NAMES], **options)
    return {tuple(row[name] for name in PLACE): {name: row[name] for name in NAMES} for row in found}


def inspected(*files: Path, options: tuple[str, ...] = ()) -> dict[tuple[Any, ...], dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in same.cli_objects("inspect", "--json", "--records", *options, *map(str, files)):
        if row["type"] != "record":
            continue
        decoded = {name: row.get(name) for name in NAMES}
        for name in ("keyDecoded", "valueDecoded"):
            decoded[name] = None if decoded[name] is None else json.dumps(decoded[name], ensure_ascii=False)
        topic, _, partition = Path(row["file"]).parent.name.rpartition("-")
        found[topic, int(partition), row["offset"]] = decoded
    return found


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its JSON parsed."""
    return row | {name: None if row[name] is None else json.loads(row[name]) for name in ("keyDecoded", "valueDecoded")}


@each_case("disk", ["registry-1", "connect-2", "clean-1"])
def test_they_are_those_of_inspect(disk: str) -> None:
    found = rows(FIXTURES / disk)
    expected = inspected(*sorted((FIXTURES / disk).glob("*-*/*.log")))
    assert found.keys() == expected.keys()
    assert {place: plain(row) for place, row in found.items()} == {place: plain(row) for place, row in expected.items()}
    assert any(row["valueDecoded"] for row in found.values())


def test_schemas_elsewhere(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(FIXTURES / "registry-1" / "orders-0", alone / "orders-0")
    assert {row["valueDecoded"] for row in rows(alone).values()} == {None}
    schemas = FIXTURES / "registry-1"
    expected = inspected(*(alone / "orders-0").glob("*.log"), options=("--schemas", str(schemas)))
    found = rows(alone, schemas=schemas)
    assert {place: plain(row) for place, row in found.items()} == {place: plain(row) for place, row in expected.items()}
    assert found["orders", 0, 7]["valueProblem"] == expected["orders", 0, 7]["valueProblem"] is not None
    with pytest.raises(OptionError, match="option schemas: "):
        rows(alone, schemas=tmp_path / "nothing")


def test_messages_of_magic_1_and_other_batches_in_one_segment(tmp_path: Path) -> None:
    """Most batches have no schema ID, and are read as columns."""
    schemas = tmp_path / "disk"
    shutil.copytree(FIXTURES / "registry-1" / "_schemas-0", schemas / "_schemas-0")
    folder = schemas / "orders-0"
    folder.mkdir()
    value = b"\0\0\0\0\1\x0e"
    batches = [
        craft.batch([craft.record(0, value=b"plain")]),
        craft.batch([craft.record(0, value=value), craft.record(1, value=None)], offset=1),
        craft.batch([craft.record(0, value=b"plain")], offset=3),
    ]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    found = rows(schemas)
    mine = {offset: row["valueDecoded"] for (topic, _, offset), row in found.items() if topic == "orders"}
    assert [None if text is None else json.loads(text)["data"] for text in mine.values()] == [
        None,
        {"id": 7},
        None,
        None,
    ]


def test_they_are_read_only_if_they_are_named() -> None:
    (row, *_) = same.rows("records", [FIXTURES / "registry-1"])
    assert not row.keys() & set(NAMES)
