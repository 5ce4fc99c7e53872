import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * The clients of tools/coordinator_trials.py: java -cp JARS/* Coordinators.java BOOTSTRAP
 *
 * Obeys lines on stdin, and prints a JSON object for each of them. prepare: creates the topics, and leaves a group with a
 * committed offset, a share group that has acknowledged records, a transaction that ended and one that is open. ask: what
 * the coordinators answer now. end: commits the open transaction. roll: sets preallocate=false on the coordinators' topics,
 * and has each of them begin a new segment.
 */
class Coordinators {
    static final int SECONDS = 12, RECORDS = 100, DONE = 60;
    static final List<String> INTERNAL = List.of("__consumer_offsets", "__transaction_state", "__share_group_state");
    /** Of three partitions of __consumer_offsets, by the hashes of these names, the third has no group. */
    static final String GROUP = "accounts", SHARE_GROUP = "workers";
    static final TopicPartition ORDERS = new TopicPartition("orders", 0);
    static String bootstrap;
    static Admin admin;
    static KafkaProducer<byte[], byte[]> open;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        admin = Admin.create(properties());
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine();) {
            Map<String, String> found = new LinkedHashMap<>();
            switch (lines.nextLine()) {
                case "prepare" -> prepare(found);
                case "roll" -> roll(found);
                case "end" -> end(found);
                default -> ask(found);
            }
            System.out.println(found.entrySet().stream().map(e -> quoted(e.getKey()) + ": " + quoted(e.getValue()))
                .collect(Collectors.joining(", ", "{", "}")));
        }
        System.exit(0);
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ") + '"';
    }

    static Properties properties(String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("default.api.timeout.ms", SECONDS * 1000);
        all.put("request.timeout.ms", 5000);
        for (int i = 0; i < more.length; i += 2) all.put(more[i], more[i + 1]);
        return all;
    }

    static KafkaProducer<byte[], byte[]> producer(String id) {
        return new KafkaProducer<>(properties("transactional.id", id, "max.block.ms", SECONDS * 1000 + "",
            "delivery.timeout.ms", SECONDS * 1000 + "", "transaction.timeout.ms", "600000"),
            new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String... more) {
        return new KafkaConsumer<>(properties(more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int number) {
        return new ProducerRecord<>(topic, ("key-" + number).getBytes(), ("value-" + number).getBytes());
    }

    /** What a question comes to: its answer, or the names of the exceptions and the message of the innermost. */
    static void put(Map<String, String> found, String name, Callable<Object> question) {
        Future<Object> running = Executors.newSingleThreadExecutor(job -> {
            Thread thread = new Thread(job);
            thread.setDaemon(true);
            return thread;
        }).submit(question);
        try {
            found.put(name, String.valueOf(running.get(3 * SECONDS, TimeUnit.SECONDS)));
        } catch (TimeoutException late) {
            found.put(name, "no answer within " + 3 * SECONDS + " seconds");
        } catch (Exception error) {
            Throwable inner = error;
            while (inner.getCause() != null) inner = inner.getCause();
            found.put(name, inner.getClass().getSimpleName() + ": " + inner.getMessage());
        }
    }

    static void prepare(Map<String, String> found) throws Exception {
        // As a broker makes them, but each replica where it is wanted: the first is the preferred leader.
        Map<String, String> compact = Map.of("cleanup.policy", "compact", "compression.type", "producer",
            "segment.bytes", "104857600");
        List<Integer> brokers = List.of(1, 2, 3);
        Map<Integer, List<Integer>> one = Map.of(0, brokers), three = Map.of(0, brokers, 1, brokers, 2, brokers);
        List<NewTopic> topics = new ArrayList<>(List.of(
            new NewTopic("orders", one).configs(Map.of("segment.bytes", "104857600")),
            new NewTopic("users", one).configs(Map.of("cleanup.policy", "compact", "segment.bytes", "1048576",
                "min.cleanable.dirty.ratio", "0.01")),
            new NewTopic(INTERNAL.get(0), three).configs(compact)));
        for (String name : INTERNAL.subList(1, 3)) topics.add(new NewTopic(name, one).configs(compact));
        admin.createTopics(topics).all().get();
        Thread.sleep(3000);
        try (KafkaProducer<byte[], byte[]> orders = producer("ended")) {
            orders.initTransactions();
            orders.beginTransaction();
            for (int i = 0; i < RECORDS; i++) orders.send(record("orders", i));
            for (int i = 0; i < 60000; i++) orders.send(record("users", i % 500));
            orders.commitTransaction();
        }
        put(found, "commit", () -> commit(DONE));
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, SHARE_GROUP);
        admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
        put(found, "share", () -> share(DONE));
        open = producer("open");
        open.initTransactions();
        open.beginTransaction();
        open.send(record("orders", 0)).get();
        ask(found);
    }

    static Object commit(int offset) {
        try (KafkaConsumer<byte[], byte[]> accounts = consumer("group.id", GROUP)) {
            accounts.assign(List.of(ORDERS));
            accounts.commitSync(Map.of(ORDERS, new OffsetAndMetadata(offset)));
            return "done";
        }
    }

    /** Takes at most `most` records as a member of the share group, and acknowledges them. */
    static Object share(int most) {
        int got = 0;
        try (KafkaShareConsumer<byte[], byte[]> workers = new KafkaShareConsumer<>(properties("group.id", SHARE_GROUP,
                "share.acknowledgement.mode", "explicit", "max.poll.records", "20", "share.acquire.mode", "record_limit"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            workers.subscribe(List.of("orders"));
            long until = System.currentTimeMillis() + SECONDS * 1000;
            while (got < most && System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> each : workers.poll(Duration.ofSeconds(1))) {
                    workers.acknowledge(each, AcknowledgeType.ACCEPT);
                    got++;
                }
                workers.commitSync();
            }
        }
        return got + " records";
    }

    /** How many records a member of the group gets from its committed offset on. */
    static Object member() {
        int got = 0;
        try (KafkaConsumer<byte[], byte[]> accounts = consumer("group.id", GROUP, "enable.auto.commit", "false",
                "auto.offset.reset", "earliest", "isolation.level", "read_uncommitted")) {
            accounts.subscribe(List.of("orders"));
            long until = System.currentTimeMillis() + SECONDS * 1000;
            while (System.currentTimeMillis() < until) {
                int now = accounts.poll(Duration.ofSeconds(1)).count();
                if (got > 0 && now == 0) break;
                got += now;
            }
        }
        return got + " records";
    }

    static Object read(String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> reader = consumer()) {
            reader.assign(List.of(partition));
            reader.seekToBeginning(List.of(partition));
            long end = reader.endOffsets(List.of(partition)).get(partition);
            long until = System.currentTimeMillis() + SECONDS * 1000;
            while (reader.position(partition) < end && System.currentTimeMillis() < until) reader.poll(Duration.ofSeconds(1));
            return reader.position(partition) == end ? "to the end" : "up to " + reader.position(partition) + " of " + end;
        }
    }

    static void ask(Map<String, String> found) {
        for (String name : INTERNAL)
            put(found, "leader of " + name, () -> admin.describeTopics(List.of(name)).allTopicNames().get().get(name)
                .partitions().get(0).leader().id());
        put(found, "committed offset", () -> {
            OffsetAndMetadata offset = admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get().get(ORDERS);
            return offset == null ? "none" : offset.offset();
        });
        put(found, "member of the group", Coordinators::member);
        put(found, "commit of an offset", () -> commit(DONE));
        for (String id : List.of("ended", "open"))
            put(found, "transaction " + id, () -> admin.describeTransactions(List.of(id)).description(id).get().state());
        put(found, "share group", () -> admin.listShareGroupOffsets(Map.of(SHARE_GROUP, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(SHARE_GROUP).get().get(ORDERS).startOffset());
        for (String name : List.of("orders", "users")) put(found, "read " + name, () -> read(name));
    }

    /** The open transaction is committed by its producer, which has to find the coordinator that knows it. */
    static void end(Map<String, String> found) {
        put(found, "commit of the open transaction", () -> { open.commitTransaction(); return "done"; });
    }

    static void configure(Map<String, String> settings) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        for (String name : INTERNAL)
            changes.put(new ConfigResource(ConfigResource.Type.TOPIC, name), settings.entrySet().stream().map(each ->
                new AlterConfigOp(new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET)).toList());
        admin.incrementalAlterConfigs(changes).all().get();
    }

    static void roll(Map<String, String> found) throws Exception {
        configure(Map.of("preallocate", "false", "segment.ms", "1000"));
        for (int i = 0; i < 2; i++) {
            Thread.sleep(3000);
            put(found, "commit", () -> commit(DONE));
            open.abortTransaction();
            open.beginTransaction();
            open.send(record("orders", i)).get();
            put(found, "share", () -> share(1));
        }
        configure(Map.of("segment.ms", "604800000"));
    }
}
