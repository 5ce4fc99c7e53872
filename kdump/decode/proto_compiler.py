"""Compiles the texts of Protobuf schemas (.proto) with protoc: that of the package grpcio-tools, else the one in PATH.

protoc runs as a process of its own, because the texts come from a disk. Its input and output are in a temporary
directory; it reads nothing else but the files of google.protobuf that it brings along. (Those of grpcio-tools are
copied there: in the single file, they are in an archive.)"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kdump.decode.decoder_interface import DecoderError
from kdump.extras import how_to_install

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

SECONDS = 20
"""Maximum time that protoc may take for a schema."""
LONGEST_NAME = 1000
MAIN = "kdump-main.proto"
GOOGLE = "google/protobuf"
RUN = "from grpc_tools import _protoc_compiler as c; import sys; sys.exit(c.run_main([a.encode() for a in sys.argv]))"
"""What the interpreter runs: the single file takes it as it is (tools/carry/kdump_carried.py)."""
AT_LINE = re.compile(r":\d+:\d+: ")
"""In what protoc says about a place in a file."""
KNOWN = {
    "confluent/meta.proto": (
        'syntax = "proto3";\npackage confluent;\nimport "google/protobuf/descriptor.proto";\n'
        "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }\n"
        "extend google.protobuf.FileOptions { Meta file_meta = 1088; }\n"
        "extend google.protobuf.MessageOptions { Meta message_meta = 1088; }\n"
        "extend google.protobuf.FieldOptions { Meta field_meta = 1088; }\n"
        "extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }\n"
        "extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }\n"
    ),
    "confluent/type/decimal.proto": (
        'syntax = "proto3";\npackage confluent.type;\n'
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }\n"
    ),
}
"""Files that a registry has without a reference: their fields and numbers, as Confluent's registry defines them."""


def compiled(schema: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """Return the descriptors of a schema, those of its imports before it. `references`: texts by the names by which
    they are imported. Raises DecoderError if there is no protoc, or the schema does not compile."""
    return _compiled(schema, tuple(sorted(references.items())))


@lru_cache(64)  # who decodes and who searches ask for the same
def _compiled(schema: str, references: tuple[tuple[str, str], ...]) -> FileDescriptorSet:
    try:
        from google.protobuf import descriptor_pb2
    except ImportError:
        raise DecoderError(f"Protobuf needs the package protobuf: {how_to_install('protobuf')}") from None
    try:
        with tempfile.TemporaryDirectory(prefix="kdump-proto-") as folder:
            command, own = _protoc()
            for name, content in (*KNOWN.items(), *own):
                _write(folder, name, content)
            for name, referenced in references:
                _write(folder, _checked(name), referenced)
            _write(folder, MAIN, schema)
            out = os.path.join(folder, "out")
            names = [f"-I{folder}", "--include_imports", f"--descriptor_set_out={out}", MAIN]
            _run([*command, *names], folder)
            with open(out, "rb") as file:
                return descriptor_pb2.FileDescriptorSet.FromString(file.read())
    except OSError as error:
        raise DecoderError(f"protoc cannot run: {error}") from None
    except subprocess.TimeoutExpired:
        raise DecoderError(f"protoc did not end within {SECONDS} seconds") from None


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").replace(folder + os.sep, "").split("\n")
        reason = next((line for line in said if AT_LINE.search(line)), f"protoc ended with status {done.returncode}")
        raise DecoderError(f"not a Protobuf schema: {reason.removeprefix(MAIN + ':')}"[:300])


def _protoc() -> tuple[list[str], Iterator[tuple[str, str]]]:
    """Return the command that runs protoc, and the files of google.protobuf that it does not find itself, by the names
    by which they are imported. Raises DecoderError if there is no protoc."""
    if find_spec("grpc_tools") is not None:
        folder = files("grpc_tools").joinpath("_proto", *GOOGLE.split("/"))
        own = ((f"{GOOGLE}/{file.name}", file.read_text("utf-8")) for file in folder.iterdir() if file.is_file())
        return [sys.executable, "-I", "-c", RUN], own
    path = shutil.which("protoc")
    if path is None:
        raise DecoderError(f"the texts of Protobuf schemas need protoc: {how_to_install('protobuf')}")
    return [path], iter(())


def _checked(name: str) -> str:
    """Return the name of an import if it is one within a directory."""
    parts = name.split("/")
    if len(name) > LONGEST_NAME or "\0" in name or "\\" in name or name == MAIN or {"", ".", ".."} & set(parts):
        raise DecoderError(f"it references {name[:100]!r}, which cannot be imported")
    return name


def _write(folder: str, name: str, content: str) -> None:
    path = os.path.join(folder, *name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content.encode("utf-8", "surrogatepass"))
