"""Kafka's own tool and writer: where their jars are, and how they are started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRITER = ROOT / "bench" / "BigSegment.java"
VERSION = "4.3.1"


class Kafka:
    """Kafka's jars; `find` gives None where there is no Java or nothing to get them with."""

    def __init__(self, jars: Path) -> None:
        self.java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{jars}/*"]

    def dump_log(self, *arguments: str) -> list[str]:
        """kafka-dump-log, less the shell script around it."""
        return [*self.java, "org.apache.kafka.tools.DumpLogSegments", *arguments]

    def write(self, path: Path, codec: str, megabytes: int, value_bytes: int, batch_records: int) -> None:
        """A segment by Kafka's own writer."""
        sizes = map(str, (megabytes, value_bytes, batch_records))
        subprocess.run([*self.java, str(WRITER), str(path), codec, *sizes], check=True, capture_output=True)


def find(jars: str | None, cache: Path) -> Kafka | None:
    """The jars at `jars`; else those that Maven fetches into `cache`, once."""
    if not shutil.which("java"):
        return None
    if jars:
        return Kafka(Path(jars))
    fetched = cache / "jars"
    if not fetched.is_dir():
        if not shutil.which("mvn"):
            return None
        pom = str(ROOT / "tools" / "kafka-jars.xml")
        copy = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
        if subprocess.run(copy).returncode:
            shutil.rmtree(fetched, ignore_errors=True)
            return None
    return Kafka(fetched)
