import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Course BOOTSTRAP QUIET_MS [COMPACTED]: prints what clients see. Lines, whose words are separated by spaces:
    offsets PARTITION earliest latest last-stable; read ISOLATION PARTITION ranges of offsets; thrown ISOLATION
    PARTITION exception; last PARTITION key:offset of its newest record; open PARTITION producer first-offset;
    group GROUP PARTITION offset; leaderless PARTITION; failed QUESTION exception. */
class Course {
    static Map<String, Object> configs(String address) {
        return new HashMap<>(Map.of("bootstrap.servers", address, "default.api.timeout.ms", 15000,
            "request.timeout.ms", 10000));
    }

    interface Question { void ask() throws Exception; }

    static void tried(String what, Question question) {
        try {
            question.ask();
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            System.out.println("failed " + what + " " + cause.getClass().getSimpleName());
        }
    }

    public static void main(String[] args) throws Exception {
        Map<TopicPartition, Long> latest = new TreeMap<>(java.util.Comparator.comparing(TopicPartition::toString));
        Map<TopicPartition, Long> stable = new HashMap<>();
        try (Admin admin = Admin.create(configs(args[0]))) {
            var names = admin.listTopics(new org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(true)).names().get();
            for (var topic : admin.describeTopics(names).allTopicNames().get().values())
                for (var each : topic.partitions()) {
                    var partition = new TopicPartition(topic.name(), each.partition());
                    if (each.leader() == null || each.leader().isEmpty()) System.out.println("leaderless " + partition);
                    else latest.put(partition, 0L);
                }
            Map<TopicPartition, OffsetSpec> first = new HashMap<>(), last = new HashMap<>();
            for (var each : latest.keySet()) {
                first.put(each, OffsetSpec.earliest());
                last.put(each, OffsetSpec.latest());
            }
            var committed = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED);
            var earliest = admin.listOffsets(first);
            var ends = admin.listOffsets(last);
            var stables = admin.listOffsets(last, committed);
            for (var each : List.copyOf(latest.keySet()))
                try {
                    latest.put(each, ends.partitionResult(each).get().offset());
                    stable.put(each, stables.partitionResult(each).get().offset());
                    System.out.println("offsets " + each + " " + earliest.partitionResult(each).get().offset() + " "
                        + latest.get(each) + " " + stable.get(each));
                } catch (ExecutionException error) {
                    System.out.println("failed offsets/" + each + " " + error.getCause().getClass().getSimpleName());
                    latest.remove(each);
                }
            tried("producers", () -> {
                for (var each : admin.describeProducers(latest.keySet()).all().get().entrySet())
                    for (var producer : each.getValue().activeProducers())
                        if (producer.currentTransactionStartOffset().isPresent())
                            System.out.println("open " + each.getKey() + " " + producer.producerId() + " "
                                + producer.currentTransactionStartOffset().getAsLong());
            });
            tried("groups", () -> {
                for (var group : admin.listConsumerGroups().all().get())
                    for (var each : admin.listConsumerGroupOffsets(group.groupId()).partitionsToOffsetAndMetadata().get().entrySet())
                        System.out.println("group " + group.groupId() + " " + each.getKey() + " " + each.getValue().offset());
            });
        }
        String compacted = args.length > 2 ? args[2] : "";
        var readers = List.of(new Thread(() -> read(args, "read_uncommitted", latest, compacted)),
            new Thread(() -> read(args, "read_committed", stable, compacted)));
        for (var each : readers) each.start();
        for (var each : readers) each.join();
    }

    static void read(String[] args, String isolation, Map<TopicPartition, Long> ends, String compacted) {
        var configs = configs(args[0]);
        configs.put("isolation.level", isolation);
        configs.put("enable.auto.commit", "false");
        configs.put("auto.offset.reset", "none");
        Map<TopicPartition, TreeSet<Long>> found = new HashMap<>();
        Map<String, Long> newest = new TreeMap<>();
        var bytes = new ByteArrayDeserializer();
        StringBuilder text = new StringBuilder();
        try (var consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
            List<TopicPartition> left = new ArrayList<>(ends.keySet());
            consumer.assign(left);
            consumer.seekToBeginning(left);
            long since = System.currentTimeMillis();
            while (!left.isEmpty() && System.currentTimeMillis() - since < Long.parseLong(args[1])) {
                try {
                    for (var record : consumer.poll(Duration.ofMillis(200))) {
                        var partition = new TopicPartition(record.topic(), record.partition());
                        found.computeIfAbsent(partition, each -> new TreeSet<>()).add(record.offset());
                        if (record.topic().equals(compacted)) newest.put(new String(record.key()), record.offset());
                        since = System.currentTimeMillis();
                    }
                    left.removeIf(each -> consumer.position(each) >= ends.get(each));
                } catch (KafkaException error) {
                    var broken = left.stream().filter(each -> String.valueOf(error.getMessage()).contains(each.toString())).findFirst();
                    text.append("thrown " + isolation + " " + broken.map(Object::toString).orElse("?") + " "
                        + error.getClass().getSimpleName() + "\n");
                    if (broken.isEmpty()) break;
                    left.remove(broken.get());
                }
                consumer.assign(left);
            }
        }
        for (var each : found.entrySet()) {
            text.append("read " + isolation + " " + each.getKey() + " ");
            long from = -1, to = -2;
            for (long offset : each.getValue()) {
                if (offset != to + 1) {
                    if (from >= 0) text.append(from + ".." + to + ",");
                    from = offset;
                }
                to = offset;
            }
            text.append(from + ".." + to + "\n");
        }
        if (isolation.equals("read_uncommitted"))
            newest.forEach((key, offset) -> text.append("last " + compacted + " " + key + " " + offset + "\n"));
        synchronized (System.out) {
            System.out.print(text);
        }
    }
}
