"""The option --metrics: what a run has answered, as metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdump.command_line.command_run import this_run
from kdump.io.errors import SourceError
from kdump.query import option
from kdump.render.sink import Objects, Sink

if TYPE_CHECKING:
    from kdump.render.metrics import Metrics

HELP = "Also write the answer as Prometheus metrics to FILE.prom, for node_exporter's textfile collector."


def metrics_option() -> Any:
    """Return the field of --metrics."""
    return option("--metrics", metavar="FILE.prom", help=HELP)


def metrics_of_run() -> Metrics | None:
    """Return the metrics of this run, None if they were not asked for. Raises SourceError if they cannot be written
    there."""
    run = this_run()
    path = getattr(run.options, "metrics", None)
    if path is not None and run.metrics is None:
        from kdump.log.output_directory import OutputError
        from kdump.render.metrics import Metrics

        query, command = run.options.query, click.get_current_context().info_name or "kdump"
        try:
            run.metrics = Metrics(path, command, (*query.paths, *getattr(query, "others", ())))
        except OutputError as error:
            raise SourceError(str(error)) from error
    return run.metrics


def with_metrics(sink: Sink[Any], objects: Objects) -> Sink[Any]:
    """Return the sink, or one that also takes metrics if they were asked for."""
    metrics = metrics_of_run()
    if metrics is None:
        return sink
    from kdump.render.metrics import MetricsSink

    return MetricsSink(sink, metrics, objects)
