import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.CRC32;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/**
 * The clients of tools/rescue_trials.py: java -cp JARS/* Rescue.java prepare|ask|check BOOTSTRAP REPLICAS TOPICS
 *
 * prepare: creates topics, one of them with remote storage, records, a committed and an open transaction, groups of all
 * protocols, a user, an ACL, a quota, and a reassignment that does not end. ask: prints a line for each fact of the
 * cluster, which must be the same after a rescue: name, tab, value. check: the same, then a line --, and what only works
 * on a healthy cluster (a new topic, a new producer ID, the transactional producers, fencing, a reassignment), a line for
 * each.
 */
class Rescue {
    static final int SECONDS = 180, RECORDS = 40;
    static String bootstrap;
    static Admin admin;
    static KafkaConsumer<byte[], byte[]> reader;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[1];
        short replicas = Short.parseShort(arguments[2]);
        admin = Admin.create(properties());
        switch (arguments[0]) {
            case "prepare" -> prepare(replicas, Integer.parseInt(arguments[3]));
            case "ask" -> ask();
            default -> {
                ask();
                System.out.println("--");
                use(replicas);
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static Properties properties(String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("default.api.timeout.ms", SECONDS * 1000);
        all.put("request.timeout.ms", 120000);
        for (int i = 0; i < more.length; i += 2) all.put(more[i], more[i + 1]);
        return all;
    }

    static KafkaProducer<byte[], byte[]> producer(String... more) {
        Properties all = properties(more);
        all.put("max.block.ms", SECONDS * 1000 + "");
        all.put("acks", "all");
        all.put("delivery.timeout.ms", 300000);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaProducer<byte[], byte[]> transactional(String id) {
        return producer("transactional.id", id, "transaction.timeout.ms", "86400000");
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Integer partition, int number) {
        return new ProducerRecord<>(topic, partition, ("key-" + number).getBytes(), ("value-" + number).getBytes());
    }

    static void prepare(short replicas, int count) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 0; i < count; i++) topics.add(new NewTopic("t" + i, 2, replicas));
        topics.add(new NewTopic("compacted", 2, replicas).configs(Map.of("cleanup.policy", "compact")));
        topics.add(new NewTopic("configured", 1, replicas).configs(Map.of("retention.ms", "999999999")));
        topics.add(new NewTopic("deleted", 1, replicas));
        topics.add(new NewTopic("appended", 1, replicas).configs(Map.of("message.timestamp.type", "LogAppendTime")));
        topics.add(new NewTopic("cleaned", 1, replicas).configs(Map.of("cleanup.policy", "compact", "segment.ms", "100",
            "min.cleanable.dirty.ratio", "0.01")));
        topics.add(new NewTopic("tiered", 1, replicas).configs(Map.of("remote.storage.enable", "true", "segment.ms", "100",
            "local.retention.bytes", "1")));
        admin.createTopics(topics).all().get();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (NewTopic topic : topics)
                for (int p = 0; p < topic.numPartitions(); p++)
                    for (int i = 0; i < RECORDS; i++) sent.add(plain.send(record(topic.name(), p, i)));
        }
        for (Future<RecordMetadata> each : sent) each.get();
        admin.deleteTopics(List.of("deleted")).all().get();
        clean();
        tier();
        if (replicas > 1) move();
        try (KafkaProducer<byte[], byte[]> ended = transactional("ended")) {
            ended.initTransactions();
            ended.beginTransaction();
            for (int i = 0; i < RECORDS; i++) ended.send(record("t0", 0, i));
            ended.commitTransaction();
        }
        KafkaProducer<byte[], byte[]> open = transactional("open");
        open.initTransactions();
        open.beginTransaction();
        open.send(record("t0", 1, 0)).get();
        admin.alterConsumerGroupOffsets("g", Map.of(new TopicPartition("t0", 0), new OffsetAndMetadata(7))).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("ann",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all().get();
        admin.createAcls(List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t0", PatternType.LITERAL),
            new AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", "ann")),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, ""), List.of(new AlterConfigOp(
            new ConfigEntry("log.cleaner.threads", "2"), AlterConfigOp.OpType.SET)))).all().get();
        System.out.println(consumed("classic", "classic", 10));
        if (hasFeature("group.version")) System.out.println(consumed("modern", "consumer", 10));
        if (hasFeature("share.version")) System.out.println(newer("RescueShare", "consumed", admin, properties(), 10));
        if (hasFeature("streams.version"))
            System.out.println(newer("RescueStreams", "counted", admin, properties(), 2L * RECORDS));
        System.out.println("prepared");
    }

    /** Calls RescueShare or RescueStreams, which are compiled only with releases that have these groups. */
    static Object newer(String client, String name, Object... arguments) throws Exception {
        for (var method : Class.forName(client).getDeclaredMethods())
            if (method.getName().equals(name)) return method.invoke(null, arguments);
        throw new NoSuchMethodException(name);
    }

    static boolean hasFeature(String name) throws Exception {
        return admin.describeFeatures().featureMetadata().get().finalizedFeatures().containsKey(name);
    }

    /** Writes the same keys again and again, until the log cleaner has removed records. */
    static void clean() throws Exception {
        TopicPartition cleaned = new TopicPartition("cleaned", 0);
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (int phase = 0; phase < 3; phase++) {
                Thread.sleep(500);
                for (int i = 0; i < RECORDS; i++) plain.send(record("cleaned", 0, i)).get();
            }
        }
        long until = System.currentTimeMillis() + SECONDS * 1000;
        while (System.currentTimeMillis() < until && digest(cleaned).toString().contains(" " + 4 * RECORDS + " ")) Thread.sleep(500);
        Thread.sleep(2000);
    }

    /** Writes until segments are in remote storage only. */
    static void tier() throws Exception {
        TopicPartition tiered = new TopicPartition("tiered", 0);
        long until = System.currentTimeMillis() + SECONDS * 1000;
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (int i = 0; i < RECORDS; i++) {
                Thread.sleep(200);
                plain.send(record("tiered", 0, i)).get();
                if (localStart(tiered) > RECORDS && i > 5) return;
            }
        }
        while (localStart(tiered) == 0 && System.currentTimeMillis() < until) Thread.sleep(500);
    }

    /** The first offset that is on the leader's disk. */
    static long localStart(TopicPartition partition) throws Exception {
        return admin.listOffsets(Map.of(partition, OffsetSpec.earliestLocal())).partitionResult(partition).get().offset();
    }

    /** Begins a reassignment that does not end: the new replica may fetch 1,000 bytes a second. */
    static void move() throws Exception {
        admin.createTopics(List.of(new NewTopic("moving", Map.of(0, List.of(11))))).all().get();
        List<AlterConfigOp> of = new ArrayList<>(), rates = new ArrayList<>();
        for (String side : List.of("leader", "follower")) {
            of.add(new AlterConfigOp(new ConfigEntry(side + ".replication.throttled.replicas", "*"), AlterConfigOp.OpType.SET));
            rates.add(new AlterConfigOp(new ConfigEntry(side + ".replication.throttled.rate", "1000"), AlterConfigOp.OpType.SET));
        }
        Map<ConfigResource, Collection<AlterConfigOp>> all = new HashMap<>();
        all.put(new ConfigResource(ConfigResource.Type.TOPIC, "moving"), of);
        for (String id : List.of("11", "12")) all.put(new ConfigResource(ConfigResource.Type.BROKER, id), rates);
        admin.incrementalAlterConfigs(all).all().get();
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (int i = 0; i < 4000; i++)
                plain.send(new ProducerRecord<>("moving", 0, ("key-" + i).getBytes(), new byte[10000]));
        }
        admin.alterPartitionReassignments(Map.of(new TopicPartition("moving", 0),
            Optional.of(new NewPartitionReassignment(List.of(12))))).all().get();
        Thread.sleep(3000);
    }

    /** Reads this many records of t1 in a group of this protocol, and commits the offsets. */
    static String consumed(String group, String protocol, int count) {
        Properties all = properties("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest",
            "max.poll.records", "5", "enable.auto.commit", "false");
        int read = 0;
        try (KafkaConsumer<byte[], byte[]> reader = new KafkaConsumer<>(all, new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            reader.subscribe(List.of("t1"));
            long until = System.currentTimeMillis() + SECONDS * 1000;
            while (read < count && System.currentTimeMillis() < until) {
                read += reader.poll(Duration.ofMillis(500)).count();
                reader.commitSync();
            }
        }
        return read >= count ? "works" : read + " records";
    }

    static void put(String name, Callable<Object> question) {
        String answer;
        try {
            answer = String.valueOf(question.call());
        } catch (Exception error) {
            Throwable inner = error;
            while (inner.getCause() != null) inner = inner.getCause();
            answer = inner.getClass().getSimpleName() + ": " + inner.getMessage();
        }
        System.out.println(name + "\t" + answer.replaceAll("\\s+", " "));
    }

    static void ask() throws Exception {
        Set<String> names = new TreeSet<>(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
        Map<String, TopicDescription> topics = new TreeMap<>(admin.describeTopics(names).allTopicNames().get());
        List<TopicPartition> partitions = new ArrayList<>();
        for (TopicDescription topic : topics.values()) {
            put("topic " + topic.name(), () -> topic.topicId() + " " + topic.partitions().stream()
                .map(each -> each.replicas().stream().map(Node::id).toList() + "").collect(Collectors.joining(" ")));
            topic.partitions().forEach(each -> partitions.add(new TopicPartition(topic.name(), each.partition())));
        }
        for (TopicPartition each : partitions)
            if (!each.topic().startsWith("__")) put("records " + each, () -> digest(each));
        for (String group : List.of("classic", "modern", "g"))
            put("group " + group, () -> admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().entrySet()
                .stream().map(each -> each.getKey() + "=" + each.getValue().offset()).sorted().toList());
        if (hasFeature("share.version")) {
            put("group shared", () -> newer("RescueShare", "offsets", admin));
            put("configs of group shared", () -> newer("RescueShare", "configs"));
        }
        if (hasFeature("streams.version")) put("group streaming", () -> newer("RescueStreams", "offsets", admin));
        put("remote segments of tiered", () -> localStart(new TopicPartition("tiered", 0)) > 0);
        put("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
        for (String id : List.of("ended", "open"))
            put("transaction " + id, () -> {
                TransactionDescription found = admin.describeTransactions(List.of(id)).description(id).get();
                return found.state() + " " + found.producerId() + " " + found.producerEpoch();
            });
        put("users", () -> admin.describeUserScramCredentials().all().get().keySet());
        put("ACLs", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        put("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        for (String name : names)
            if (!name.matches("t[0-9]+")) put("configs of " + name, () -> own(new ConfigResource(ConfigResource.Type.TOPIC, name)));
        put("configs of brokers", () -> own(new ConfigResource(ConfigResource.Type.BROKER, "")));
        put("features", () -> admin.describeFeatures().featureMetadata().get().finalizedFeatures().entrySet().stream()
            .map(each -> each.getKey() + "=" + each.getValue().maxVersionLevel()).sorted().toList());
    }

    static Object own(ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().stream()
            .filter(each -> each.source().name().startsWith("DYNAMIC"))
            .map(each -> each.name() + "=" + each.value()).sorted().toList();
    }

    /** First and last offset, number and checksum of the records that a partition serves. */
    static Object digest(TopicPartition partition) {
        if (reader == null) reader = new KafkaConsumer<>(properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        reader.assign(List.of(partition));
        reader.seekToBeginning(List.of(partition));
        long end = reader.endOffsets(List.of(partition)).get(partition), first = reader.position(partition);
        CRC32 sum = new CRC32();
        int count = 0;
        long until = System.currentTimeMillis() + SECONDS * 1000;
        while (reader.position(partition) < end && System.currentTimeMillis() < until)
            for (ConsumerRecord<byte[], byte[]> each : reader.poll(Duration.ofMillis(500))) {
                sum.update((each.offset() + " " + each.timestamp() + " " + new String(each.key())
                    + new String(each.value())).getBytes());
                count++;
            }
        return first + ".." + end + " " + count + " " + sum.getValue() + " read to " + reader.position(partition);
    }

    static long producerId(TopicPartition partition) throws Exception {
        return admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().stream()
            .mapToLong(ProducerState::producerId).max().orElse(-1);
    }

    static void use(short replicas) throws Exception {
        long before = -1;
        for (int i = 0; i < 2; i++) before = Math.max(before, producerId(new TopicPartition("t0", i)));
        long known = before;
        put("new topic", () -> {
            admin.createTopics(List.of(new NewTopic("after", 1, replicas))).all().get();
            try (KafkaProducer<byte[], byte[]> plain = producer()) {
                for (int i = 0; i < RECORDS; i++) plain.send(record("after", 0, i)).get();
            }
            String read = digest(new TopicPartition("after", 0)).toString();
            return read.startsWith("0.." + RECORDS + " " + RECORDS + " ") ? "works" : read;
        });
        put("new producer ID", () -> {
            long made = producerId(new TopicPartition("after", 0));
            return made > known ? "works" : made + " after " + known;
        });
        put("old topic", () -> {
            try (KafkaProducer<byte[], byte[]> plain = producer()) {
                return plain.send(record("t1", 0, 99)).get().offset() == RECORDS ? "works" : "another offset";
            }
        });
        TransactionDescription old = admin.describeTransactions(List.of("open")).description("open").get();
        for (String id : List.of("ended", "open"))
            put("transactional producer " + id, () -> {
                try (KafkaProducer<byte[], byte[]> again = transactional(id)) {
                    again.initTransactions();
                    again.beginTransaction();
                    again.send(record("t0", 0, 99));
                    again.commitTransaction();
                }
                return "works";
            });
        put("open transaction", () -> {
            Object state = admin.describeTransactions(List.of("open")).description("open").get().state();
            return Set.of("CompleteCommit", "PrepareCommit").contains(state.toString()) ? "works" : state;
        });
        put("fencing of the producer before", () -> {
            TransactionDescription now = admin.describeTransactions(List.of("open")).description("open").get();
            return now.producerId() == old.producerId() && now.producerEpoch() > old.producerEpoch() ? "works" : old + " " + now;
        });
        put("fencing", () -> {
            try (KafkaProducer<byte[], byte[]> first = transactional("ended"); KafkaProducer<byte[], byte[]> second = transactional("ended")) {
                first.initTransactions();
                second.initTransactions();
                first.beginTransaction();
                try {
                    first.send(record("t0", 0, 100)).get();
                    first.commitTransaction();
                } catch (ProducerFencedException | InvalidProducerEpochException | ExecutionException error) {
                    return String.valueOf(error).matches("(?s).*(Fenced|InvalidProducerEpoch).*") ? "works" : error;
                }
                return "not fenced";
            }
        });
        put("group", () -> {
            admin.alterConsumerGroupOffsets("g", Map.of(new TopicPartition("t0", 0), new OffsetAndMetadata(9))).all().get();
            return "works";
        });
        put("group classic", () -> consumed("classic", "classic", 10));
        if (hasFeature("group.version")) put("group modern", () -> consumed("modern", "consumer", 10));
        if (hasFeature("streams.version"))
            put("group streaming", () -> {
                try (KafkaProducer<byte[], byte[]> plain = producer()) {
                    for (int i = 0; i < 20; i++) plain.send(record("t3", 1, i)).get();
                }
                return newer("RescueStreams", "counted", admin, properties(), 2L * RECORDS + 20);
            });
        if (hasFeature("share.version"))
            put("group shared", () -> {
                try (KafkaProducer<byte[], byte[]> plain = producer()) {
                    for (int i = 0; i < 20; i++) plain.send(record("t1", 1, i)).get();
                }
                return newer("RescueShare", "consumed", admin, properties(), 10);
            });
        put("delete topic", () -> {
            admin.deleteTopics(List.of("t2")).all().get();
            return "works";
        });
        if (!admin.listPartitionReassignments().reassignments().get().isEmpty())
            put("reassignment in flight", () -> {
                Map<ConfigResource, Collection<AlterConfigOp>> free = new HashMap<>();
                for (String id : List.of("11", "12"))
                    free.put(new ConfigResource(ConfigResource.Type.BROKER, id), Stream.of("leader", "follower").map(side ->
                        new AlterConfigOp(new ConfigEntry(side + ".replication.throttled.rate", ""), AlterConfigOp.OpType.DELETE)).toList());
                admin.incrementalAlterConfigs(free).all().get();
                return ended(new TopicPartition("moving", 0), List.of(12));
            });
        if (replicas > 1)
            put("reassignment", () -> {
                TopicPartition moved = new TopicPartition("after", 0);
                admin.alterPartitionReassignments(Map.of(moved, Optional.of(new NewPartitionReassignment(List.of(11))))).all().get();
                return ended(moved, List.of(11));
            });
    }

    /** Waits until a reassignment has ended, with these replicas. */
    static String ended(TopicPartition partition, List<Integer> replicas) throws Exception {
        long until = System.currentTimeMillis() + SECONDS * 1000;
        // A broker that is asked may know it later than the controller.
        while (System.currentTimeMillis() < until)
            if (!admin.listPartitionReassignments().reassignments().get().containsKey(partition) && admin.describeTopics(
                    List.of(partition.topic())).allTopicNames().get().get(partition.topic()).partitions().get(0).replicas().stream()
                    .map(Node::id).toList().equals(replicas)) return "works";
            else Thread.sleep(500);
        return "does not end";
    }
}
