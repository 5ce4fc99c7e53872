// Prints for each partition what a read_committed consumer receives: TOPIC-PARTITION COUNT SHA256.
// Run: java -cp 'JARS/*' ReadBack.java BOOTSTRAP TOPIC…
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ReadBack {
    static void add(MessageDigest hash, byte[] data) {
        hash.update(ByteBuffer.allocate(4).putInt(data == null ? -1 : data.length).array());
        if (data != null) hash.update(data);
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "isolation.level", "read_committed",
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 5000);
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (String topic : Arrays.copyOfRange(args, 1, args.length)) {
                for (var info : consumer.partitionsFor(topic)) {
                    var place = new TopicPartition(topic, info.partition());
                    consumer.assign(List.of(place));
                    consumer.seekToBeginning(List.of(place));
                    long end = consumer.endOffsets(List.of(place)).get(place), count = 0;
                    MessageDigest hash = MessageDigest.getInstance("SHA-256");
                    while (consumer.position(place) < end) {
                        for (var record : consumer.poll(Duration.ofMillis(500))) {
                            count++;
                            hash.update(ByteBuffer.allocate(8).putLong(record.timestamp()).array());
                            add(hash, record.key());
                            add(hash, record.value());
                            for (Header header : record.headers()) {
                                add(hash, header.key().getBytes(StandardCharsets.UTF_8));
                                add(hash, header.value());
                            }
                        }
                    }
                    System.out.println(place + " " + count + " " + HexFormat.of().formatHex(hash.digest()));
                }
            }
        }
    }
}
