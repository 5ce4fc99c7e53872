// A Kafka Streams application with stores of all kinds, fed with its own input. Stores are in memory, and logged.
// Run: java -cp 'JARS/*' Streams.java BOOTSTRAP
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.WindowStore;

public class Streams {
    static final long START = System.currentTimeMillis() / 60000 * 60000 - 600_000;
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        try (var out = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 40; i++) {
                long at = START + i * 9000L;
                out.send(new ProducerRecord<>("clicks", 0, at, "user" + i % 3, i % 2 == 0 ? "buy" : "look"));
                if (i % 4 == 0) out.send(new ProducerRecord<>("views", 0, at + 100, "user" + i % 5, "view" + i));
                if (i % 5 == 0) out.send(new ProducerRecord<>("users", 0, at, "user" + i % 3, "city" + i % 2));
            }
            for (int i = 0; i < 2; i++) out.send(new ProducerRecord<>("cities", 0, START, "city" + i, "City " + i));
            out.send(new ProducerRecord<>("users", 0, START + 400_000, "user0", (String) null));
            out.send(new ProducerRecord<>("clicks", 0, START + 400_000, "user1", "buy"));
        }
        var b = new StreamsBuilder();
        KStream<String, String> clicks = b.stream("clicks"), views = b.stream("views");
        KTable<String, String> users = b.table("users"), cities = b.table("cities");
        clicks.groupByKey().count(Materialized.as("totals"));
        clicks.groupBy((key, value) -> value, Grouped.as("by-kind")).count();
        clicks.groupByKey(Grouped.with(Serdes.String(), Serdes.String())).windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ZERO)).count(
                Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("minutes").withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
        clicks.groupByKey().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(20))).count(Materialized.as("sessions"));
        clicks.outerJoin(views, (left, right) -> left + "/" + right, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(1)));
        users.groupBy((key, value) -> KeyValue.pair(value, key)).count();
        users.join(cities, value -> value, (user, city) -> user + " in " + city);
        Properties c = new Properties();
        c.putAll(Map.of("application.id", "shop", "bootstrap.servers", args[0], "dsl.store.suppliers.class",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
            "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class,
            "auto.offset.reset", "earliest", "statestore.cache.max.bytes", 0, "state.dir", args[1], "commit.interval.ms", 500));
        var streams = new KafkaStreams(b.build(), c);
        streams.start();
        try (var admin = org.apache.kafka.clients.admin.Admin.create(p)) {
            for (long last = -1, sum = 0, quiet = 0; quiet < 10 || sum < 100; quiet = sum == last ? quiet + 1 : 0) {
                Thread.sleep(1000);
                var ends = new HashMap<org.apache.kafka.common.TopicPartition, org.apache.kafka.clients.admin.OffsetSpec>();
                for (String topic : admin.listTopics().names().get()) if (topic.startsWith("shop-"))
                    ends.put(new org.apache.kafka.common.TopicPartition(topic, 0), org.apache.kafka.clients.admin.OffsetSpec.latest());
                long now = 0;
                for (var each : admin.listOffsets(ends).all().get().values()) now += each.offset();
                last = sum; sum = now;
            }
        }
        streams.close(Duration.ofSeconds(20));
        System.exit(0);
    }
}
