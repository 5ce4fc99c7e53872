import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;

/**
 * What java.util.Properties reads: java -cp 'jars/*' JavaProperties.java java_properties.tsv
 *
 * Replaces the second column of each line of the file. The first is the content of a file in hexadecimal. The second has
 * the names and values as UTF-16 in hexadecimal, name=value, in ascending order and separated by commas, or the exception;
 * after a space, version, node and directory ID as MetaProperties reads them, or the exception.
 */
public class JavaProperties {
    public static void main(String[] args) throws Exception {
        var lines = Files.readAllLines(Path.of(args[0]));
        var found = new StringBuilder();
        for (String line : lines) {
            String content = line.split("\t", -1)[0];
            found.append(content).append('\t').append(read(HexFormat.of().parseHex(content))).append('\n');
        }
        Files.writeString(Path.of(args[0]), found);
    }

    static String read(byte[] content) {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(content));
        } catch (Exception error) {
            return error.getClass().getSimpleName() + "\t";
        }
        var sorted = new TreeMap<String, String>();
        properties.forEach((name, value) -> sorted.put(hex((String) name), hex((String) value)));
        var parts = sorted.entrySet().stream().map(each -> each.getKey() + "=" + each.getValue()).toList();
        return String.join(",", parts) + "\t" + meta(properties);
    }

    static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }

    static String meta(Properties properties) {
        try {
            var meta = new org.apache.kafka.metadata.properties.MetaProperties.Builder(properties).build();
            String node = meta.nodeId().isPresent() ? "" + meta.nodeId().getAsInt() : "-";
            String directory = meta.directoryId().map(Object::toString).orElse("-");
            return meta.version().number() + " " + node + " " + directory + " " + meta.clusterId().map(JavaProperties::hex).orElse("-");
        } catch (Exception error) {
            return error.getMessage().replaceAll("[^ -~]", "?");
        }
    }
}
