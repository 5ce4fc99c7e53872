"""The catalogue of messages: it is complete and consistent, and its wordings are those of real logs and of Kafka's
sources."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kdump.cli import COMMANDS, command_of
from kdump.format.kafka_release import NEWEST
from kdump.incident.explain import catalogue
from kdump.incident.explain.answer import Explanation
from kdump.incident.explain.catalogue import FAMILIES, alternatives, by_family, find, matches, messages
from kdump.incident.explain.commands import UNKNOWN, fill
from kdump.incident.explain.log_entries import parse_head
from kdump.incident.explain.message import ANY, PARTS, Message
from kdump.incident.explain.run import explain_text
from kdump.log.internal_topics import METADATA_LOG
from kdump.problems.catalogue import findings
from tests.each_case import each_case
from tests.incident.explain.explaining import DOCS, PUBLIC_LINES, real_lines

SOURCES = Path(__file__).with_name("message_sources.tsv")
SAMPLES = {
    "partition": "orders-0",
    "topic": "orders",
    "file": "/data/orders-0/00000000000000000000.log",
    "otherFile": "/data/orders-0/00000000000000000000.index",
    "directory": "/data",
    "topicId": "FN96DRb6S3GeSIQS03itlw",
    "otherTopicId": "AN96DRb6S3GeSIQS03itlw",
    "empty": "{}",
}


def samples(message: Message) -> dict[str, str]:
    return {**SAMPLES, "partition": METADATA_LOG} if message.when == "metadataLog" else SAMPLES


def sample(text: str, message: Message) -> str:
    """Return a text of this wording."""
    numbers = iter(range(11, 99))
    values = samples(message)

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            return values[name]
        return "something" if PARTS.get(name, ANY) is ANY else str(next(numbers))

    return re.sub(r"\{(\w*)\}", value, text)


def test_there_are_enough() -> None:
    assert len(messages()) >= 60
    assert all(by_family().values())
    directory = Path(catalogue.__file__).parents[2] / "problems" / "messages"
    assert {path.stem for path in directory.iterdir()} == {*FAMILIES}


@each_case("message", messages(), ids=lambda message: message.name)
def test_a_message(message: Message) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", message.name)
    assert message.name not in findings(), "a name is either a finding's or a message's"
    assert message.texts or message.exceptions or message.errors
    assert message.source
    assert message.releases
    for text in (message.meaning, message.cause, message.impact, message.action):
        assert text
        assert not text.endswith("."), text
    assert set(message.codes) <= findings().keys()
    assert not message.incident or (DOCS / "incidents" / f"{message.incident}.md").is_file()
    for text in message.texts:
        assert set(re.findall(r"\{(\w+)\}", text)) <= PARTS.keys()
        for name in re.findall(r"\{(\w*)\}\{", text):
            assert PARTS.get(name, ANY) is not ANY, "where would it end?"


def test_names_exceptions_and_wordings_are_unique() -> None:
    for all_of_them in (
        [message.name for message in messages()],
        [name for message in messages() for name in message.exceptions],
        [(text, message.when) for message in messages() for text in message.texts],
    ):
        assert len(set(all_of_them)) == len(all_of_them), {each for each in all_of_them if all_of_them.count(each) > 1}


@each_case("message", messages(), ids=lambda message: message.name)
def test_each_wording_is_found(message: Message) -> None:
    for text in message.texts:
        context = f"[LogLoader partition={samples(message)['partition']}, dir=/data] " if message.when else ""
        found = alternatives(context + sample(text, message))
        assert [each.message for each in found[:1]] == [message], (text, [each.message.name for each in found])
        named = {name: samples(message)[name] for name in re.findall(r"\{(\w+)\}", text) if name in SAMPLES}
        assert named.items() <= found[0].parts.items(), text
    for name in message.exceptions:
        assert find(name) is message
        inner = list(
            matches(f"{name}: whatever" if "." in name else f"org.apache.kafka.common.errors.{name}: whatever")
        )
        assert not name.endswith("Exception") or inner[0].message is message


@each_case("message", messages(), ids=lambda message: message.name)
def test_commands_can_be_run(message: Message) -> None:
    """Commands of kdump exist, with these options; names in braces are parts."""
    for command in message.commands:
        assert set(re.findall(r"\{(\w+)\}", command)) <= {*PARTS, *UNKNOWN}
    for command in fill(message.commands, {}, None, {}):
        assert "{" not in command or "awk" in command
        words = shlex.split(command.partition("|")[0])
        if words[0] != "kdump":
            continue
        assert words[1] in COMMANDS, command
        known = command_of(words[1])
        options = {name for param in known.params for name in (*param.opts, *param.secondary_opts)}
        assert {word.partition("=")[0] for word in words if word.startswith("-")} <= options, command


def test_messages_are_from_real_lines_or_cite_sources() -> None:
    seen = {name for name, _ in PUBLIC_LINES}
    for line in real_lines():
        entry = parse_head(line)
        seen.update(match.message.name for match in matches(line.strip() if entry is None else entry.text))
    assert len(seen) >= 60
    cited = {line.split("\t")[0] for line in SOURCES.read_text().splitlines()}
    exceptions = {message.name for message in messages() if message.exceptions}
    of_system = {message.name for message in messages() if message.errors}
    assert {message.name for message in messages()} - seen - cited - exceptions - of_system == set()


def test_cited_wordings_are_those_of_the_catalogue() -> None:
    known = {(message.name, text) for message in messages() for text in message.texts}
    rows = [line.split("\t") for line in SOURCES.read_text().splitlines()]
    assert {(row[0], row[1]) for row in rows} <= known, "run tools.message_sources again"
    assert len(rows) > len(known) / 2
    assert {"2.8.2", NEWEST.number} <= {release for row in rows for release in row[2].split()}


@each_case(
    "line, name, parts",
    [
        (
            "Found record size 0 smaller than minimum record overhead (14) in file /d-1/a-b-0/00000000000000000042.log",
            "record-size-below-minimum",
            {"file": "/d-1/a-b-0/00000000000000000042.log", "size": "0"},
        ),
        (
            "org.apache.kafka.common.InvalidRecordException: Invalid record size: 1006 exceeds the configured maximum "
            "record size of 1000.",
            "record-above-decompressed-limit",
            {"size": "1006", "limit": "1000"},
        ),
        (
            "org.apache.kafka.common.config.ConfigException: DLQ is not enabled on configured DLQ topic for share "
            "group: g 1, topic: dlq.a.",
            "dead-letter-queue-write-failed",
            {"group": "g 1", "topic": "dlq.a"},
        ),
        (
            "[LogLoader partition=a-b-0, dir=/d-1] Recovering unflushed segment 42. 0 recovered for a-b-0.",
            "recovering-unflushed-segment",
            {"partition": "a-b-0", "directory": "/d-1", "baseOffset": "42"},
        ),
        ("java.util.concurrent.ExecutionException: java.io.IOException: No space left on device", "no-space-left", {}),
        ("org.apache.kafka.common.errors.UnknownProducerIdException: x", "unknown-producer-id", {}),
        ("Uncaught exception in scheduled task 'kafka-log-retention'", "scheduled-task-failed", {}),
    ],
)
def test_examples(line: str, name: str, parts: dict[str, str]) -> None:
    found = list(matches(line))
    assert name in [match.message.name for match in found]
    assert parts.items() <= {key: value for match in found for key, value in match.parts.items()}.items()


@each_case("line", ["", " ", "[", "[]", "x" * 100_000, "{}", "Exception", ": : :", "[a] " * 1000, "\0\x1b[31m"])
def test_other_texts_are_not_known(line: str) -> None:
    assert list(matches(line)) == []


@each_case("message", [each for each in messages() if not each.decides], ids=lambda message: message.name)
def test_the_exception_decides(message: Message) -> None:
    """An error of the operating system is the cause, whatever the sentence in front of it is."""
    for text in message.texts:
        if "{cause}" not in text:
            line = f"[2026-11-24 08:22:38,922] ERROR {sample(text, message)} (kafka.A)"
            found, _ = explain_text(f"{line}\njava.io.IOException: No space left on device\n\tat a.B.c(B.java:1)")
            assert isinstance(found, Explanation)
            assert found.message == "no-space-left", text


CODES = Path(__file__).with_name("error_codes.txt")
"""The names in org.apache.kafka.common.protocol.Errors, of Kafka 4.4.0."""


def test_each_error_code_is_known() -> None:
    assert [code for code in CODES.read_text().split() if find(code) is None] == []


def test_each_error_of_a_registration_has_its_own_cause() -> None:
    codes = ("DUPLICATE_BROKER_REGISTRATION", "INVALID_REGISTRATION", "BROKER_ID_NOT_REGISTERED", "UNSUPPORTED_VERSION")
    codes += ("INCONSISTENT_CLUSTER_ID", "STALE_BROKER_EPOCH", "NOT_CONTROLLER", "CLUSTER_AUTHORIZATION_FAILED")
    line = "INFO [BrokerLifecycleManager id=1] Unable to register broker 1 because the controller returned error {}"
    explained = [next(iter(explain_text(line.format(code)))) for code in codes]
    assert len({each.message for each in explained if isinstance(each, Explanation)}) == len(codes)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Broker 1 sent a heartbeat request but received error STALE_BROKER_EPOCH.", "broker-epoch-stale"),
        ("Broker 1 sent a heartbeat request but received error REQUEST_TIMED_OUT.", "request-timed-out"),
        (
            "Failed to load metadata from __share_group_state-3 with epoch 2 due to "
            "org.apache.kafka.common.errors.NotLeaderOrFollowerException.",
            "not-leader-or-follower",
        ),
        (
            "Skipped the become-follower state change with correlation id 10 from controller 2 epoch 5 for partition "
            "orders-0 with leader 3 since the replica for the partition is offline due to storage error "
            "org.apache.kafka.common.errors.KafkaStorageException: The log dir /data is offline due to a previous IO "
            "exception.",
            "log-directory-failed",
        ),
        (
            "java.lang.IllegalStateException: Offset mismatch for partition orders-0: fetched offset = 42, log end "
            "offset = 40.",
            "append-offset-unexpected",
        ),
    ],
)
def test_the_cause_at_the_end_of_a_sentence_decides(line: str, name: str) -> None:
    explanation, _ = explain_text(line)
    assert isinstance(explanation, Explanation)
    assert explanation.message == name
