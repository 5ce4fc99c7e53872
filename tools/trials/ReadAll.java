import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** ReadAll ADDRESS TOPIC PARTITIONS QUIET_MS: reads each partition from offset 0, until nothing comes for QUIET_MS; it
    waits longer for the first record of all, before which the broker reads __remote_log_metadata. Prints a line for each: its number, the first offset that was not read, the log end offset, and what was thrown. */
public class ReadAll {
    static volatile long began = 0;

    public static void main(String[] arguments) throws Exception {
        var pool = Executors.newFixedThreadPool(6);
        List<Future<String>> results = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            var partition = new TopicPartition(arguments[1], number);
            results.add(pool.submit(() -> read(arguments[0], partition, Long.parseLong(arguments[3]))));
        }
        for (var result : results) System.out.println(result.get());
        pool.shutdown();
    }

    static String read(String address, TopicPartition partition, long quiet) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", address);
        configs.put("auto.offset.reset", "none");
        configs.put("enable.auto.commit", "false");
        var bytes = new ByteArrayDeserializer();
        long next = 0, end = -1;
        String thrown = "";
        try (var consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
            consumer.assign(List.of(partition));
            end = consumer.endOffsets(List.of(partition)).get(partition);
            consumer.seek(partition, 0);
            long since = System.currentTimeMillis();
            while (next < end && thrown.isEmpty()
                && System.currentTimeMillis() - Math.max(since, began) < (began > 0 ? quiet : 6 * quiet)) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    if (record.offset() != next) {
                        thrown = "skipped to " + record.offset();
                        break;
                    }
                    next++;
                    since = System.currentTimeMillis();
                    if (began == 0) began = since;
                }
            }
        } catch (Exception error) {
            thrown = error.getClass().getSimpleName();
        }
        return "read " + partition.partition() + " " + next + " " + end + " " + thrown;
    }
}
