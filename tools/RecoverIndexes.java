import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogSegments;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Has Kafka's own LogSegment.recover rebuild the indexes of every segment below DIR, in place: give it a copy.
 *
 * java -cp 'jars/*' RecoverIndexes.java DIR. For each segment, as LogLoader.recoverSegment does it: the state of producers
 * from the snapshots up to its base offset and the segments before it (as they are, not recovered). Prints the segment's
 * path, a tab, and the bytes that recovery cut off, or the exception with which it ended.
 */
public class RecoverIndexes {
    private static final Scheduler SCHEDULER = (Scheduler) Proxy.newProxyInstance(
        RecoverIndexes.class.getClassLoader(), new Class<?>[] {Scheduler.class}, (proxy, method, values) -> null);

    public static void main(String[] args) throws Exception {
        try (Stream<Path> paths = Files.walk(Path.of(args[0]))) {
            Map<Path, List<Path>> partitions = paths
                .filter(path -> path.getFileName().toString().matches("\\d{20}\\.log"))
                .sorted()
                .collect(Collectors.groupingBy(Path::getParent));
            for (Map.Entry<Path, List<Path>> partition : partitions.entrySet()) {
                for (int number = 0; number < partition.getValue().size(); number++) {
                    System.out.println(partition.getValue().get(number) + "\t" + recover(partition.getValue(), number));
                }
            }
        }
    }

    private static long base(Path log) {
        return Long.parseLong(log.getFileName().toString().substring(0, 20));
    }

    private static LogSegment open(Path log, LogConfig config) throws Exception {
        return LogSegment.open(log.getParent().toFile(), base(log), config, Time.SYSTEM, true, 0, false, "");
    }

    private static String recover(List<Path> logs, int number) throws Exception {
        Path log = logs.get(number);
        TopicPartition partition = new TopicPartition("t", 0);
        LogConfig config = new LogConfig(Map.of());
        File states = Files.createTempDirectory("states").toFile();
        for (File file : log.getParent().toFile().listFiles()) {
            String name = file.getName();
            if (name.matches("\\d{20}\\.snapshot") && Long.parseLong(name.substring(0, 20)) <= base(log)) {
                Files.copy(file.toPath(), states.toPath().resolve(name));
            }
        }
        for (String ending : List.of(".index", ".timeindex", ".txnindex")) {
            Files.deleteIfExists(Path.of(log.toString().replaceAll("\\.log$", ending)));
        }
        LogSegments before = new LogSegments(partition);
        for (Path each : logs.subList(0, number)) {
            before.add(open(each, config));
        }
        LogSegment segment = open(log, config);
        before.add(segment);
        ProducerStateManager producers = new ProducerStateManager(
            partition, states, 900_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
        LeaderEpochFileCache epochs = new LeaderEpochFileCache(
            partition,
            new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(states), new LogDirFailureChannel(1)),
            SCHEDULER);
        try {
            UnifiedLog.rebuildProducerState(producers, before, base(logs.get(0)), base(log), Time.SYSTEM, false, "");
            return Integer.toString(segment.recover(producers, epochs));
        } catch (Exception error) {
            return error.getClass().getName();
        } finally {
            before.close();
        }
    }
}
