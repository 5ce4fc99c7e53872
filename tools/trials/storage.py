"""The remote storage of brokers with tiered topics whose startup is examined: it has nothing, and accepts nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("NoStorage.java")
NO_STORAGE = SOURCE.parents[2] / "build" / "no-storage"
"""Directory of the compiled class."""


def compile_storage(jars: Path) -> None:
    """Compile the class, unless that has been done."""
    if not (NO_STORAGE / "NoStorage.class").exists():
        NO_STORAGE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["javac", "-d", NO_STORAGE, "-cp", f"{jars}/*", SOURCE], check=True)
