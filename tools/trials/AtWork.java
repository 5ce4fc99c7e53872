// Keeps a broker at work until it is killed: appends, compaction, transactions, offset commits, topics that come and go.
// Run: java -cp 'JARS/*' AtWork.java BOOTSTRAP SEED [tiered]; tiered: a few topics in remote storage, with little load.
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class AtWork {
    static String bootstrap;
    static Random random;

    interface Turn { void run(int number) throws Exception; }

    static void forever(String name, long millis, Turn turn) {
        new Thread(() -> {
            for (int number = 0; ; number++) {
                try {
                    turn.run(number);
                    Thread.sleep(millis);
                } catch (Exception error) {
                    System.err.println(name + ": " + error);
                    try { Thread.sleep(500); } catch (InterruptedException interrupted) { return; }
                }
            }
        }, name).start();
    }

    static KafkaProducer<byte[], byte[]> producer(String... configs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "5");
        properties.put("max.block.ms", "5000");
        for (int i = 0; i < configs.length; i += 2) properties.put(configs[i], configs[i + 1]);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int key) {
        byte[] value = new byte[20 + random.nextInt(400)];
        random.nextBytes(value);
        return new ProducerRecord<>(topic, ("key-" + key).getBytes(), random.nextInt(20) == 0 ? null : value);
    }

    static NewTopic topic(String name, int partitions, String... configs) {
        Map<String, String> given = new HashMap<>(Map.of("internal.segment.bytes", "20480"));
        for (int i = 0; i < configs.length; i += 2) given.put(configs[i], configs[i + 1]);
        return new NewTopic(name, partitions, (short) 1).configs(given);
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        random = new Random(Long.parseLong(arguments[1]));
        Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        if (arguments.length > 2) {
            tiered(admin);
            return;
        }
        String[] compact = {"cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "segment.ms", "2000",
            "min.compaction.lag.ms", "0", "delete.retention.ms", "1000"};
        admin.createTopics(List.of(topic("plain", 3), topic("ledger", 2), topic("users", 2, compact),
            topic("both", 1, "cleanup.policy", "compact,delete", "min.cleanable.dirty.ratio", "0.01", "segment.ms", "2000"),
            topic("prealloc", 1, "preallocate", "true"))).all().get();

        KafkaProducer<byte[], byte[]> plain = producer("compression.type", "lz4");
        forever("plain", 15, number -> {
            for (int i = 0; i < 10; i++) plain.send(record("plain", i));
            if (number % 3 == 0) plain.send(record("prealloc", number));
        });
        KafkaProducer<byte[], byte[]> keyed = producer();
        forever("keyed", 15, number -> {
            for (int i = 0; i < 8; i++) keyed.send(record("users", random.nextInt(60)));
            keyed.send(record("both", random.nextInt(30)));
        });
        for (int each = 0; each < 2; each++) {
            KafkaProducer<byte[], byte[]> transactional = producer("transactional.id", "teller-" + each);
            transactional.initTransactions();
            forever("teller-" + each, 20, number -> {
                transactional.beginTransaction();
                for (int i = 0; i < 5; i++) transactional.send(record("ledger", i));
                transactional.flush();
                if (number % 4 == 3) transactional.abortTransaction(); else transactional.commitTransaction();
            });
        }
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id",
            "readers", "auto.offset.reset", "earliest", "enable.auto.commit", "false"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("plain", "ledger"));
        forever("readers", 50, number -> { consumer.poll(Duration.ofMillis(100)); consumer.commitSync(); });

        // Topics made and deleted every two seconds; every third name comes again at once.
        KafkaProducer<byte[], byte[]> brief = producer("retries", "0", "delivery.timeout.ms", "6000", "request.timeout.ms", "5000");
        Deque<String> living = new ArrayDeque<>();
        forever("topics", 2000, number -> {
            String name = number % 3 == 0 ? "phoenix" : "brief-" + number % 7;
            if (living.remove(name)) admin.deleteTopics(List.of(name)).all().get();
            admin.createTopics(List.of(topic(name, 2))).all().get();
            living.add(name);
            for (int i = 0; i < 40; i++) brief.send(record(name, i));
            if (living.size() > 3) admin.deleteTopics(List.of(living.removeFirst())).all().get();
        });
        forever("trim", 3000, number -> admin.deleteRecords(
            Map.of(new TopicPartition("ledger", number % 2), RecordsToDelete.beforeOffset(-1))).all().get());
    }

    static NewTopic tieredTopic(String name, int partitions, String... configs) {
        String[] remote = {"remote.storage.enable", "true"};
        return topic(name, partitions, java.util.stream.Stream.of(remote, configs).flatMap(Arrays::stream).toArray(String[]::new));
    }

    static void tiered(Admin admin) throws Exception {
        admin.createTopics(List.of(
            tieredTopic("timed", 3, "local.retention.ms", "8000", "retention.ms", "60000"),
            tieredTopic("sized", 2, "local.retention.bytes", "30000", "retention.bytes", "400000", "retention.ms", "-1"),
            tieredTopic("ledger", 1, "local.retention.ms", "5000", "retention.ms", "90000"))).all().get();
        KafkaProducer<byte[], byte[]> plain = producer("compression.type", "lz4");
        forever("plain", 50, number -> {
            for (int i = 0; i < 6; i++) plain.send(record("timed", i));
            for (int i = 0; i < 3; i++) plain.send(record("sized", i));
        });
        KafkaProducer<byte[], byte[]> transactional = producer("transactional.id", "teller");
        transactional.initTransactions();
        forever("teller", 200, number -> {
            transactional.beginTransaction();
            for (int i = 0; i < 5; i++) transactional.send(record("ledger", i));
            if (number % 4 == 3) transactional.abortTransaction(); else transactional.commitTransaction();
        });
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id",
            "readers", "auto.offset.reset", "earliest", "enable.auto.commit", "false"),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("timed", "sized", "ledger"));
        forever("readers", 500, number -> { consumer.poll(Duration.ofMillis(100)); consumer.commitSync(); });
        KafkaProducer<byte[], byte[]> brief = producer("retries", "0", "delivery.timeout.ms", "6000", "request.timeout.ms", "5000");
        forever("topics", 40000, number -> {
            if (number > 0) admin.deleteTopics(List.of("brief")).all().get();
            Thread.sleep(1000);
            admin.createTopics(List.of(tieredTopic("brief", 2, "local.retention.ms", "3000", "retention.ms", "60000"))).all().get();
            for (int i = 0; i < 400; i++) brief.send(record("brief", i));
        });
        forever("trim", 30000, number -> {
            long end = admin.listOffsets(Map.of(new TopicPartition("sized", 0), OffsetSpec.latest())).all().get()
                .values().iterator().next().offset();
            admin.deleteRecords(Map.of(new TopicPartition("sized", 0), RecordsToDelete.beforeOffset(Math.max(0, end - 1000)))).all().get();
        });
    }
}
