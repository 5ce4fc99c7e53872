import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Scanner;
import java.util.Set;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/**
 * Compares what `kdump salvage` leaves of batches with what MemoryRecords.filterTo of Kafka 4.4 leaves of them, with
 * BatchRetention.RETAIN_EMPTY.
 *
 * java -cp 'jars/*' FilterRecords.java. Reads lines of four words: the batches in base64, the offsets of the batches
 * that are left out as a whole, those of the records that are left out (both separated by commas), and in base64 what
 * kdump has written. Prints "same", or what differs, for each.
 */
public class FilterRecords {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ", -1);
            MemoryRecords source = records(words[0]);
            ByteBuffer output = ByteBuffer.allocate(2 * source.sizeInBytes() + 1024);
            MemoryRecords.RecordFilter filter = filter(offsets(words[1]), offsets(words[2]));
            ByteBuffer filled = source.filterTo(filter, output, BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer();
            filled.flip();
            Set<Long> old = new HashSet<>();
            for (MutableRecordBatch batch : source.batches()) {
                batch.forEach(record -> old.add(batch.magic() < 2 ? record.offset() : -1L));
            }
            List<String> theirs = text(MemoryRecords.readableRecords(filled), old);
            List<String> ours = text(records(words[3]), old);
            int number = 0;
            while (number < theirs.size() && number < ours.size() && theirs.get(number).equals(ours.get(number))) {
                number++;
            }
            boolean same = number == theirs.size() && number == ours.size();
            System.out.println(same ? "same" : at(theirs, number) + " | " + at(ours, number));
        }
    }

    private static MemoryRecords records(String encoded) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(encoded)));
    }

    private static Set<Long> offsets(String text) {
        Set<Long> made = new HashSet<>();
        for (String word : text.isEmpty() ? new String[0] : text.split(",")) {
            made.add(Long.parseLong(word));
        }
        return made;
    }

    private static String at(List<String> lines, int number) {
        return number < lines.size() ? lines.get(number) : "-";
    }

    private static MemoryRecords.RecordFilter filter(Set<Long> batches, Set<Long> excluded) {
        return new MemoryRecords.RecordFilter(0, 0) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                boolean goes = batches.contains(batch.lastOffset());
                BatchRetention keeps = batch.magic() < 2 ? BatchRetention.DELETE_EMPTY : BatchRetention.RETAIN_EMPTY;
                return new BatchRetentionResult(goes ? BatchRetention.DELETE : keeps, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return !excluded.contains(record.offset());
            }
        };
    }

    /**
     * The batches and records. The cleaner alone sets a delete horizon, if there is a tombstone, and makes batches of
     * magic 2 of old ones, whose offsets are in `old`.
     */
    private static List<String> text(MemoryRecords records, Set<Long> old) {
        List<String> made = new ArrayList<>();
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            boolean isOld = old.contains(batch.lastOffset());
            made.add("batch " + batch.lastOffset() + " " + batch.compressionType() + " " + batch.maxTimestamp());
            made.add(isOld ? "old" : "batch " + List.of(
                batch.magic(), batch.producerId(), batch.producerEpoch(), batch.baseSequence(), batch.lastSequence(),
                batch.partitionLeaderEpoch(), batch.timestampType(), batch.isTransactional(), batch.isControlBatch(),
                batch.baseOffset()));
            for (Record record : batch) {
                made.add("record " + Arrays.asList(
                    record.offset(), record.sequence(), record.timestamp(), hex(record.key()), hex(record.value()),
                    Arrays.stream(record.headers()).map(each -> each.key() + "=" + bytes(each.value())).toList()));
            }
        }
        return made;
    }

    private static String bytes(byte[] value) {
        return Objects.isNull(value) ? "null" : Arrays.toString(value);
    }

    private static String hex(ByteBuffer value) {
        if (value == null) {
            return "null";
        }
        byte[] bytes = new byte[value.remaining()];
        value.duplicate().get(bytes);
        return bytes(bytes);
    }
}
