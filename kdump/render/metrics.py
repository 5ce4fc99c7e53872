"""Metrics in Prometheus' text format, derived from a command's answers, for node_exporter's textfile collector.

Each metric is declared once, in METRICS, and what has a value for it, in @answer. Series are bounded: by topic and by
group there are MAX_SERIES, the largest, and the others are one series, OTHERS; by finding, there are those of the
catalogue."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kdump.answer import measures_of
from kdump.log.output_directory import OutputError, refuse_output, replacing
from kdump.render.sink import Objects, Sink, objects_of
from kdump.version import __version__

MAX_SERIES = 1000
"""Maximum number of series of a metric by topic or by group."""
OTHERS = "(others)"
"""Value of the label of what is not among them; no topic has this name."""
READABLE = 0o644
"""Permission bits of the file: node_exporter is another user."""


class Metric(NamedTuple):
    """A metric: all are gauges, and all have the label `command`, so that the files of several commands can be in one
    directory. `labels`: the others; `total`: what the series of OTHERS is of those that it stands for."""

    help: str
    labels: tuple[str, ...] = ()
    total: Callable[[Iterable[float]], float] = sum


METRICS = {
    "kdump_run_timestamp_seconds": Metric("When the run ended, in seconds since 1970.", ("version",)),
    "kdump_run_duration_seconds": Metric("Duration of the run."),
    "kdump_run_exit_status": Metric("Exit status of the run."),
    "kdump_findings": Metric("Number of findings, or of what doctor lists to do.", ("code", "severity")),
    "kdump_unread_paths": Metric("Number of paths that could not be read."),
    "kdump_checked_bytes": Metric("Bytes of the files that the run has checked."),
    "kdump_checked_records": Metric("Records in valid batches that the run has checked."),
    "kdump_segment_bytes": Metric("Bytes of all segments (verify --state)."),
    "kdump_never_checked_bytes": Metric("Bytes of segments that were never checked (verify --state)."),
    "kdump_never_checked_since_timestamp_seconds": Metric(
        "When the first of the bytes that were never checked was listed; absent if there are none."
    ),
    "kdump_overdue_bytes": Metric("Bytes of segments whose last check is older than the cadence (verify --state)."),
    "kdump_oldest_check_timestamp_seconds": Metric("When the bytes whose check is the oldest were checked."),
    "kdump_topic_bytes": Metric("Size of the files of live partitions.", ("topic",)),
    "kdump_topic_deleted_bytes": Metric(
        "Size of files and partitions that a broker is about to delete (.deleted, -delete).", ("topic",)
    ),
    "kdump_topic_last_stable_offset_lag": Metric(
        "Offsets from the last stable offset to the log end, of the partition that has the most.", ("topic",), max
    ),
    "kdump_topic_oldest_open_transaction_timestamp_seconds": Metric(
        "When the oldest open transaction of the topic began; absent without one.", ("topic",), min
    ),
    "kdump_group_lag": Metric("Offsets between the committed offsets of a group and the ends of its logs.", ("group",)),
    "kdump_filesystem_free_bytes": Metric("Bytes that are free for any user.", ("directory",)),
    "kdump_filesystem_until_full_seconds": Metric(
        "Time until the file system of a log directory is full at the rate of the last runs; +Inf if it does not grow.",
        ("directory",),
    ),
}
Labels = tuple[str, ...]


class Metrics:
    """The metrics of one run of a command, which are written to `path` at its end."""

    def __init__(self, path: str, command: str, sources: Iterable[str]) -> None:
        self.path, self.command = path, command
        self._began = time.monotonic()
        self._values: dict[str, dict[Labels, float]] = {}
        refuse_output(path, tuple(sources))
        if os.path.isdir(path) or not path.endswith(".prom"):
            raise OutputError(f"{path}: not the name of a .prom file, which node_exporter reads")

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Set the value of a series; None leaves it out."""
        if value is not None:
            self._values.setdefault(name, {})[labels] = value

    def add(self, name: str, value: float | None, *labels: str) -> None:
        """Add to the value of a series, or, of a metric that is a maximum or a minimum, take the new value into it."""
        own = self._values.setdefault(name, {})
        if value is not None:
            own[labels] = METRICS[name].total((own[labels], value)) if labels in own else value

    def take(self, answer: Any) -> None:
        """Take an answer."""
        for name, number, *labels in measures_of(answer):
            self.add(name, number, *labels)

    def write(self, status: int) -> None:
        """Write the file, completely or not at all. Raises OutputError."""
        self.set("kdump_run_timestamp_seconds", time.time(), __version__)
        self.set("kdump_run_duration_seconds", time.monotonic() - self._began)
        self.set("kdump_run_exit_status", status)
        with replacing(os.path.abspath(self.path), READABLE) as file:
            file.write(self.text().encode("utf-8", "backslashreplace"))

    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for name, metric in METRICS.items():
            if series := self._values.get(name):
                yield f"# HELP {name} {metric.help}\n# TYPE {name} gauge\n"
                for labels, value in sorted(bounded(metric, series).items()):
                    pairs = zip(("command", *metric.labels), (self.command, *labels))
                    shown = ",".join(f'{label}="{escaped(text)}"' for label, text in pairs)
                    yield f"{name}{{{shown}}} {number(value)}\n"


def bounded(metric: Metric, series: Mapping[Labels, float]) -> Mapping[Labels, float]:
    """Return the series, of which the smallest are one if there are too many."""
    if len(series) <= MAX_SERIES:
        return series
    ordered = sorted(series.items(), key=lambda item: item[1], reverse=metric.total is not min)
    rest = metric.total(value for _, value in ordered[MAX_SERIES - 1 :])
    return {**dict(ordered[: MAX_SERIES - 1]), (OTHERS,) * len(metric.labels): rest}


def escaped(text: str) -> str:
    """Return the value of a label, with what is special in it escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """Return a number as Prometheus reads it."""
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else f"{value:.3f}"


class MetricsSink(Sink[Any]):
    """Passes answers on to another sink, and takes metrics from them."""

    def __init__(self, inner: Sink[Any], metrics: Metrics, objects: Objects = objects_of) -> None:
        self.inner, self.metrics, self.objects = inner, metrics, objects

    def __getattribute__(self, name: str) -> Any:
        if name in ("streams", "is_complete", "shows_unread"):
            return getattr(self.inner, name)
        return super().__getattribute__(name)

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.inner.part(name, was_named=was_named)

    def add(self, answer: Any) -> None:
        for value in self.objects(answer):
            self.metrics.take(value)
        self.inner.add(answer)

    def note(self, source: str, message: str) -> None:
        self.inner.note(source, message)

    def tick(self) -> None:
        self.inner.tick()

    def end(self) -> None:
        self.inner.end()
