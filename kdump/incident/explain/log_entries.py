"""Reads the log of a broker or a client as entries: a line with a level, and the lines of its exceptions. Lines may be
in JSON, and have what containers and syslog write before them.

Only entries above INFO, and those of a lower level with a text that a message of the catalogue has, are taken apart:
gigabytes of other lines are searched block by block for what such entries contain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from typing import Any

LONGEST_LINE = 16_384
"""Bytes of a line that are kept; the rest is skipped."""
MOST_CAUSES = 20
"""Lines of an exception that are kept of an entry: those with a class and a message, not the stack frames."""
LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
SUPPRESSED = "Suppressed: "
"""Before an exception that is not a cause: of what else was tried."""
SEVERE = frozenset(LEVELS[:3])
_SAME = {"WARNING": "WARN", "CRITICAL": "FATAL", "SEVERE": "ERROR", "NOTICE": "INFO", "FAIL": "ERROR"}
_RDKAFKA = {"0": "FATAL", "1": "FATAL", "2": "FATAL", "3": "ERROR", "4": "WARN", "5": "INFO", "6": "INFO", "7": "DEBUG"}
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)"

_HEAD = re.compile(
    r"(?:[^\n\[]{0,100}?(?<![\w.]))??"  # what syslog, docker or kubectl write before the line
    r"\[?(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)\]?"
    rf"[ |:-]{{1,3}}(?:\[[^\]\n]{{0,200}}\] ){{0,2}}\[?{_LEVEL}\b\]?[ :|-]{{1,8}}(?P<text>.*)",
    re.DOTALL,
)
_PREFIX = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) [FP] |"  # a container runtime (CRI)
    r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:?\d\d) (?=[\[{\t]|    )|"  # docker logs --timestamps
    r"[\w.-]{1,64} {1,20}\| |"  # docker compose logs
    r"\[pod/[^\]\n]{1,200}\] |"  # kubectl logs --prefix
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.@/-]{1,64}(?:\[\d{1,8}\])?: "  # syslog, journald
)
"""What containers and syslog write before each line, also those of stack traces."""
_SHORT = re.compile(
    rf" {{0,8}}(?:\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})? )?(?:\[[^\]\n]{{0,200}}\] ?)?{_LEVEL}\b(?:[ :]{{1,8}})(?P<text>.*)",
    re.DOTALL,
)
"""A line without a date."""
_ESCAPES = re.compile(r"(?:\x1b|#033)\[[0-9;?]{0,20}[A-Za-z]|#011")
"""Colors and tabs, also as syslog writes them."""
_CLIENT = re.compile(
    r"%(?P<severity>[0-7])\|(?P<time>\d{1,12}\.\d{1,6})\|(?P<facility>\w{1,40})\|[^|\n]{0,200}\| ?(?P<text>.*)",
    re.DOTALL,
)
"""A line of librdkafka."""
_LOGGER_FIRST = re.compile(r"(?P<logger>[\w.$]{1,200})(?: -|:) (?P<text>.*)", re.DOTALL)
_LOGGER_LAST = re.compile(r" \((?P<logger>[\w.$-]{2,200})(?::\d{1,7})?\)(?: \[[^\]\n]{1,200}\])?$")
_THREAD = re.compile(r"\[[^\]\n=]{1,120}\] (?P<logger>[\w.$]{3,200})[: -]{1,3}")
_CAUSE = re.compile(
    r"\s*(?:Caused by: |Suppressed: )?(?:[\w$]{1,100}[./]){0,12}[\w$]{0,100}(?:Exception|Error)\b(?::\s|\s*$)|"
    r"\s*Caused by: |Exception in thread "
)
_FRAME = re.compile(r"\s+at |at [\w.$/<>]{3,200}\(|\s*\.\.\. \d+ |\s+File \"|Traceback \(most recent")
_INLINE_FRAME = re.compile(
    r"(?:\s|\\[nrt]|#012){1,8}(?:at [\w.$/@<>-]{3,300}\((?:[\w$.-]{1,100}(?::\d{1,7})?|Native Method|Unknown Source)\)"
    r"(?: ~?\[[^\]\n]{0,200}\])?|\.\.\. \d{1,6} (?:more|common frames omitted)\b)"
)
_INLINE_CAUSE = re.compile(
    r"(?:\s|\\[nrt]|#012){1,8}(?=Caused by: )|"
    r"(?<=\))(?: |\\[nrt]|#012){1,4}(?=(?:[a-z][\w$]{0,100}\.){2,12}[\w$]{1,100}(?:Exception|Error)\b)"
)
"""Where the exceptions begin in a line that has a whole stack trace: after "Caused by", or after the logger."""
_INLINE_END = re.compile(r"(?:\s|\\[nrt]|#012){1,8}$")
PYTHON_LOGGERS = ("aiokafka", "kafka", "root")
"""Loggers without a dot, as Python's logging writes them before the message."""
_NEEDLES = (b"WARN", b"ERROR", b"FATAL", b"CRITICAL", b"SEVERE", b"Exception", b"Error: ", b"\n%")


@dataclass
class Entry:
    """An entry. `time`: epoch ms, None if the line has none; `text`: the message; `causes`: the lines of its exceptions
    that have a class or a message, outermost first; `number`: the line, from 1."""

    text: str
    level: str = ""
    logger: str = ""
    time: int | None = None
    number: int = 1
    causes: list[str] = field(default_factory=list)


def without_prefix(line: str) -> str:
    """Return a line without what containers, syslog and terminals add to it."""
    if "\x1b" in line or "#0" in line:
        line = _ESCAPES.sub(lambda escape: "\t" if escape[0] == "#011" else "", line)
    prefix = _PREFIX.match(line)
    return line if prefix is None else line[prefix.end() :]


def split_trace(line: str) -> list[str]:
    """Return the parts of a line that has the stack trace in it: the message, and each exception with its message."""
    text, frames = _INLINE_FRAME.subn("", line)
    if frames:
        return _INLINE_CAUSE.split(_INLINE_END.sub("", text))
    return _INLINE_CAUSE.split(line) if "Exception" in line or "Error" in line else [line]


def is_frame(line: str) -> bool:
    """Return True for a line of a stack trace that names a place in the code."""
    return _FRAME.match(line) is not None


def parse_head(line: str, zone: tzinfo = timezone.utc) -> Entry | None:
    """Return the entry that a line begins, None if it does not look like one. `zone`: that of times without one."""
    line, *causes = split_trace(without_prefix(line))
    entry = _parse_head(line, zone)
    if entry is not None:
        entry.causes = [*causes, *entry.causes][:MOST_CAUSES]
    return entry


def _parse_head(line: str, zone: tzinfo) -> Entry | None:
    if line.startswith("{"):
        return _of_json(line, zone)
    client = _CLIENT.match(line)
    if client is not None:
        time = round(float(client["time"]) * 1000)
        return Entry(client["text"], _RDKAFKA[client["severity"]], f"librdkafka {client['facility']}", time)
    head = _HEAD.match(line)
    if head is not None:
        level, text, when = head["level"], head["text"], _epoch_ms(head["time"], zone)
    else:
        short = _SHORT.match(line)
        if short is None:
            return None
        level, text, when = short["level"], short["text"], None
    logger = ""
    last = _LOGGER_LAST.search(text, max(0, len(text) - 450))
    if last is not None:
        logger, text = last["logger"], text[: last.start()]
    else:
        thread = _THREAD.match(text)
        if thread is not None:
            logger, text = thread["logger"], text[thread.end() :]
        else:
            first = _LOGGER_FIRST.match(text)
            if first is not None and (head is None or "." in first["logger"] or first["logger"] in PYTHON_LOGGERS):
                logger, text = first["logger"], first["text"]
    return Entry(text, _SAME.get(level, level), logger, when)


def _of_json(line: str, zone: tzinfo) -> Entry | None:
    """Return the entry in a line of JSON: by log4j's JsonLayout or JsonTemplateLayout, logstash, or docker."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    inner = value.get("log")
    if isinstance(inner, str):  # docker's json-file
        return parse_head(inner.rstrip("\r\n"), zone) if not inner.startswith("{") else _of_json(inner, zone)
    text, level = _first(value, "message", "msg"), _first(value, "level", "log.level", "severity")
    if text is None or level is None or not re.fullmatch(_LEVEL, level.upper()):
        return None
    when: int | None = None
    moment = next((value[key] for key in ("@timestamp", "timestamp", "time", "timeMillis") if key in value), None)
    if isinstance(moment, str):
        when = _epoch_ms(moment, zone)
    elif isinstance(moment, (int, float)) and 0 < moment < 1 << 53:
        when = round(moment)
    elif isinstance(value.get("instant"), dict) and isinstance(value["instant"].get("epochSecond"), int):
        when = value["instant"]["epochSecond"] * 1000
    level = _SAME.get(level.upper(), level.upper())
    entry = Entry(text, level, _first(value, "loggerName", "logger_name", "logger", "log.logger") or "", when)
    entry.causes = list(_json_causes(value))[:MOST_CAUSES]
    return entry


def _docker_line(line: str) -> str:
    """Return the text in a line of docker's json-file; other lines as they are."""
    try:
        inner = json.loads(line)["log"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return line
    return inner.rstrip("\r\n") if isinstance(inner, str) else line


def _json_causes(value: dict[str, Any]) -> Iterator[str]:
    stack = _first(value, "stack_trace", "exception", "error.stack_trace", "stackTrace")
    if stack is not None:
        yield from (line.strip() for line in stack.splitlines() if _CAUSE.match(line) and not _FRAME.match(line))
    thrown = value.get("thrown")
    while isinstance(thrown, dict):
        yield f"{thrown.get('name')}: {thrown.get('message')}"
        thrown = thrown.get("cause")


def _first(value: dict[str, Any], *keys: str) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _epoch_ms(time: str, zone: tzinfo) -> int | None:
    """Return the time in epoch ms, in `zone` if it has none. None for a time that does not exist."""
    time = time.replace(",", ".").replace("Z", "+00:00").replace("T", " ")
    time = re.sub(r" ?([+-]\d\d):?(\d\d)$", r"\1:\2", time)
    time = re.sub(r"\.(\d{1,9})", lambda match: "." + (match[1] + "00000")[:6], time)
    try:
        moment = datetime.fromisoformat(time)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


class LogReader:
    """Reads blocks of a log. `literals`: texts in which entries of a lower level are of interest, too. `lines` counts
    the lines, when the last entry has been yielded."""

    def __init__(self, literals: Iterable[bytes] = (), zone: tzinfo = timezone.utc) -> None:
        self.zone = zone
        self.needles = (*_NEEDLES, *literals)
        self.lines = 0
        self._open: Entry | None = None
        self._suppressed = ""
        """What is before the suppressed exceptions of the open entry: tabs."""

    def entries(self, blocks: Iterable[bytes]) -> Iterator[Entry]:
        """Yield the entries in order."""
        rest = b""
        skips = False
        for block in blocks:
            if not rest and not skips:
                data = block
            elif skips:  # inside a line that is too long
                end = block.find(b"\n")
                if end < 0:
                    continue
                skips, data = False, block[end + 1 :]
            else:
                data = rest + block
            end = data.rfind(b"\n") + 1
            yield from self._block(data[:end])
            rest = data[end:]
            if len(rest) > LONGEST_LINE:
                yield from self._block(rest[:LONGEST_LINE] + b"\n")
                rest, skips = b"", True
        if rest:
            yield from self._block(rest + b"\n")
        if self._open is not None:
            yield self._open
            self._open = None

    def _block(self, data: bytes) -> Iterator[Entry]:
        """Yield the entries that end in these whole lines."""
        first, self.lines = self.lines, self.lines + data.count(b"\n")
        position = counted = 0
        number = first + 1
        for start in self._starts(data):
            if start < position:
                continue
            if self._open is not None:
                position, done = self._continue(data, position)
                if done:
                    yield self._open
                    self._open = None
                if start < position:
                    continue
            number += data.count(b"\n", counted, start)
            counted = start
            end = data.find(b"\n", start)
            position = end + 1
            line = data[start : min(end, start + LONGEST_LINE)].decode("utf-8", "surrogateescape").rstrip("\r")
            entry = parse_head(line, self.zone)
            if entry is None:
                line, *causes = split_trace(without_prefix(line))
                if not _CAUSE.match(line):
                    continue
                entry = Entry(line, "ERROR", causes=causes)  # an exception without a line that logged it
            entry.number = number
            self._open, self._suppressed = entry, ""
        if self._open is not None:
            _, done = self._continue(data, position)
            if done:
                yield self._open
                self._open = None

    def _starts(self, data: bytes) -> list[int]:
        """Return where lines begin that contain one of the needles, in order."""
        starts = set()
        for needle in self.needles:
            position = data.find(needle)
            while position >= 0:
                start = position + 1 if needle == b"\n%" else data.rfind(b"\n", 0, position) + 1
                starts.add(start)
                end = data.find(b"\n", position + 1)
                position = data.find(needle, max(end, position + 1)) if end >= 0 else -1
        if data.startswith(b"%"):
            starts.add(0)
        return sorted(starts)

    def _continue(self, data: bytes, position: int) -> tuple[int, bool]:
        """Add the lines from `position` on that belong to the open entry. Return where the next line begins, and
        whether the entry is complete."""
        assert self._open is not None
        while position < len(data):
            end = data.find(b"\n", position)
            line = data[position : min(end, position + LONGEST_LINE)].decode("utf-8", "surrogateescape").rstrip("\r")
            line = without_prefix(line)
            if line.startswith("{"):  # docker's json-file
                line = _docker_line(line)
            if _FRAME.match(line) or not line.strip():
                position = end + 1
                continue
            if _CAUSE.match(line):
                indentation = line[: len(line) - len(line.lstrip())]
                if line.lstrip().startswith(SUPPRESSED):
                    self._suppressed = indentation
                elif self._suppressed and indentation.startswith(self._suppressed):
                    position = end + 1
                    continue  # the cause of a suppressed exception
                if len(self._open.causes) < MOST_CAUSES:
                    self._open.causes += [part.strip() for part in split_trace(line)]
                position = end + 1
                continue
            if parse_head(line, self.zone) is not None or not line[:1].isspace():
                return position, True
            position = end + 1
        return position, False
