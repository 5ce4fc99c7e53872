"""The state of a scrub: one SQLite file in a directory of its own. Each record has a checksum, so that a state that is
damaged is refused: it never makes anything count as checked that was not."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from kdump.check.scrub.record import RecordError, UnitRecord, unpack_record
from kdump.io.errors import SourceError
from kdump.io.file_access import OWNER, make_directories
from kdump.log.output_directory import OutputError, lock_directory, refuse_output

FILE = "verify.sqlite"
APPLICATION = 0x6B64756D
"""application_id of the file: kdum."""
LAYOUT = 1
"""user_version of the file. A state with a higher one is of a newer kdump, and is refused."""
COMMIT_AFTER = 2.0
"""Seconds after which what was read is committed: what a kill at any moment can lose."""
MAX_RUNS = 400
TABLES = """
CREATE TABLE unit (key TEXT PRIMARY KEY, record BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE run (began INTEGER PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL);
"""


class PastRun(NamedTuple):
    """An earlier run: when it began, in epoch ms, in how many seconds it read how many bytes, and how many bytes were
    used then on the file system of each log directory."""

    began: int
    seconds: float
    bytes: int
    used: Mapping[str, int]


def _sum(key: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key.encode("utf-8", "surrogatepass")))


class ScrubState:
    """The state in a directory, which is created if it does not exist, and must be neither in what is read nor on a
    Kafka disk. All methods raise SourceError if it cannot be read or written, or is damaged."""

    def __init__(self, directory: str, sources: tuple[str, ...]) -> None:
        self.directory = directory
        self.path = os.path.join(directory, FILE)
        try:
            refuse_output(directory, sources)
            if os.path.lexists(directory) and not os.path.isdir(directory):
                raise SourceError(f"{directory}: exists and is not a directory; choose another one for --state")
            if not os.path.lexists(self.path) and os.path.isdir(directory) and os.listdir(directory):
                raise SourceError(
                    f"{directory}: is not empty, and is not the state of kdump verify; choose another one"
                )
            make_directories(os.path.abspath(directory), OWNER)
            self._lock = lock_directory(directory, "another kdump verify uses this state")
        except OutputError as error:
            raise SourceError(str(error)) from error
        except OSError as error:
            raise SourceError(f"{directory}: {error.strerror}") from error
        self._changed = time.monotonic()
        with self._stated():
            self._open()

    @contextmanager
    def _stated(self) -> Iterator[None]:
        """Raise SourceError instead of SQLite's errors."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "malformed" in str(error) or "no such" in str(error):
                raise self.damaged(str(error)) from error
            raise SourceError(f"{self.path}: the state cannot be read or written: {error}") from error
        except (sqlite3.Error, RecordError) as error:
            raise self.damaged(str(error)) from error

    def damaged(self, reason: str) -> SourceError:
        """Return the error for a state that is damaged."""
        return SourceError(
            f"{self.path}: the state is damaged ({reason}); delete {self.directory} to check everything again"
        )

    def _open(self) -> None:
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, OWNER))
        self._db = sqlite3.connect(self.path, isolation_level=None)
        application, layout = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables and not application:
            self._db.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {LAYOUT}; {TABLES} COMMIT;"
            )
        elif application != APPLICATION:
            raise SourceError(f"{self.path}: is not the state of kdump verify; choose another directory for --state")
        elif layout > LAYOUT:
            raise SourceError(
                f"{self.path}: the state has layout {layout}, which is of a newer kdump (this one reads {LAYOUT}): "
                "use the newer kdump, or another --state"
            )
        problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise self.damaged(problem.splitlines()[0])
        self._db.execute("BEGIN IMMEDIATE")

    def get(self, key: str) -> UnitRecord | None:
        """Return the record of a unit."""
        with self._stated():
            row = self._db.execute("SELECT record, sum FROM unit WHERE key = ?", (key,)).fetchone()
            return None if row is None else unpack_record(self._checked(key, *row))

    def _checked(self, key: str, data: bytes, checksum: int) -> bytes:
        if not isinstance(data, bytes) or _sum(key, data) != checksum:
            raise RecordError("the checksum of a record does not match")
        return data

    def put(self, key: str, record: UnitRecord) -> None:
        """Write the record of a unit."""
        data = record.pack()
        with self._stated():
            self._db.execute("INSERT OR REPLACE INTO unit VALUES (?, ?, ?)", (key, data, _sum(key, data)))
            if time.monotonic() - self._changed > COMMIT_AFTER:
                self.commit()

    def remove(self, key: str) -> None:
        with self._stated():
            self._db.execute("DELETE FROM unit WHERE key = ?", (key,))

    def unit_keys(self) -> list[str]:
        """Return the keys of all units."""
        with self._stated():
            return [key for (key,) in self._db.execute("SELECT key FROM unit")]

    def about(self) -> dict[str, Any]:
        """Return what the state is about: for each log directory, what its meta.properties states."""
        with self._stated():
            rows = self._db.execute("SELECT key, value, sum FROM about").fetchall()
            return {key: json.loads(self._checked(key, value.encode(), checksum)) for key, value, checksum in rows}

    def put_about(self, key: str, value: Any) -> None:
        text = json.dumps(value)
        with self._stated():
            self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", (key, text, _sum(key, text.encode())))

    def runs(self) -> list[PastRun]:
        """Return the earlier runs, the latest last."""
        with self._stated():
            rows = self._db.execute("SELECT began, value, sum FROM run ORDER BY began").fetchall()
            return [
                PastRun(began, **json.loads(self._checked(str(began), value.encode(), checksum)))
                for began, value, checksum in rows
            ]

    def end_run(self, run: PastRun) -> None:
        """Write that a run has ended."""
        text = json.dumps({"seconds": run.seconds, "bytes": run.bytes, "used": dict(run.used)})
        with self._stated():
            self._db.execute(
                "INSERT OR REPLACE INTO run VALUES (?, ?, ?)", (run.began, text, _sum(str(run.began), text.encode()))
            )
            oldest = "SELECT began FROM run ORDER BY began DESC LIMIT -1 OFFSET ?"
            self._db.execute(f"DELETE FROM run WHERE began IN ({oldest})", (MAX_RUNS,))
            self.commit()

    def commit(self) -> None:
        """Write what was put so far to the disk."""
        with self._stated():
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")
        self._changed = time.monotonic()

    def close(self) -> None:
        """Close the state; what was not committed is lost."""
        with suppress(sqlite3.Error):
            self._db.close()
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
