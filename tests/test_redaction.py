"""`inspect --json --redact` and `report --redact`: nothing of a record leaves, equal values look equal, and everything
else is as without it."""

from __future__ import annotations

import base64
import html
import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kdump.incident.report.html.labels import NamesInText
from kdump.render.redaction import DIGITS
from tests.command import objects, run
from tests.conftest import FIXTURES, few
from tests.craft import CODECS, batch, flip, message, record, write_file

KEY = b"a key of 20 bytes..."
CANARY = "canary-{:03}-qzxwvkjqzxwv"
REPLACED = {"key", "value", "headers"}
LEFT_OUT = {"crc", "keyEncoding", "valueEncoding"}
LEFT_OUT |= {f"{part}{what}" for part in ("key", "value") for what in ("Decoded", "Problem", "Note")} | {"names"}
"""Keys of a record that are not in the redacted output."""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_file(tmp_path_factory.mktemp("key") / "key", KEY)
    return path


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A log directory with a canary in each key, value and header value: in batches of every codec and magic, valid and
    damaged, in what is no batch, and in a file that is no segment."""
    numbers = count()
    canaries: list[str] = []

    def canary() -> bytes:
        canaries.append(CANARY.format(next(numbers)))
        return canaries[-1].encode()

    root = tmp_path_factory.mktemp("marked") / "disk"
    folder = root / "payments-0"
    folder.mkdir(parents=True)
    data, offset = b"", 0
    for codec in CODECS:
        rows = [record(n, key=canary(), value=canary(), headers=[(b"trace", canary())]) for n in range(2)]
        data += batch(rows, codec, offset=offset)
        offset += 2
    data += flip(batch([record(0, key=canary(), value=canary())], offset=offset), 8 * 70)
    data += canary() * 3
    data += batch([record(0, key=canary(), value=canary())], offset=offset + 1)
    (folder / f"{0:020}.log").write_bytes(data)
    (folder / f"{0:020}.index").write_bytes(canary() + b"\0" * 7)
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 " + canary() + b"\n")
    old = root / "old-0"
    write_file(old / f"{0:020}.log", b"".join(message(n % 2, canary(), key=canary(), offset=n) for n in range(4)))
    return root, canaries


def forms(canary: str) -> Iterator[str]:
    """Yield what a canary looks like, or each part of it that is not a number: as text, in hex, in base64."""
    for text in (canary, canary[:10], canary[-12:]):
        data = text.encode()
        yield text
        yield data.hex()
        yield data.hex(" ")
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + data)
            yield encoded[4:-4].decode()


def assert_none(text: str, canaries: list[str]) -> None:
    assert canaries
    for canary in canaries:
        for form in forms(canary):
            assert form not in text, (canary, form)


@pytest.mark.parametrize("names", [(), ("--redact-names",)])
@pytest.mark.parametrize("records", [(), ("--records",)])
def test_no_canary_leaves_inspect(
    marked: tuple[Path, list[str]], records: tuple[str, ...], names: tuple[str, ...]
) -> None:
    root, canaries = marked
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    plain = run("inspect", *paths, "--json", *records).stdout
    redacted = run("inspect", *paths, "--json", "--redact", *records, *names).stdout
    assert len(redacted.splitlines()) == len(plain.splitlines())
    if records:
        assert any(canary in plain for canary in canaries)
    assert_none(redacted, canaries)
    if names:
        assert "payments" not in redacted


@pytest.mark.parametrize("path", [FIXTURES / "disk-1", FIXTURES / "state-1"], ids=lambda path: path.name)
def test_everything_else_is_as_without_it(path: Path, key: Path) -> None:
    plain = objects("inspect", path, "--records")
    redacted = objects("inspect", path, "--records", "--redact", "--hash-key", key)
    assert len(plain) == len(redacted)
    hashes: dict[Any, Any] = {}
    for one, other in zip(plain, redacted, strict=True):
        if one["type"] != "record":
            assert one == other
            continue
        control = one.get("control")
        if control is not None:
            control.pop("value", None)
        kept = one.keys() - REPLACED - LEFT_OUT
        assert other.keys() == kept | REPLACED
        assert {name: one[name] for name in kept} == {name: other[name] for name in kept}
        for name in ("key", "value"):
            value = (one[name], one.get(f"{name}Encoding"))
            assert (one[name] is None) == (other[name] is None)
            assert hashes.setdefault(value, other[name]) == other[name]
            if other[name] is not None:
                assert len(other[name]) == len("hmac-") + DIGITS
        assert [each["key"] for each in one["headers"]] == [each["key"] for each in other["headers"]]
    assert len({*hashes.values()}) == len(hashes)


def test_names_are_those_of_a_redacted_bundle(key: Path, tmp_path: Path) -> None:
    disk = FIXTURES / "disk-1"
    run("bundle", disk, "--out", tmp_path / "bundle", "--redact", "--hash-key", key)
    in_bundle = {each["topic"] for each in objects("ls", tmp_path / "bundle") if "topic" in each}
    path = disk / "replication-offset-checkpoint"
    shown = objects("inspect", path, "--redact-names", "--hash-key", key)
    assert {each["topic"] for each in shown} == in_bundle - {"__cluster_metadata"}


def test_what_cannot_be_redacted_is_refused(key: Path) -> None:
    segment = FIXTURES / "disk-1" / "payments-0"
    for words in (("--redact",), ("--redact-names", "--hex"), ("--redact", "--records", "--format", "csv")):
        assert "--redact applies only to --json" in run("inspect", segment, *words).stderr
    assert "--hash-key applies only to" in run("inspect", segment, "--json", "--hash-key", key).stderr


# --- The report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [(), ("--redact-names",)])
def test_no_canary_leaves_the_report(marked: tuple[Path, list[str]], names: tuple[str, ...], tmp_path: Path) -> None:
    root, canaries = marked
    run("report", root, "--out", tmp_path / "plain.html")
    run("report", root, "--out", tmp_path / "page.html", "--redact", *names)
    texts = [html.unescape((tmp_path / name).read_text()) for name in ("plain.html", "page.html")]
    assert any(canary in texts[0] for canary in canaries)
    assert_none(texts[1], canaries)
    assert "hmac-" in texts[1]
    assert "payments" in texts[0]
    assert ("payments" in texts[1]) == (not names)
    assert (str(root) in texts[1]) == (not names)


@pytest.mark.every_disk
def test_no_name_leaves_the_report(tmp_path: Path) -> None:
    disk = tmp_path / "acme-prod" / "disk-1"
    shutil.copytree(FIXTURES / "disk-1", disk)
    log = disk / "orders-none-0" / f"{0:020}.log"
    log.write_bytes(flip(log.read_bytes(), 14_000 * 8))
    run("report", disk, "--out", tmp_path / "page.html", "--redact-names", "--charts", tmp_path / "charts")
    text = (tmp_path / "page.html").read_text()
    shown = text.partition("<script>")[0]
    for name in ("orders-none", "orders-zstd", "payments", "trimmed", "tx-a", "tx-hang", "compact-users", "acme-prod"):
        assert name not in shown
    assert "t-" in shown
    assert "txn-" in shown


def test_a_name_that_is_nowhere_else_leaves_no_report(tmp_path: Path) -> None:
    """That of a partition whose directory is missing is in the headline; a damaged line of a file in a message."""
    disk = Path(shutil.copytree(FIXTURES / "disk-1", tmp_path / "disk"))
    shutil.rmtree(disk / "payments-0")
    for name, line in (("replication-offset-checkpoint", "acme-orders zero 7"), ("cleaner-offset-checkpoint", "acme")):
        (disk / name).write_text((disk / name).read_text() + line + "\n")
    (disk / "acme.d").mkdir()
    done = run("report", disk, "--out", tmp_path / "plain.html")
    assert "payments-0" in done.stdout
    done = run("report", disk, "--out", tmp_path / "page.html", "--redact-names")
    for text in (done.stdout, (tmp_path / "page.html").read_text()):
        assert not {name for name in ("payments", "acme", "orders") if name in text}
    assert "1 partition missing (t-" in done.stdout


UUID = "37e37f62fb8744da965c928fcfdd9150"
DIRECTORIES = ("zqxjdir", "zqxjtopic-0", "zqxjtop.ic_x-12", "zqxjbad-x", "payments-0/zqxjsub", "users-0/zqxj sub.d")
DIRECTORIES += tuple(f"zqxj{state}-0.{UUID}-{state}" for state in ("delete", "future", "stray"))
FILES = (
    "zqxjfile.txt",
    "payments-0/zqxjfile.log",
    "payments-0/zqxj.index",
    f"payments-0/{0:020}.zqxjext",
    "users-0/zqxj 0.log",
)
FILES += (f"payments-0/{0:020}.log.zqxjbak", "zqxj.checkpoint", f"users-0/{0:020}.zqxj.deleted")
REDACTING = {
    "report": ("report", "acme-zqxj/zqxjdisk", "--redact-names", "--out", "out/page.html", "--charts", "out/charts"),
    "report of some": ("report", "acme-zqxj/zqxjdisk/payments-0", "acme-zqxj/zqxjcopy/payments-0", "--redact-names"),
    "bundle": ("bundle", "acme-zqxj/zqxjdisk", "--redact", "--out", "out/bundle"),
    "inspect": ("inspect", "acme-zqxj/zqxjdisk", "--redact-names", "--json", "--all-files"),
    "inspect, records": ("inspect", "acme-zqxj/zqxjdisk", "--redact-names", "--json", "--records"),
    "find": ("find", "offset >= 0", "acme-zqxj/zqxjdisk", "--redact-names", "--json"),
    "find, report": ("find", "'zqxj' in any", "acme-zqxj/zqxjdisk", "--redact-names", "--report", "out/found"),
}
REDACTING["report of some"] += ("--out", "out/page.html")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk on which a name begins with zqxj wherever one can be: of files, directories, links, and in text files."""
    monkeypatch.chdir(tmp_path)
    disk = Path(shutil.copytree(FIXTURES / "disk-1", "acme-zqxj/zqxjdisk"))
    for name in DIRECTORIES:
        (disk / name).mkdir()
    for name in FILES:
        (disk / name).write_text("zqxj: zqxjcontent\n")
    for path in (*disk.glob("*-offset-checkpoint"), disk / "meta.properties", disk / "users-0" / "partition.metadata"):
        path.write_text(path.read_text() + "zqxjtopic zero 7\nzqxjtopic 0 7\nzqxjkey=zqxj\n")
    log = disk / "orders-none-0" / f"{0:020}.log"
    log.write_bytes(flip(log.read_bytes(), 14_000 * 8))
    shutil.copytree(disk / "payments-0", "acme-zqxj/zqxjcopy/payments-0")
    outside = write_file(tmp_path / "zqxjoutside" / "zqxjfile", b"zqxj")
    (disk / "zqxjlink-0").symlink_to(outside.parent)
    (disk / "payments-0" / "leader-epoch-checkpoint").unlink()
    (disk / "payments-0" / "leader-epoch-checkpoint").symlink_to(outside)
    os.mkfifo(disk / "zqxjfifo.checkpoint")
    return disk


@pytest.mark.parametrize("name", few(REDACTING, 4))
def test_no_planted_name_leaves(planted: Path, name: str) -> None:
    done = run(*REDACTING[name])
    assert done.exit_code in (1, 2), done.output
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    for path in Path("out").rglob("*"):
        texts[f"the name of {path}"] = str(path)
        if path.is_file() and path.suffix != ".png":
            data = path.read_bytes()
            if path.suffix == ".zst":
                data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
            texts[str(path)] = html.unescape(data.decode("latin-1")).partition("<script>")[0]
    for what, text in texts.items():
        for planted_name in ("zqxj", "orders-zstd", "payments", "group-classic", "tx-hang"):
            position = text.find(planted_name)
            assert position < 0, (what, text[max(0, position - 100) : position + 100])


def test_names_in_texts() -> None:
    replaced = NamesInText({"orders": "t-1", "my group": "g-2", "a.b-c": "t-3"}).replaced
    assert replaced("orders-0: my group, a.b-c-12/x of orders. disorders, a.b") == (
        "t-1-0: g-2, t-3-12/x of t-1. disorders, a.b"
    )


def test_times_in_a_zone(tmp_path: Path) -> None:
    run("report", FIXTURES / "disk-1", "--out", tmp_path / "page.html", "--tz", "Asia/Kolkata")
    text = (tmp_path / "page.html").read_text()
    assert "2026-11-21 13:28:08+05:30" in text
    assert ">UTC+05:30</text>" in text
    assert "07:58:08Z" not in text.partition("<script>")[0]
