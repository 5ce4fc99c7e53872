"""The commands that end a hanging transaction.

Source: org.apache.kafka.tools.TransactionsCommand (AbortTransactionCommand), KIP-664: brokers from 3.0 on are told
where the transaction begins, older ones all that a marker needs; a coordinator epoch that is not known is 0.
"""

from __future__ import annotations

TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT"


def abort_command(topic: str, partition: int, first_offset: int) -> str:
    """For brokers from 3.0 on."""
    return f"{TOOL} abort --topic {topic} --partition {partition} --start-offset {first_offset}"


def abort_command_before_3(
    topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> str:
    """For older brokers."""
    return (
        f"{TOOL} abort --topic {topic} --partition {partition} --producer-id {producer_id}"
        f" --producer-epoch {producer_epoch} --coordinator-epoch {max(0, coordinator_epoch)}"
    )
