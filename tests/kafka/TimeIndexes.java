package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.utils.Time;

/**
 * Prints what Kafka's own LogSegment takes for the largest timestamp of a segment that it does not recover, for random
 * time indexes, damaged, empty or preallocated:
 * javac -cp 'jars/*' -d . TimeIndexes.java; java -cp 'jars/*:.' org.apache.kafka.storage.internals.log.TimeIndexes
 * prints time_indexes.tsv: the .timeindex in hex (- if there is none), and the timestamp, or `file` for the modification
 * time of the .log.
 */
public class TimeIndexes {
    static final long BASE = 100, MODIFIED = 1_234_567_000L;

    static byte[] index(Random random) {
        int entries = random.nextInt(4);
        ByteBuffer index = ByteBuffer.allocate(entries * 12);
        long at = 1_700_000_000_000L;
        int offset = 0;
        for (int n = 0; n < entries; n++) {
            at += random.nextInt(1000) - (random.nextInt(5) == 0 ? 5000 : 0);
            offset += random.nextInt(5);
            index.putLong(random.nextInt(8) == 0 ? -1 : at).putInt(random.nextInt(8) == 0 ? -offset : offset);
        }
        byte[] whole = index.array();
        int size = switch (random.nextInt(5)) {
            case 0 -> whole.length + 12 * random.nextInt(3);
            case 1 -> Math.max(0, whole.length + random.nextInt(13) - 6);
            default -> whole.length;
        };
        byte[] found = java.util.Arrays.copyOf(whole, size);
        if (random.nextInt(6) == 0) java.util.Arrays.fill(found, (byte) 0);
        return found;
    }

    public static void main(String[] args) throws Exception {
        Random random = new Random(25);
        LogConfig config = new LogConfig(new Properties());
        for (int number = 0; number < 200; number++) {
            File dir = Files.createTempDirectory("time-index").toFile();
            boolean isMissing = random.nextInt(20) == 0;
            byte[] index = index(random);
            File log = LogFileUtils.logFile(dir, BASE);
            Files.write(log.toPath(), new byte[0]);
            log.setLastModified(MODIFIED);
            Files.write(LogFileUtils.offsetIndexFile(dir, BASE).toPath(), new byte[0]);
            if (!isMissing) Files.write(LogFileUtils.timeIndexFile(dir, BASE).toPath(), index);
            LogSegment segment = LogSegment.open(dir, BASE, config, Time.SYSTEM, true, 0, false, "");
            segment.sanityCheck(isMissing);
            long found = segment.largestTimestamp();
            System.out.println((isMissing ? "-" : HexFormat.of().formatHex(index)) + "\t"
                + (found == MODIFIED ? "file" : "" + found));
            segment.close();
        }
    }
}
