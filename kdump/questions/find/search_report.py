"""The report of a search: what was searched, where, what was found, without any payload; signed, if there is a key."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.resources import files
from typing import Any

from kdump import jsonl
from kdump.answer import Object, answer_object
from kdump.extras import how_to_install
from kdump.format.count_text import count_text, size_text
from kdump.format.iso_time import iso
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.source import FileSource, open_source
from kdump.log.paths import Target
from kdump.questions.find.answer import Found, NotSearched, SearchCoverage
from kdump.text import path_text
from kdump.version import __version__

MAX_MATCHES = 20_000
"""Maximum number of matches that a report lists; it counts all."""
PIECE = 1 << 20
LARGEST = 1 << 30
"""Size in bytes of the largest report that is verified."""
NOT_KNOWN = (
    "other brokers, controllers and disks than the paths above",
    "backups, snapshots of volumes, and blocks of deleted files",
    "remote storage, unless it is among the paths",
    "what consumers, connectors and other systems made of the records",
    "what is encrypted or encoded, and listed as compared as bytes only",
)
"""What a search of disks cannot know."""


class SignatureError(Exception):
    """A key cannot be used, or a report is not what was signed."""


class Names:
    """The names in a report, as they are."""

    def path(self, path: str) -> str:
        return path_text(path)

    def topic(self, name: str) -> str:
        return name

    def question(self, expression: str) -> str:
        return expression

    def reason(self, gap: NotSearched) -> str:
        return path_text(gap.reason)

    def coverage(self, coverage: SearchCoverage) -> SearchCoverage:
        return coverage


class Collected:
    """What a report needs of a search, collected while it runs."""

    def __init__(self) -> None:
        self.files: list[tuple[str, int | None, int | None, str | None]] = []
        """Path, size, modification time (epoch ms) and SHA-256 of each file that was read."""
        self.matches: list[Object] = []
        self.count = 0

    def file(self, target: Target) -> None:
        """Add a file that is about to be read."""
        try:
            status = file_system.stat(target.path)
            size, modified = status.st_size, round(status.st_mtime * 1000)
        except OSError:
            self.files.append((target.path, None, None, None))
            return
        self.files.append((target.path, size, modified, _digest(target.path)))

    def match(self, found: Found) -> None:
        """Add a match."""
        self.count += 1
        if len(self.matches) < MAX_MATCHES:
            record, target = found.record, found.target
            self.matches.append(
                {
                    "file": path_text(target.path),
                    "topic": target.topic,
                    "partition": target.partition,
                    "offset": record.offset,
                    "position": record.position,
                    "timestamp": record.timestamp,
                    "keySize": record.keySize,
                    "valueSize": record.valueSize,
                    "state": found.state,
                    "goes": found.goes,
                    "goesAt": found.goes_at,
                }
            )

    def report(self, coverage: SearchCoverage, paths: tuple[str, ...], names: Names, *, live: bool) -> Object:
        """Return the report as a JSON object. `names`: how paths, topics and the question are shown."""
        gaps = [gap._replace(file=names.path(gap.file), reason=names.reason(gap)) for gap in coverage.notSearched]
        question = names.question(coverage.expression)
        return {
            "type": "searchReport",
            "kdump": __version__,
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "question": question,
            "onlyLive": live,
            "paths": list(map(names.path, paths)),
            "matchCount": self.count,
            "matches": [
                each | {"file": names.path(each["file"]), "topic": each["topic"] and names.topic(each["topic"])}
                for each in self.matches
            ],
            "coverage": answer_object(coverage._replace(expression=question, notSearched=gaps)),
            "files": [
                {"file": names.path(path), "size": size, "modified": modified, "sha256": digest}
                for path, size, modified, digest in self.files
            ],
            "notKnown": list(NOT_KNOWN),
        }


def _digest(path: str) -> str | None:
    """Return the SHA-256 of a file; None if it is no plain file, or cannot be read."""
    if path == "-" or "://" in path:
        return None
    try:
        source = open_source(path)
    except SourceError:
        return None
    digest, position = hashlib.sha256(), 0
    try:
        while isinstance(source, FileSource) and (piece := source.read_at(position, PIECE)):
            digest.update(piece)
            position += len(piece)
    except SourceError:
        return None
    finally:
        source.close()
    return digest.hexdigest() if isinstance(source, FileSource) else None


def signed_bytes(report: Object) -> bytes:
    """Return the bytes of a report that its signature covers: all but the signature, with sorted keys."""
    rest = {name: value for name, value in report.items() if name != "signature"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def sign(report: Object, key_file: str) -> None:
    """Add a signature by the Ed25519 key in a PEM file. Raises SignatureError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    except ImportError:
        raise SignatureError(f"--sign needs the package cryptography: {how_to_install('sign')}") from None
    try:
        with open(key_file, "rb") as file:
            key = load_pem_private_key(file.read(PIECE), None)
    except OSError as error:
        raise SignatureError(f"{key_file}: {error.strerror}") from None
    except Exception as error:  # the library raises several types
        raise SignatureError(f"{key_file}: not a private key in PEM without a password: {error}"[:300]) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{key_file}: not an Ed25519 key; openssl genpkey -algorithm ed25519 makes one")
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    value = key.sign(signed_bytes(report))
    report["signature"] = {"algorithm": "Ed25519", "publicKey": _base64(public), "value": _base64(value)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def verify(path: str) -> tuple[Object, str]:
    """Return a report and the public key that it is signed by, in base64. Raises SignatureError if it is not signed, or
    was changed."""
    try:
        with open(path, "rb") as file:
            report = json.loads(file.read(LARGEST), object_pairs_hook=_once)
    except OSError as error:
        raise SignatureError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict) or report.get("type") != "searchReport":
        raise SignatureError(f"{path}: not a search report of kdump in JSON")
    signature = report.get("signature")
    if not isinstance(signature, dict) or set(signature) != {"algorithm", "publicKey", "value"}:
        raise SignatureError(f"{path}: the report is not signed")
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise SignatureError(f"--verify needs the package cryptography: {how_to_install('sign')}") from None
    try:
        public = str(signature.get("publicKey"))
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        key.verify(base64.b64decode(str(signature.get("value")), validate=True), signed_bytes(report))
    except (InvalidSignature, ValueError):
        raise SignatureError(
            f"{path}: the signature does not match: the report was changed, or not by this key"
        ) from None
    return report, public


def _once(pairs: list[tuple[str, Any]]) -> Object:
    """Return a JSON object. Raises ValueError if a key is there twice: another reader may show the other value."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError
    return made


def json_text(report: Object) -> bytes:
    """Return a report as a JSON file."""
    return jsonl.line(report).encode("utf-8", "backslashreplace") + b"\n"


def page(report: Object) -> bytes:
    """Return a report as a page, in the look of kdump report."""
    style = files("kdump.incident.report.html").joinpath("page").joinpath("page.css").read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
    title = "Search report"
    body = "\n".join(_sections(report))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<meta name="generator" content="kdump {__version__}">'
        f"<title>{title}</title><style>\n{style}\n</style></head><body>\n<header><h1>{title}</h1></header>\n{body}\n"
        "</body></html>\n"
    ).encode("utf-8", "backslashreplace")


def _sections(report: Object) -> Iterator[str]:
    coverage: Object = report["coverage"]
    count, gaps = report["matchCount"], coverage["notSearched"]
    word = f"{count_text(count, 'match', 'matches')} in what was searched"
    word = word if count else "Nothing matches" if not gaps else "Nothing matches in what could be searched"
    tone = "bad" if count else "warn" if gaps else "intact"
    question = f"<p><code>{_text(report['question'])}</code></p>"
    yield f'<section class="verdict {tone}"><h2>{_text(word)}</h2>{question}</section>'
    yield _table("What was searched", ("", ""), list(_facts(report, coverage)))
    if gaps:
        rows = [(gap["file"], gap["position"], gap["bytes"], gap["records"], gap["reason"]) for gap in gaps]
        yield _table("What was not searched, or only in part", ("file", "at byte", "bytes", "records", "why"), rows)
    names = ("topic", "partition", "offset", "timestamp", "state", "goes", "file", "position")
    head = (*names[:4], "what it is", "goes", "file", "batch at")
    if count:
        matches = [
            tuple(iso(match[name]) if name == "timestamp" else match[name] for name in names)
            for match in report["matches"]
        ]
        yield _table("Matches, without their contents", head, matches)
    yield _table("What this search cannot know", ("",), [(line,) for line in report["notKnown"]])
    listed = [(file["file"], file["size"], iso(file["modified"]), file["sha256"]) for file in report["files"]]
    yield _table("Files that were read", ("file", "bytes", "modified", "SHA-256"), listed)


def _facts(report: Object, coverage: Object) -> Iterator[tuple[str, Any]]:
    yield "paths", ", ".join(report["paths"])
    files, batches = count_text(coverage["files"], "file"), count_text(coverage["batches"], "batch", "batches")
    yield "read", f"{size_text(coverage['bytes'])} in {files}, {batches}"
    for name, what in (("ruledOut", "ruled out by name"), ("other", "hold no records")):
        yield what, f"{size_text(coverage[f'{name}Bytes'])} in {count_text(coverage[f'{name}Files'], 'file')}"
    yield "directories", f"{size_text(coverage['directoryBytes'])}"
    yield "not searched", size_text(coverage["notSearchedBytes"])
    yield "all of it", f"{coverage['totalBytes']:,} bytes"
    yield "only what consumers receive", "yes" if report["onlyLive"] else "no"
    yield "written", f"{report['written']} by kdump {report['kdump']}"
    signature = report.get("signature")
    yield "signature", "none" if signature is None else f"Ed25519, public key {signature['publicKey']}"


def _table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    names = "".join(f"<th>{_text(name)}</th>" for name in head) if any(head) else ""
    lines = "\n".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<section><h2>{_text(title)}</h2><table><tr>{names}</tr>\n{lines}\n</table></section>"


def _text(cell: Any) -> str:
    return "" if cell is None else html.escape(str(cell))
