import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints Kafka's configs of logs and of the log cleaner: java -cp 'jars/*' LogConfigs.java > log_config.tsv
 *
 * Each line contains, separated by tabs: the name, type and default, and, for a topic config, the names of the
 * corresponding broker configs, in order of precedence.
 */
public class LogConfigs {
    public static void main(String[] args) {
        Map<String, String> lines = new TreeMap<>();
        LogConfig.configKeys().forEach((name, key) -> {
            var synonyms = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(name, List.of());
            lines.put(name, text(key) + String.join(",", synonyms.stream().map(each -> each.name()).toList()));
        });
        for (ConfigDef def : List.of(CleanerConfig.CONFIG_DEF, LogConfig.SERVER_CONFIG_DEF))
            def.configKeys().forEach((name, key) -> lines.putIfAbsent(name, text(key)));
        lines.forEach((name, line) -> System.out.println(name + "\t" + line));
    }

    static String text(ConfigDef.ConfigKey key) {
        Object value = key.defaultValue;
        String shown = value instanceof List<?> list ? String.join(",", list.stream().map(String::valueOf).toList()) : "" + value;
        return key.type + "\t" + shown + "\t";
    }
}
