import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The share group of Rescue.java, for releases that have share groups. */
class RescueShare {
    /** Lets the group begin at the first records, and reads this many. */
    static String begun(Admin admin, Properties properties, int count) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, "shared"), List.of(new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
        return consumed(properties, count);
    }

    /** Reads this many records of t1 in the group shared, and acknowledges them. */
    static String consumed(Properties properties, int count) {
        properties.put("group.id", "shared");
        int read = 0;
        long until = System.currentTimeMillis() + Rescue.SECONDS * 1000;
        try (KafkaShareConsumer<byte[], byte[]> reader = new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            reader.subscribe(List.of("t1"));
            while (read < count && System.currentTimeMillis() < until) {
                read += reader.poll(Duration.ofMillis(500)).count();
                reader.commitSync();
            }
        }
        return read >= count ? "works" : read + " records";
    }

    /** The offset from which the group goes on in each partition. */
    static Object offsets(Admin admin) throws Exception {
        return admin.listShareGroupOffsets(Map.of("shared", new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo("shared")
            .get().entrySet().stream().map(each -> each.getKey() + "=" + each.getValue().startOffset()).sorted().toList();
    }
}
