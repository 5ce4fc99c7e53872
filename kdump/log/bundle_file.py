"""A small file in a bundle: an index, a checkpoint (docs/bundle.md)."""

from __future__ import annotations

from kdump.format.bundle_container import ContainerReader
from kdump.format.errors import DecodeError
from kdump.log.bundle_index import MAX_FILE, PIECE, Bytes
from kdump.log.errors import SourceError, damaged_bundle
from kdump.log.source import NOTHING


class BundleFile:
    """A Source of a small file."""

    lacks = NOTHING

    def __init__(self, name: str, container: ContainerReader, contents: Bytes, size: int) -> None:
        self.name = name
        self.size: int | None = size
        self.error: str | None = None
        self.keep = True
        self._container = container
        self._frames = contents.frames
        self._held: tuple[int, bytes] = (-1, b"")
        if len(contents.frames) * PIECE >= size + PIECE or size > MAX_FILE:
            raise SourceError(f"{name}: the bundle is damaged: {len(contents.frames)} frames of a file of {size} bytes")

    def read_at(self, position: int, count: int) -> bytes:
        assert self.size is not None
        count = max(0, min(count, self.size - position))
        parts = []
        while count:
            number, inside = divmod(position, PIECE)
            part = self._piece(number)[inside : inside + count]
            part += bytes(min(count, PIECE - inside) - len(part))
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return b"".join(parts)

    def _piece(self, number: int) -> bytes:
        """Return a piece, without the zeros at its end."""
        if number >= len(self._frames):
            return b""
        if self._held[0] != number:
            try:
                frame = self._frames[number]
                if frame.size > PIECE:
                    raise DecodeError("BundleIndex", "frames", number, f"{frame.size} bytes in a piece")
                self._held = number, self._container.read(frame)
            except DecodeError as error:
                raise damaged_bundle(self.name, error) from error
        return self._held[1]

    def next_data(self, position: int) -> int:
        return position if position < len(self._frames) * PIECE else max(position, self.size or 0)

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass
