"""Records of __transaction_state: transactional ID -> its state in the transaction coordinator.

Interprets what coordinator_record.py has decoded, as the transaction coordinator does.

Source: kafka.coordinator.transaction.TransactionLog (readTxnRecordKey, readTxnRecordValue) and TransactionState,
KIP-98, KIP-890 (version 1 of the value: the producer IDs before and after an overflow of the epoch). Kafka ignores a
key of an unknown version; it throws on the other problems, and the coordinator stops loading."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.format.coordinator_record import decode_coordinator_record
from kdump.format.errors import DecodeError

STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"),
    "PrepareEpochFence",
)
"""TransactionState by ID."""


class TransactionMetadata(NamedTuple):
    """A decoded record of __transaction_state. Times are epoch ms, -1 for none.

    `state` is Kafka's name, UNKNOWN(9) for an ID that Kafka does not define, empty if the value has none. `partitions`
    are those that the transaction has written to and that have no marker yet, by topic. In a producer's last epoch,
    `nextProducerId` is the ID with which it will continue; afterwards that is `producerId`, and the old one is
    `previousProducerId`. Both are -1 for none, as in version 0.

    If there is a `problem`, the fields after it have their defaults; its position is in the key if its struct is
    TransactionLogKey, otherwise in the value. `note` states what is unusual but legal."""

    transactionalId: str | None
    producerId: int = -1
    producerEpoch: int = -1
    state: str = ""
    partitions: dict[str, list[int]] = {}
    transactionStartTimestampMs: int = -1
    transactionLastUpdateTimestampMs: int = -1
    transactionTimeoutMs: int = -1
    previousProducerId: int = -1
    nextProducerId: int = -1
    nextProducerEpoch: int = -1
    clientTransactionVersion: int = 0
    tombstone: bool = False
    problem: DecodeError | None = None
    note: str = ""
    newer: str = ""
    """What only a newer release than the newest known one writes."""


def decode_transaction(key: bytes | None, value: bytes | None) -> TransactionMetadata:
    """Decode the record with this key and value. Never raises: a decoding error becomes its `problem`."""
    decoded_key, decoded_value = decode_coordinator_record("transaction-coordinator", key, value)
    if decoded_key.decoded is None or decoded_key.problem is not None:
        error = decoded_key.problem
        assert error is not None
        problem = error.changed(struct="TransactionLogKey")
        return TransactionMetadata(None, tombstone=value is None, problem=problem, newer=decoded_key.newer)
    transaction = TransactionMetadata(decoded_key.decoded.value["transactionalId"], tombstone=value is None)
    if decoded_value is None:
        return transaction
    if decoded_value.decoded is None:
        return transaction._replace(problem=decoded_value.problem, newer=decoded_value.newer)
    record_fields = decoded_value.decoded.value
    fields = {name: record_fields[name] for name in TransactionMetadata._fields if name in record_fields}
    transaction = transaction._replace(
        **fields, problem=decoded_value.problem, note=decoded_value.decoded.note, newer=decoded_value.newer
    )
    if "transactionStatus" not in record_fields:
        return transaction
    transaction, wrong = _with_state(transaction, record_fields)
    return transaction if decoded_value.problem or not wrong else transaction._replace(problem=wrong)


def _with_state(
    transaction: TransactionMetadata, value: dict[str, Any]
) -> tuple[TransactionMetadata, DecodeError | None]:
    """Return the transaction with its state and partitions, and the error on which Kafka would throw, if any."""
    number = value["transactionStatus"]
    if not 0 <= number < len(STATES):
        problem = DecodeError("TransactionLogValue", "transactionStatus", 0, f"transactionStatus {number} is unknown")
        return transaction._replace(state=f"UNKNOWN({number})"), problem
    transaction = transaction._replace(state=STATES[number])
    # Kafka ignores the partitions of an empty transaction.
    if "transactionPartitions" not in value or transaction.state == "Empty":
        return transaction, None
    if value["transactionPartitions"] is None:
        reason = f"null in state {transaction.state}"
        return transaction, DecodeError("TransactionLogValue", "transactionPartitions", 0, reason)
    partitions: dict[str, list[int]] = {}
    for listed in value["transactionPartitions"]:
        partitions.setdefault(listed["topic"], []).extend(listed["partitionIds"])
    return transaction._replace(partitions=partitions), None
