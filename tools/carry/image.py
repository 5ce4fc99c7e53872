"""Writes the container image: an OCI archive with the single files, and nothing else (docs/carry.md).

    python -m tools.carry.image [--shell] OUT FILE…

FILE: what `make pex` built, for one architecture each. OUT is what `podman load`, `skopeo copy oci-archive:` and `ctr
images import` take; with --shell, it also has busybox. The same files give the same bytes.

Source: the OCI image format specification 1.1 (image-layout, image-index, manifest, config)."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from kdump import __version__
from tools.carry import debian
from tools.carry.target import Target, target_of

USER = 1001
KIND = "application/vnd.oci.image"
PATH = "PATH=/bin"
APPLETS = (
    *("cat", "cp", "df", "du", "find", "grep", "gzip", "head", "less", "ls"),
    *("mount", "ps", "sh", "sleep", "tail", "tar"),
)
"""What the shell of the second tag has."""
LABELS = {
    "org.opencontainers.image.title": "kdump",
    "org.opencontainers.image.description": "Reads Kafka's files directly from a broker's disk",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": __version__,
}


class Archive:
    """An OCI layout that is being written as one tar file."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.blobs: set[str] = set()

    def blob(self, kind: str, data: bytes, **more: Any) -> dict[str, Any]:
        """Add a blob, unless it is there, and return its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self.blobs:
            self.blobs.add(digest)
            add(self.tar, f"blobs/sha256/{digest}", data)
        return {"mediaType": f"{KIND}.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}

    def json(self, kind: str, value: Any, **more: Any) -> dict[str, Any]:
        """Add a value as JSON, and return its descriptor."""
        return self.blob(kind, encoded(value), **more)


def encoded(value: Any) -> bytes:
    """Return a value as JSON that is always the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644, link: str = "") -> None:
    """Add a file, or a symbolic link, of no particular time or owner."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
    tar.addfile(info, io.BytesIO(data))


def layer(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    """Return a layer with these programs and symbolic links."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            add(tar, name, data, 0o755)
        for name, target in links.items():
            add(tar, name, b"", 0o777, target)
    return out.getvalue()


def image(archive: Archive, target: Target, layers: list[bytes]) -> dict[str, Any]:
    """Add the image for an architecture, and return its descriptor."""
    platform = {"os": "linux", "architecture": debian.ARCHITECTURES[target.name]}
    config = {
        **platform,
        "config": {
            "User": f"{USER}:0",
            "Entrypoint": ["/bin/kdump"],
            "Env": [PATH],
            "Labels": LABELS,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{KIND}.manifest.v1+json",
        "config": archive.json("config.v1+json", config),
        "layers": [archive.blob("layer.v1.tar", each) for each in layers],
    }
    return archive.json("manifest.v1+json", manifest, platform=platform)


def write(files: list[Path], shells: dict[str, Path], name: str, out: Path) -> str:
    """Write the archive and return its SHA-256. `shells`: a static busybox by architecture, if it is to have one."""
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as tar:
        archive = Archive(tar)
        add(tar, "oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
        images = []
        for path in files:
            target = target_of(path)
            layers = [layer({"bin/kdump": path.read_bytes()}, {})]
            if shells:
                links = {f"bin/{name}": "busybox" for name in APPLETS}
                layers.append(layer({"bin/busybox": shells[target.name].read_bytes()}, links))
            images.append(image(archive, target, layers))
        names = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
        add(tar, "index.json", encoded(_index([archive.json("index.v1+json", _index(images), annotations=names)])))
    return hashlib.sha256(out.read_bytes()).hexdigest()


def _index(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": f"{KIND}.index.v1+json", "manifests": manifests}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--shell", action="store_true", help="add busybox")
    parser.add_argument("--work", type=Path, metavar="DIR", default=Path("build/carry"), help="[build/carry]")
    options = parser.parse_args()
    downloads = options.work.resolve() / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    name = f"localhost/kdump:{__version__}{'-busybox' if options.shell else ''}"
    shells = {}
    with tempfile.TemporaryDirectory() as place:
        for target in map(target_of, options.files) if options.shell else ():
            unpacked, _version = debian.package("busybox-static", target.name, downloads, Path(place) / target.name)
            shells[target.name] = unpacked / "usr/bin/busybox"
        part = options.out.with_name(options.out.name + ".part")
        digest = write(sorted(options.files), shells, name, part)
        shutil.move(part, options.out)
    print(f"{options.out}: {name}, SHA-256 {digest}")


if __name__ == "__main__":
    main()
