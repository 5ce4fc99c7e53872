"""Numbers texts that occur again and again: topics, log directory IDs."""

from __future__ import annotations


class Names:
    """Texts by number, from 0 on."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, name: str) -> int:
        """Return the number of a text, the next one if it has none."""
        number = self._numbers.setdefault(name, len(self.texts))
        if number == len(self.texts):
            self.texts.append(name)
        return number

    def find(self, name: str) -> int:
        """Return the number of a text, -1 if it has none."""
        return self._numbers.get(name, -1)
