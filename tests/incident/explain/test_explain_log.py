"""The reader of logs: layouts, what containers write before lines, folded stack traces, hostile input."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from kdump.incident.explain.answer import Explanation, ExplanationSummary
from kdump.incident.explain.catalogue import matches
from kdump.incident.explain.grouping import _VARIABLE, MAX_UNKNOWN, Groups
from kdump.incident.explain.log_entries import LONGEST_LINE, SEVERE, Entry, LogReader, parse_head
from kdump.incident.explain.run import explain_log, explain_text, literals
from tests.conftest import sample
from tests.craft import write_file
from tests.each_case import each_case
from tests.incident.explain.explaining import LOGS, PUBLIC_LINES, real_lines, whole_logs

RECORD_SIZE = (LOGS / "brokers" / "record-size-0.log").read_text()
AT = 1_795_508_558_922
TEXT = "Error while loading logs in /d/a-0"
CAUSE = "org.apache.kafka.common.errors.CorruptRecordException: "
CAUSE += "Found record size 0 smaller than minimum record overhead (14)"
STACK = f"{CAUSE}\n\tat org.apache.kafka.A.b(A.java:1)\n\t... 3 more\n"
LOG4J = f"[2026-11-24 08:22:38,922] ERROR {TEXT} (kafka.log.LogManager)\n"
LAYOUTS = {
    "Kafka's pattern": LOG4J + STACK,
    "log4j2's default": f"2026-11-24 08:22:38,922 [main] ERROR kafka.log.LogManager - {TEXT}\n{STACK}",
    "ISO time": f"2026-11-24T08:22:38.922Z ERROR [main] kafka.log.LogManager: {TEXT}\n{STACK}",
    "Strimzi": f"2026-11-24 08:22:38 ERROR [main] kafka.log.LogManager:123 - {TEXT}\n{STACK}".replace(":123", ""),
    "kafkaServer.out": f"ERROR {TEXT} (kafka.log.LogManager)\n{STACK}",
    "docker compose": "".join(f"kafka-1  | {line}\n" for line in (LOG4J + STACK).splitlines()),
    "a container runtime": "".join(
        f"2026-11-24T09:00:00.123456789Z stdout F {line}\n" for line in (LOG4J + STACK).splitlines()
    ),
    "docker logs -t": "".join(f"2026-11-24T09:00:00.123456789Z {line}\n" for line in LOG4J.splitlines()),
    "kubectl --prefix": "".join(f"[pod/kafka-0/kafka] {line}\n" for line in (LOG4J + STACK).splitlines()),
    "journald": "".join(f"Nov 24 09:00:00 host kafka[12]: {line}\n" for line in (LOG4J + STACK).splitlines()),
    "colors": f"2026-11-24 08:22:38,922 \x1b[1;31mERROR\x1b[m [main] kafka.log.LogManager - {TEXT}\n{STACK}",
    "colors and tabs of rsyslog": LOG4J.replace("ERROR", "#033[31mERROR#033[0m") + STACK.replace("\t", "#011"),
    "a space before the level": f" ERROR {TEXT} (kafka.log.LogManager)\n{STACK}",
    "a time without a date": f"08:22:38,922 ERROR {TEXT} (kafka.log.LogManager)\n{STACK}",
    "a stack trace in the line": f"{LOG4J[:-1]} {STACK.replace(chr(10), ' ').replace(chr(9), '')}\n",
    "an escaped stack trace": (LOG4J + STACK).replace("\n", "\\n").replace("\t", "\\t") + "\n",
    "docker's json-file": "".join(
        json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-11-24T09:00:00Z"}) + "\n"
        for line in (LOG4J + STACK).splitlines()
    ),
    "log4j2's JsonLayout": json.dumps(
        {
            "timeMillis": AT,
            "level": "ERROR",
            "loggerName": "kafka.log.LogManager",
            "message": TEXT,
            "thrown": {"name": CAUSE.split(": ")[0], "message": CAUSE.split(": ", 1)[1]},
        }
    )
    + "\n",
    "logstash": json.dumps(
        {
            "@timestamp": "2026-11-24T08:22:38.922Z",
            "level": "ERROR",
            "logger_name": "kafka.log.LogManager",
            "message": TEXT,
            "stack_trace": STACK,
        }
    )
    + "\n",
    "Windows": (LOG4J + STACK).replace("\n", "\r\n"),
}


def entries(*blocks: bytes) -> list[Entry]:
    return list(LogReader(literals()).entries(blocks))


WITHOUT_DATE = ("kafkaServer.out", "a space before the level", "a time without a date")


@each_case("name", LAYOUTS)
def test_layouts(name: str) -> None:
    (entry,) = entries(LAYOUTS[name].encode())
    assert (entry.level, entry.text, entry.logger) == ("ERROR", TEXT, "kafka.log.LogManager")
    if name != "docker logs -t":
        assert entry.causes == [CAUSE]
    exact = AT if "Strimzi" not in name else AT - 922
    assert entry.time == (None if name in WITHOUT_DATE else exact)


@each_case("size", [1, 7, 100, 4096])
def test_blocks_may_end_anywhere(size: int) -> None:
    data = RECORD_SIZE.encode()[-12_000:]
    whole = entries(data)
    assert whole == entries(*(data[at : at + size] for at in range(0, len(data), size)))


@each_case("path", whole_logs(), ids=lambda path: path.stem)
def test_every_severe_line_is_an_entry(path: Path) -> None:
    lines = path.read_text(errors="replace").splitlines()
    severe = [number for number, line in enumerate(lines, 1) if line.startswith("[2026-") and line.split()[2] in SEVERE]
    found = {entry.number for entry in entries(path.read_bytes())}
    assert set(severe) <= found


def test_zone() -> None:
    reader = LogReader((), timezone(timedelta(hours=2)))
    (entry,) = reader.entries([LOG4J.encode()])
    assert entry.time == AT - 2 * 3_600_000
    (entry,) = reader.entries([LAYOUTS["ISO time"].encode()])
    assert entry.time == AT, "it has a zone of its own"


def long_line() -> Iterator[bytes]:
    yield b"[2026-11-24 08:22:38,922] ERROR "
    for _ in range(100):
        yield b"x" * (1 << 20)
    yield b"\n" + LOG4J.encode()


def test_a_line_of_100_mb() -> None:
    tracemalloc.start()
    first, second = LogReader().entries(long_line())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(first.text) <= LONGEST_LINE
    assert second.text == TEXT
    assert peak < 10 << 20


@each_case(
    "data",
    [
        bytes(range(256)) * 500,
        b"\0" * 100_000,
        b"ERROR" * 20_000,
        b"{" * 50_000 + b"ERROR\n",
        b'{"log":' * 2_000 + b"ERROR\n",
        b"[2026-99-99 99:99:99,999] ERROR x\n",
        b"%9|x|ERROR\n%3|999999999999.1|F|a| x\n",
        b"Caused by: " * 5_000 + b"\n",
        b"\x1b[31m[2026-11-24 08:22:38,922] ERROR \x1b[2J\x07\n",
        b"a.b" * 30_000 + b"Exception: x\n",
        b"[" * 30_000 + b"ERROR" + b"]" * 30_000,
        b"\xff\xfeE\0R\0R\0O\0R\0",
        b'{"level":"ERROR","message":"' + b"\\u0000" * 5_000 + b'"}\n',
        b'{"level":"ERROR","message":"x","thrown":' + b'{"cause":' * 500 + b"1" + b"}" * 501 + b"\n",
        b'{"level":"ERROR","message":"x","timeMillis":1e400,"instant":{"epochSecond":true}}\n',
    ],
)
def test_hostile_input(data: bytes, tmp_path: Path) -> None:
    path = write_file(tmp_path / "x.log", data)
    *found, summary = explain_log(str(path))
    assert isinstance(summary, ExplanationSummary)
    assert summary.known + summary.unknown == sum(each.count for each in found if isinstance(each, Explanation))


def test_unknown_kinds_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    words = ("".join(chr(97 + int(digit)) for digit in str(number)) for number in range(3 * MAX_UNKNOWN))
    path.write_text("".join(f"ERROR {word} happened (a.B)\n" for word in words))
    *found, summary = explain_log(str(path))
    assert isinstance(summary, ExplanationSummary)
    assert len(found) == MAX_UNKNOWN
    assert summary.unknown == 3 * MAX_UNKNOWN
    assert summary.notListed == 2 * MAX_UNKNOWN


def test_repeated_messages_are_one() -> None:
    groups = Groups()
    for number in range(1000):
        groups.add(Entry("Too many open files", "ERROR", "a.B", 1000 - number, number + 1))
    (found,) = groups.explanations()
    assert (found.count, found.first, found.last, found.line) == (1000, 1, 1000, 1)


def test_the_cause_comes_before_what_follows_from_it() -> None:
    *found, _ = explain_log(str(LOGS / "brokers" / "meta-cluster-id.log"))
    names = [each.message for each in found if isinstance(each, Explanation)]
    assert names[0] == "cluster-id-inconsistent"
    assert set(names[1:4]) == {"broker-shutting-down", "startup-failed", "startup-configuration-rejected"}


def test_a_warning_is_before_the_error_that_follows_from_it(tmp_path: Path) -> None:
    index = "/d/a-0/00000000000000000000.index"
    lines = [
        "ERROR Too many open files (k.C)",
        f"WARN Failed atomic move of {index} to {index}.deleted retrying with a non-atomic move (k.C)",
        "WARN Found invalid messages in log segment /d/b-0/00000000000000000000.log at byte offset 3. (k.C)",
        "ERROR Error while deleting segments for b-0 in dir /e (k.C)\njava.io.IOException: Input/output error",
        "ERROR Error while deleting segments for a-0 in dir /d (k.C)\njava.io.IOException: Input/output error",
    ]
    log = tmp_path / "server.log"
    log.write_text("".join(f"[2026-11-24 08:00:0{number},000] {line}\n" for number, line in enumerate(lines)))
    *found, _ = explain_log(str(log))
    assert [(each.message, each.line) for each in found if isinstance(each, Explanation)] == [
        ("too-many-open-files", 1),
        ("recovery-found-invalid-batch", 3),
        ("input-output-error", 4),
        ("file-not-found", 2),
        ("input-output-error", 6),
    ]


@each_case("compress", [gzip.compress, bytes])
def test_compressed_logs(compress: type[bytes], tmp_path: Path) -> None:
    path = write_file(tmp_path / "server.log.gz", compress(RECORD_SIZE.encode()))
    first = next(explain_log(str(path)))
    assert isinstance(first, Explanation)
    assert first.message == "record-size-below-minimum"
    assert first.about["partition"] == "kafkajs-none-0"


def test_a_truncated_gzip_file_is_reported(tmp_path: Path) -> None:
    path = write_file(tmp_path / "server.log.gz", gzip.compress(RECORD_SIZE.encode())[:-2000])
    *_, summary = explain_log(str(path))
    assert isinstance(summary, ExplanationSummary)
    assert summary.error


def test_nearly_all_real_lines_are_known() -> None:
    """The unknown ones are a client program's own."""
    unknown = []
    for path in whole_logs():
        *found, _ = explain_log(str(path))
        unknown += [each.text for each in found if isinstance(each, Explanation) and each.message is None]
    assert len(unknown) <= 3, unknown


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("… smaller than minimum record overhead (14) in file", "record-size-below-minimum"),
        ("Found record size 0 smaller than minimum record overhead", "record-size-below-minimum"),
        ("smaller than minimum record", "record-size-below-minimum"),
        ("Uncaught exception in scheduled task", "scheduled-task-failed"),
        ("Could not find or load the segment", None),
        ("stops with: Found record size 0 smaller than minimum record overhead (14).", "record-size-below-minimum"),
        ("the log says OutOfOrderSequenceException again", "out-of-order-sequence"),
        ("we got UNKNOWN_PRODUCER_ID from it", "unknown-producer-id"),
        ("Hello world", None),
    ],
)
def test_pasted_text(text: str, name: str | None) -> None:
    found, summary = explain_text(text)
    assert isinstance(found, Explanation)
    assert isinstance(summary, ExplanationSummary)
    assert found.message == name
    assert (summary.known, summary.unknown) == ((1, 0) if name else (0, 1))


@each_case("name, line", PUBLIC_LINES, ids=lambda value: value[:60])
def test_lines_of_public_reports(name: str, line: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same as text and as a log; " | " is a line break."""
    text = line.replace(" | ", "\n").replace("\\x1b", "\x1b")
    log = tmp_path_factory.mktemp("log") / "server.log"
    log.write_text(text + "\n")
    for answers in (explain_text(text), explain_log(str(log))):
        *found, _ = answers
        assert [each.message or "" for each in found if isinstance(each, Explanation)] == [name]


@pytest.mark.sampled
def test_what_is_unknown_in_a_log_is_unknown_as_text() -> None:
    """Also without time and level, so that the words are looked for anywhere: not even a part of a line of a healthy
    broker is taken for another message."""
    texts = {_VARIABLE.sub("#", line): line for line in sorted(real_lines()) if " INFO " in line}
    entries = [entry for line in texts.values() if (entry := parse_head(line)) is not None]
    unknown = [each.text for each in entries if each.level == "INFO" and not list(matches(each.text))]
    assert len(unknown) > 300
    for text in sample(unknown, 8):
        *found, _ = explain_text(text)
        assert [each.message for each in found if isinstance(each, Explanation)] == [None], text


def test_what_passes_soon_is_not_reported(tmp_path: Path) -> None:
    text = "INFO [MetadataLoader id=0] initializeNewPublishers: the loader is still catching up because we still don't "
    text += "know the high water mark yet. (org.apache.kafka.image.loader.MetadataLoader)\n"
    log = tmp_path / "server.log"
    for seconds, names in ((3, []), (40, ["metadata-high-watermark-unknown"])):
        started = f"[2026-11-24 08:00:{seconds:02},000] INFO [KafkaRaftServer nodeId=0] Kafka Server started (k.S)\n"
        log.write_text(f"[2026-11-24 08:00:00,000] {text}[2026-11-24 08:00:{seconds:02},000] {text}{started}")
        *found, summary = explain_log(str(log))
        assert [each.message for each in found if isinstance(each, Explanation)] == names
        assert isinstance(summary, ExplanationSummary)
        assert summary.known == 2 * len(names)


def test_what_passes_soon_is_explained_if_it_is_chosen(tmp_path: Path) -> None:
    """Pasted, or grepped into a file or a pipe: there are no other lines."""
    line = "[2026-11-28 05:00:19,618] INFO [QuorumController id=0] In the new epoch 7, the leader is (none). (k.C)\n"
    other = "[2026-11-28 05:00:19,618] INFO [QuorumController id=0] Becoming a standby controller. (k.C)\n"
    for text, names in ((line, ["quorum-without-leader"]), (2 * line, ["quorum-without-leader"]), (line + other, [])):
        (tmp_path / "server.log").write_text(text)
        *found, _ = explain_log(str(tmp_path / "server.log"))
        assert [each.message for each in found if isinstance(each, Explanation)] == names
    found = [*explain_text(line)]
    assert isinstance(found[0], Explanation)
    assert found[0].message == "quorum-without-leader"
