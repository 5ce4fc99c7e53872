"""Compares the classes of two releases that read or write a log directory, method by method, by their bytecode.

javap disassembles them. Numbers of the constant pool, of local variables and of lambdas, offsets of instructions,
packages and exceptions that are declared are left out, so that a method is the same that was only compiled again, or
uses a class that moved. Classes that are generated from schemas are left out: those are compared as schemas."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

READ_OR_WRITE = (
    *("org/apache/kafka/storage/internals/", "org/apache/kafka/server/log/", "org/apache/kafka/server/storage/"),
    *("org/apache/kafka/server/common/", "org/apache/kafka/server/config/", "org/apache/kafka/raft/"),
    *("org/apache/kafka/snapshot/", "org/apache/kafka/image/", "org/apache/kafka/controller/"),
    *("org/apache/kafka/metadata/", "org/apache/kafka/coordinator/common/runtime/CoordinatorRecord"),
    "org/apache/kafka/coordinator/common/runtime/KRaft",
    "org/apache/kafka/coordinator/group/GroupCoordinatorRecord",
    "org/apache/kafka/coordinator/group/GroupCoordinatorShard",
    "org/apache/kafka/coordinator/group/GroupMetadataManager",
    "org/apache/kafka/coordinator/group/OffsetMetadataManager",
    "org/apache/kafka/coordinator/share/ShareCoordinator",
    *("org/apache/kafka/coordinator/share/ShareGroupOffset", "org/apache/kafka/coordinator/transaction/"),
    *("org/apache/kafka/common/record/", "org/apache/kafka/common/compress/"),
    *("org/apache/kafka/common/requests/ProduceRequest", "org/apache/kafka/tools/DumpLog"),
    *("org/apache/kafka/tools/StorageTool", "kafka/log/", "kafka/raft/", "kafka/cluster/Partition"),
    *("kafka/coordinator/", "kafka/server/ReplicaManager", "kafka/server/checkpoints/"),
    *("kafka/server/metadata/", "kafka/server/BrokerServer", "kafka/server/ControllerServer"),
    *("kafka/server/KafkaRaftServer", "kafka/server/KafkaServer", "kafka/server/SharedServer"),
    *("kafka/tools/DumpLog", "kafka/tools/StorageTool"),
)
"""Beginnings of the names of classes that read or write a log directory, in the order of the report."""
GENERATED = "/generated/"
Members = dict[str, dict[str, tuple[str, ...]]]
NEW, GONE, CHANGED, ORDER = "new", "gone", "changed", "changed order"
AT_ONCE = 400
"""Number of classes for one javap."""

_INSTRUCTION = re.compile(r"^ +(\d+): (\S+) *(.*)$")
_CASE = re.compile(r"^ +(-?\d+|default): (\d+)$")
_REFERENCE = re.compile(r"#\d+(?:, *\d+)? *// (.*)")
_LAMBDA = re.compile(r"(lambda\$\w+?)\$\d+|(\$anonfun\$\w+?)\$\d+|(InvokeDynamic) #\d+")
_PACKAGE = re.compile(r"(?:org[/.]apache[/.])?kafka[/.](?:[a-z]\w*[/.])+(?=[A-Z])")
_THROWS = re.compile(r" throws [\w.$, ]+$")
_WIDE = {"ldc_w": "ldc", "goto_w": "goto"}
_LOCAL = re.compile(r"([ailfd](?:load|store))_\d")
_METHOD = re.compile(r"([\w$]+)\(")


class Change(NamedTuple):
    """A member that differs, or with an empty `member` a class. `what` is GONE, NEW, CHANGED, or ORDER if only the
    order of the instructions differs; `gone` and `new` are the instructions that only one of the releases has."""

    owner: str
    member: str
    what: str
    gone: tuple[str, ...]
    new: tuple[str, ...]


def classes(jars: Path) -> dict[str, Path]:
    """Return the jar of each class to compare."""
    found = {}
    for jar in sorted(jars.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as files:
            for name in files.namelist():
                if name.endswith(".class") and name.startswith(READ_OR_WRITE) and GENERATED not in name:
                    found[name.removesuffix(".class")] = jar
    return found


def members(jars: Path) -> Members:
    """Return the instructions of each field (none) and method, by class and declaration."""
    found: Members = {}
    names = [f"jar:file:{jar}!/{name}.class" for name, jar in classes(jars.resolve()).items()]
    for start in range(0, len(names), AT_ONCE):
        command = ["javap", "-c", "-p", "-constants", *names[start : start + AT_ONCE]]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found.update(disassembled(text))
    return found


def disassembled(text: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """Yield class, and instructions by member, of what javap has printed."""
    for part in re.split(r"^Compiled from .*\n", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        match = re.search(r"(?:class|interface) ([\w.$]+)", lines[0])
        if match is None:
            raise ValueError(f"javap printed {lines[0]!r}")
        own: dict[str, list[str]] = {"": [_PACKAGE.sub("", lines[0].rstrip(" {"))]}
        name = ""
        for line in lines[1:]:
            if line.startswith("  ") and line[2:3].strip() and line.endswith(";"):
                name = _PACKAGE.sub("", _LAMBDA.sub(r"\1\2", _THROWS.sub("", line.strip().rstrip(";"))))
                own.setdefault(name, [])
            elif line.startswith("      "):
                own[name].append(line)
        yield match[1], {key: tuple(_normal(code)) if key else tuple(code) for key, code in own.items()}


def _normal(code: list[str]) -> Iterator[str]:
    """Yield the instructions of a method without what depends on the compilation of the rest of its class."""
    for line in code:
        match = _INSTRUCTION.match(line)
        case = _CASE.match(line)
        if case and not (match and match[2].isalpha()):
            yield f"case {case[1]}"
        elif match:
            name, rest = _WIDE.get(match[2], match[2]), match[3]
            reference = _REFERENCE.search(rest)
            if reference:
                yield _referring(name, reference[1])
            elif name in ("bipush", "sipush", "newarray", "iinc"):
                yield f"{name} {rest}" if name != "iinc" else f"iinc {rest.split(',')[-1].strip()}"
            else:
                yield _LOCAL.sub(r"\1", name)


def _referring(name: str, text: str) -> str:
    return _PACKAGE.sub("", f"{name} {_LAMBDA.sub(lambda found: found[1] or found[2] or found[3], text)}")


def compare(before: Path, after: Path) -> list[Change]:
    """Return what differs between the classes of two directories of jars, by class."""
    return differences(members(before), members(after))


def differences(old: Members, new: Members) -> list[Change]:
    """Return what differs between the members of classes."""
    found = []
    order = {prefix.replace("/", "."): place for place, prefix in enumerate(READ_OR_WRITE)}
    for owner in sorted(
        old.keys() | new.keys(),
        key=lambda name: (next(n for prefix, n in order.items() if name.startswith(prefix)), name),
    ):
        mine, theirs = old.get(owner), new.get(owner)
        if mine is None or theirs is None:
            found.append(Change(owner, "", NEW if mine is None else GONE, (), ()))
            continue
        mine = _declared_as(mine, theirs)
        for member in dict.fromkeys([*mine, *theirs]):
            one, other = mine.get(member), theirs.get(member)
            if one != other:
                gone, added = Counter(one or ()), Counter(other or ())
                what = NEW if one is None else GONE if other is None else ORDER if gone == added else CHANGED
                less, more = tuple((gone - added).elements()), tuple((added - gone).elements())
                found.append(Change(owner, member, what, less, more))
    return found


def _declared_as(old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the old members by the declarations that they have now: a method with other parameters is the same one if
    no other of its name is gone or new. Its old declaration is then reported like an instruction that is gone."""
    others: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    for names, members_, rest in zip(others, (old, new), (new, old)):
        for member in members_.keys() - rest.keys():
            if match := _METHOD.search(member):
                names.setdefault(match[1], []).append(member)
    now = {
        was[0]: others[1][name][0] for name, was in others[0].items() if len(was) == len(others[1].get(name, ())) == 1
    }
    return {now.get(member, member): (*([member] if member in now else []), *code) for member, code in old.items()}
