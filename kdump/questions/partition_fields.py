"""Fields that the answers about partitions share: transactions, producers, retention."""

from __future__ import annotations

from typing import Annotated

from kdump.answer import Doc, PathText

SourcePath = Annotated[PathText, Doc("log directory, or the path that was passed")]
TopicName = Annotated[str | None, Doc("topic, from the directory's name")]
PartitionNumber = Annotated[int | None, Doc("partition, from the directory's name")]
TransactionalId = Annotated[
    str | None, Doc("transactional ID, from __transaction_state on the same disks; null if not there")
]
ProducerId = Annotated[int, Doc("producer ID")]
KafkaVersion = Annotated[str, Doc("release of Kafka whose rules were applied")]
