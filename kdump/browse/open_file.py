"""A file that is open in the browser: read with the precautions for a live broker, never used after it is closed."""

from __future__ import annotations

from kdump.format.count_text import plain_count
from kdump.log.errors import SourceError
from kdump.log.fault_tolerant import FaultTolerantSource
from kdump.log.file_kinds import PRODUCER_SNAPSHOT, FileKind, by_content
from kdump.log.paths import Target
from kdump.log.source import FileSource
from kdump.log.window import LARGE, Window
from kdump.state.partition_summary import open_window


class OpenFile:
    """A window over the file `at`, opened on first use."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._window: Window | None = None
        self._kind: FileKind | None = target.kind
        self._closed = False

    @property
    def window(self) -> Window:
        """The window. Raises SourceError if the file cannot be opened, or has been closed."""
        if self._closed:
            raise SourceError(f"{self.target.path}: closed")
        if self._window is None:
            self._window = open_window(self.target)
            self._window.source.keep = True  # compressed files: the browser also moves backward in them
            self._window.seek_headers(LARGE)
        return self._window

    @property
    def kind(self) -> FileKind:
        """The file kind by its name, or else by its content. Raises SourceError."""
        if self._kind is None:
            self._kind = by_content(self.window)
            self.target = self.target._replace(kind=self._kind)
        if self._kind is PRODUCER_SNAPSHOT:
            self.window.source.keep = True
        return self._kind

    @property
    def size(self) -> int | None:
        """Size in bytes; None for a compressed file that has not been read to its end."""
        return self.window.source.size

    @property
    def length(self) -> int | None:
        """Like `size`, but without reading anything: None if the file has not been opened yet."""
        return None if self._window is None else self._window.source.size

    def close(self) -> None:
        if self._window is not None and not self._closed:
            self._window.source.close()
        self._closed = True

    def remark(self) -> str:
        """Return a note on unreadable bytes or on changes since the file was opened; empty if there are none."""
        source = None if self._closed or self._window is None else self._window.source
        if source is None:
            return ""
        if source.error:
            return source.error
        if isinstance(source, FaultTolerantSource) and source.unreadable:
            return f"{len(source.unreadable)} byte ranges cannot be read ({source.fault}) and are shown as zeros"
        if isinstance(source, FileSource):
            grown = source.grown()
            if source.is_deleted():
                return "this file has been deleted; what is still readable is shown"
            if grown:
                how = "grew" if grown > 0 else "was truncated"
                return f"{how} by {plain_count(abs(grown), 'byte')} since it was opened; r reads it again"
        return ""
