import java.io.File;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * DumpFiles CLASS OUT, with lines FILE or FILE OPTION on standard input: runs kafka-dump-log on each file, in one process,
 * and writes what it prints to OUT/FILE.txt; if it throws, the exception to OUT/FILE.err.
 */
public final class DumpFiles {
    public static void main(String[] arguments) throws Exception {
        Method tool = Class.forName(arguments[0]).getMethod("main", String[].class);
        String[] lines = new String(System.in.readAllBytes()).split("\n");
        for (String line : lines) {
            String[] words = line.split(" ");
            Path out = Path.of(arguments[1], words[0] + ".txt");
            Files.createDirectories(out.getParent());
            try (PrintStream printed = new PrintStream(out.toFile())) {
                System.setOut(printed);
                String file = "./" + words[0];
                Object given = words.length > 1
                    ? new String[] {"--files", file, words[1]}
                    : new String[] {"--files", file};
                tool.invoke(null, given);
            } catch (InvocationTargetException error) {
                StringWriter text = new StringWriter();
                error.getCause().printStackTrace(new PrintWriter(text, true));
                Files.writeString(new File(arguments[1], words[0] + ".err").toPath(), text.toString());
            }
        }
    }
}
