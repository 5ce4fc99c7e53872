"""The identities of files when they were first looked at, as compact as possible: a broker has 200,000 files."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from kdump.io.source import Identity

ValueT = TypeVar("ValueT")
_LOOK = struct.Struct("<IIQQq")
"""Number of the name's ending, number of the device plus 1 (0: there was no file), inode, size, modification time."""


class _Numbers(Generic[ValueT]):
    """Values, each with a number."""

    def __init__(self) -> None:
        self.numbers: dict[ValueT, int] = {}
        self.values: list[ValueT] = []

    def number(self, value: ValueT) -> int:
        """Return the number of a value, which may be new."""
        known_number = self.numbers.setdefault(value, len(self.values))
        if known_number == len(self.values):
            self.values.append(value)
        return known_number


class FirstLooks(Mapping[str, "Identity | None"]):
    """Identities by path; None for a file that no longer existed. The files with one name and several endings are kept
    together, in 32 bytes each."""

    def __init__(self) -> None:
        self._looks: dict[str, bytes] = {}
        self._endings = _Numbers[str]()
        self._devices = _Numbers[int]()
        self._odd: dict[str, Identity] = {}
        """Those that do not fit, as a bundle may have."""
        self._count = 0

    def add(self, path: str, seen: Identity | None) -> None:
        """Record the identity of a file that has none yet."""
        name = stem(path)
        ending = self._endings.number(path[len(name) :])
        numbers = (0, 0, 0, 0)
        if seen is not None:
            device = 1 + self._devices.number(seen.device)
            numbers = (device, seen.inode, seen.size, seen.modified)
        try:
            look = _LOOK.pack(ending, *numbers)
        except struct.error:
            assert seen is not None
            self._odd[path] = seen
            look = _LOOK.pack(ending, 0, 0, 0, 0)
        self._looks[name] = self._looks.get(name, b"") + look
        self._count += 1

    def siblings(self, path: str) -> list[str]:
        """Return the files with the same stem as this one: a segment, its indexes and its snapshot."""
        name = stem(path)
        endings = self._endings.values
        return [name + endings[row[0]] for row in _LOOK.iter_unpack(self._looks.get(name, b""))]

    def __contains__(self, path: object) -> bool:
        assert isinstance(path, str)
        looks = self._looks.get(name := stem(path))
        if looks is None:
            return False
        ending = self._endings.numbers.get(path[len(name) :])
        return any(row[0] == ending for row in _LOOK.iter_unpack(looks))

    def __getitem__(self, path: str) -> Identity | None:
        name = stem(path)
        ending, devices = self._endings.numbers.get(path[len(name) :]), self._devices.values
        for each, device, *numbers in _LOOK.iter_unpack(self._looks.get(name, b"")):
            if each == ending:
                return Identity(devices[device - 1], *numbers) if device else self._odd.get(path)
        raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        endings = self._endings.values
        for name, looks in self._looks.items():
            yield from (name + endings[row[0]] for row in _LOOK.iter_unpack(looks))

    def __len__(self) -> int:
        return self._count


def stem(path: str) -> str:
    """Return the path up to the first dot of the file's name."""
    directory, slash, name = path.rpartition("/")
    return directory + slash + name.partition(".")[0]
