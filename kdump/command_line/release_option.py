"""The option --kafka-version: which release of Kafka is meant."""

from __future__ import annotations

from typing import Any

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.params import Param
from kdump.format.kafka_release import KafkaRelease, newer_release_text, parse_release


class ReleaseParam(Param):
    """A release of Kafka: 3.6, 3.6.2, 3.9-zookeeper, cp-7.6."""

    name = "RELEASE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> KafkaRelease:
        if isinstance(value, KafkaRelease):
            return value
        try:
            release = parse_release(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if release.is_newer:
            print_error(f"warning: {newer_release_text(release)}")
        return release
