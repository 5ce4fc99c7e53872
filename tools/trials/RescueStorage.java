import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.server.log.remote.storage.*;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;

/** Remote storage that is a directory (rsm.config.dir), which all brokers share. */
public class RescueStorage implements RemoteStorageManager {
    private Path directory;

    @Override
    public void configure(Map<String, ?> configs) {
        directory = Path.of((String) configs.get("dir"));
    }

    @Override
    public void close() { }

    private Path file(RemoteLogSegmentMetadata segment, String kind) {
        return directory.resolve(segment.remoteLogSegmentId().id() + "." + kind);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        Map<String, Path> files = new HashMap<>(Map.of("log", data.logSegment(), "OFFSET", data.offsetIndex(),
            "TIMESTAMP", data.timeIndex(), "PRODUCER_SNAPSHOT", data.producerSnapshotIndex()));
        data.transactionIndex().ifPresent(path -> files.put("TRANSACTION", path));
        try {
            for (var each : files.entrySet())
                Files.copy(each.getValue(), file(segment, each.getKey()), StandardCopyOption.REPLACE_EXISTING);
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(file(segment, "LEADER_EPOCH"), epochs);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) throws RemoteStorageException {
        byte[] all = read(segment, "log");
        return new ByteArrayInputStream(all, start, Math.min(all.length - 1, end) - start + 1);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType kind) throws RemoteStorageException {
        return new ByteArrayInputStream(read(segment, kind.name()));
    }

    private byte[] read(RemoteLogSegmentMetadata segment, String kind) throws RemoteStorageException {
        try {
            return Files.readAllBytes(file(segment, kind));
        } catch (NoSuchFileException error) {
            throw new RemoteResourceNotFoundException(error);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        for (String kind : List.of("log", "OFFSET", "TIMESTAMP", "PRODUCER_SNAPSHOT", "TRANSACTION", "LEADER_EPOCH"))
            file(segment, kind).toFile().delete();
    }
}
