"""Replaces names in a bundle: those of topics, of the host, of directories and of unknown files. The same name gets the
same replacement under the same key, so that the bundles of a fleet can still be compared."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable

from kdump.forensics.bundle.metadata_secrets import control_bytes
from kdump.format.control_record import CONTROL_TYPES, decode_control
from kdump.log import file_kinds
from kdump.log.batch_records import records
from kdump.log.bundle_index import StoredFile
from kdump.log.file_kinds import FileKind
from kdump.log.hash_key import HashKey
from kdump.log.internal_topics import INTERNAL_TOPICS, METADATA_TOPIC
from kdump.log.paths import PARTITION
from kdump.log.region import Batch

DIGITS = 16
"""Hexadecimal digits of a replacement: of a million names, two get the same one with a probability of 10^-8."""
KAFKAS_OWN = frozenset((METADATA_TOPIC, *INTERNAL_TOPICS))
NAMELESS = frozenset(control.name for control in CONTROL_TYPES.values()) - {"KRAFT_VOTERS"}
"""Control records without names. Voters have the names of hosts."""
IDENTITY = re.compile(r"(version|node\.id|broker\.id|cluster\.id|directory\.id)=[A-Za-z0-9_-]{0,64}|#.{0,64}")
TOPIC_ID = re.compile(r"version: \d{1,9}\ntopic_id: [A-Za-z0-9_-]{22}\n?")
DIRECTORIES = frozenset(("remote-log-index-cache", "lost+found"))
"""Names that are not replaced: any disk may have them."""
NUMBERS = re.compile(r"[-0-9 \n]*")
OFFSETS = re.compile(r"([^ \n]+) (\d{1,10} -?\d{1,19})")
QUORUM = frozenset(
    ("clusterId", "leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "appliedOffset", "currentVoters",
     "voterId", "data_version")
)  # fmt: skip
"""Keys of quorum-state, none of which has a name."""
LEFT_OUT = "was left out because it could not be redacted"


class Redactor:
    """Replaces names under a key."""

    def __init__(self, key: HashKey) -> None:
        self._key = key.key

    def name(self, kind: str, name: str) -> str:
        """Return the replacement of a name; names of different kinds have different ones."""
        digest = hmac.digest(self._key, f"{kind}:{name}".encode("utf-8", "surrogateescape"), "sha256")
        return f"{kind}-{digest.hex()[:DIGITS]}"

    def topic(self, name: str) -> str:
        return name if name in KAFKAS_OWN else self.name("topic", name)

    def directory(self, name: str) -> str:
        """Return the replacement of a directory's name; that of a partition keeps its form."""
        found = PARTITION.match(name)
        if name in DIRECTORIES:
            return name
        if found is None:
            return self.name("directory", name)
        topic = found.group(1)
        return self.topic(topic) + name[len(topic) :]

    def path(self, inside: str) -> str:
        """Return the replacement of a path relative to what is bundled."""
        return "/".join(self.directory(part) for part in inside.split("/")) if inside else ""

    def source(self, path: str) -> str:
        """Return the replacement of the path of a log directory; if it is a partition, its name keeps its form."""
        above, _, name = path.rpartition("/")
        return f"/{self.name('directory', above)}/{self.directory(name)}"

    def file(self, file: StoredFile) -> StoredFile:
        """Return a file or directory with its name and the path to which it links replaced."""
        known = file_kinds.by_name(file.name)[0] is not None
        name = file.name if known else self.name("file", file.name)
        if file.is_directory:
            name = self.directory(file.name)
        target = None if file.target is None else self.name("link", file.target)
        return file._replace(name=name, target=target)

    def keep(self, batch: Batch) -> bytes | None:
        """Return the bytes of a control batch without names; None for any other batch."""
        found = control_bytes(batch)
        if found is None or any(decode_control(each.key, each.value).type not in NAMELESS for each in records(batch)):
            return None
        return found

    def contents(self, kind: FileKind, data: bytes) -> bytes | None:
        """Return the contents of a small file with names replaced; None if it has anything unexpected."""
        change = CHANGES.get(kind)
        try:
            return None if change is None else change(self, data.decode("ascii")).encode()
        except (ValueError, KeyError, RecursionError):
            return None

    def _checkpoint(self, text: str) -> str:
        first, count, *lines = text.split("\n")
        _expect(NUMBERS, first, count)
        entries = [OFFSETS.fullmatch(line) for line in lines if line]
        if not all(entries):
            raise ValueError("an entry that is none")
        redacted = [f"{self.topic(entry[1])} {entry[2]}" for entry in entries if entry is not None]
        return "\n".join((first, count, *redacted, ""))


def _expect(pattern: re.Pattern[str], *texts: str) -> None:
    if not all(pattern.fullmatch(each) for each in texts):
        raise ValueError("not as expected")


def _matching(pattern: re.Pattern[str]) -> Callable[[Redactor, str], str]:
    def checked(redactor: Redactor, text: str) -> str:
        _expect(pattern, text)
        return text

    return checked


def _identity(redactor: Redactor, text: str) -> str:
    """Keep the known lines; comments have the time at which the file was written."""
    lines = [line for line in text.split("\n") if line]
    return "".join(line + "\n" for line in lines if IDENTITY.fullmatch(line) and not line.startswith("#"))


def _quorum(redactor: Redactor, text: str) -> str:
    values = json.loads(text)
    voters = values.get("currentVoters") or []
    for each in (values, *voters):
        for key, value in each.items():
            if key not in QUORUM or not isinstance(value, (int, str, list, type(None))) or len(str(key)) > 32:
                raise ValueError(key)
            if isinstance(value, str):
                _expect(re.compile(r"[A-Za-z0-9_-]{0,64}"), value)
    return text


def _clean_shutdown(redactor: Redactor, text: str) -> str:
    values = json.loads(text) if text else {}
    if not set(values) <= {"version", "brokerEpoch"} or not all(type(each) is int for each in values.values()):
        raise ValueError("not as expected")
    return text


CHANGES: dict[FileKind, Callable[[Redactor, str], str]] = {
    file_kinds.OFFSET_CHECKPOINT: Redactor._checkpoint,
    file_kinds.EPOCH_CHECKPOINT: _matching(NUMBERS),
    file_kinds.PARTITION_METADATA: _matching(TOPIC_ID),
    file_kinds.META_PROPERTIES: _identity,
    file_kinds.QUORUM_STATE: _quorum,
    file_kinds.CLEAN_SHUTDOWN: _clean_shutdown,
}
"""What is done with the small files of each kind; others are left out."""
