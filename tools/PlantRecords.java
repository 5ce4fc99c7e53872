import java.io.*;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends lines of standard input, TOPIC CODEC KEY VALUE, the latter two in base64; the header who is the key. */
public class PlantRecords {
    public static void main(String[] args) throws Exception {
        var decoder = Base64.getDecoder();
        var producers = new HashMap<String, Producer<byte[], byte[]>>();
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            var words = line.split(" ");
            var key = decoder.decode(words[2]);
            List<Header> headers = List.of(new RecordHeader("who", key));
            producers.computeIfAbsent(words[1], codec -> new KafkaProducer<>(
                Map.of("bootstrap.servers", args[0], "compression.type", codec, "linger.ms", "50"),
                new ByteArraySerializer(), new ByteArraySerializer()
            )).send(new ProducerRecord<>(words[0], null, null, key, decoder.decode(words[3]), headers));
        }
        producers.values().forEach(Producer::close);
    }
}
