"""Kafka's own log dump tool and record writer: finds their jars and runs them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRITER = ROOT / "bench" / "BigSegment.java"
VERSION = "4.3.1"


class Kafka:
    """Kafka's jars. Use `find` to get them."""

    def __init__(self, jars: Path) -> None:
        self.java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{jars}/*"]

    def dump_log(self, *arguments: str) -> list[str]:
        """Return the command line of kafka-dump-log, without the shell script around it."""
        return [*self.java, "org.apache.kafka.tools.DumpLogSegments", *arguments]

    def write(self, path: Path, codec: str, megabytes: int, value_bytes: int, batch_records: int) -> None:
        """Write a segment with Kafka's own classes. `megabytes`: its size in MiB."""
        sizes = map(str, (megabytes, value_bytes, batch_records))
        subprocess.run([*self.java, str(WRITER), str(path), codec, *sizes], check=True, capture_output=True)


def find(jars: str | None, cache: Path) -> Kafka | None:
    """Return the jars in `jars`, or else those that Maven fetches into `cache`, once; None without Java, or without
    Maven to fetch them."""
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
