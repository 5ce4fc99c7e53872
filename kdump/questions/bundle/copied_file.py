"""Copies a file from a container to another, with its frames as they are stored."""

from __future__ import annotations

from kdump.format.bundle_container import ContainerReader, ContainerWriter, Frame
from kdump.log.bundle_directory import block_of
from kdump.log.bundle_index import Block, Bytes, Log, StoredFile
from kdump.log.bundle_rows import Located, RowsReader, RowsWriter, StoredRows, located_of


def copied_file(file: StoredFile, reader: ContainerReader, container: ContainerWriter) -> StoredFile:
    """Return the file as it is in `container`, to which its contents are copied. Raises DecodeError and TooManyRows."""
    copier = _Copier(reader, container)
    contents = file.contents
    if isinstance(contents, Bytes):
        return file._replace(contents=contents._replace(frames=tuple(map(copier.frame, contents.frames))))
    return file if contents is None else file._replace(contents=copier.log(contents))


class _Copier:
    def __init__(self, reader: ContainerReader, container: ContainerWriter) -> None:
        self.reader = reader
        self.container = container

    def frame(self, frame: Frame) -> Frame:
        return self.container.copy(self.reader.stored(frame), frame.size)

    def log(self, log: Log) -> Log:
        blocks = RowsWriter(self.container)
        stored: RowsReader[Block] = RowsReader(self.reader, log.blocks, block_of)
        for block in stored.after(0):
            blocks.add(
                block._replace(
                    frame=self.frame(block.frame),
                    complete=block.complete and self.frame(block.complete),
                    payload=tuple(map(self.frame, block.payload)),
                )
            )
        records, hashes = log.records, log.hashes
        if records is not None:
            records = records._replace(verdicts=self.located(records.verdicts), sums=self.frame(records.sums))
        if hashes is not None:
            hashes = hashes._replace(frames=self.located(hashes.frames))
        return log._replace(blocks=blocks.end(), records=records, hashes=hashes)

    def located(self, rows: StoredRows) -> StoredRows:
        found = RowsWriter(self.container)
        stored: RowsReader[Located] = RowsReader(self.reader, rows, located_of)
        for each in stored.after(0):
            found.add(each._replace(frame=self.frame(each.frame)))
        return found.end()
