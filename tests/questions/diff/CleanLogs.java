package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Has Kafka's own cleaner clean partition directories, in place. Reads lines from standard input, of a directory and the
 * rounds of the cleaner: its dirty offsets (the end is exclusive) and its time in epoch ms. Prints one line for each.
 * java -cp 'jars/*' CleanLogs.java RETENTION, where RETENTION is delete.retention.ms.
 */
public class CleanLogs {
    private static final Object NEVER = proxy(ScheduledFuture.class, false);
    private static final Scheduler SCHEDULER = (Scheduler) proxy(Scheduler.class, NEVER);

    private static Object proxy(Class<?> type, Object answer) {
        return Proxy.newProxyInstance(CleanLogs.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, values) ->
            method.getReturnType() == void.class ? null : answer);
    }

    public static void main(String[] args) throws Exception {
        LogConfig config = new LogConfig(Map.of("cleanup.policy", "compact", "delete.retention.ms", args[0]));
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "t", "t", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(1 << 16), 1 << 16, 1 << 17, 0.9, throttler, Time.SYSTEM, partition -> { });
        BrokerTopicStats stats = new BrokerTopicStats();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t");
            UnifiedLog log = UnifiedLog.create(
                new File(parts[0]), config, 0, 0, SCHEDULER, stats, Time.SYSTEM, 900_000,
                new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000, new LogDirFailureChannel(1), false,
                Optional.empty());
            for (int n = 1; n < parts.length; n += 3) {
                LogToClean dirty =
                    new LogToClean(log, Long.parseLong(parts[n]), Long.parseLong(parts[n + 1]), false);
                cleaner.doClean(dirty, Long.parseLong(parts[n + 2]));
            }
            log.close();
            System.out.println(parts[0]);
        }
        System.exit(0);
    }
}
