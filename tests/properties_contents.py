"""python -m tests.properties_contents > tests/format/java_properties.tsv

Writes contents of meta.properties, in hexadecimal and one per line: a valid file and what may happen to it, and random
texts of the characters that java.util.Properties treats specially. tests/format/JavaProperties.java adds to each what
Java reads."""

from __future__ import annotations

import random
from collections.abc import Iterator

VALID = b"#\n#Sat\nnode.id=1\ndirectory.id=NC0LDPpABlNgsHloSKd7mg\nversion=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\n"
OLD = b"version=0\nbroker.id=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\n"
DIRECTORY = b"NC0LDPpABlNgsHloSKd7mg"
CLUSTER = b"cluster.id=FN96DRb6S3GeSIQS03itlw"
CHANGES = (
    (b"\n", b"\r\n", b"\r", b"\x0b", b"\n\n", b" \n", b"\\\n"),
    (b"=", b" : ", b" ", b"\t=\t", b"==", b"\\=", b"\x0c"),
    (
        b"node.id=1",
        *(b"node.id=" + value for value in (b"1 ", b" 1", b"1\t", b"+1", b"-1", b"01", b"", b"x", b"2147483648")),
    ),
    (
        *(b"node.id=1", b"  node.id=  1", b"node.id=x\nnode.id=1", b"node.\\\n   id=1", b"no\\de\\.id=1"),
        *(b"Node.id=1", b"\0node.id=1"),
    ),
    (
        b"node.id=1",
        *(
            b"node.id=" + value
            for value in (b"\\u0031", b"\\u0661", b"\\ud835\\udfcf", b"\\u00b2", b"\\uff11", b"0" * 300 + b"1")
        ),
    ),
    (
        b"version=1",
        *(b"version=" + value for value in (b"01", b"+1", b"1\x1c", b"1 ", b"2", b"x", b"", b"0", b"1.0", b"\\u0661")),
    ),
    (
        *(b"version=1\n", b"", b"version=0\nbroker.id=1\n", b"version=0\nbroker.id=2\n"),
        *(b"version=0\nbroker.id=x\n", b"broker.id=x\nversion=1\n"),
    ),
    (b"version=1", b"\0version=1", b"\xc2\x85version=1", b"\x0cversion=1", b"!version=1", b"\xef\xbb\xbfversion=1"),
    (
        DIRECTORY,
        b"",
        DIRECTORY[:-1],
        DIRECTORY[:-2],
        DIRECTORY + b"A",
        DIRECTORY + b"==",
        DIRECTORY + b"=",
        DIRECTORY + b" ",
    ),
    (
        DIRECTORY,
        b"NC0LDPpABl+gsHloSKd7mg",
        DIRECTORY[:-1] + b"h",
        b"A" * 20 + b"Yw",
        b"A" * 20 + b"ZA",
        b"-" + DIRECTORY[1:],
    ),
    (CLUSTER, b"cluster.id=", b"cluster.id", b"cluster.id=\\\n FN96DRb6", b"cluster.id:\\\\x", b""),
)
AFTER = (
    b"x=\\u00\n",
    b"x=\\u00g1\n",
    b"\\u=\n",
    b"#\\u00\n",
    b"!x",
    bytes(100),
    b"\\",
    b"\\\n",
    b"a\\\n  ",
    b"name=\xe9\xff\n",
    b"b=\\ud800\n",
)
PIECES = (
    b"=",
    b":",
    b" ",
    b"\t",
    b"\x0c",
    b"\n",
    b"\r",
    b"\r\n",
    b"\\",
    b"\\\\",
    b"#",
    b"!",
    b"\\n",
    b"\\t",
    b"\\r",
    b"\\f",
    b"\\u0031",
    b"\\u003d",
    b"\\u00",
    b"\\uD83D",
    b"\\ude00",
    b"\\U0031",
    b"u0031",
    b"\0",
    b"\x0b",
    b"\x85",
    b"\xe9",
    b"version",
    b"node.id",
    b"1",
    b"a",
    b"bc",
)


def contents(count: int) -> Iterator[bytes]:
    """Yield the contents, `count` of which are random."""
    dice = random.Random(20)
    yield from (
        b"",
        b"#\n",
        VALID,
        OLD,
        VALID[:-1],
        VALID[:-1] + bytes(50),
        bytes(len(VALID)),
        b"\\",
        b"\\\n#a\nb=1",
        b"a\\\n#b=1",
    )
    for old, *others in CHANGES:
        yield from (VALID.replace(old, other) for other in others)
    for text in AFTER:
        yield from (VALID + text, text + VALID, VALID[:-1] + text)
    for end in range(1, len(VALID), 3):
        yield VALID[:end]
    for _ in range(count):
        yield b"".join(dice.choices(PIECES, k=dice.randint(1, 12)))
    for _ in range(count // 4):
        at = dice.randrange(len(VALID))
        yield VALID[:at] + b"".join(dice.choices(PIECES, k=dice.randint(1, 2))) + VALID[at:]


if __name__ == "__main__":
    for content in dict.fromkeys(contents(700)):
        print(content.hex(), end="\t\n")
