import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;

/** StableOffsets BOOTSTRAP create|print TOPIC PARTITIONS: creates the topic, or prints each partition's number, last stable offset and log end offset. */
class StableOffsets {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[3]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            if (args[1].equals("create")) {
                admin.createTopics(List.of(new NewTopic(args[2], count, (short) 1))).all().get();
                return;
            }
            Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
            for (int number = 0; number < count; number++)
                asked.put(new TopicPartition(args[2], number), OffsetSpec.latest());
            var stable = admin.listOffsets(asked, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED));
            var end = admin.listOffsets(asked, new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED));
            for (TopicPartition each : asked.keySet())
                System.out.println(each.partition() + " " + stable.partitionResult(each).get().offset() + " "
                    + end.partitionResult(each).get().offset());
        }
    }
}
