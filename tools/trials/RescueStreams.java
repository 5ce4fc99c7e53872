import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;

/** The streams group of Rescue.java, for releases that have streams groups: it counts the records of t3. */
class RescueStreams {
    static final String INPUT = "t3";

    /** Runs the application until its group has committed this many records of its input in all. */
    static String counted(Admin admin, Properties properties, long count) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(INPUT).groupByKey().count();
        properties.putAll(Map.of("application.id", "streaming", "group.protocol", "streams", "commit.interval.ms", "200",
            "default.key.serde", Serdes.ByteArraySerde.class, "default.value.serde", Serdes.ByteArraySerde.class,
            "dsl.store.suppliers.class", org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class,
            "state.dir", "streams"));
        long until = System.currentTimeMillis() + Rescue.SECONDS * 1000, found = 0;
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.start();
            while (found < count && System.currentTimeMillis() < until) {
                Thread.sleep(500);
                found = committed(admin).values().stream().mapToLong(OffsetAndMetadata::offset).sum();
            }
        }
        return found == count ? "works" : found + " records";
    }

    private static Map<TopicPartition, OffsetAndMetadata> committed(Admin admin) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        admin.listStreamsGroupOffsets(Map.of("streaming", new ListStreamsGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata("streaming").get().forEach((partition, offset) -> {
                if (partition.topic().equals(INPUT) && offset != null) found.put(partition, offset);
            });
        return found;
    }

    /** The offsets that the group has committed. */
    static Object offsets(Admin admin) throws Exception {
        return committed(admin).entrySet().stream().map(each -> each.getKey() + "=" + each.getValue().offset()).sorted().toList();
    }
}
