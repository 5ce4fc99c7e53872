"""Output of kdump goes to a new path, completely or not at all, and never overwrites anything."""

import errno
import os
import re
from pathlib import Path

import pytest

from kdump.log import output_directory
from kdump.log.output_directory import (
    PASSING,
    OutputDirectory,
    OutputError,
    OutputExists,
    OutputNotAllowed,
    sync_file_system,
)


def cause(caught: pytest.ExceptionInfo[OutputError]) -> int | None:
    """Return the number of the system's error."""
    assert isinstance(caught.value.__cause__, OSError)
    return caught.value.__cause__.errno


def test_made_when_it_is_written_to(tmp_path):
    out = OutputDirectory(str(tmp_path / "new"), [])
    assert not (tmp_path / "new").exists()
    out.write("orders-0/ledger.json", b"{}\n")
    assert (tmp_path / "new/orders-0/ledger.json").read_bytes() == b"{}\n"
    assert os.listdir(tmp_path / "new/orders-0") == ["ledger.json"]


def test_not_where_something_is(tmp_path):
    (tmp_path / "empty").mkdir()
    OutputDirectory(str(tmp_path / "empty"), []).write("a", b"1")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("empty", "empty/a", "link"):  # not empty, a file, and a link to nothing
        with pytest.raises(OutputExists, match=re.escape(str(tmp_path / name))):
            OutputDirectory(str(tmp_path / name), [])
    with pytest.raises(OutputError, match="URL"):
        OutputDirectory("memory://x", [])


@pytest.mark.parametrize("source", ["disk", "disk/orders-0", "disk/orders-0/0.log", "link", "link/orders-0/0.log"])
def test_not_in_what_is_read(tmp_path, source):
    (tmp_path / "disk/orders-0").mkdir(parents=True)
    (tmp_path / "disk/orders-0/0.log").touch()
    (tmp_path / "link").symlink_to("disk")
    with pytest.raises(OutputNotAllowed):
        OutputDirectory(str(tmp_path / "disk/orders-0/out"), [str(tmp_path / source)])
    OutputDirectory(str(tmp_path / "out"), [str(tmp_path / source)])
    OutputDirectory(str(tmp_path / "disk-2"), [str(tmp_path / source), "-", "s3://bucket/disk"])


def test_beside_a_copy(tmp_path):
    (tmp_path / f"{0:020}.log").touch()
    OutputDirectory(str(tmp_path / "out"), [str(tmp_path / f"{0:020}.log")])


def test_over_nothing(tmp_path):
    out = OutputDirectory(str(tmp_path / "out"), [])
    out.write("a", b"first")
    with pytest.raises(OutputError, match=f"^{re.escape(str(tmp_path / 'out/a'))}:") as caught:
        out.write("a", b"second")
    assert cause(caught) == errno.EEXIST
    assert (tmp_path / "out/a").read_bytes() == b"first"
    assert os.listdir(tmp_path / "out") == ["a"]


def test_whole_or_not_at_all(tmp_path):
    out = OutputDirectory(str(tmp_path / "out"), [])
    with pytest.raises(KeyError), out.writing("a") as file:
        file.write({}[file.write(b"half")])
    with pytest.raises(OutputError) as caught, out.writing("b") as file:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert cause(caught) == errno.ENOSPC
    with pytest.raises(FileNotFoundError), out.writing("c"):
        os.stat(tmp_path / "another")
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a//b", "a\0b"])
def test_names_stay_inside(tmp_path, name):
    with pytest.raises(ValueError, match="not a valid file name"):
        OutputDirectory(str(tmp_path / "out"), []).path(name)


def test_not_on_another_disk_of_kafkas(tmp_path):
    """A broker exits at a directory that is not named topic-partition, and loads one that is."""
    (tmp_path / "disk-1/orders-0").mkdir(parents=True)
    (tmp_path / "disk-1/orders-0" / f"{0:020}.log").touch()
    (tmp_path / "incident-42").mkdir()
    (tmp_path / "incident-42/notes").touch()  # named like a partition, but not one
    OutputDirectory(str(tmp_path / "incident-42/out"), [str(tmp_path / "disk-1/orders-0")])
    for broker in ("disk-2", "disk-3"):
        (tmp_path / broker / "deep").mkdir(parents=True)
        (tmp_path / broker / "meta.properties").write_text("version=1\n")
    (tmp_path / "link").symlink_to("disk-3")
    for out in ("disk-2/out", "disk-2/deep", "link/deep/out", "disk-1/orders-0/out"):
        with pytest.raises(OutputNotAllowed):
            OutputDirectory(str(tmp_path / out), ["-"])


def test_a_rename_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fails(*names):
        raise OSError(errno.EIO, os.strerror(errno.EIO), *names[:1])

    monkeypatch.setattr(os, "link", fails)
    out = OutputDirectory(str(tmp_path / "out"), [])
    out.write("a", b"1")  # a file system without hard links
    with pytest.raises(OutputError) as caught:
        out.write("a", b"2")
    assert cause(caught) == errno.EEXIST
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OutputError) as caught:
        out.write("b", b"1")
    assert cause(caught) == errno.EIO
    assert os.listdir(tmp_path / "out") == ["a"]
    assert (tmp_path / "out/a").read_bytes() == b"1"


def test_not_beside_a_partition_on_a_brokers_disk(tmp_path):
    (tmp_path / "disk/orders-0").mkdir(parents=True)
    (tmp_path / "disk/orders-0/00000000000000000000.log").touch()
    OutputDirectory(str(tmp_path / "disk/out"), [str(tmp_path / "disk/orders-0")])  # a copied partition
    (tmp_path / "disk/meta.properties").write_text("version=1\n")
    with pytest.raises(OutputNotAllowed):
        OutputDirectory(str(tmp_path / "disk/out"), [str(tmp_path / "disk/orders-0")])


def test_a_directory_whole_or_not_at_all(tmp_path):
    out = OutputDirectory(str(tmp_path / "out"), [])
    with out.together("orders-0"):
        out.write("orders-0" + PASSING + "/a", b"1")
        assert not (tmp_path / "out/orders-0").exists()
    assert (tmp_path / "out/orders-0/a").read_bytes() == b"1"
    with pytest.raises(OutputError), out.together("orders-1"):
        out.write("orders-1" + PASSING + "/" + "a" * 300, b"1")
    with out.together("orders-2"):
        pass
    assert os.listdir(tmp_path / "out") == ["orders-0"]
    with pytest.raises(OutputExists), out.together("orders-0"):
        out.write("orders-0" + PASSING + "/a", b"2")
    assert (tmp_path / "out/orders-0/a").read_bytes() == b"1"
    assert os.listdir(tmp_path / "out") == ["orders-0"]


def test_files_of_a_block_are_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one without syncfs; in both cases before the file that states that they are complete has its name."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append("one"))
    for number, together in enumerate((lambda path: synced.append("all"), None)):
        monkeypatch.setattr(output_directory, "sync_file_system", together)
        out = OutputDirectory(str(tmp_path / str(number)), [])
        with out.writing("ledger") as ledger, out.synced_once():
            for name in "abc":
                out.write(name, b"x")
            ledger.write(b"complete")
        out.write("after", b"x")
    assert synced == ["all", "one", "one", *["one"] * 3, "one", "one"]
    with pytest.raises(ValueError, match="stop"), out.synced_once():
        raise ValueError("stop")


def test_the_file_system_is_synced(tmp_path: Path) -> None:
    assert sync_file_system is not None
    sync_file_system(str(tmp_path))
    with pytest.raises(OSError):
        sync_file_system(str(tmp_path / "missing"))
