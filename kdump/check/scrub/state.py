"""The state of a scrub: one SQLite file in a directory of its own. Each row has a checksum, and all rows together have
one, which is compared when the state is opened: a damaged state is refused. It never makes anything count as checked
that was not, and never lacks what was found."""

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
ROWS = ("unit", "about", "run")
"""The tables. A row of each has a key, a value and the checksum of both."""
TABLES = """
CREATE TABLE unit (key BLOB PRIMARY KEY, record BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about (key BLOB PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE run (began INTEGER PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE whole (sum INTEGER NOT NULL);
"""
"""`whole` has one row: the checksum of the tables, keys and checksums of all other rows."""
Key = bytes | int


class PastRun(NamedTuple):
    """An earlier run: when it began, in epoch ms, in how many seconds it read how many bytes, and how many bytes were
    used then on the file system of each log directory."""

    began: int
    seconds: float
    bytes: int
    used: Mapping[str, int]


def _encoded(path: str) -> bytes:
    """Return the key of a path, which need not be UTF-8."""
    return path.encode("utf-8", "surrogatepass")


def _decoded(key: Key) -> str:
    assert isinstance(key, bytes)
    return key.decode("utf-8", "surrogatepass")


def _sum(key: Key, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key if isinstance(key, bytes) else str(key).encode()))


class ScrubState:
    """The state in a directory, which is created if it does not exist, and must be neither in what is read nor on a
    Kafka disk. All methods raise SourceError if it cannot be read or written, or is damaged."""

    def __init__(self, directory: str, sources: tuple[str, ...]) -> None:
        self.directory = directory
        self.path = os.path.join(directory, FILE)
        try:
            refuse_output(directory, sources)
            if os.path.lexists(directory) and not os.path.isdir(directory):
                raise SourceError.at(directory, "exists and is not a directory; choose another one for --state")
            if not os.path.lexists(self.path) and os.path.isdir(directory) and os.listdir(directory):
                raise SourceError.at(
                    directory, "is not empty, and is not the state of kdump verify; choose another one"
                )
            make_directories(os.path.abspath(directory), OWNER)
            self._lock = lock_directory(directory, "another kdump verify uses this state")
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, OWNER))
        except OutputError as error:
            raise SourceError(str(error)) from error
        except OSError as error:
            raise SourceError.at(directory, str(error.strerror)) from error
        self._changed = time.monotonic()
        self._sums: dict[tuple[str, Key], int] = {}
        """Checksums of all rows, by table and key."""
        try:
            with self._stated():
                self._open()
        except SourceError:
            self.close()
            raise

    @contextmanager
    def _stated(self) -> Iterator[None]:
        """Raise SourceError instead of SQLite's errors."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "malformed" in str(error) or "no such" in str(error):
                raise self.damaged(str(error)) from error
            raise SourceError.at(self.path, f"the state cannot be read or written: {error}") from error
        except (sqlite3.Error, RecordError, UnicodeDecodeError) as error:  # also of a message that is of damaged bytes
            raise self.damaged(str(error)) from error

    def damaged(self, reason: str) -> SourceError:
        """Return the error for a state that is damaged."""
        return SourceError.at(
            self.path, f"the state is damaged ({reason}); delete {self.directory} to check everything again"
        )

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, isolation_level=None)
        application, layout = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not tables and not application:
            self._db.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {LAYOUT}; {TABLES}"
                f"INSERT INTO whole VALUES ({self._whole()}); COMMIT;"
            )
        elif application != APPLICATION:
            raise SourceError.at(self.path, "is not the state of kdump verify; choose another directory for --state")
        elif layout > LAYOUT:
            raise SourceError.at(
                self.path,
                f"the state has layout {layout}, which is of a newer kdump (this one reads {LAYOUT}): "
                "use the newer kdump, or another --state",
            )
        problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise self.damaged(problem.splitlines()[-1])
        self._sums = {(table, key): _sum(key, data) for table in ROWS for key, data in self._rows(table)}
        if self._db.execute("SELECT sum FROM whole").fetchall() != [(self._whole(),)]:
            raise self.damaged("the checksum of all records does not match")
        self._db.execute("BEGIN IMMEDIATE")

    def _whole(self) -> int:
        return zlib.crc32(repr(sorted(map(repr, self._sums.items()))).encode())

    def _rows(self, table: str, where: str = "", *key: Key) -> Iterator[tuple[Key, bytes]]:
        """Yield the keys and values of rows. Raises RecordError for one whose checksum does not match."""
        for key_, data, checksum in self._db.execute(f"SELECT * FROM {table} {where}", key):
            if not isinstance(key_, (bytes, int)) or not isinstance(data, bytes) or _sum(key_, data) != checksum:
                raise RecordError("the checksum of a record does not match")
            yield key_, data

    def _put(self, table: str, key: Key, data: bytes) -> None:
        checksum = self._sums[table, key] = _sum(key, data)
        self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (key, data, checksum))

    def get(self, key: str) -> UnitRecord | None:
        """Return the record of a unit."""
        own = _encoded(key)
        with self._stated():
            for _, data in self._rows("unit", "WHERE key = ?", own):
                return unpack_record(data)
            if ("unit", own) in self._sums:
                raise RecordError("a record is missing")
            return None

    def put(self, key: str, record: UnitRecord) -> None:
        """Write the record of a unit."""
        with self._stated():
            self._put("unit", _encoded(key), record.pack())
            if time.monotonic() - self._changed > COMMIT_AFTER:
                self.commit()

    def remove(self, key: str) -> None:
        with self._stated():
            del self._sums["unit", _encoded(key)]
            self._db.execute("DELETE FROM unit WHERE key = ?", (_encoded(key),))

    def unit_keys(self) -> list[str]:
        """Return the keys of all units."""
        return [_decoded(key) for table, key in self._sums if table == "unit"]

    def about(self) -> dict[str, Any]:
        """Return what the state is about: for each log directory, what its meta.properties states."""
        with self._stated():
            return {_decoded(key): json.loads(data) for key, data in self._rows("about")}

    def put_about(self, key: str, value: Any) -> None:
        with self._stated():
            self._put("about", _encoded(key), json.dumps(value).encode())

    def runs(self) -> list[PastRun]:
        """Return the earlier runs, the latest last."""
        with self._stated():
            return [PastRun(int(began), **json.loads(data)) for began, data in self._rows("run", "ORDER BY began")]

    def end_run(self, run: PastRun) -> None:
        """Write that a run has ended."""
        value = {"seconds": run.seconds, "bytes": run.bytes, "used": dict(run.used)}
        with self._stated():
            self._put("run", run.began, json.dumps(value).encode())
            for began in sorted(int(key) for table, key in self._sums if table == "run")[:-MAX_RUNS]:
                del self._sums["run", began]
                self._db.execute("DELETE FROM run WHERE began = ?", (began,))
            self.commit()

    def commit(self) -> None:
        """Write what was put so far to the disk."""
        with self._stated():
            self._db.execute("UPDATE whole SET sum = ?", (self._whole(),))
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")
        self._changed = time.monotonic()

    def close(self) -> None:
        """Close the state; what was not committed is lost."""
        with suppress(sqlite3.Error, AttributeError):  # it may not have been opened
            self._db.close()
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
