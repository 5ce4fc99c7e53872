"""Commands that abort a hanging transaction.

Source: org.apache.kafka.tools.TransactionsCommand (AbortTransactionCommand), KIP-664. For brokers from 3.0 on, the
start offset of the transaction is enough; older ones need all fields of the marker. An unknown coordinator epoch is
passed as 0."""

from __future__ import annotations

TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT"


def abort_command(topic: str, partition: int, first_offset: int) -> str:
    """Return the command for brokers from 3.0 on."""
    return f"{TOOL} abort --topic {topic} --partition {partition} --start-offset {first_offset}"


def abort_command_before_3(
    topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> str:
    """Return the command for older brokers."""
    return (
        f"{TOOL} abort --topic {topic} --partition {partition} --producer-id {producer_id}"
        f" --producer-epoch {producer_epoch} --coordinator-epoch {max(0, coordinator_epoch)}"
    )
