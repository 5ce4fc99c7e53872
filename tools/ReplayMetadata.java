import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.controller.QuorumController;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.internals.MemoryBatchReader;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.Snapshots;

/**
 * Has Kafka's own classes replay every metadata log below DIR, as a node does that starts with it: MetadataRecordSerde
 * reads it, QuorumController applies it as a standby controller, MetadataLoader as any node.
 *
 * java -cp 'jars/*' ReplayMetadata.java DIR. Each directory in DIR is a log of one segment, with at most one snapshot,
 * valid and all committed; or a log directory, in which __cluster_metadata-0 is one, with the number of voters in the file
 * "voters": KafkaRaftClient decides what is committed of that, as node 3000, which is alone. Prints a line for each fault:
 * directory, who (read, controller, loader), text of the fault with the offset, class and message of the exception; a class
 * that has no fault prints none. The last line is "done". A file in DIR has a topic config in each line, with a tab between
 * name and value, which LogConfig reads; its number is printed in place of the directory, and the word config.
 */
public class ReplayMetadata {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();
    private static final int MAX_BATCH = 8 << 20;
    private static final long AFTER = 1_000_000;
    private static final int NODE = 3000;
    private static final long MILLISECONDS = 15_000;
    private static final long QUIET_MILLISECONDS = 400;
    private static final Set<String> FAULTS = ConcurrentHashMap.newKeySet();
    private static final String CHECKER = "org.apache.kafka.server.config.DefaultSupportedConfigChecker";

    /** A fault handler that prints faults instead of ending the process. */
    private record Printing(String log, String who) implements FaultHandler {
        @Override
        public RuntimeException handleFault(String text, Throwable cause) {
            print(log, who, text, cause);
            FAULTS.add(log + who);
            return new RuntimeException(text, cause);
        }
    }

    public static void main(String[] args) {
        try {
            replay(Path.of(args[0]));
            System.out.println("done");
        } catch (Throwable error) {
            error.printStackTrace();
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void replay(Path directory) throws Exception {
        ExecutorService several = Executors.newFixedThreadPool(8);
        List<Future<Void>> started = new ArrayList<>();
        try (Stream<Path> paths = Files.list(directory)) {
            for (Path log : paths.sorted().toList()) {
                List<Batch<ApiMessageAndVersion>> batches = new ArrayList<>();
                String name = log.getFileName().toString();
                if (Files.isRegularFile(log)) {
                    configs(log);
                    continue;
                }
                if (Files.exists(log.resolve("voters"))) {
                    int voters = Integer.parseInt(Files.readString(log.resolve("voters")));
                    started.add(several.submit(() -> raft(name, log, voters)));
                    continue;
                }
                Optional<Path> snapshot = file(log, ".checkpoint");
                if (!read(file(log, ".log").get(), name, batches)) {
                    continue;
                }
                controller(name, snapshot, batches);
                loader(name, snapshot, batches);
            }
        }
        for (Future<Void> each : started) {
            each.get();
        }
    }

    private static void print(String log, String who, String text, Throwable cause) {
        String message = cause == null ? "" : String.valueOf(cause.getMessage());
        String kind = cause == null ? "" : cause.getClass().getSimpleName();
        System.out.println(Stream.of(log, who, text, kind, message)
            .map(each -> each.replaceAll("[\\t\\n\\r]", " "))
            .reduce((one, next) -> one + "\t" + next).get());
    }

    private static Optional<Path> file(Path log, String ending) throws Exception {
        try (Stream<Path> paths = Files.list(log)) {
            return paths.filter(path -> path.toString().endsWith(ending)).findFirst();
        }
    }

    /** Reads the log as KafkaRaftClient does. Prints the first batch that cannot be read. */
    @SuppressWarnings("unchecked")
    private static boolean read(Path path, String log, List<Batch<ApiMessageAndVersion>> batches) throws Exception {
        Object records = find("common.record.internal.FileRecords", "common.record.FileRecords")
            .getMethod("open", File.class, boolean.class)
            .invoke(null, path.toFile(), false);
        Constructor<?> constructor = RecordsIterator.class.getConstructors()[0];
        Object[] values = reading(records);
        long next = 0;
        try (AutoCloseable open = (AutoCloseable) records) {
            Iterator<Batch<ApiMessageAndVersion>> iterator = (Iterator<Batch<ApiMessageAndVersion>>)
                constructor.newInstance(Arrays.copyOf(values, constructor.getParameterCount()));
            while (iterator.hasNext()) {
                Batch<ApiMessageAndVersion> batch = iterator.next();
                batches.add(batch);
                next = batch.lastOffset() + 1;
            }
            return true;
        } catch (RuntimeException error) {
            print(log, "read", "the batch at offset " + next, error);
            return false;
        }
    }

    /** Returns the arguments with which classes read records; older releases take fewer. */
    private static Object[] reading(Object source) throws Exception {
        Object buffers = find("common.utils.internals.BufferSupplier", "common.utils.BufferSupplier")
            .getField("NO_CACHING").get(null);
        Object context = find("common.utils.internals.LogContext", "common.utils.LogContext").getConstructor().newInstance();
        return new Object[] {source, SERDE, buffers, MAX_BATCH, true, context};
    }

    /** Returns the first class that exists, of those that releases have at different places. */
    private static Class<?> find(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName("org.apache.kafka." + name);
            } catch (ClassNotFoundException error) {
                continue;
            }
        }
        throw new ClassNotFoundException(names[0]);
    }

    private static void configs(Path list) throws Exception {
        Method fromProps = Stream.of(find("storage.internals.log.LogConfig", "kafka.log.LogConfig").getMethods())
            .filter(each -> each.getName().equals("fromProps")).findFirst().get();
        int number = 0;
        for (String line : Files.readAllLines(list)) {
            String[] config = line.split("\t", 2);
            Properties properties = new Properties();
            properties.put(config[0], config[1]);
            try {
                fromProps.invoke(null, Map.of(), properties);
            } catch (InvocationTargetException error) {
                print(String.valueOf(number), "config", "", error.getCause());
            }
            number++;
        }
    }

    private static void feed(
        RaftClient.Listener<ApiMessageAndVersion> listener,
        Optional<Path> snapshot,
        List<Batch<ApiMessageAndVersion>> batches
    ) throws Exception {
        if (snapshot.isPresent()) {
            listener.handleLoadSnapshot(snapshotReader(snapshot.get()));
        }
        if (!batches.isEmpty()) {
            listener.handleCommit(MemoryBatchReader.of(batches, reader -> { }));
        }
        // The events before this one have ended when it is closed.
        CountDownLatch ended = new CountDownLatch(1);
        ApiMessageAndVersion nothing = new ApiMessageAndVersion(new NoOpRecord(), (short) 0);
        listener.handleCommit(MemoryBatchReader.of(
            List.of(Batch.data(AFTER, 1, 0, 1, List.of(nothing))), reader -> ended.countDown()));
        if (!ended.await(300, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no end");
        }
    }

    @SuppressWarnings("unchecked")
    private static SnapshotReader<ApiMessageAndVersion> snapshotReader(Path path) throws Exception {
        Object parsed = Snapshots.parse(path).get();
        Object id = Stream.of(parsed.getClass().getMethods()).anyMatch(each -> each.getName().equals("snapshotId"))
            ? parsed.getClass().getMethod("snapshotId").invoke(parsed)
            : parsed.getClass().getField("snapshotId").get(parsed);
        Object raw = Stream.of(FileRawSnapshotReader.class.getMethods())
            .filter(each -> each.getName().equals("open"))
            .findFirst().get()
            .invoke(null, path.getParent(), id);
        for (Method method : RecordsSnapshotReader.class.getMethods()) {
            if (method.getName().equals("of")) {
                Object[] values = reading(raw);
                return (SnapshotReader<ApiMessageAndVersion>) method.invoke(
                    null, Arrays.copyOf(values, method.getParameterCount()));
            }
        }
        throw new IllegalStateException("RecordsSnapshotReader.of");
    }

    private static void controller(String log, Optional<Path> snapshot, List<Batch<ApiMessageAndVersion>> batches)
            throws Exception {
        CompletableFuture<RaftClient.Listener<ApiMessageAndVersion>> listener = new CompletableFuture<>();
        Object client = Proxy.newProxyInstance(
            ReplayMetadata.class.getClassLoader(),
            new Class<?>[] {RaftClient.class},
            (proxy, method, values) -> {
                if (method.getName().equals("register")) {
                    listener.complete((RaftClient.Listener<ApiMessageAndVersion>) values[0]);
                }
                Class<?> type = method.getReturnType();
                return type == OptionalInt.class ? OptionalInt.of(NODE)
                    : type == OptionalLong.class ? OptionalLong.empty()
                    : type == Optional.class ? Optional.empty()
                    : type == long.class ? (Object) 0L
                    : type == LeaderAndEpoch.class ? LeaderAndEpoch.UNKNOWN
                    : type == CompletableFuture.class ? CompletableFuture.completedFuture(null)
                    : type.isEnum() ? type.getEnumConstants()[0]
                    : null;
            });
        QuorumController controller = quorumController(log, client);
        feed(listener.get(10, TimeUnit.SECONDS), snapshot, batches);
        controller.beginShutdown();
        controller.close();
    }

    private static QuorumController quorumController(String log, Object client) throws Exception {
        Object builder = new QuorumController.Builder(NODE, "AAAAAAAAAAAAAAAAAAAAAA");
        FaultHandler handler = new Printing(log, "controller");
        for (Method method : builder.getClass().getMethods()) {
            Object value = switch (method.getName()) {
                case "setRaftClient" -> client;
                case "setFatalFaultHandler", "setNonFatalFaultHandler" -> handler;
                case "setQuorumFeatures" -> features();
                case "setMaxIdleIntervalNs" -> OptionalLong.of(TimeUnit.MILLISECONDS.toNanos(QUIET_MILLISECONDS / 2));
                case "setBootstrapMetadata" -> bootstrap();
                case "setConfigSchema" -> Class.forName("kafka.server.KafkaRaftServer").getMethod("configSchema").invoke(null);
                case "setSupportedConfigChecker" -> Class.forName(CHECKER).getConstructor().newInstance();
                default -> null;
            };
            if (value != null) {
                method.invoke(builder, value);
            }
        }
        return ((QuorumController.Builder) builder).build();
    }

    /** Starts KafkaRaftClient with a log directory, and both classes as its listeners. */
    @SuppressWarnings("unchecked")
    private static Void raft(String log, Path directory, int voters) throws Exception {
        Path metadata = directory.resolve("__cluster_metadata-0");
        boolean readable = read(file(metadata, ".log").get(), log, new ArrayList<>());
        Object manager = raftManager(log, directory, voters);
        try {
            manager.getClass().getMethod("startup").invoke(manager);
            if (!readable) {
                throw new IllegalStateException(log + ": KafkaRaftClient reads it");
            }
        } catch (InvocationTargetException error) {
            if (readable) {
                throw error;
            }
            return null;
        }
        RaftClient<ApiMessageAndVersion> client =
            (RaftClient<ApiMessageAndVersion>) manager.getClass().getMethod("client").invoke(manager);
        Supplier<OptionalLong> highWatermark = () -> {
            try {
                return (OptionalLong) client.getClass().getMethod("highWatermark").invoke(client);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        };
        QuorumController controller = quorumController(log, client);
        MetadataLoader loader = metadataLoader(log, highWatermark);
        client.register(loader);
        long until = System.currentTimeMillis() + (voters == 1 ? MILLISECONDS : 3 * QUIET_MILLISECONDS);
        boolean ended = false;
        while (!ended && System.currentTimeMillis() < until) {
            Thread.sleep(QUIET_MILLISECONDS);
            long end = highWatermark.get().orElse(Long.MAX_VALUE);
            ended = FAULTS.contains(log + "controller") || (controller.isActive()
                && (FAULTS.contains(log + "loader") || loader.lastAppliedOffset() >= end - 1));
        }
        if (ended != (voters == 1) || (voters > 1 && highWatermark.get().isPresent())) {
            throw new IllegalStateException(log + ": " + controller.isActive() + " " + loader.lastAppliedOffset()
                + " " + highWatermark.get());
        }
        Thread.sleep(QUIET_MILLISECONDS);
        controller.close();
        loader.close();
        if (voters == 1) {  // alone, it would wait for the others
            manager.getClass().getMethod("shutdown").invoke(manager);
        }
        return null;
    }

    private static Object raftManager(String log, Path directory, int voters) throws Exception {
        Properties properties = new Properties();
        Map<Integer, InetSocketAddress> addresses = new HashMap<>();
        for (int voter = 0; voter < voters; voter++) {
            addresses.put(NODE + voter, new InetSocketAddress("127.0.0.1", 1 + voter));
        }
        properties.put("controller.quorum.voters", addresses.entrySet().stream()
            .map(each -> each.getKey() + "@127.0.0.1:" + each.getValue().getPort())
            .reduce((one, next) -> one + "," + next).get());
        properties.put("process.roles", "controller");
        properties.put("node.id", String.valueOf(NODE));
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listeners", "CONTROLLER://127.0.0.1:1");
        properties.put("log.dirs", directory.toString());
        Class<?> config = Class.forName("kafka.server.KafkaConfig");
        Constructor<?> constructor = Class.forName("kafka.raft.KafkaRaftManager").getConstructors()[0];
        List<Object> values = new ArrayList<>();
        for (Class<?> type : constructor.getParameterTypes()) {
            values.add(switch (type.getSimpleName()) {
                case "String" -> "AAAAAAAAAAAAAAAAAAAAAA";
                case "KafkaConfig" -> config.getMethod("fromProps", Properties.class).invoke(null, properties);
                case "Uuid" -> values.size() < 4 ? Uuid.randomUuid() : Uuid.METADATA_TOPIC_ID;
                case "RecordSerde" -> SERDE;
                case "TopicPartition" -> new TopicPartition("__cluster_metadata", 0);
                case "Time" -> type.getField("SYSTEM").get(null);
                case "Metrics" -> new Metrics();
                case "Option" -> type.getMethod("apply", Object.class).invoke(null, (Object) null);
                case "CompletableFuture" -> CompletableFuture.completedFuture(addresses);
                case "Collection" -> List.of();
                case "Endpoints" -> type.getMethod("empty").invoke(null);
                case "FaultHandler" -> new Printing(log, "raft");
                default -> Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> null);
            });
        }
        return constructor.newInstance(values.toArray());
    }

    private static Object features() throws Exception {
        for (Method method : QuorumFeatures.class.getMethods()) {
            if (method.getName().equals("defaultFeatureMap") || method.getName().equals("defaultSupportedFeatureMap")) {
                Object map = method.getParameterCount() == 0 ? method.invoke(null) : method.invoke(null, false);
                // Up to 3.6 it also takes what is known of other nodes.
                Constructor<?> constructor = QuorumFeatures.class.getDeclaredConstructors()[0];
                constructor.setAccessible(true);
                return constructor.getParameterCount() == 3
                    ? constructor.newInstance(NODE, map, List.of(NODE))
                    : constructor.newInstance(NODE, new org.apache.kafka.clients.ApiVersions(), map, List.of(NODE));
            }
        }
        throw new IllegalStateException("QuorumFeatures");
    }

    private static BootstrapMetadata bootstrap() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        boolean stated = Stream.of(type.getMethods()).anyMatch(each -> each.getName().equals("latestProduction"));
        Object newest = type.getMethod(stated ? "latestProduction" : "latest").invoke(null);
        return (BootstrapMetadata) BootstrapMetadata.class.getMethod("fromVersion", type, String.class)
            .invoke(null, newest, "test");
    }

    private static void loader(String log, Optional<Path> snapshot, List<Batch<ApiMessageAndVersion>> batches)
            throws Exception {
        // It publishes what it has once it has caught up.
        long end = batches.isEmpty() ? 0 : batches.get(batches.size() - 1).lastOffset() + 1;
        MetadataLoader loader = metadataLoader(log, () -> OptionalLong.of(end));
        feed(loader, snapshot, batches);
        loader.close();
    }

    private static MetadataLoader metadataLoader(String log, Supplier<OptionalLong> highWatermark) throws Exception {
        Object builder = new MetadataLoader.Builder();
        for (Method method : builder.getClass().getMethods()) {
            Object value = switch (method.getName()) {
                case "setFaultHandler" -> new Printing(log, "loader");
                case "setHighWaterMarkAccessor" -> highWatermark;
                case "setSupportedConfigChecker" -> Class.forName(CHECKER).getConstructor().newInstance();
                default -> null;
            };
            if (value != null) {
                method.invoke(builder, value);
            }
        }
        return ((MetadataLoader.Builder) builder).build();
    }
}
