"""Text of a log on a terminal: every character, by Unicode's categories."""

import unicodedata

from kdump.render.escape import printable

SHOWN = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def expected(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"):
        return character
    number = ord(character)
    plain = f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
    return SHOWN.get(character, plain)


def test_every_character() -> None:
    characters = [
        *map(chr, (*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFE00, 0x1_0100), *range(0x1_F300, 0x11_0000, 977)))
    ]
    wanted = [*map(expected, characters)]
    assert [*map(printable, characters)] == wanted
    assert printable("".join(characters)) == "".join(wanted)
