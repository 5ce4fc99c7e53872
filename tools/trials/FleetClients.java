import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * The clients of tools/fleet_trial.py: java -cp JARS/* FleetClients.java BROKERS
 *
 * Obeys lines on stdin, and prints a line for each of them. prepare: creates the topics and writes to them, and leaves a
 * group that is behind, one that is not, and a transaction that nobody ends. load: from now on, writes to orders and
 * payments, with and without transactions. ledger FROM TO: writes these entries to the leader of ledger. leader: the
 * leader and the in-sync replicas of ledger. ends: the sum of the log end offsets of orders. load stops when stdin ends.
 */
class FleetClients {
    static final int PARTITIONS = 6, RECORDS = 3000, COMMITTED = 100;
    static String brokers;
    static Admin admin;
    static KafkaProducer<byte[], byte[]> hanging;
    static final AtomicReference<Throwable> failed = new AtomicReference<>();

    public static void main(String[] arguments) throws Exception {
        brokers = arguments[0];
        admin = Admin.create(properties());
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine();) {
            String[] words = lines.nextLine().split(" ");
            if (failed.get() != null) throw new RuntimeException(failed.get());
            System.out.println(switch (words[0]) {
                case "prepare" -> prepare();
                case "load" -> load();
                case "ledger" -> ledger(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
                case "leader" -> leader();
                default -> ends();
            });
        }
        System.exit(0);
    }

    static Properties properties(String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", brokers);
        for (int i = 0; i < more.length; i += 2) all.put(more[i], more[i + 1]);
        return all;
    }

    static KafkaProducer<byte[], byte[]> producer(String... more) {
        return new KafkaProducer<>(properties(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int number) {
        return new ProducerRecord<>(topic, ("key-" + number).getBytes(), ("value-" + number).getBytes());
    }

    static NewTopic topic(String name, int partitions, Integer... replicas) {
        return new NewTopic(name, IntStream.range(0, partitions).boxed()
            .collect(Collectors.toMap(number -> number, number -> List.of(replicas))));
    }

    /** Everything but ledger is led by broker 3, which runs all the time. */
    static String prepare() throws Exception {
        Map<String, String> compact = Map.of("cleanup.policy", "compact", "compression.type", "producer");
        List<NewTopic> topics = new ArrayList<>(List.of(topic("ledger", 1, 1, 2), topic("orders", PARTITIONS, 3, 2, 1),
            topic("payments", 1, 3, 2, 1), topic("invoices", 1, 3, 2, 1),
            topic("__consumer_offsets", 3, 3, 2, 1).configs(compact),
            topic("__transaction_state", 1, 3, 2, 1).configs(compact)));
        admin.createTopics(topics).all().get();
        Thread.sleep(3000);
        try (KafkaProducer<byte[], byte[]> plain = producer("batch.size", "2000", "compression.type", "lz4")) {
            for (int i = 0; i < RECORDS; i++) plain.send(record("orders", i));
            for (int i = 0; i < COMMITTED; i++) plain.send(record("invoices", i));
            for (int i = 0; i < 10; i++) plain.send(record("payments", i));
        }
        commit("billing", "orders", PARTITIONS);
        commit("audit", "invoices", 1);
        hanging = producer("transactional.id", "tx-hang", "transaction.timeout.ms", "900000");
        hanging.initTransactions();
        hanging.beginTransaction();
        for (int i = 0; i < 3; i++) hanging.send(record("payments", i)).get();
        return ledger(1, 50);
    }

    static void commit(String group, String topic, int partitions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int i = 0; i < partitions; i++) offsets.put(new TopicPartition(topic, i), new OffsetAndMetadata(COMMITTED));
        try (KafkaConsumer<byte[], byte[]> member = consumer(group)) {
            member.assign(offsets.keySet());
            member.commitSync(offsets);
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group) {
        return new KafkaConsumer<>(properties("group.id", group, "auto.offset.reset", "earliest",
            "auto.commit.interval.ms", "500"), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** acks=1, as where losing an entry seems cheaper than waiting for one. */
    static String ledger(int from, int to) throws Exception {
        RecordMetadata last = null;
        try (KafkaProducer<byte[], byte[]> entries = producer("acks", "1", "enable.idempotence", "false")) {
            for (int i = from; i <= to; i++) last = entries.send(record("ledger", i)).get();
        }
        return "up to " + last.offset();
    }

    static String leader() throws Exception {
        TopicPartitionInfo found = admin.describeTopics(List.of("ledger")).allTopicNames().get().get("ledger").partitions().get(0);
        return (found.leader() == null ? -1 : found.leader().id()) + " " + found.isr().stream().map(Node::id).sorted().toList();
    }

    static String ends() throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        for (int i = 0; i < PARTITIONS; i++) wanted.put(new TopicPartition("orders", i), OffsetSpec.latest());
        return String.valueOf(admin.listOffsets(wanted).all().get().values().stream().mapToLong(each -> each.offset()).sum());
    }

    interface Work { void run() throws Exception; }

    static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                while (true) work.run();
            } catch (Throwable error) {
                failed.set(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static String load() {
        KafkaProducer<byte[], byte[]> plain = producer("linger.ms", "50");
        KafkaProducer<byte[], byte[]> transactional = producer("transactional.id", "tx-load");
        KafkaConsumer<byte[], byte[]> shipping = consumer("shipping");
        transactional.initTransactions();
        shipping.subscribe(List.of("orders"));
        int[] number = {0};
        start(() -> {
            for (int i = 0; i < 20; i++) plain.send(record("orders", number[0]++));
            Thread.sleep(10);
        });
        start(() -> {
            transactional.beginTransaction();
            for (int i = 0; i < 5; i++) transactional.send(record("payments", i));
            Thread.sleep(100);
            if (new Random().nextInt(5) == 0) transactional.abortTransaction(); else transactional.commitTransaction();
        });
        start(() -> shipping.poll(Duration.ofMillis(200)));
        return "started";
    }
}
