package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Prints the results of Kafka's own UnifiedLog and LogCleanerManager for random logs:
 * javac -cp 'jars/*' -d . LogRetention.java; java -cp 'jars/*:.' org.apache.kafka.storage.internals.log.LogRetention
 * prints log_retention.tsv.
 *
 * Each line contains, separated by tabs: cleanup.policy, retention.ms, retention.bytes, min.compaction.lag.ms,
 * max.compaction.lag.ms, min.cleanable.dirty.ratio; segments as base:size:first timestamp:largest timestamp; log start,
 * log end, high watermark, last stable offset, cleaner checkpoint (or -); then the answers: first dirty offset, first
 * uncleanable offset, base offset of the first segment that is not cleaned, clean bytes, cleanable bytes, whether
 * max.compaction.lag.ms has passed, whether the log would be cleaned; and the segments that deleteOldSegments keeps.
 */
public class LogRetention {
    static final long NOW = 1_800_000_000_000L;

    @SafeVarargs
    static <T> T any(Random random, T... values) {
        return values[random.nextInt(values.length)];
    }

    static Object proxy(Class<?> type, java.lang.reflect.InvocationHandler handler) {
        return Proxy.newProxyInstance(LogRetention.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    public static void main(String[] args) throws Exception {
        Random random = new Random(163);
        Scheduler scheduler = (Scheduler) proxy(Scheduler.class, (self, method, values) -> null);
        Time time = (Time) proxy(Time.class, (self, method, values) ->
            method.getName().equals("nanoseconds") ? (Object) 0L : method.getReturnType() == long.class ? NOW : null);
        Method delay = LogCleanerManager.class.getDeclaredMethod("maxCompactionDelay", UnifiedLog.class, long.class, long.class);
        delay.setAccessible(true);
        for (int number = 0; number < 600; number++) {
            Properties props = new Properties();
            props.put("cleanup.policy", any(random, "delete", "delete", "compact", "compact", "compact,delete", ""));
            props.put("retention.ms", any(random, "-1", "1000", "4000", "9000"));
            props.put("retention.bytes", any(random, "-1", "-1", "0", "300", "700"));
            props.put("min.compaction.lag.ms", any(random, "0", "0", "2000", "5000"));
            props.put("max.compaction.lag.ms", any(random, "" + Long.MAX_VALUE, "3000", "8000"));
            props.put("min.cleanable.dirty.ratio", any(random, "0.01", "0.5", "0.75", "1"));
            props.put("message.timestamp.after.max.ms", "" + Long.MAX_VALUE);
            File root = Files.createTempDirectory("retention").toFile();
            File folder = new File(root, "topic-0");
            folder.mkdir();
            UnifiedLog log = UnifiedLog.create(folder, new LogConfig(props), 0, 0, scheduler, new BrokerTopicStats(), time,
                86400000, new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), true,
                Optional.empty());
            int segments = 1 + random.nextInt(6);
            int sequence = 0;
            boolean open = false;
            for (int i = 0; i < segments; i++) {
                if (i > 0 && log.activeSegment().size() > 0)
                    log.roll();
                for (int batches = random.nextInt(4); batches > 0; batches--) {
                    List<SimpleRecord> records = new ArrayList<>();
                    for (int count = 1 + random.nextInt(3); count > 0; count--) {
                        long timestamp = NOW - random.nextInt(12_000) + (random.nextInt(25) == 0 ? 20_000 : 0);
                        byte[] key = ("k" + random.nextInt(5)).getBytes(StandardCharsets.UTF_8);
                        records.add(new SimpleRecord(timestamp, key, new byte[random.nextInt(60)]));
                    }
                    SimpleRecord[] all = records.toArray(new SimpleRecord[0]);
                    if (random.nextInt(4) == 0) {
                        log.appendAsLeader(
                            MemoryRecords.withTransactionalRecords(Compression.NONE, 7, (short) 0, sequence, all), 0);
                        sequence += all.length;
                        open = true;
                    } else {
                        log.appendAsLeader(MemoryRecords.withRecords(Compression.NONE, all), 0);
                    }
                    if (open && random.nextInt(2) == 0) {
                        log.appendAsLeader(MemoryRecords.withEndTransactionMarker(NOW - random.nextInt(12_000), 7, (short) 0,
                            new EndTransactionMarker(ControlRecordType.COMMIT, 0)), 0, AppendOrigin.COORDINATOR,
                            RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
                        open = false;
                    }
                }
            }
            long end = log.logEndOffset();
            long mark = random.nextInt(3) > 0 ? end : random.nextInt((int) end + 1);
            log.updateHighWatermark(mark);
            if (random.nextInt(3) == 0)
                log.maybeIncrementLogStartOffset(random.nextInt((int) mark + 1), LogStartOffsetIncrementReason.ClientRecordDeletion);
            Optional<Long> checkpoint = random.nextInt(3) == 0 ? Optional.empty() : Optional.of((long) random.nextInt((int) end + 3));
            if (random.nextInt(2) == 0) // cleaning ends at the start of a segment
                checkpoint = Optional.of(log.logSegments().get(random.nextInt(log.logSegments().size())).baseOffset());
            StringBuilder line = new StringBuilder();
            for (String name : new String[] {"cleanup.policy", "retention.ms", "retention.bytes", "min.compaction.lag.ms",
                "max.compaction.lag.ms", "min.cleanable.dirty.ratio"})
                line.append(props.get(name)).append('\t');
            for (LogSegment segment : log.logSegments()) {
                long first = segment.getFirstBatchTimestamp();
                line.append(segment.baseOffset()).append(':').append(segment.size()).append(':');
                line.append(first == Long.MAX_VALUE ? -1 : first).append(':').append(segment.maxTimestampSoFar()).append(' ');
            }
            line.setLength(line.length() - 1);
            line.append('\t').append(log.logStartOffset()).append('\t').append(end).append('\t').append(log.highWatermark());
            line.append('\t').append(log.lastStableOffset());
            line.append('\t').append(checkpoint.map(String::valueOf).orElse("-"));
            LogCleanerManager.OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, NOW);
            boolean overdue = (long) delay.invoke(null, log, offsets.firstDirtyOffset(), NOW) > 0;
            LogToClean clean = new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), overdue);
            boolean taken = clean.totalBytes() > 0 && ((overdue && clean.cleanableBytes() > 0)
                || clean.cleanableRatio() > log.config().minCleanableRatio);
            line.append('\t').append(offsets.firstDirtyOffset()).append('\t').append(offsets.firstUncleanableDirtyOffset());
            line.append('\t').append(clean.firstUncleanableOffset()).append('\t').append(clean.cleanBytes());
            line.append('\t').append(clean.cleanableBytes()).append('\t').append(overdue).append('\t').append(taken);
            log.deleteOldSegments();
            line.append('\t');
            for (LogSegment segment : log.logSegments())
                line.append(segment.baseOffset()).append(' ');
            System.out.println(line.toString().stripTrailing());
        }
    }
}
