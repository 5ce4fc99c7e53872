import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints what a release of Kafka knows, as one JSON object: levels of metadata.version, features, configs of topics and
 * brokers with their defaults, versions of small files. Run with the release's jars as class path. Classes and methods
 * are looked up by name, because they move between packages: what is nowhere is left out. The message schemas are
 * resources of the jars, and are not read here.
 */
public final class ReleaseFacts {
    private static final List<String> METADATA_VERSION = List.of("org.apache.kafka.server.common.MetadataVersion");
    private static final List<String> FEATURE =
        List.of("org.apache.kafka.server.common.Feature", "org.apache.kafka.server.common.Features");
    private static final List<String> QUORUM_FEATURES = List.of("org.apache.kafka.controller.QuorumFeatures");
    private static final List<String> LOG_CONFIG =
        List.of("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$");
    private static final List<String> BROKER_CONFIG =
        List.of("org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig$");
    private static final List<String> SYNONYMS = List.of("org.apache.kafka.server.config.ServerTopicConfigSynonyms");
    private static final String[] FILES = {
        "OffsetCheckpointFile", "LeaderEpochCheckpointFile", "PartitionMetadataFile", "CleanShutdownFileHandler",
        "RemoteLogMetadataSnapshotFile", "ProducerStateManager"};
    private static final String[] PACKAGES = {
        "org.apache.kafka.storage.internals.checkpoint.", "org.apache.kafka.storage.internals.log.",
        "org.apache.kafka.server.log.remote.metadata.storage.", "kafka.server.checkpoints.", "kafka.server.",
        "kafka.log."};

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> facts = new TreeMap<>();
        Class<?> version = find(METADATA_VERSION);
        // Before 3.3 there is no such feature (KIP-778); the levels of earlier releases are negative there.
        if (version != null) {
            facts.put("levels", levels(version));
            facts.put("features", features(version));
        }
        facts.put("topicConfigs", configs(find(LOG_CONFIG)));
        facts.put("topicRules", rules(find(LOG_CONFIG)));
        facts.put("synonyms", synonyms(find(SYNONYMS)));
        Class<?> broker = find(BROKER_CONFIG);
        if (configDef(broker) == null) {
            broker = find(BROKER_CONFIG.subList(1, 2));
        }
        facts.put("brokerConfigs", configs(broker));
        facts.put("files", files());
        System.out.println(json(facts));
    }

    private static List<Object> levels(Class<?> version) throws Exception {
        List<Object> found = new ArrayList<>();
        short last = latest(version);
        for (Object each : version.getEnumConstants()) {
            short level = (Short) call(each, "featureLevel");
            if (level > 0) {
                Map<String, Object> row = new TreeMap<>();
                row.put("level", level);
                row.put("name", call(each, "version"));
                row.put("changed", call(each, "didMetadataChange"));
                row.put("production", level <= last);
                found.add(row);
            }
        }
        return found;
    }

    /** The highest level that needs no unstable.feature.versions.enable. */
    private static short latest(Class<?> version) throws Exception {
        Method method = method(version, "latestProduction", 0);
        if (method == null) {
            method = method(version, "latest", 0);
        }
        return (Short) call(method.invoke(null), "featureLevel");
    }

    /** By name: lowest and highest level with which a node registers, and the level of a newly formatted cluster. */
    private static Map<String, Object> features(Class<?> version) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        Object newest = null;
        short last = latest(version);
        for (Object each : version.getEnumConstants()) {
            if ((Short) call(each, "featureLevel") == last) {
                newest = each;
            }
        }
        Object map = null;
        for (Method each : find(QUORUM_FEATURES).getMethods()) {
            if (List.of("defaultFeatureMap", "defaultSupportedFeatureMap").contains(each.getName())) {
                map = each.getParameterCount() == 0 ? each.invoke(null) : each.invoke(null, false);
            }
        }
        for (Map.Entry<?, ?> each : ((Map<?, ?>) map).entrySet()) {
            List<Object> row = new ArrayList<>(List.of(call(each.getValue(), "min"), call(each.getValue(), "max")));
            row.add(each.getKey().equals("metadata.version") ? last : null);
            found.put((String) each.getKey(), row);
        }
        Class<?> feature = find(FEATURE);
        if (feature != null && feature.isEnum()) {
            for (Object each : (Collection<?>) feature.getField("PRODUCTION_FEATURES").get(null)) {
                Method level = method(feature, "defaultLevel", 1);
                level = level != null ? level : method(feature, "defaultValue", 1);
                Object value = level.invoke(each, newest);
                List<Object> row = new ArrayList<>(Arrays.asList(0, call(each, "latestProduction"), value));
                if (found.containsKey(call(each, "featureName"))) {
                    row.set(0, ((List<?>) found.get(call(each, "featureName"))).get(0));
                    row.set(1, ((List<?>) found.get(call(each, "featureName"))).get(1));
                }
                found.put((String) call(each, "featureName"), row);
            }
        }
        return found;
    }

    /** Defaults by name, as text; null if there is none. */
    private static Map<String, Object> configs(Class<?> owner) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        Object def = configDef(owner);
        for (Map.Entry<?, ?> each : ((Map<?, ?>) call(def, "configKeys")).entrySet()) {
            Object key = each.getValue();
            Object value = key.getClass().getField("defaultValue").get(key);
            Object type = key.getClass().getField("type").get(key);
            boolean given = (Boolean) call(key, "hasDefault");
            Method text = method(Class.forName("org.apache.kafka.common.config.ConfigDef"), "convertToString", 2);
            found.put((String) each.getKey(), given && value != null ? text.invoke(null, value, type) : null);
        }
        return found;
    }

    /** Type and, in Kafka's own form, limits of each config by name. A list of all releases is left out. */
    private static Map<String, Object> rules(Class<?> owner) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) call(configDef(owner), "configKeys")).entrySet()) {
            Object key = each.getValue();
            Object limits = key.getClass().getField("validator").get(key);
            String text = limits == null || limits.toString().length() > 100 ? "" : " " + limits;
            found.put((String) each.getKey(), key.getClass().getField("type").get(key) + text);
        }
        return found;
    }

    /** The configs of a broker that are the defaults of one of a topic, in order of precedence. */
    private static Map<String, Object> synonyms(Class<?> owner) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        if (owner != null) {
            Map<?, ?> all = (Map<?, ?>) owner.getField("ALL_TOPIC_CONFIG_SYNONYMS").get(null);
            for (Map.Entry<?, ?> each : all.entrySet()) {
                List<Object> names = new ArrayList<>();
                for (Object synonym : (List<?>) each.getValue()) {
                    names.add(call(synonym, "name"));
                }
                found.put((String) each.getKey(), names);
            }
        }
        return found;
    }

    private static Object configDef(Class<?> owner) throws Exception {
        Class<?> def = Class.forName("org.apache.kafka.common.config.ConfigDef");
        Object instance = null;
        if (owner.getName().endsWith("$")) {
            instance = owner.getField("MODULE$").get(null);
        }
        // Those of Scala are fields of its only instance. LogConfig also has one of the broker's configs.
        Object found = null;
        for (Field each : owner.getDeclaredFields()) {
            if (def.isAssignableFrom(each.getType()) && (instance != null || Modifier.isStatic(each.getModifiers()))) {
                each.setAccessible(true);
                if (found == null || each.getType() != def) {
                    found = each.get(instance);
                }
            }
        }
        return found;
    }

    /** Lowest and highest version of each small file that the release reads, by class. */
    private static Map<String, Object> files() throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (String name : FILES) {
            for (String place : PACKAGES) {
                for (String suffix : List.of("", "$")) {
                    Integer number = currentVersion(find(List.of(place + name + suffix)));
                    if (number != null) {
                        found.putIfAbsent(name, List.of(number, number));
                    }
                }
            }
        }
        Class<?> meta = find(List.of("org.apache.kafka.metadata.properties.MetaPropertiesVersion"));
        if (meta != null) {
            found.put("MetaProperties", List.of(0, meta.getEnumConstants().length - 1));
        }
        Class<?> quorum = find(List.of("org.apache.kafka.raft.FileQuorumStateStore", "org.apache.kafka.raft.FileBasedStateStore"));
        if (quorum != null) {
            Object low = constant(quorum, "LOWEST_SUPPORTED_VERSION");
            Object high = constant(quorum, "HIGHEST_SUPPORTED_VERSION");
            found.put("FileQuorumStateStore", List.of(low == null ? 0 : low, high == null ? 0 : high));
        }
        return found;
    }

    private static Integer currentVersion(Class<?> owner) throws Exception {
        if (owner == null) {
            return null;
        }
        for (String name : List.of("CURRENT_VERSION", "CurrentVersion", "PRODUCER_SNAPSHOT_VERSION", "ProducerSnapshotVersion")) {
            Object value = constant(owner, name);
            if (value instanceof Number) {
                return ((Number) value).intValue();
            }
        }
        return null;
    }

    private static Object constant(Class<?> owner, String name) throws Exception {
        for (Field each : owner.getDeclaredFields()) {
            // Scala's private constants bear the name of their class, too.
            if (each.getName().equals(name) || each.getName().endsWith("$$" + name)) {
                each.setAccessible(true);
                Object instance = Modifier.isStatic(each.getModifiers()) ? null : owner.getField("MODULE$").get(null);
                return each.get(instance);
            }
        }
        return null;
    }

    private static Class<?> find(List<String> names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException | NoClassDefFoundError error) {
                // of another release
            }
        }
        return null;
    }

    private static Method method(Class<?> owner, String name, int parameters) {
        for (Method each : owner.getMethods()) {
            if (each.getName().equals(name) && each.getParameterCount() == parameters) {
                each.setAccessible(true);
                return each;
            }
        }
        return null;
    }

    private static Object call(Object owner, String name) throws Exception {
        Method found = method(owner.getClass(), name, 0);
        try {
            return found.invoke(owner);
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }

    private static String json(Object value) {
        if (value instanceof Map) {
            List<String> parts = new ArrayList<>();
            ((Map<?, ?>) value).forEach((key, each) -> parts.add(json(key) + ": " + json(each)));
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof List) {
            List<String> parts = new ArrayList<>();
            ((List<?>) value).forEach(each -> parts.add(json(each)));
            return "[" + String.join(", ", parts) + "]";
        }
        if (value instanceof String) {
            return '"' + ((String) value).replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
        }
        return String.valueOf(value);
    }
}
