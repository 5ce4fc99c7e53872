import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The share group of Rescue.java, for releases that have share groups. */
class RescueShare {
    static final ConfigResource GROUP = new ConfigResource(ConfigResource.Type.GROUP, "shared");

    /** Lets the group begin at the first records of partitions that it has not read, reads this many of t1, and acknowledges
        them. */
    static String consumed(Admin admin, Properties properties, int count) throws Exception {
        admin.incrementalAlterConfigs(Map.of(GROUP, List.of(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset",
            "earliest"), AlterConfigOp.OpType.SET)))).all().get();
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
        return read >= count ? "works" : read + " records, and goes on at " + offsets(admin);
    }

    static Object configs() throws Exception {
        return Rescue.own(GROUP);
    }

    /** The offset from which the group goes on in each partition. */
    static Object offsets(Admin admin) throws Exception {
        return admin.listShareGroupOffsets(Map.of("shared", new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo("shared")
            .get().entrySet().stream().map(each -> each.getKey() + "=" + each.getValue().startOffset()).sorted().toList();
    }
}
