// Fills a broker of any release from 2.8 on with a few small partitions, using that release's own client.
// Run: java -cp 'JARS/*' ProduceSmall.java BOOTSTRAP first    before the clean shutdown
//      java -cp 'JARS/*' ProduceSmall.java BOOTSTRAP more     after it, before kill -9
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class ProduceSmall {
    static final long T0 = 1700000000000L, HOUR = 3600000;
    static String bootstrap;

    static KafkaProducer<byte[], byte[]> producer(String... kv) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap); p.put("linger.ms", "50"); p.put("acks", "all"); p.put("enable.idempotence", "true");
        for (int i = 0; i < kv.length; i += 2) p.put(kv[i], kv[i + 1]);
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }
    static byte[] b(String s) { return s.getBytes(StandardCharsets.UTF_8); }
    static NewTopic topic(String name, int partitions, String... kv) {
        Map<String, String> c = new HashMap<>();
        for (int i = 0; i < kv.length; i += 2) c.put(kv[i], kv[i + 1]);
        return new NewTopic(name, partitions, (short) 1).configs(c);
    }
    /** Sends `batches` batches of ten records each; the timestamps are those of one hour, so that each hour is a segment. */
    static void hour(String topic, int partition, int hour, int batches, String... kv) {
        try (var p = producer(kv)) {
            for (int n = 0; n < batches; n++) {
                for (int i = 0; i < 10; i++)
                    p.send(new ProducerRecord<>(topic, partition, T0 + hour * HOUR + n * 1000 + i, b("key-" + i), b(topic + " " + hour + "." + n + "." + i + " " + "ab".repeat(i))));
                p.flush();
            }
        }
    }
    static void transaction(KafkaProducer<byte[], byte[]> p, String what, boolean commit) {
        p.beginTransaction();
        for (int i = 0; i < 4; i++) { p.send(new ProducerRecord<>("payments", b("p" + i), b(what + " " + i))); if (i % 2 == 1) p.flush(); }
        if (commit) p.commitTransaction(); else p.abortTransaction();
    }
    static void users(int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            try (var p = producer("compression.type", round % 2 == 0 ? "none" : "lz4")) {
                for (int i = 0; i < 20; i++) { p.send(new ProducerRecord<>("users", b("u" + i % 7), round == 1 && i % 7 == 3 ? null : b("round " + round + " " + i))); if (i % 10 == 9) p.flush(); }
            }
            Thread.sleep(1200);
        }
    }
    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        if (args[1].equals("first")) first(); else more();
        System.out.println("done");
        Runtime.getRuntime().halt(0);  // open transactions stay open
    }
    static void first() throws Exception {
        Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        String hourly = "" + HOUR, often = "index.interval.bytes";
        admin.createTopics(List.of(
            topic("plain", 1, "segment.ms", hourly, often, "300"), topic("codecs", 1, often, "300"), topic("pair", 2),
            topic("payments", 1, "segment.ms", "1500", often, "100"), topic("trimmed", 1, "segment.ms", hourly, often, "300"), topic("gone", 1), topic("empty", 1),
            topic("users", 1, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "segment.ms", "1000"))).all().get();
        for (int h = 0; h < 4; h++) { hour("plain", 0, h, 5); hour("trimmed", 0, h, 2, "enable.idempotence", "false"); }
        for (String c : List.of("none", "gzip", "snappy", "lz4", "zstd")) hour("codecs", 0, 0, 2, "compression.type", c);
        hour("pair", 0, 0, 2); hour("pair", 1, 0, 1); hour("gone", 0, 0, 1);
        var tx = producer("transactional.id", "tx-a"); tx.initTransactions();
        transaction(tx, "first", true); transaction(tx, "second", false); transaction(tx, "third", false);
        Thread.sleep(1600);
        transaction(tx, "fourth", true); transaction(tx, "fifth", false); tx.close();
        var open = producer("transactional.id", "tx-open", "transaction.timeout.ms", "900000"); open.initTransactions(); open.beginTransaction();
        open.send(new ProducerRecord<>("payments", b("open"), b("never finished"))); open.flush();
        hour("payments", 0, 0, 1);
        users(4);
        Properties cp = new Properties();
        cp.put("bootstrap.servers", bootstrap); cp.put("group.id", "readers"); cp.put("auto.offset.reset", "earliest"); cp.put("enable.auto.commit", "false");
        try (var c = new KafkaConsumer<>(cp, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            c.subscribe(List.of("plain", "pair"));
            for (int i = 0; i < 6; i++) { c.poll(Duration.ofMillis(400)); c.commitSync(); }
        }
        admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(47))).all().get();
        admin.deleteTopics(List.of("gone")).all().get();
        Thread.sleep(4000);
    }
    static void more() throws Exception {
        for (int h = 3; h < 6; h++) { hour("plain", 0, h, 5); hour("trimmed", 0, h, 2, "enable.idempotence", "false"); }
        for (String c : List.of("zstd", "none")) hour("codecs", 0, 1, 2, "compression.type", c);
        hour("pair", 1, 1, 2);
        var tx = producer("transactional.id", "tx-b"); tx.initTransactions();
        transaction(tx, "sixth", false);
        Thread.sleep(1600);
        transaction(tx, "seventh", true); transaction(tx, "eighth", false); transaction(tx, "ninth", true);
        users(2);
    }
}
