"""Prints docs/json.md: every key of every JSON object, from the declarations that produce them."""

from __future__ import annotations

from kdump.answer import Key
from kdump.render.all_answers import TYPES

HEAD = """# The JSON objects

`--json` writes one object a line (JSON Lines), in UTF-8, as it reads. Every object has `type`; the tables
below list every other key of each type, in the order in which it is written. This page is made from the declarations in
the code (`make docs`), and a test holds it to them.

- `--json` writes a `batch` for each batch, or v0 or v1 message, that is chosen; `--json --records` a `record` for each
  record, and no `batch`. Bytes that no batch claims are a `region` in their place. What is wrong with a batch is a
  `finding`: a wrong checksum before the records of its batch, what decoding meets after those that came out.
- Names are the specification's. A v0 or v1 message is a `batch` too, with null where its format has nothing.
- Bytes (`key`, `value`, and those of headers) are lossless: text when they are valid UTF-8, otherwise base64, with a
  sibling `keyEncoding` or `valueEncoding` that says `"base64"`.
- `keyDecoded` and `valueDecoded` are what a decoder says, beside the bytes: see [decoders.md](decoders.md).
- Keys marked *optional* are absent where they have nothing to say.
- Control characters are escaped, U+007F to U+009F included. A key never changes its meaning; new keys may come.
"""


def table(keys: tuple[Key, ...]) -> str:
    lines = ["| key | type | unit | meaning |", "| --- | --- | --- | --- |"]
    for key in keys:
        name = f"`{key.name}`" + (" *optional*" if key.optional else "")
        lines.append(f"| {name} | {key.type} | {key.unit} | {key.meaning} |")
    return "\n".join(lines)


def page() -> str:
    return HEAD + "".join(f"\n## {name}\n\n{table(keys)}\n" for name, keys in TYPES.items())


if __name__ == "__main__":
    print(page(), end="")
