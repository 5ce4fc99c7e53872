"""Messages about connections between clients, brokers and controllers."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

CONNECTION = Message(
    name="node-not-reachable",
    texts=(
        "Connection to node {nodeId} ({}) could not be established. Node may not be available.",
        "Connection to node {nodeId} ({}) could not be established. Broker may not be available.",
        "Connection to node {nodeId} could not be established. Broker may not be available.",
        "Bootstrap broker {} disconnected",
        "Connection to {nodeId} was disconnected before the response was read",
        "Node {nodeId} disconnected.",
        "Error sending fetch request (sessionId={}, epoch={}) to node {nodeId}:",
        "Received error {} from node {nodeId} when making an ApiVersionsRequest{}",
        "Cancelled in-flight {} request with correlation id {} due to node {nodeId} being disconnected{}",
        "{}:{}/{}: Connect to {} failed: {reason} (after {}ms in state CONNECT{}",
        "{}/{}: Connect to {} failed: {reason} (after {}ms in state CONNECT{}",
        "{}: {}: Connect to {} failed: {reason} (after {}ms in state CONNECT{}",
        "{}: Connect to {} failed: {reason} (after {}ms in state CONNECT{}",
        "{}: Disconnected (after {}ms in state {}",
        "{}: Failed to resolve '{}': {reason} (after {}ms in state CONNECT{}",
        "{}/bootstrap: Connect to {} failed: {reason}",
        "{}/{} brokers are down",
        "Unable connect to node with id {nodeId}: {reason}",
        'Unable connect to "{}": {reason}',
        "Unable to update metadata from [{}]",
        "Unable to request metadata from node with id {nodeId}: {reason}",
        "Unable to bootstrap from [{}]",
        "Failed to send {} request to node {nodeId}",
    ),
    exceptions=(
        "DisconnectException",
        "KafkaConnectionError",
        "ConnectException",
        "ConnectionRefusedError",
        "NETWORK_EXCEPTION",
        "NetworkException",
        "UnknownHostException",
    ),
    source="NetworkClient, FetchSessionHandler; librdkafka; aiokafka",
    meaning="A broker or controller cannot be reached at its address",
    cause="It is not started, still recovers its logs, has exited; or advertised.listeners has an address that is "
    "wrong from here",
    impact="None if it passes within seconds, as at startup. Otherwise its partitions are led by others, or are "
    "offline",
    commands=("kdump cluster {disk} --show brokers", "kdump restart-plan {disk}"),
    action="Look into that node's log. If it runs, compare advertised.listeners with what the client uses",
)

REQUEST_TIMEOUT = Message(
    name="request-timed-out",
    texts=(
        "Expiring {} record(s) for {partition}:{} ms has passed since batch creation",
        "Expiring {} record(s) for {partition}: {} ms has passed since batch creation",
        "Expiring {} record(s) for {partition}:{} ms has passed since batch creation{}",
        "Disconnecting from node {nodeId} due to request timeout.",
        "Topic {topic} not present in metadata after {} ms.",
        "Timeout of {}ms expired before the position for partition {partition} could be determined",
        "Timeout of {}ms expired before successfully committing offsets {}",
        "Timeout of {}ms expired before the last committed offset for partitions {} could be determined. Try "
        "tuning default.api.timeout.ms larger to relax the threshold.",
        "The request timed out.",
        "Local: Message timed out",
        "Local: Timed out",
        "Broker: Request timed out",
        "{}: Timed out {} in flight, {} retry-queued, {} out-queue, {} partially-sent requests",
        "{}: Timed out {} in flight{}",
        "{}: {} request(s) timed out: disconnect (average rtt {}ms) (after {}ms in state {}",
    ),
    exceptions=(
        "TimeoutException",
        "REQUEST_TIMED_OUT",
        "RequestTimedOutError",
        "KafkaTimeoutError",
        "BatchExpiredException",
    ),
    source="ProducerBatch, NetworkClient, KafkaProducer, KafkaAdminClient; librdkafka; aiokafka",
    meaning="A request was not answered in time",
    cause="The broker is overloaded or cannot be reached, has no leader for the partition, or waits for replicas",
    impact="For a producer: it is not known whether the records were written. They may be in the log",
    commands=("kdump inspect {path} --records --last 5", "kafka-topics.sh --bootstrap-server HOST:9092 --describe"),
    action="Look whether the partition has a leader and enough replicas. Send again with an idempotent producer",
    never="Do not send again without idempotence if duplicates matter",
)

AUTHENTICATION = Message(
    name="authentication-failed",
    texts=(
        "Connection to node {nodeId} ({}) failed authentication due to: {reason}",
        "SSL handshake failed",
        "{}: SASL authentication error: {reason}",
        "{}: SSL handshake failed: {reason}",
    ),
    exceptions=(
        "SaslAuthenticationException",
        "SslAuthenticationException",
        "SASL_AUTHENTICATION_FAILED",
        "SSLHandshakeException",
        "TopicAuthorizationException",
        "TOPIC_AUTHORIZATION_FAILED",
        "TopicAuthorizationFailedError",
        "GroupAuthorizationException",
        "GROUP_AUTHORIZATION_FAILED",
        "ClusterAuthorizationException",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TransactionalIdAuthorizationException",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    ),
    source="Selector, NetworkClient, SaslServerAuthenticator, Errors",
    meaning="A connection was refused because of its credentials, its certificate or its rights",
    cause="A wrong password, an expired certificate, a client that speaks another protocol to this port, or a missing "
    "ACL",
    impact="The client is not served",
    commands=("kdump cluster {disk} --show acls",),
    action="Compare the listener's protocol with that of the client; renew certificates; add the ACL",
)

OUT_OF_MEMORY = Message(
    name="out-of-memory",
    texts=(
        "Java heap space",
        "GC overhead limit exceeded",
        "Direct buffer memory",
        "unable to create native thread{}",
    ),
    exceptions=("OutOfMemoryError",),
    source="the Java virtual machine",
    meaning="The process has no memory left",
    cause="Too small a heap; for a client, a batch that decompresses to gigabytes, or a connection to a TLS port "
    "without TLS, whose bytes are read as a size",
    impact="Threads end; the process must be restarted",
    commands=("kdump stats {path}", "kdump verify {path}"),
    action="stats shows the largest batches and how far they decompress. Raise the heap, or skip the batch",
    codes=("decompression-failed",),
)
