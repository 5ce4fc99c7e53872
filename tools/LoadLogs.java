import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LoadedLogOffsets;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogLoader;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogSegments;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * Has a release's LogLoader load log directories, in place: give it copies. Reads lines as CatchLogs.java writes them,
 * without answers, from standard input, and writes the same with answers to standard output.
 */
public class LoadLogs {
    private static final Scheduler SCHEDULER = (Scheduler) Proxy.newProxyInstance(
        LoadLogs.class.getClassLoader(), new Class<?>[] {Scheduler.class}, (proxy, method, values) -> null);

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            Map<String, Object> line = json.readValue(lines.nextLine(), Map.class);
            line.put("answer", null);
            line.put("thrown", null);
            try {
                line.put("answer", load(line));
            } catch (Exception error) {
                line.put("thrown", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            System.out.println(json.writeValueAsString(line));
        }
    }

    private static Map<String, Object> load(Map<String, Object> given) throws Exception {
        File directory = new File((String) given.get("path"));
        TopicPartition partition = new TopicPartition("t", 0);
        LogDirFailureChannel channel = new LogDirFailureChannel(1);
        LogConfig config = new LogConfig(Map.of(
            "index.interval.bytes", given.get("interval"), "segment.index.bytes", given.get("largest")));
        LogSegments segments = new LogSegments(partition);
        LeaderEpochFileCache epochs = new LeaderEpochFileCache(
            partition,
            new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(directory), channel),
            SCHEDULER);
        ProducerStateManager producers = new ProducerStateManager(
            partition, directory, 900_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
        try {
            LoadedLogOffsets offsets = new LogLoader(
                directory, partition, config, SCHEDULER, Time.SYSTEM, channel, (boolean) given.get("clean"), segments,
                ((Number) given.get("logStart")).longValue(), ((Number) given.get("recoveryPoint")).longValue(), epochs,
                producers, new ConcurrentHashMap<>(), (boolean) given.get("remote")).load();
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("logStart", offsets.logStartOffset());
            answer.put("recoveryPoint", offsets.recoveryPoint());
            answer.put("logEnd", offsets.nextOffsetMetadata().messageOffset);
            Map<Long, Integer> sizes = new LinkedHashMap<>();
            for (LogSegment segment : segments.values()) {
                sizes.put(segment.baseOffset(), segment.size());
            }
            answer.put("segments", sizes);
            List<List<Object>> entries = new ArrayList<>();
            epochs.epochEntries().forEach(each -> entries.add(List.of(each.epoch(), each.startOffset())));
            answer.put("epochs", entries);
            String[] names = directory.list((place, name) -> name.matches("\\d{20}\\.snapshot"));
            answer.put("snapshots", Arrays.stream(names).sorted().toList());
            return answer;
        } finally {
            segments.close();
        }
    }
}
