"""A secret that is hidden where a record is decoded is hidden in the record's bytes, too, wherever both are shown."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from kdump.log.internal_topics import METADATA_TOPIC
from tests.command import objects, run
from tests.conftest import FIXTURES, few
from tests.craft import with_metadata_record
from tests.test_redaction import assert_none

PASSWORD = "canary-qzxwvkjqzxwv"
CONFIG = b"\x01\x04\x00\x02\x02x\x11ssl.key.password" + bytes([len(PASSWORD) + 1]) + PASSWORD.encode() + b"\0"
SHOWS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "--records"),
    "inspect, JSON": ("inspect", "--records", "--json"),
    "inspect, CSV": ("inspect", "--records", "--format", "csv"),
    "inspect, some columns": ("inspect", "--records", "--columns", "offset,value"),
    "inspect, one by one": ("inspect", "--records", "--json", "--offset", "0.."),
    "find": ("find", "offset >= 0"),
    "find, JSON": ("find", "offset >= 0", "--json"),
    "export": ("export", "--out", "out.parquet"),
    "export, metadata_records": ("export", "--table", "metadata_records", "--out", "out.parquet"),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[str]]:
    """The log of Connect's configs and that of the metadata, with their secrets."""
    place = tmp_path_factory.mktemp("logs")
    connect = Path(shutil.copytree(FIXTURES / "connect-1" / "connect-configs-0", place / "connect-configs-0"))
    metadata = Path(shutil.copytree(FIXTURES / "state-1" / f"{METADATA_TOPIC}-0", place / f"{METADATA_TOPIC}-0"))
    log = max(metadata.glob("*.log"))
    log.write_bytes(with_metadata_record(log.read_bytes(), CONFIG))
    session = next(each for each in raw_records(connect) if each["key"] == "session-key")
    scram = base64.b64decode(next(each for each in raw_records(metadata) if each["valueSize"] == 105)["value"])
    at = scram.index(b"ann") + 5
    salt = scram[at : at + scram[at - 1] - 1].decode()
    return {connect: [json.loads(session["value"])["key"], "not-so-secret"], metadata: [PASSWORD, salt]}


def raw_records(log: Path) -> list[dict[str, Any]]:
    return [each for each in objects("inspect", log, "--records", "--no-decode") if each["type"] == "record"]


def shown(name: str, log: Path) -> str:
    command, *words = SHOWS[name]
    arguments = [words[0], log, *words[1:]] if command == "find" else [log, *words]
    done = run(command, *arguments)
    assert done.exit_code == 0, done.stderr
    if command != "export":
        return done.stdout
    table = pyarrow.parquet.read_table("out.parquet")
    values: list[Any] = [value for column in table.columns for value in column.to_pylist()]
    return "\n".join(each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in values)


@pytest.mark.parametrize("name", SHOWS)
def test_no_secret_is_shown(
    name: str, logs: dict[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (log, secrets) in enumerate(logs.items()):
        if "metadata_records" in name and METADATA_TOPIC not in log.name:
            continue
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        text = shown(name, log)
        assert "[hidden]" in text
        assert_none(text, secrets)


@pytest.mark.parametrize(
    ("at", "byte"), [(4, 0x7F), (6, 0x7F), (23, 0x7F), (len(CONFIG) - 1, 5)], ids=["resource", "name", "value", "tags"]
)
@pytest.mark.parametrize("name", few([name for name in SHOWS if "metadata_records" not in name], 3))
def test_no_secret_is_shown_of_a_record_that_does_not_decode(
    name: str, at: int, byte: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Path(shutil.copytree(FIXTURES / "state-1" / f"{METADATA_TOPIC}-0", tmp_path / f"{METADATA_TOPIC}-0"))
    last = max(log.glob("*.log"))
    broken = CONFIG[:at] + bytes([byte]) + CONFIG[at + 1 :]
    last.write_bytes(with_metadata_record(last.read_bytes(), broken))
    monkeypatch.chdir(tmp_path)
    assert_none(shown(name, log), [PASSWORD])


def test_the_bytes_are_shown_where_nothing_is_decoded(logs: dict[Path, list[str]], tmp_path: Path) -> None:
    for log, secrets in logs.items():
        raw = run("inspect", log, "--records", "--json", "--no-decode").stdout
        assert "[hidden]" not in raw
        run("export", log, "--no-decode", "--out", tmp_path / f"{log.name}.parquet")
        values = pyarrow.parquet.read_table(tmp_path / f"{log.name}.parquet")["value"].to_pylist()
        for secret in secrets:
            assert any(secret.encode() in value for value in values if value is not None)
