"""Records of __transaction_state: a transactional id -> what its coordinator knows of it.

Key and value each start with their version as an INT16, which one of Kafka's own messages follows. A null value is a
tombstone: the coordinator has forgotten the id.

Source: kafka.coordinator.transaction.TransactionLog (readTxnRecordKey, readTxnRecordValue) and TransactionState,
KIP-98, KIP-890 (version 1 of the value: the producer ids before and after an overflow of the epoch). Kafka ignores a
key of an unknown version; it throws on the other problems, and the coordinator loads no further.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT16, Field, layout
from kdump.format.messages import Decoded, attempt
from kdump.format.schema import load_folder

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""TransactionState by id."""


class TransactionRecordVersion(NamedTuple):
    """The start of every key and value."""

    version: Annotated[int, Field(INT16, "version of the message that follows")]


VERSION = layout(TransactionRecordVersion, "TransactionLog")


class Transaction(NamedTuple):
    """What a record of __transaction_state says. Times are epoch milliseconds, -1 for none.

    `state` is Kafka's name, UNKNOWN(9) for an id that Kafka has not given out, empty where the value does not say one.
    `partitions` are those that the transaction has written to and that have no marker yet, by topic. In a producer's
    last epoch, `nextProducerId` is the one that it goes on with; afterwards that is `producerId`, and the old one
    `previousProducerId`; -1 for none, as in version 0.

    Where there is a `problem`, the fields behind it have their defaults; its position is one in the key if its struct
    is TransactionLogKey, else one in the value. `note` says what is unusual and legal.
    """

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


def decode_transaction(key: bytes | None, value: bytes | None) -> Transaction:
    """The record with this key and value. Never raises: what does not decode is its `problem`."""
    said, problem = _message("TransactionLogKey", key)
    if said is not None and problem is None and said.note:
        # Kafka does not read these, and a key that is read wrongly names another transactional id.
        problem = DecodeError("TransactionLogKey", "version", 0, said.note)
    if said is None or problem is not None:
        return Transaction(None, tombstone=value is None, problem=problem)
    transaction = Transaction(said.value["transactionalId"], tombstone=value is None)
    if value is None:
        return transaction
    said, problem = _message("TransactionLogValue", value)
    if said is None:
        return transaction._replace(problem=problem)
    fields = {name: said.value[name] for name in Transaction._fields if name in said.value}
    transaction = transaction._replace(**fields, problem=problem, note=said.note)
    if "transactionStatus" not in said.value:
        return transaction
    transaction, wrong = _with_state(transaction, said.value)
    return transaction if problem or not wrong else transaction._replace(problem=wrong)


def _with_state(transaction: Transaction, value: dict[str, Any]) -> tuple[Transaction, DecodeError | None]:
    """The transaction with its state and partitions, and what Kafka would throw on in them."""
    number = value["transactionStatus"]
    if not 0 <= number < len(STATES):
        problem = DecodeError("TransactionLogValue", "transactionStatus", 0, f"no state has the id {number}")
        return transaction._replace(state=f"UNKNOWN({number})"), problem
    transaction = transaction._replace(state=STATES[number])
    # Kafka does not look at the partitions of an empty transaction.
    if "transactionPartitions" not in value or transaction.state == "Empty":
        return transaction, None
    if value["transactionPartitions"] is None:
        reason = f"null in state {transaction.state}"
        return transaction, DecodeError("TransactionLogValue", "transactionPartitions", 0, reason)
    partitions: dict[str, list[int]] = {}
    for listed in value["transactionPartitions"]:
        partitions.setdefault(listed["topic"], []).extend(listed["partitionIds"])
    return transaction._replace(partitions=partitions), None


def _message(name: str, data: bytes | None) -> tuple[Decoded | None, DecodeError | None]:
    """The message behind the version that `data` starts with, and the problem of either."""
    try:
        if data is None:
            raise DecodeError(name, "version", 0, "null")
        version = VERSION.read(data).version
    except DecodeError as error:
        return None, DecodeError(name, error.field, error.position, error.reason)
    return attempt(load_folder("transaction-coordinator")[name], version, data, VERSION.size)
