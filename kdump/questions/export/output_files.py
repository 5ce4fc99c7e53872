"""The files that kdump export writes: whole, or not at all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

from kdump.format.count_text import count_text, plain_count
from kdump.log.output_directory import OutputDirectory, OutputError, OutputFile
from kdump.log.paths import Target
from kdump.questions.export.run import ExportQuery
from kdump.streams import write_all
from kdump.tables.arrow import ArrowBatch, ArrowSchema, Rows, arrow_schema
from kdump.tables.declarations import FINDINGS, REJECTED, SparkTable
from kdump.tables.table_files import ParquetTable, StreamTable, TableFile
from kdump.text import path_text

PARQUET, ARROW = ".parquet", ".arrow"
STDOUT = 1
SHOWN = 5
"""Maximum number of findings that are printed if there is no file for them."""
Note = Callable[[str], None]


def is_file(path: str) -> bool:
    """Return True if --out names a single file or standard output, and False if it names a directory."""
    return path == "-" or path.endswith((PARQUET, ARROW))


def open_file(stack: ExitStack, path: str, sources: tuple[str, ...], schema: ArrowSchema) -> TableFile:
    """Open the file, or standard output, that is complete when `stack` is closed. Raises OutputError."""
    if path != "-":
        file: Any = stack.enter_context(OutputFile(path, sources).writing())
    elif os.isatty(STDOUT):
        raise OutputError("--out -: standard output is a terminal; redirect it, or write to a file")
    else:
        file = _StandardOutput()
    return (ParquetTable if path.endswith(PARQUET) else StreamTable)(file, schema)


def _abandon(file: TableFile | None) -> None:
    """Let pyarrow forget a file, which it would write to later."""
    with suppress(Exception):
        if file is not None:
            file.end()


class Output:
    """Where the rows go. `second` takes those of tables that have a file of their own: `opens` opens it by the name of
    the table, `name_of` returns what it is called."""

    def __init__(
        self,
        name: str,
        query: ExportQuery,
        opens: Callable[[str], AbstractContextManager[BinaryIO]],
        name_of: Callable[[str], str],
    ) -> None:
        self.name, self.schema, self.noun = name, query.schema, query.table.name.replace("_", " ")
        self.rows = 0
        self.stack = ExitStack()
        self.file: TableFile | None = None
        self._opens, self._name_of = opens, name_of
        self._rows = {table.name: Rows(table, arrow_schema(table)) for table in query.second_tables}
        self._seconds: dict[str, TableFile] = {}

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        raise NotImplementedError

    def second(self, table: SparkTable, row: dict[str, Any]) -> None:
        """Add a row of a second table."""
        if self._rows[table.name].add(row):
            self._put_second(table.name)

    def _put_second(self, name: str) -> None:
        for batch in self._rows[name].take():
            self._second_file(name).put(batch)

    def _second_file(self, name: str) -> TableFile:
        if name not in self._seconds:
            file = self.stack.enter_context(self._opens(name))
            self._seconds[name] = ParquetTable(file, self._rows[name].schema)
        return self._seconds[name]

    def end(self) -> None:
        """Complete the files."""
        for name in self._rows:
            self._put_second(name)
        for file in self._seconds.values():
            file.end()
        self.stack.close()

    def abandon(self) -> None:
        """Let pyarrow forget the files."""
        for file in (self.file, *self._seconds.values()):
            _abandon(file)

    def summary(self, severities: Counter[str]) -> str:
        """Return a line about what was written."""
        parts = [f"{count_text(self.rows, 'row')} of {self.noun} in {self.name}"]
        for name, file in self._seconds.items():
            counts = count_text(file.rows, "row") + f" of {name}"
            if name == FINDINGS.name:
                counts = ", ".join(plain_count(count, severity) for severity, count in sorted(severities.items()))
            parts += [f"{counts} in {self._name_of(name)}"] if file.rows else []
        return "; ".join(parts)


class FileOutput(Output):
    """A single file, or standard output."""

    def __init__(self, path: str, query: ExportQuery) -> None:
        sources, stem = query.reading.paths, "kdump" if path == "-" else os.path.splitext(path)[0]
        super().__init__(
            path_text(path),
            query,
            lambda name: OutputFile(f"{stem}.{name}{PARQUET}", sources).writing(),
            lambda name: path_text(f"{stem}.{name}{PARQUET}"),
        )
        for table in query.second_tables if path != "-" else ():
            OutputFile(f"{stem}.{table.name}{PARQUET}", sources)  # refused before anything is read
        self.file = open_file(self.stack, path, sources, self.schema)

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        assert self.file is not None
        self.file.put(batch)
        self.rows += batch.length

    def end(self) -> None:
        assert self.file is not None
        self.file.end()
        super().end()


class PipeOutput(FileOutput):
    """Standard output. `note` is called with the first rows of second tables."""

    def __init__(self, query: ExportQuery, note: Note) -> None:
        super().__init__("-", query)
        self.name, self.note = "standard output", note
        self.printed: Counter[str] = Counter()

    def second(self, table: SparkTable, row: dict[str, Any]) -> None:
        self.printed[table.name] += 1
        if self.printed[table.name] > SHOWN:
            return
        if table is FINDINGS:
            self.note(f"{row['file']}: {row['severity']}: {row['code']} at byte {row['position']}: {row['message']}")
        else:
            self.note(f"{row['file']}: offset {row['offset']} is left out: {row['reason']}")

    def summary(self, severities: Counter[str]) -> str:
        findings, rejected = self.printed[FINDINGS.name], self.printed[REJECTED.name]
        more = f"; {count_text(rejected, 'record')} left out, which do not fit the schema" if rejected else ""
        more += f"; {count_text(findings, 'finding')}: kdump verify shows all" if findings else ""
        return f"{super().summary(severities)}{more}"


class _StandardOutput:
    """What pyarrow writes standard output to."""

    closed = False

    def write(self, data: bytes) -> int:
        write_all(STDOUT, memoryview(data))
        return len(data)

    def flush(self) -> None:
        pass


class DirectoryOutput(Output):
    """A directory: a file for each partition, and one with the findings."""

    def __init__(self, directory: OutputDirectory, query: ExportQuery, shown: str) -> None:
        name = path_text(shown)
        super().__init__(
            name, query, lambda name: directory.writing(name + PARQUET), lambda table: f"{name}/{table}{PARQUET}"
        )
        self.directory, self.has_files = directory, query.has_regions
        self.place: tuple[Any, ...] | None = None
        self.names: set[str] = {*self._rows} if query.has_regions else set()
        self.open_file = self.stack.enter_context(ExitStack())

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        place: tuple[Any, ...] = ()
        if self.has_files and target is not None:
            place = (target.source, target.topic, target.partition) if target.topic else (target.path,)
        if self.file is None or place != self.place:
            self._close()
            self.place = place
            file = self.open_file.enter_context(self.directory.writing(self._name(target if place else None)))
            self.file = ParquetTable(file, self.schema)
        self.file.put(batch)
        self.rows += batch.length

    def _name(self, target: Target | None) -> str:
        name = self.noun.replace(" ", "_")
        if target is not None:
            stem = os.path.basename(target.path).partition(".")[0]
            name = stem if target.topic is None else f"{target.topic}-{target.partition}"
        number, stem = 1, name
        while name in self.names:  # the same partition on another disk
            number += 1
            name = f"{stem}.{number}"
        self.names.add(name)
        return name + PARQUET

    def _close(self) -> None:
        if self.file is not None:
            self.file.end()
            self.file = None
        self.open_file.close()

    def end(self) -> None:
        self._close()
        for name in self._rows if self.has_files else ():
            self._second_file(name)
        super().end()


@contextmanager
def output_for(path: str, query: ExportQuery, note: Note) -> Iterator[Output]:
    """Open the output; of what is not complete in the end, nothing remains. `note`: called with findings for which
    there is no file. Raises OutputError."""
    with ExitStack() as stack:
        if path == "-":
            output: Output = PipeOutput(query, note)
        elif is_file(path):
            output = FileOutput(path, query)
        else:
            directory = stack.enter_context(OutputDirectory(path, query.reading.paths).whole())
            output = DirectoryOutput(directory, query, path)
        stack.enter_context(output.stack)
        try:
            yield output
        except BaseException:
            output.abandon()
            raise


class AnswerFiles:
    """A file for each type of object that is added; in `directory`, or the single file, or standard output, that `path`
    names. `rows`: how many were written of each type."""

    def __init__(
        self, path: str, sources: tuple[str, ...], directory: OutputDirectory | None, stack: ExitStack
    ) -> None:
        self.path, self.sources, self.directory, self.stack = path, sources, directory, stack
        self.files: dict[str, TableFile] = {}
        self._held: dict[str, Rows] = {}

    @property
    def rows(self) -> dict[str, int]:
        return {name: file.rows for name, file in self.files.items()}

    def add(self, table: SparkTable, row: dict[str, Any]) -> None:
        """Add the row of an object. Raises OutputError for a second type of objects, if there is no directory."""
        if table.name not in self._held:
            self._held[table.name] = Rows(table, arrow_schema(table))
        if self._held[table.name].add(row):
            self._put(table.name)

    def _put(self, name: str) -> None:
        for batch in self._held[name].take():
            self._file(name, batch.schema).put(batch)

    def _file(self, name: str, schema: ArrowSchema) -> TableFile:
        if name not in self.files:
            if self.directory is not None:
                file = self.stack.enter_context(self.directory.writing(name + PARQUET))
                self.files[name] = ParquetTable(file, schema)
            elif self.files:
                types = " and ".join((*self.files, name))
                raise OutputError(f"--out {self.path}: there are objects of types {types}; write to a directory")
            else:
                self.files[name] = open_file(self.stack, self.path, self.sources, schema)
        return self.files[name]

    def end(self) -> None:
        """Complete the files."""
        for name in self._held:
            self._put(name)
        for file in self.files.values():
            file.end()


@contextmanager
def answer_files(path: str, sources: tuple[str, ...]) -> Iterator[AnswerFiles]:
    """Open the files for objects; of what is not complete in the end, nothing remains. Raises OutputError."""
    with ExitStack() as stack:
        directory = None if is_file(path) else stack.enter_context(OutputDirectory(path, sources).whole())
        files = AnswerFiles(path, sources, directory, stack)
        try:
            yield files
        except BaseException:
            for file in files.files.values():
                _abandon(file)
            raise
