"""Compares `kdump dump-log` with kafka-dump-log 4.3.1, byte for byte: for every file of the oracle, and the golden
outputs of the cases in tests/questions/dump_log/dump_log_cases.py (see tests/questions/dump_log/dump_log_golden.py). If
Kafka's tool ends with an exception, kdump's output starts with the complete lines printed before it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from kdump import __version__
from kdump.cli import cli
from kdump.format.kafka_release import NEWEST
from kdump.log import batch_records, legacy_records
from kdump.questions.dump_log import batch as dumplog_batch
from kdump.questions.dump_log.decoders import DECODERS
from kdump.questions.dump_log.java import double, file_text, jackson
from tests import craft
from tests.conftest import DISKS, FIXTURES, ORACLE_DISKS, few, oracle_files, sample, seeded
from tests.each_case import each_case
from tests.forks import in_terminal
from tests.questions.dump_log.dump_log_cases import GOLDEN, SEGMENT, Case, build, cases
from tests.test_damaged_disks import DAMAGES, LARGE, files

RUNS: dict[str, Any] = json.loads((GOLDEN / "runs.json").read_text())
ORACLE_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    ".checkpoint": "--cluster-metadata-decoder",
    "__share_group": "--share-group-state-decoder",
}
"""Decoder options of the oracle, by a part of the path. Every other .log was dumped with --print-data-log."""
EXEMPT: dict[str, str] = {}
"""Files of the oracle for which kdump's output differs, and why. There are none."""
GAPS = {
    "kafka-4.3-clean-1/users-0": ["  66 is followed by 193", "  193 is followed by 239"],
    "kafka-4.3-clean-1/sessions-0": ["  193 is followed by 239"],
}
"""All messages about the healthy disks: compaction has removed records from two segments. Kafka's tool prints more
messages, all of them wrong: about the start of a segment, and about index entries of other releases and of padding."""


ORACLE_RELEASE = re.compile(r"kafka-(4\.\d+)")
"""The release whose tool dumped a disk of the oracle, in its name."""
AS_OF = ("--kafka-version", "4.3")
"""The release of the oracle, and of the golden outputs."""


def dump(*arguments: str | Path) -> Result:
    release = AS_OF if arguments and "--kafka-version" not in arguments else ()
    result = CliRunner().invoke(cli, ["dump-log", *release, *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exc_info)
    return result


@pytest.mark.parametrize("name", ORACLE_DISKS)
def test_oracle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = DISKS / ORACLE_DISKS[name]
    monkeypatch.chdir(disk)
    paths = {str(path.relative_to(disk)): words for _, words, path in oracle_files(name)}
    for path in sorted(paths):
        if f"{name}/{path}" in EXEMPT:
            continue
        options = [option for part, option in ORACLE_DECODERS.items() if part in path] or ["--print-data-log"]
        batches = path.endswith((".log", ".checkpoint"))
        release = ORACLE_RELEASE.match(name)
        version = ("--kafka-version", release[1]) if release else ()
        result = dump("--files", f"./{path}", *(options[:1] if batches else []), *version)
        assert result.stdout_bytes == paths[path].read_bytes(), path
        assert result.exit_code == 0, path
        gaps = GAPS.get(f"{name}/{Path(path).parent.name}", []) if path.endswith(f"{SEGMENT}.log") else []
        warned = [f"Non-consecutive offsets in {disk / path}"] if gaps else []
        assert result.stderr.splitlines() == warned + gaps, path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cases")
    build(root)
    return root


def test_every_case_is_golden() -> None:
    assert {case.name: list(case.arguments) for case in cases()} == {
        name: run["arguments"] for name, run in RUNS.items()
    }


@each_case("case", cases(), ids=lambda case: case.name)
def test_golden(case: Case, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)
    for window in ("1M", "4K"):
        assert_golden(case, window)


def assert_golden(case: Case, window: str) -> None:
    words, status = (GOLDEN / f"{case.name}.out").read_bytes(), RUNS[case.name]["status"]
    split = ["--window", window] if case.arguments else []
    result = dump(*case.arguments, *split)
    if case.differs:
        assert result.stdout_bytes != words
    elif status == 0:
        assert result.stdout_bytes == words
    elif result.stdout_bytes or not result.stderr.startswith("Usage: "):
        assert result.stdout_bytes.startswith(words[: words.rfind(b"\n") + 1])
    wanted = status if case.status is None else case.status[0]
    assert result.exit_code == wanted, result.stderr
    if status:
        assert result.stderr or case.status, "what Kafka's tool ends at is told"


def test_what_differs_does() -> None:
    """For each exempted status, the status of kdump really differs from Kafka's."""
    for case in cases():
        assert case.status is None or case.status[0] != RUNS[case.name]["status"], case.name


def test_kafka_names_what_is_told(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What kdump finds in a damaged index, Kafka's tool reports too, in the same words."""
    monkeypatch.chdir(built)
    names = ("index-wrong", "timeindex-wrong")
    result = dump("--files", ",".join(f"{name}/{SEGMENT}.{name.partition('-')[0]}" for name in names))
    said = [line.partition(" (")[0].replace(str(built), "") for line in result.stderr.splitlines()]
    assert said == [line for name in names for line in RUNS[name]["stderr"]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("length-zero", "502: a length of 0 bytes, below the minimum, 14; the checksum matches for a different length"),
        (
            "length-long",
            "of which only 1512 are there; the checksum matches for a different length (run kdump inspect to see it)",
        ),
        ("zeros-behind", "zeros where a batch should start"),
        ("codec-unknown", "position 502: "),
        ("count-more", "position 502: recordCount is 9"),
        ("magic-negative", "position 502: magic -128 is unknown; the checksum matches for a different magic"),
    ],
)
def test_damage_is_told_with_its_place(name: str, said: str, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)
    assert said in dump("--files", f"{name}/{SEGMENT}.log", "--print-data-log").stderr


def test_goes_on_behind_damage(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with a wrong length or magic is found by its checksum."""
    monkeypatch.chdir(built)
    sound = dump("--files", f"payments-0/{SEGMENT}.log", "--max-bytes", "1700").stdout.splitlines()
    for name in ("length-zero", "length-negative", "magic-negative"):
        lines = dump("--files", f"{name}/{SEGMENT}.log").stdout.splitlines()
        assert lines[1 : len(sound)] == sound[1:]


CONTENT = (
    st.none()
    | st.binary(max_size=40)
    | st.text("aé \n\U00010000", max_size=20).map(str.encode)
    | st.sampled_from([b"\xed\xa0\x80" * 5, b"\xf0\x9f\x98", b"\0\0\0\1", b"\0\0\0\2\0\0", b"v" * 90, b"\x80" * 30])
)
HEADERS = st.lists(st.tuples(CONTENT.filter(lambda key: key is not None), CONTENT), max_size=4)
RECORD = st.tuples(CONTENT, CONTENT, HEADERS)
FORMS = [
    ["--deep-iteration"],
    ["--deep-iteration", "--skip-record-metadata"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"],
    ["--value-decoder-class", "org.apache.kafka.tools.api.DefaultDecoder"],
    ["--offsets-decoder"],
]


@pytest.mark.parametrize("options", few(FORMS, 3), ids=" ".join)
@settings(max_examples=30)
@given(
    made=st.lists(RECORD, min_size=1, max_size=4),
    magic=st.sampled_from([0, 1, 2, 2, 2]),
    codec=st.sampled_from(["none", "none", "gzip"]),
    control=st.sampled_from([0, 0, 0x20, 0x30]),
    large=st.integers(1, 60),
    damage=st.none() | st.integers(61, 200),
)
def test_a_large_record_is_written_in_pieces(
    tmp_path_factory: pytest.TempPathFactory,
    options: list[str],
    made: list[tuple[Any, Any, Any]],
    magic: int,
    codec: str,
    control: int,
    large: int,
    damage: int | None,
) -> None:
    """However it is split, and without the parts that are not shown, its line is the same as for a small record."""
    path = tmp_path_factory.mktemp("large") / f"{0:020}.log"
    if magic == 2:
        parts = [craft.record(i, *record) for i, record in enumerate(made)]
        data = craft.batch(parts, codec, attributes=craft.CODECS.index(codec) | control)
    else:
        inner = [craft.message(magic, value, key=key, offset=i) for i, (key, value, _) in enumerate(made)]
        data = b"".join(inner) if codec == "none" else craft.wrapper(magic, b"".join(inner), codec, offset=9)
    if damage is not None and damage < len(data):
        data = craft.overwrite(data, damage, b"\x7f")
    path.write_bytes(data)
    words = [*options, "--window", "128", "--files", path]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_records, "SMALL", 0)
        patch.setattr(legacy_records, "_columns", lambda batch: None)
        expected = dump(*words)
        patch.setattr(dumplog_batch, "LONG", large)
        patch.setattr(dumplog_batch, "PIECE", 5)
        patch.setattr(dumplog_batch, "MAX_HEADER_KEYS", 2)
        patch.setattr(batch_records, "LARGE", large)
        patch.setattr(legacy_records, "KEEP", large)
        found = dump(*words)
    assert found.stdout_bytes == expected.stdout_bytes
    if codec == "none" or damage is None:  # otherwise the codec's error may come first
        assert found.stderr == expected.stderr
    assert found.exit_code == expected.exit_code


@pytest.mark.sampled
@pytest.mark.parametrize("damage", few(DAMAGES, 3), ids=lambda damage: damage.__name__)
def test_every_damaged_file(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    """There is no traceback, no other exit status, and no new file in its directory."""
    dice = seeded(damage.__name__)
    options = [["--print-data-log"], ["--deep-iteration"], [], ["--verify-index-only"], ["--index-sanity-check"]]
    options += [[option] for option in ORACLE_DECODERS.values()]
    for number, path in enumerate(sample(files(), 48, damage.__name__)):
        if not 0 < path.stat().st_size < LARGE:
            continue
        data = bytearray(path.read_bytes())
        damage(data, dice)
        directory = tmp_path / path.parent.name
        directory.mkdir(exist_ok=True)
        copy = craft.write_file(directory / path.name, data)
        chosen = ["--print-data-log"] if copy.suffix == ".log" and number % 2 else options[number % len(options)]
        result = dump("--files", copy, *chosen)
        assert result.exit_code in (0, 1), (path, chosen)
        assert result.stdout.startswith("Dumping ")
        assert os.listdir(directory) == [path.name]
        copy.unlink()


def test_a_preallocated_index_of_an_empty_segment(tmp_path: Path) -> None:
    """Kafka's tool ends with NoSuchElementException when it looks for the first batch."""
    (tmp_path / f"{0:020}.log").touch()
    index = craft.write_file(tmp_path / f"{0:020}.index", bytes(80))
    result = dump("--files", index)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"Dumping {index}\noffset: 0 position: 0\n", "")


def test_a_decoder_class_by_its_old_name() -> None:
    """Kafka 4.3.1 does not find it: see class-before-4 in golden/dump-log/runs.json."""
    path = FIXTURES / "clean-1" / "orders-none-0" / f"{0:020}.log"
    old, new = (
        dump("--files", path, "--key-decoder-class", f"{package}.StringDecoder")
        for package in ("kafka.serializer", "org.apache.kafka.tools.api")
    )
    assert old.exit_code == 0
    assert old.stdout == new.stdout
    assert " key: " in old.stdout


def test_a_read_only_directory(tmp_path: Path) -> None:
    """Kafka's tool creates a missing .index for a .timeindex, and opens indexes for writing."""
    build(tmp_path)
    directory = tmp_path / "payments-0"
    (directory / f"{SEGMENT}.index").unlink()
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}
    for path in directory.iterdir():
        path.chmod(0o444)
    directory.chmod(0o555)
    try:
        result = dump(
            "--files", f"{directory}/{SEGMENT}.timeindex,{directory}/{SEGMENT}.index,{directory}/{SEGMENT}.log"
        )
        assert "timestamp: " in result.stdout
        assert result.stderr == f"kdump: {directory}/{SEGMENT}.index: No such file or directory\n"
        assert result.exit_code == 1
        assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()} == before
    finally:
        directory.chmod(0o755)


def test_a_terminal_gets_no_control_character(built: Path) -> None:
    """In a pipe, the bytes of a value are exact; on a terminal they are escaped, and each record stays on its line."""
    said = in_terminal("dump-log", "--files", built / "utf8" / f"{SEGMENT}.log", "--print-data-log")
    assert not {character for character in said if ord(character) < 32 or ord(character) == 127} - {"\n"}
    assert "\\x1b[31m" in said
    exact = dump("--files", built / "utf8" / f"{SEGMENT}.log", "--print-data-log").stdout_bytes
    assert b"\x1b[31m" in exact


def test_an_index_without_its_segment(tmp_path: Path) -> None:
    path = tmp_path / f"{SEGMENT}.index"
    path.write_bytes((FIXTURES / "clean-1" / "payments-0" / path.name).read_bytes())
    result = dump("--files", path)
    assert result.exit_code == 1
    assert "offset: 39 position: 4224\n" in result.stdout
    assert "cannot be checked" in result.stderr


def test_a_script_may_ask_for_the_version() -> None:
    for option in ("--version", "-version"):
        result = dump(option)
        assert (result.exit_code, result.stdout) == (0, f"kdump, version {__version__}\n")


def test_ends_with_its_reader() -> None:
    path = FIXTURES / "clean-1" / "payments-0" / f"{SEGMENT}.log"
    command = f"{sys.executable} -m kdump dump-log --files {','.join([str(path)] * 200)} --print-data-log | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e-300, "1.0E-300"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_double_as_java_prints_it(value: float, text: str) -> None:
    assert double(value) == text


def test_json_as_jackson_writes_it() -> None:
    assert (
        jackson({"a": ["\x1b\\u001b\n\x7f", 1e10, None, True]}) == '{"a":["\\u001B\\\\u001b\\n\x7f",1.0E10,null,true]}'
    )


def test_path_as_file_prints_it() -> None:
    assert [file_text(path) for path in ("a//b/", "/", "//", "", "./a")] == ["a/b", "/", "/", "", "./a"]


# --- What other releases' tools print ---------------------------------------------------------------------------------


def test_states_of_transactions_as_of_4_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of 4.4.0's own tool; without the option that of the newest known release."""
    monkeypatch.chdir(FIXTURES)
    words = (GOLDEN / "transaction-log-as-of-4.4.0.out").read_bytes()
    log = next(FIXTURES.glob("clean-1/__transaction_state-*/*.log")).relative_to(FIXTURES)
    for version in (["--kafka-version", "4.4"], ["--kafka-version", "4.9"]):
        result = dump("--files", log, "--transaction-log-decoder", *version)
        assert result.stdout_bytes == words
    before = dump("--files", log, "--transaction-log-decoder").stdout
    assert '"transactionStatus":4,' in before
    assert '"transactionStatus":"CompleteCommit",' in words.decode()
    refused = dump("--files", log, "--kafka-version", "3.9")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "4.3 and later" in refused.stderr


def test_a_type_of_record_that_a_tool_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(craft.batch([craft.record(0, value=b"\x01\x1d\x00" + (3).to_bytes(4, "big") + b"\0")]))
    said = [
        dump("--files", path, "--cluster-metadata-decoder", "--kafka-version", version).stdout.partition("payload: ")[2]
        for version in ("4.3", "4.4")
    ]
    assert "UnsupportedVersionException: Unknown metadata id 29" in said[0]
    assert said[1] == '{"type":"UNREGISTER_CONTROLLER_RECORD","version":0,"data":{"controllerId":3}}\n'


def test_tagged_fields_that_a_tool_does_not_know(tmp_path: Path) -> None:
    key = (17).to_bytes(2, "big") + b"\0\1g"
    value = bytes(2) + bytes(12) + bytes.fromhex("03 0004 00000001 0204 00000002 0304 00000003")
    path = craft.write_file(tmp_path / f"{0:020}.log", craft.batch([craft.record(0, key=key, value=value)]))
    said = [
        dump("--files", path, "--offsets-decoder", "--kafka-version", version).stdout.partition("payload: ")[2]
        for version in ("4.3", "4.4", "4.9")
    ]
    known = '{"version":"0","data":{"epoch":0,"metadataHash":0,"validatedTopologyEpoch":1'
    added = ',"storedDescriptionTopologyEpoch":2,"failedDescriptionTopologyEpoch":3'
    assert said == [f"{known}{more}}}}}\n" for more in ("", added, added)]


def test_versions_of_a_txnindex(tmp_path: Path) -> None:
    """An INT16, of which the tool of 4.3 reads the first byte."""
    path = craft.write_file(tmp_path / f"{0:020}.txnindex", b"\0\1" + bytes(32))
    assert dump("--files", path).stdout.splitlines()[1].startswith("version: 0 producerId: 0 ")
    newer = dump("--files", path, "--kafka-version", "4.4")
    assert (newer.exit_code, len(newer.stdout.splitlines())) == (1, 1)
    assert "the entry has version 1, only 0 is supported" in newer.stderr


def test_messages_of_exceptions() -> None:
    """Numbers wrap as in Java, and an unknown tagged field is read with its size: the messages of kafka-dump-log."""
    frame = DECODERS["cluster-metadata-decoder"](NEWEST, 174, None, bytes.fromhex("ccf8c9d3795390 7cfbfc"))
    assert "unknown frame version 31820(only frame version 1 is supported)" in str(frame[1])
    value = bytes.fromhex("0000 01010101 0101 ffffffff01 00")
    group = DECODERS["offsets-decoder"](NEWEST, 0, b"\0\3\0\5group", value)
    assert str(group[0]).endswith("Error reading byte array of 536870911 byte(s): only 1 byte(s) available.")


@pytest.mark.parametrize(("cut", "length", "status"), [(0, 0, 1), (0, -1, 1), (30, None, 0), (0, 1 << 20, 0)])
def test_a_time_index_of_a_damaged_segment(tmp_path: Path, cut: int, length: int | None, status: int) -> None:
    """Kafka's tool reads all batches after the position of an entry, and throws at an invalid length."""
    build(tmp_path)
    log = tmp_path / "payments-0" / f"{SEGMENT}.log"
    batches = craft.split(log.read_bytes())
    last = batches[-1]
    if length is not None:
        last = last[:8] + length.to_bytes(4, "big", signed=True) + last[12:]
    log.write_bytes(b"".join([*batches[:-1], last[: len(last) - cut]]))
    result = dump("--files", log.with_suffix(".timeindex"))
    assert "timestamp: " in result.stdout
    assert result.exit_code == status


def test_an_empty_index_without_its_segment(tmp_path: Path) -> None:
    (tmp_path / f"{SEGMENT}.index").touch()
    result = dump("--files", tmp_path / f"{SEGMENT}.index")
    assert result.exit_code == 1
    assert result.stdout.endswith(".index is empty.\n")
