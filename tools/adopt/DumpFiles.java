import java.io.BufferedOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
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
        // A tool in Scala prints to the System.out that its first run has found: Console keeps it.
        Printed printed = new Printed();
        System.setOut(new PrintStream(printed, true));
        Method tool = Class.forName(arguments[0]).getMethod("main", String[].class);
        String[] lines = new String(System.in.readAllBytes()).split("\n");
        for (String line : lines) {
            String[] words = line.split(" ");
            Path out = Path.of(arguments[1], words[0] + ".txt");
            Files.createDirectories(out.getParent());
            try (OutputStream file = new BufferedOutputStream(Files.newOutputStream(out))) {
                printed.file = file;
                String name = "./" + words[0];
                Object given = words.length > 1
                    ? new String[] {"--files", name, words[1]}
                    : new String[] {"--files", name};
                tool.invoke(null, given);
            } catch (InvocationTargetException error) {
                StringWriter text = new StringWriter();
                error.getCause().printStackTrace(new PrintWriter(text, true));
                Files.writeString(new File(arguments[1], words[0] + ".err").toPath(), text.toString());
            }
        }
    }

    /** Writes to one file after the other. */
    private static final class Printed extends OutputStream {
        private OutputStream file;

        @Override
        public void write(int value) throws IOException {
            file.write(value);
        }

        @Override
        public void write(byte[] bytes, int start, int length) throws IOException {
            file.write(bytes, start, length);
        }
    }
}
