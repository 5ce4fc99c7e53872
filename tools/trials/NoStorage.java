import java.io.InputStream;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage that has nothing and accepts nothing: for brokers whose startup alone is examined. */
public class NoStorage implements RemoteStorageManager {
    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data)
        throws RemoteStorageException {
        throw new RemoteStorageException("nothing is stored");
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) throws RemoteStorageException {
        throw new RemoteResourceNotFoundException("nothing is stored");
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end)
        throws RemoteStorageException {
        throw new RemoteResourceNotFoundException("nothing is stored");
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) throws RemoteStorageException {
        throw new RemoteResourceNotFoundException("nothing is stored");
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) {}

    @Override
    public void close() {}
}
