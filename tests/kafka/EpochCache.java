import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/**
 * Prints the results of Kafka's own LeaderEpochFileCache for random checkpoints:
 * java -cp 'jars/*' EpochCache.java > epoch_cache.tsv
 *
 * Each line contains, separated by tabs: the entries as epoch@startOffset, log start, log end, the entries after
 * loading (LogLoader.load: truncateFromEnd, truncateFromStart), and the answers of endOffsetFor as
 * requested:epoch@offset.
 */
public class EpochCache {
    public static void main(String[] args) throws Exception {
        Random random = new Random(101);
        Scheduler scheduler = (Scheduler) Proxy.newProxyInstance(
            EpochCache.class.getClassLoader(), new Class<?>[] {Scheduler.class}, (proxy, method, values) -> null);
        for (int number = 0; number < 300; number++) {
            File folder = Files.createTempDirectory("epochs").toFile();
            LeaderEpochCheckpointFile file =
                new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(folder), new LogDirFailureChannel(1));
            List<EpochEntry> entries = new ArrayList<>();
            int epoch = random.nextInt(3);
            long start = random.nextInt(5);
            for (int count = random.nextInt(7); count > 0; count--) {
                entries.add(new EpochEntry(epoch, start));
                epoch += 1 + random.nextInt(4);
                start += 1 + random.nextInt(20);
            }
            file.write(entries);
            LeaderEpochFileCache cache = new LeaderEpochFileCache(new TopicPartition("t", 0), file, scheduler);
            long end = Math.max(0, start - 15 + random.nextInt(40));
            long logStart = random.nextBoolean() ? 0 : random.nextInt((int) end + 1);
            cache.truncateFromEndAsyncFlush(end);
            cache.truncateFromStartAsyncFlush(logStart);
            StringBuilder line = new StringBuilder(text(entries)).append('\t').append(logStart).append('\t').append(end);
            line.append('\t').append(text(cache.epochEntries())).append('\t');
            for (int requested = 0; requested <= epoch + 1; requested++) {
                Map.Entry<Integer, Long> answer = cache.endOffsetFor(requested, end);
                line.append(requested > 0 ? " " : "").append(requested).append(':');
                line.append(answer.getKey()).append('@').append(answer.getValue());
            }
            System.out.println(line);
        }
    }

    private static String text(List<EpochEntry> entries) {
        List<String> words = new ArrayList<>();
        entries.forEach(entry -> words.add(entry.epoch() + "@" + entry.startOffset()));
        return String.join(" ", words);
    }
}
