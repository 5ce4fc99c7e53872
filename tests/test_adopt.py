"""What `make release-adopt` tells of two releases; without jars, brokers or the registry."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import message_sources
from tools.adopt import __main__ as adopt
from tools.adopt import bytecode, facts, records, report
from tools.adopt.bytecode import Change

# What javap prints of a class, and of the same in the next release: >= has become >, a lambda has another number, the
# numbers of the constant pool and of local variables differ, and a class has moved.
BEFORE = """Compiled from "Log.java"
public class org.apache.kafka.storage.internals.log.Log {
  static final int VERSION = 0;

  boolean local(long, long) throws java.io.IOException;
    Code:
       0: lload_1
       1: lload_3
       2: lcmp
       3: iflt          10
       6: iconst_1
       7: goto          11
      10: iconst_0
      11: ireturn

  org.apache.kafka.common.utils.LogContext name();
    Code:
       0: invokedynamic #7,  0              // InvokeDynamic #0:run:()Ljava/lang/Runnable;
       5: astore_1
       6: ldc           #15                 // String log
       8: invokespecial #9                  // Method org/apache/kafka/common/utils/LogContext.log:()V
      11: areturn

  private static void lambda$name$0();
    Code:
       0: tableswitch   { // 1 to 1
                     1: 8
               default: 11
          }
       8: bipush        7
      11: return
}
"""
AFTER = (
    BEFORE.replace("iflt          10", "ifle          10")
    .replace("VERSION = 0", "VERSION = 1")
    .replace("lambda$name$0", "lambda$name$12")
    .replace("#15 ", "#315")
    .replace("ldc  ", "ldc_w")
    .replace("astore_1", "astore 5")
    .replace("kafka.common.utils.Log", "kafka.common.utils.internals.Log")
    .replace("common/utils/", "common/utils/internals/")
    .replace("InvokeDynamic #0", "InvokeDynamic #3")
    .replace(" throws java.io.IOException", "")
)
LOG = "org.apache.kafka.storage.internals.log.Log"


def classes(text: str) -> bytecode.Members:
    return dict(bytecode.disassembled(text))


def test_a_method_that_was_only_compiled_again_is_the_same() -> None:
    assert BEFORE != AFTER
    found = bytecode.differences(classes(BEFORE), classes(AFTER))
    assert found == [
        Change(LOG, "static final int VERSION = 0", "gone", (), ()),
        Change(LOG, "boolean local(long, long)", "changed", ("iflt",), ("ifle",)),
        Change(LOG, "static final int VERSION = 1", "new", (), ()),
    ]
    assert bytecode.differences(classes(AFTER), classes(AFTER)) == []


def test_a_method_with_other_parameters_is_the_same_method() -> None:
    """Its instructions are compared, unless there are several that it may have been."""
    other = BEFORE.replace("local(long, long)", "local(long, long, int)").replace("iflt  ", "ifle  ")
    was, now = "boolean local(long, long)", "boolean local(long, long, int)"
    assert bytecode.differences(classes(BEFORE), classes(other)) == [
        Change(LOG, now, "changed", (was, "iflt"), ("ifle",))
    ]
    several = other.replace(
        "  org.apache.kafka.common.utils.LogContext name();", "  boolean local();\n    Code:\n\n  int name();"
    )
    found = {(each.member, each.what) for each in bytecode.differences(classes(BEFORE), classes(several))}
    assert {(was, "gone"), (now, "new"), ("boolean local()", "new")} < found


def test_every_instruction_counts() -> None:
    for old, new in (("bipush        7", "bipush        8"), ("String log", "String other"), ("1: 8", "2: 8")):
        changed = classes(BEFORE.replace(old, new))
        assert [each.what for each in bytecode.differences(classes(BEFORE), changed)] == ["changed"], old
    swapped = BEFORE.replace("1: lload_3", "1: lcmp").replace("2: lcmp", "2: lload_3")
    assert [each.what for each in bytecode.differences(classes(BEFORE), classes(swapped))] == ["changed order"]


def test_classes_that_are_new_and_gone() -> None:
    other = classes(BEFORE.replace("log.Log ", "log.LogManager "))
    found = bytecode.differences(classes(BEFORE), other)
    assert [(each.owner, each.what) for each in found] == [(LOG, "gone"), (LOG + "Manager", "new")]
    text = "\n".join(report.bytecode(found))
    assert f"### Classes that are new: 1\n\n- {LOG}Manager" in text
    assert f"### Classes that are gone: 1\n\n- {LOG}\n" in text


def test_what_several_methods_have_is_told_once() -> None:
    same = [Change(f"Log{number}", "void close()", "changed", ("pop",), ("call b",)) for number in range(3)]
    member = "private final java.util.Map<java.lang.String, java.io.File> dirs(java.io.File)"
    other = [Change("Log9", "int size()", "changed", ("iflt",), ("ifle", "dup")), Change("Log9", member, "new", (), ())]
    text = "\n".join(report.bytecode([*same, *other]))
    assert "- 3 methods, such as Log0.void close(), Log1.void close(), Log2.void close(): + `call b`" in text
    assert "- `int size()`: − `iflt`; + `ifle`" in text
    assert "- new: `Map<String, File> dirs(File)`" in text


def test_what_a_release_knows() -> None:
    def known(level: int, *names: str) -> dict[str, dict[str, str]]:
        levels: dict[str, Any] = {"features": {"share.version": [0, level, level]}, "messages": {"metadata": {}}}
        fields = [{"name": name, "type": "int32", "versions": "0+"} for name in names]
        return report.flat(levels, {"metadata": {"FeatureLevelRecord": {"fields": fields}}})

    text = "\n".join(report.knowledge(known(1, "Name"), known(2, "Name", "Level")))
    assert "| share.version | [0, 1, 1] | [0, 2, 2] |" in text
    assert "| FeatureLevelRecord.Level | - | type int32, versions 0+ |" in text
    assert "FeatureLevelRecord.Name" not in text


def test_the_data_file_of_a_release(tmp_path: Path) -> None:
    for version in ("4.10.0", "4.9.1", "4.10.2"):
        facts.write({"release": version, "brokerConfigs": {"log.dirs": None, "ssl.protocol": "TLSv1.3"}}, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4.10.json", "4.9.json", "__init__.py"]
    assert json.loads((tmp_path / "4.10.json").read_text()) == {
        "release": "4.10.2",
        "brokerConfigs": {"log.dirs": None},
    }
    names: dict[str, Any] = {}
    exec((tmp_path / "__init__.py").read_text(), names)
    assert names["RELEASES"] == ((4, 9, 1), (4, 10, 2))


def test_records_of_messages_that_changed() -> None:
    """They replace those of the same message, and the others stay."""
    before: records.Messages = {"metadata": {"A": {"fields": []}, "C": {"fields": []}}}
    after: records.Messages = {
        "metadata": {"A": {"fields": [1]}, "B": {"fields": []}, "C": {"fields": []}},
        "raft": {"D": {}},
    }
    assert list(records.changed(before, after)) == [("metadata", "A"), ("metadata", "B"), ("raft", "D")]
    old = ["z\tE\t0\t00\t{}", "metadata\tA\t0\t00\t{}", "metadata\tA\t0\t01\t{}", "metadata\tC\t0\t00\t{}"]
    new = ["metadata\tA\t0\t02\t{}", "metadata\tB\t0\t03\t{}"]
    assert records.replaced(old, new) == [old[0], *new, old[3]]
    assert records.replaced(old, []) == old


def test_wordings_that_a_release_has() -> None:
    rows = ["a\tNo {file} here\t4.3.1 4.10.0\tA.java", "b\tGone {}!\t4.3.1\tB.scala", "c\told one\t2.8.2 clients\tC.py"]
    files = [("X.java", "No \1 here, and old one"), ("A.scala", "No \1 here")]
    updated, lost = message_sources.added(rows, "4.4.0", files)
    assert updated == [
        "a\tNo {file} here\t4.3.1 4.4.0 4.10.0\tA.java",
        rows[1],
        "c\told one\t2.8.2 4.4.0 clients\tC.py",
    ]
    assert lost == [rows[1]]
    assert message_sources.added(updated, "4.4.0", files) == (updated, lost)
    newest, _ = message_sources.added(rows, "5.0.0", files)
    assert newest[0] == "a\tNo {file} here\t4.3.1 4.10.0 5.0.0\tA.scala"


def test_the_ways_between_releases() -> None:
    node = {"starts": True, "log": [], "predicted": "clean"}
    ended = {"starts": False, "log": ["ERROR No MetadataVersion with feature level 33."], "predicted": "clean"}
    row = {
        "step": "downgrade",
        "startedBy": "4.3.1",
        "controller": ended,
        "broker": node,
        "differences": ["controller"],
    }
    text = "\n".join(report.ways([row]))
    assert "controller: kdump says clean, it ends; broker: kdump says clean, it starts | controller | ERROR No" in text


def test_starts_on_disks_that_were_made_again_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "trials.json"
    rows = [{"key": f"{name}-clean", "release": name} for name in ("4.4.0-kraft", "4.5.0-kraft")]
    path.write_text(json.dumps(rows))
    adopt.forget("4.5.0-kraft", path)
    assert json.loads(path.read_text()) == rows[:1]


def test_each_step_is_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later step knows the release whose data an earlier one has imported. What is there already stays."""
    monkeypatch.setattr(adopt, "STEPS", dict.fromkeys(adopt.STEPS))
    arguments = ["adopt", "99.0.0", "--before", "98.0.0", "--jars", str(tmp_path), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", arguments)
    for version in ("98.0.0", "99.0.0"):
        (tmp_path / version).mkdir()  # no jars: no class
    parts = tmp_path / "out" / "99.0.0"
    parts.mkdir(parents=True)
    for name in adopt.STEPS.keys() - {"classes"}:
        (parts / f"{name}.md").write_text(f"{name} as it was\n")
    adopt.main()
    lines = list(filter(None, (parts / "report.md").read_text().splitlines()))
    assert lines[:4] == [
        "# Kafka 99.0.0",
        "knows as it was",
        "messages as it was",
        "## Classes that read or write a log directory",
    ]
    assert lines[-2:] == ["trials as it was", "tests as it was"]
