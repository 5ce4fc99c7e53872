import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.mockito.Mockito;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

/**
 * Runs unit tests of Kafka, and keeps each log directory that they have LogLoader or KafkaRaftLog load, as it is then, and
 * each that they delete.
 *
 * CatchLogs OUT CLASS…, with the tests' jars on the class path. Directory N is in OUT/N. A line of OUT/caught.jsonl, a JSON
 * object, says what the class was given and what it answered: for LogLoader (what: load) also the log's files that it
 * left, for KafkaRaftLog (raft) its newest snapshot; for a directory that is deleted (kept), nothing. After all tests, a line
 * for each result says how many have it.
 */
public final class CatchLogs implements TestExecutionListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static Path out;
    private static PrintStream lines;
    private static int number;
    private static volatile String test = "";
    private static final TreeMap<String, Integer> COUNTS = new TreeMap<>();

    /** Around LogLoader.load. */
    public static final class Load {
        @Advice.OnMethodEnter
        public static Map<String, Object> enter(@Advice.This Object loader) {
            return CatchLogs.begin("load", (File) CatchLogs.get(loader, "dir"), loader);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Enter Map<String, Object> caught,
            @Advice.This Object loader,
            @Advice.Return Object offsets,
            @Advice.Thrown Throwable thrown
        ) {
            CatchLogs.end(caught, thrown == null ? CatchLogs.loaded(loader, offsets) : null, thrown);
        }
    }

    /** Around KafkaRaftLog.createLog. */
    public static final class Raft {
        @Advice.OnMethodEnter
        public static Map<String, Object> enter(@Advice.Argument(2) File directory) {
            return CatchLogs.begin("raft", directory, null);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(
            @Advice.Enter Map<String, Object> caught, @Advice.Return Object log, @Advice.Thrown Throwable thrown
        ) {
            CatchLogs.end(caught, thrown == null ? CatchLogs.created(log) : null, thrown);
        }
    }

    /** Around Utils.delete. */
    public static final class Delete {
        @Advice.OnMethodEnter
        public static void enter(@Advice.Argument(0) File file) {
            CatchLogs.keep(file);
        }
    }

    public static void main(String[] args) throws Exception {
        out = Path.of(args[0]);
        Files.createDirectories(out);
        lines = new PrintStream(Files.newOutputStream(out.resolve("caught.jsonl")), true);
        AgentBuilder agent = new AgentBuilder.Default();
        agent = around(agent, Load.class, named("load"), STORAGE + "LogLoader", "kafka.log.LogLoader");
        agent = around(agent, Raft.class, named("createLog"), "org.apache.kafka.raft.internals.KafkaRaftLog");
        agent = around(agent, Raft.class, named("apply").and(takesArguments(6).or(takesArguments(7))),
            "kafka.raft.KafkaMetadataLog$");
        agent = around(agent, Delete.class, named("delete").and(takesArguments(File.class)),
            "org.apache.kafka.common.utils.Utils");
        agent.installOn(ByteBuddyAgent.install());
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
        Arrays.stream(args).skip(1).filter(CatchLogs::isComplete)
            .forEach(each -> request.selectors(DiscoverySelectors.selectClass(each)));
        LauncherFactory.create().execute(request.build(), new CatchLogs());
        synchronized (CatchLogs.class) {
            COUNTS.forEach((result, count) -> lines.println("{\"tests\":\"" + result + "\",\"count\":" + count + "}"));
        }
        System.exit(0); // deletes the tests' temporary directories, which are kept
    }

    /** Returns false if a test needs a class that the release does not have: one such test keeps all from running. */
    private static boolean isComplete(String name) {
        try {
            for (Class<?> type = Class.forName(name); type != null; type = type.getSuperclass()) {
                type.getDeclaredMethods();
                type.getDeclaredFields();
            }
            return true;
        } catch (ClassNotFoundException | LinkageError error) {
            System.err.println("LEFT OUT\t" + name + "\t" + error);
            return false;
        }
    }

    private static AgentBuilder around(
        AgentBuilder agent, Class<?> advice, ElementMatcher<MethodDescription> methods, String... classes
    ) {
        for (String each : classes) {
            agent = agent.type(named(each)).transform(
                (builder, type, loader, module, domain) -> builder.visit(Advice.to(advice).on(methods)));
        }
        return agent;
    }

    @Override
    public void executionStarted(TestIdentifier identifier) {
        if (identifier.isTest()) {
            test = identifier.getUniqueId().replaceAll("\\[engine:[^/]*/|\\[(class|method|[a-z-]+):|\\]", "");
        }
    }

    @Override
    public void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
        if (identifier.isTest() || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
            synchronized (CatchLogs.class) {
                COUNTS.merge(result.getStatus().toString(), 1, Integer::sum);
            }
            result.getThrowable().ifPresent(error -> System.err.println("FAILED\t" + test + "\t" + error));
        }
    }

    /** Returns the value of a method without parameters, or of a field, of an object; an empty Optional is null. */
    public static Object get(Object object, String name) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (AccessibleObject member : members(type, name)) {
                try {
                    member.setAccessible(true);
                    Object value = member instanceof Method ? ((Method) member).invoke(object) : ((Field) member).get(object);
                    return value instanceof Optional ? ((Optional<?>) value).orElse(null) : value;
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new IllegalArgumentException(object.getClass() + ": " + name);
    }

    private static List<AccessibleObject> members(Class<?> type, String name) {
        List<AccessibleObject> found = new ArrayList<>();
        for (Method each : type.getDeclaredMethods()) {
            if (each.getName().equals(name) && each.getParameterCount() == 0) {
                found.add(each);
            }
        }
        for (Field each : type.getDeclaredFields()) {
            if (each.getName().equals(name)) {
                found.add(each);
            }
        }
        return found;
    }

    /** Copies a directory, and returns what is known of it before it is loaded. */
    public static Map<String, Object> begin(String what, File directory, Object loader) {
        Map<String, Object> caught = new LinkedHashMap<>();
        synchronized (CatchLogs.class) {
            caught.put("number", number++);
        }
        caught.put("what", what);
        caught.put("test", test);
        if (loader != null) {
            Object config = get(loader, "config");
            caught.put("clean", get(loader, "hadCleanShutdown"));
            caught.put("logStart", get(loader, "logStartOffsetCheckpoint"));
            caught.put("recoveryPoint", get(loader, "recoveryPointCheckpoint"));
            caught.put("remote", get(loader, "isRemoteLogEnabled"));
            caught.put("interval", get(config, "indexInterval"));
            caught.put("largest", get(config, "maxIndexSize"));
            caught.put("mocked", Mockito.mockingDetails(get(loader, "producerStateManager")).isMock());
        }
        caught.put("path", copy(directory, out.resolve(caught.get("number").toString())));
        return caught;
    }

    /** Writes the line of a directory. */
    public static void end(Map<String, Object> caught, Map<String, Object> answer, Throwable thrown) {
        caught.put("answer", answer);
        caught.put("thrown", thrown == null ? null : thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
        try {
            synchronized (CatchLogs.class) {
                lines.println(JSON.writeValueAsString(caught));
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns what LogLoader answers: offsets, the size of each segment by base offset, epochs, producer snapshots. */
    public static Map<String, Object> loaded(Object loader, Object offsets) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("logStart", get(offsets, "logStartOffset"));
        answer.put("recoveryPoint", get(offsets, "recoveryPoint"));
        answer.put("logEnd", get(get(offsets, "nextOffsetMetadata"), "messageOffset"));
        Map<Object, Object> sizes = new LinkedHashMap<>();
        for (Object segment : (Iterable<?>) get(get(loader, "segments"), "values")) {
            sizes.put(get(segment, "baseOffset"), get(segment, "size"));
        }
        answer.put("segments", sizes);
        Object cache = get(loader, "leaderEpochCache");
        List<Object> epochs = new ArrayList<>();
        for (Object entry : cache == null ? List.of() : (Iterable<?>) get(cache, "epochEntries")) {
            epochs.add(List.of(get(entry, "epoch"), get(entry, "startOffset")));
        }
        answer.put("epochs", epochs);
        String[] names = ((File) get(loader, "dir")).list((directory, name) -> name.matches("\\d{20}\\.snapshot"));
        answer.put("snapshots", names == null ? List.of() : Arrays.stream(names).sorted().toList());
        return answer;
    }

    /** Returns what KafkaRaftLog answers. */
    public static Map<String, Object> created(Object log) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("logStart", get(log, "startOffset"));
        answer.put("logEnd", get(get(log, "endOffset"), "offset"));
        answer.put("lastEpoch", get(log, "lastFetchedEpoch"));
        Object snapshot = get(log, "latestSnapshotId");
        answer.put("snapshot", snapshot == null ? null : List.of(get(snapshot, "offset"), get(snapshot, "epoch")));
        return answer;
    }

    /** Keeps each directory with segments or indexes in a directory that is about to be deleted. */
    public static void keep(File file) {
        File[] inside = file.listFiles();
        if (inside == null) {
            return;
        }
        if (Arrays.stream(inside).anyMatch(each -> each.getName().matches("\\d{20}(-\\d{10})?\\.[a-z]+"))) {
            end(begin("kept", file, null), null, null);
        } else {
            Arrays.stream(inside).filter(each -> !Files.isSymbolicLink(each.toPath())).forEach(CatchLogs::keep);
        }
    }

    /** Copies a directory's files, and returns the copy's path. Zeros at a file's end become a hole. */
    private static String copy(File directory, Path to) {
        Path target = to.resolve(directory.getName());
        File[] files = directory.listFiles();
        try {
            Files.createDirectories(target);
            for (File file : files == null ? new File[0] : files) {
                if (file.isDirectory()) {
                    Files.createDirectories(target.resolve(file.getName()));
                } else if (file.isFile()) {
                    byte[] bytes = Files.readAllBytes(file.toPath());
                    int end = bytes.length;
                    while (end > 0 && bytes[end - 1] == 0) {
                        end--;
                    }
                    try (RandomAccessFile written = new RandomAccessFile(target.resolve(file.getName()).toFile(), "rw")) {
                        written.write(bytes, 0, end);
                        written.setLength(bytes.length);
                    }
                }
            }
        } catch (IOException error) {
            System.err.println("NOT KEPT\t" + directory + "\t" + error);
        }
        return target.toString();
    }
}
