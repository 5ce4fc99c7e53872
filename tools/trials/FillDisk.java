// Fills topics until their size is reached or the disk is full, and checks later what is still served.
// Run: java -cp 'JARS/*' FillDisk.java BOOTSTRAP fill ACKED TOPIC:BYTES:RECORD_SIZE:KEYS[:AGE_MS]…
//      java -cp 'JARS/*' FillDisk.java BOOTSTRAP check ACKED
// `fill` writes a line for each record that the broker has acknowledged: topic, partition, offset, number. A value is
// computed from the record's number. KEYS: number of different keys, 0 for none. BYTES 0: until the disk is full.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class FillDisk {
    static byte[] value(long number, int size) {
        byte[] value = new byte[size];
        new Random(number).nextBytes(value);
        ByteBuffer.wrap(value).putLong(number);
        return value;
    }

    static byte[] key(long number, long keys) {
        return keys == 0 ? null : ("key-" + number % keys).getBytes();
    }

    static void fill(String bootstrap, String acked, String[] arguments, int from) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("acks", "all");
        properties.put("linger.ms", "20");
        properties.put("batch.size", "500000");
        properties.put("buffer.memory", "16000000");
        properties.put("max.block.ms", "30000");
        properties.put("delivery.timeout.ms", "30000");
        properties.put("request.timeout.ms", "20000");
        long number = System.currentTimeMillis() % 1_000_000 * 1_000_000;
        AtomicBoolean isFull = new AtomicBoolean();
        try (PrintWriter out = new PrintWriter(new BufferedWriter(new FileWriter(acked, true)));
                KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int at = from; at < arguments.length && !isFull.get(); at++) {
                String[] parts = arguments[at].split(":");
                String topic = parts[0];
                long bytes = Long.parseLong(parts[1]), keys = Long.parseLong(parts[3]);
                int size = Integer.parseInt(parts[2]);
                Long time = parts.length > 4 ? System.currentTimeMillis() - Long.parseLong(parts[4]) : null;
                for (long sent = 0; (bytes == 0 || sent < bytes) && !isFull.get(); sent += size) {
                    long mine = number++;
                    var record = new ProducerRecord<>(topic, null, time, key(mine, keys), value(mine, size));
                    try {
                        producer.send(record, (place, error) -> {
                            if (error != null) isFull.set(true);
                            else synchronized (out) {
                                out.println(place.topic() + " " + place.partition() + " " + place.offset() + " " + mine);
                            }
                        });
                    } catch (org.apache.kafka.common.KafkaException error) {
                        isFull.set(true);
                    }
                }
                if (!isFull.get()) producer.flush();
            }
            producer.close(Duration.ofSeconds(10));
        }
        System.out.println(isFull.get() ? "full" : "done");
    }

    static void check(String bootstrap, String acked) throws Exception {
        Map<TopicPartition, Map<Long, Long>> numbers = new TreeMap<>(Comparator.comparing(TopicPartition::toString));
        for (String line : Files.readAllLines(Path.of(acked))) {
            String[] parts = line.split(" ");
            var place = new TopicPartition(parts[0], Integer.parseInt(parts[1]));
            numbers.computeIfAbsent(place, each -> new HashMap<>()).put(Long.parseLong(parts[2]), Long.parseLong(parts[3]));
        }
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("fetch.max.bytes", "8000000");
        properties.put("enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (var each : numbers.entrySet()) {
                var here = List.of(each.getKey());
                long start, end;
                try {
                    start = consumer.beginningOffsets(here, Duration.ofSeconds(20)).get(each.getKey());
                    end = consumer.endOffsets(here, Duration.ofSeconds(20)).get(each.getKey());
                } catch (Exception error) {
                    System.out.println(each.getKey() + " " + each.getValue().size() + " 0 0 0 0 0");
                    continue;
                }
                Map<Long, Long> left = each.getValue();
                long count = left.size(), good = 0, bad = 0;
                consumer.assign(here);
                consumer.seek(each.getKey(), start);
                Set<String> keys = new HashSet<>();
                long until = System.currentTimeMillis() + 120_000;
                while (consumer.position(each.getKey()) < end && System.currentTimeMillis() < until) {
                    for (var record : consumer.poll(Duration.ofSeconds(1))) {
                        if (record.key() != null) keys.add(new String(record.key()));
                        Long number = left.remove(record.offset());
                        if (number == null) continue;
                        if (Arrays.equals(record.value(), value(number, record.value().length))) good++;
                        else bad++;
                    }
                }
                // acknowledged, served, wrong, missing at or above the log start offset, log start, log end, keys
                long missing = left.keySet().stream().filter(offset -> offset >= start).count();
                System.out.println(each.getKey() + " " + count + " " + good + " " + bad + " " + missing + " " + start + " "
                    + end + " " + keys.size());
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[1].equals("fill")) fill(arguments[0], arguments[2], arguments, 3);
        else check(arguments[0], arguments[2]);
    }
}
