"""Messages about idempotent producers and transactions."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

PRODUCERS = "kdump producers {path} --producer-id {producerId} --history"
TRANSACTIONS = "kdump transactions {disk} --coordinator"

OUT_OF_ORDER_SEQUENCE = Message(
    name="out-of-order-sequence",
    texts=(
        "Out of order sequence number for producer {producerId} at offset {offset} in partition {partition}: "
        "{sequence} (incoming seq. number), {lastSequence} (current end sequence number)",
        "Out of order sequence number for producer {producerId} at offset {offset} in partition {partition}: "
        "{sequence} (incoming seq. number), {lastSequence} (earliest seen sequence)",
        "Invalid sequence number for new epoch of producer {producerId} at offset {offset} in partition "
        "{partition}: {producerEpoch} (request epoch), {sequence} (seq. number), {otherEpoch} (current producer "
        "epoch)",
        "Invalid sequence number for new epoch of producer {producerId}at offset {offset} in partition "
        "{partition}: {producerEpoch} (request epoch), {sequence} (seq. number), {otherEpoch} (current producer "
        "epoch)",
        "The broker received an out of order sequence number.",
        "Broker: Broker received an out of order sequence number",
    ),
    exceptions=("OutOfOrderSequenceException", "OUT_OF_ORDER_SEQUENCE_NUMBER", "OutOfOrderSequenceNumber"),
    source="ProducerAppendInfo",
    meaning="A batch of an idempotent producer does not follow the last batch that the leader has of it: batches "
    "between them are missing here",
    cause="The log is shorter than it was when the producer wrote to it (a truncation, an unclean election, a restored "
    "disk), the producer state on the disk is wrong, or a batch of the producer failed for good",
    impact="The producer fails, or begins with a new epoch or ID and may write duplicates. The gap in its sequences "
    "may be records that were acknowledged and are lost",
    commands=(PRODUCERS, "kdump verify {path}", "kdump diff {path} COPY-OF-ANOTHER-REPLICA"),
    action="Compare the last sequence on the disk with the one in the message. If the log was longer, look for the "
    "records on another replica. Restart the producer",
    never="Do not switch enable.idempotence off: the records that are missing stay missing, without a message",
    codes=("snapshot-mismatch", "sequence-gap", "producer-epoch-decreased"),
    incident="out-of-order-sequence",
    plan=True,
)

UNKNOWN_PRODUCER_ID = Message(
    name="unknown-producer-id",
    texts=(
        "This exception is raised by the broker if it could not locate the producer metadata associated with the "
        "producerId in question. This could happen if, for instance, the producer's records were deleted because "
        "their retention time had elapsed. Once the last records of the producerId are removed, the producer's "
        "metadata is removed from the broker, and future appends by the producer will return this exception.",
        "Invalid sequence number for producer {producerId} at offset {offset} in partition {partition}: {sequence} "
        "(incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer with no existing state.",
        "Broker: Unknown Producer Id",
    ),
    exceptions=("UnknownProducerIdException", "UNKNOWN_PRODUCER_ID", "UnknownProducerId"),
    source="ProducerAppendInfo, Errors",
    releases=f"UnknownProducerId: brokers before 2.5; Expected sequence 0: 4.1 to {LAST}",
    meaning="The partition's leader has no state of this producer",
    cause="The producer was idle for producer.id.expiration.ms (1 day; before 3.4 a week); or its records were deleted "
    "(retention, kafka-delete-records.sh) and the leader was restarted, or changed; or the log, or its snapshots, are "
    "lost",
    impact="Brokers before 2.5 reject the batch, and brokers from 4.1 on that of a transactional client with "
    "transaction version 2. All others accept any sequence: a batch that was lost, or is sent twice, goes unnoticed",
    commands=(PRODUCERS, "kdump retention {path}"),
    action="Look whether the producer's batches are on the disk, and above the log start offset. Raise retention or "
    "producer.id.expiration.ms above the longest pause of the producer, or update the client",
    never="Do not lower transactional.id.expiration.ms or producer.id.expiration.ms below the pauses of producers",
    incident="unknown-producer-id",
)

PRODUCER_FENCED = Message(
    name="producer-fenced",
    texts=(
        "There is a newer producer using the same transactional_id ortransaction timeout occurred (check that "
        "processing time is below transaction_timeout_ms)",
        "Fatal transaction error: ProduceRequest for {topic} [{number}] with {} message(s) failed: Broker: Producer "
        "attempted an operation with an old epoch (broker {nodeId} PID{Id:{producerId},Epoch:{producerEpoch}}, base "
        "seq {}): transactional producer fenced by newer producer instance",
        "ProduceRequest for {topic} [{number}] with {} message(s) failed: Broker: Producer attempted an operation "
        "with an old epoch (broker {nodeId} PID{Id:{producerId},Epoch:{producerEpoch}}, base seq {}){}",
        "Failed to acquire transactional PID from broker {}: {reason}",
        "Epoch of producer {producerId} at offset {offset} in {partition} is {producerEpoch}, which is smaller "
        "than the last seen epoch {otherEpoch}",
        "Producer attempted to produce with an old epoch.",
        "There is a newer producer with the same transactionalId which fences the current one.",
        "Producer with transactionalId '{transactionalId}' and ProducerIdAndEpoch(producerId={producerId}, "
        "epoch={producerEpoch}) has been fenced by another producer with the same transactionalId",
        "Producer with transactionalId '{transactionalId}' and ProducerIdAndEpoch(producerId={producerId}, "
        "epoch={producerEpoch}) attempted to produce with an old epoch",
        "Producer with transactionalId '{transactionalId}' and {} has been fenced by another producer with the "
        "same transactionalId",
        "Producer with transactionalId '{transactionalId}' and {} attempted to produce with an old epoch",
        "Broker: Producer attempted an operation with an old epoch",
        "Local: This instance has been fenced by a newer instance",
    ),
    exceptions=(
        "ProducerFencedException",
        "PRODUCER_FENCED",
        "ProducerFenced",
        "InvalidProducerEpochException",
        "INVALID_PRODUCER_EPOCH",
        "InvalidProducerEpoch",
    ),
    source="ProducerAppendInfo, TransactionManager, TransactionCoordinator",
    meaning="The producer's epoch is older than the one that the broker knows: another producer has taken over, or its "
    "transaction was aborted by the coordinator",
    cause="Two instances with the same transactional.id; or the transaction lasted longer than "
    "transaction.timeout.ms and was aborted",
    impact="Nothing of this producer is written any more; its open transaction is aborted",
    commands=(PRODUCERS, TRANSACTIONS),
    action="Close the producer. If only one instance should run, look for the other; if it was the timeout, commit "
    "more often",
    never="Do not retry with the same producer object, and do not give two instances one transactional.id",
    codes=("producer-epoch-decreased",),
)

EPOCH_OF_MARKER = Message(
    name="producer-epoch-below-last",
    texts=(
        "Epoch of producer {producerId} at offset {offset} in {partition} is {producerEpoch}, which is < the "
        "last seen epoch {otherEpoch}",
        "Epoch of producer {producerId} at offset {offset} in {partition} is {producerEpoch}, which is < the "
        "last seen epoch {otherEpoch} (TV{})",
    ),
    source="ProducerAppendInfo",
    meaning="While it loaded or replicated a log, the broker found a batch or a marker with an older producer epoch "
    "than an earlier one",
    cause="A fenced producer whose batch was appended before 2.x checks, or bytes that changed",
    impact="None for consumers of committed records, if the marker belongs to an ended transaction",
    commands=(PRODUCERS, "kdump verify {path}", "kdump transactions {path}"),
    action="Let verify show the batch and whether a transaction stays open",
    codes=("producer-epoch-decreased", "transaction-invalid"),
    incident="hanging-transaction",
    plan=True,
)

INVALID_TXN_STATE = Message(
    name="invalid-transaction-state",
    texts=(
        "Expected transactional write from producer {producerId} at offset (offset={offset}, segment=[{}]) in "
        "partition {partition}",
        "Expected transactional write from producer {producerId} at offset {} in partition {partition}",
        "The producer attempted a transactional operation in an invalid state.",
        "TransactionalId: {transactionalId}'s state is {}, but received transaction marker result to send: {}",
        "TransactionalId {transactionalId}: Invalid transition attempted from state {} to state {}",
        "Broker: Producer attempted a transactional operation in an invalid state",
    ),
    exceptions=(
        "InvalidTxnStateException",
        "INVALID_TXN_STATE",
        "InvalidTxnState",
        "TransactionAbortableException",
        "TRANSACTION_ABORTABLE",
        "TransactionAbortedException",
    ),
    source="ProducerAppendInfo, TransactionCoordinator, TransactionManager",
    meaning="A producer does something that does not fit the state of its transaction",
    cause="The coordinator has ended the transaction already (a timeout), a bug in the client, or a log in which data "
    "outside a transaction follow an open one",
    impact="The transaction is aborted. At startup: the broker exits",
    commands=(TRANSACTIONS, "kdump transactions {path}", PRODUCERS),
    action="Abort and begin a new transaction. At startup, see what verify says about the partition",
    codes=("transaction-invalid",),
    incident="hanging-transaction",
    plan=True,
)

TRANSACTION_TIMED_OUT = Message(
    name="transaction-timed-out",
    texts=(
        "Completed rollback of ongoing transaction for transactionalId {transactionalId} due to timeout",
        "The transaction timeout is larger than the maximum value allowed by the broker (as configured by "
        "transaction.max.timeout.ms).",
        "Timeout expired after {}ms while awaiting {}",
        "Aborting incomplete transaction due to shutdown",
        "Aborting incomplete transaction",
    ),
    exceptions=("InvalidTxnTimeoutException", "INVALID_TRANSACTION_TIMEOUT", "TransactionTimedOut"),
    source="TransactionCoordinator, TransactionManager, TransactionalRequestResult",
    meaning="A transaction was not ended in transaction.timeout.ms, so the coordinator aborts it; or a call about a "
    "transaction did not complete in time",
    cause="The producer has died, hangs, or does too much in one transaction",
    impact="The records of the transaction are not read by read_committed consumers. Until the abort, those wait",
    commands=(TRANSACTIONS, "kdump transactions {disk} --state hanging"),
    action="Look for transactions that are open in a partition and unknown to the coordinator: those hang, and only "
    "kafka-transactions.sh abort ends them",
    never="Do not abort transactions that the coordinator still knows: the producer may be committing",
    codes=("transaction-open", "transaction-hanging"),
    incident="hanging-transaction",
    at_info=True,
)

TRANSACTION_MAPPING = Message(
    name="producer-id-mapping-unknown",
    texts=(
        "The producer attempted to use a producer id which is not currently assigned to its transactional id.",
        "Broker: Producer attempted to use a producer id which is not currently assigned to its transactional id",
        "The transactionalId could not be found",
    ),
    exceptions=(
        "InvalidPidMappingException",
        "INVALID_PRODUCER_ID_MAPPING",
        "TransactionalIdNotFoundException",
        "TRANSACTIONAL_ID_NOT_FOUND",
    ),
    source="TransactionCoordinator, Errors",
    meaning="The transaction coordinator does not have this producer ID for the transactional ID",
    cause="The transactional ID expired (transactional.id.expiration.ms, 7 days), or __transaction_state lost records",
    impact="The producer must call initTransactions again",
    commands=(TRANSACTIONS, "kdump ls {disk} --topic __transaction_state"),
    action="Restart the producer. If it happens to many at once, check __transaction_state with verify",
    incident="unknown-producer-id",
)
