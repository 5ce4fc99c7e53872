// Writes every version of every record of Kafka's own topics, with random contents: module, message, version, the bytes
// in hex, and their JSON from Kafka's converter. Run with the jars of a Kafka release:
//   java -cp 'libs/*' EveryRecord.java MODULE=package … < names   (lines "module message")
import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;

public class EveryRecord {
    static final Random dice = new Random(43);

    public static void main(String[] packages) throws Exception {
        Map<String, String> packageOf = new HashMap<>();
        for (String each : packages) packageOf.put(each.split("=")[0], each.split("=")[1]);
        Scanner names = new Scanner(System.in);
        while (names.hasNext()) {
            String module = names.next(), name = names.next();
            Class<?> type;
            try {
                type = Class.forName(packageOf.get(module) + "." + name);
            } catch (ClassNotFoundException e) {
                System.err.println("no " + name);
                continue;
            }
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            Message empty = (Message) type.getConstructor().newInstance();
            for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++)
                for (int round = 0; round < 3; round++) write(module, type, converter, version, round);
        }
    }

    static void write(String module, Class<?> type, Class<?> converter, short version, int round) throws Exception {
        for (int attempt = 0; attempt < 2000; attempt++) {
            // The first message is empty; a field that is not in this version must keep its default.
            double chance = round == 0 ? 0 : Math.max(0.05, 1 - attempt / 400.0);
            Message message = (Message) fill(type, chance);
            ByteBuffer bytes;
            Object json;
            try {
                bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
                json = converter.getMethod("write", type, short.class).invoke(null, message, version);
            } catch (Exception e) {
                continue;
            }
            StringBuilder hex = new StringBuilder();
            for (int i = 0; i < bytes.limit(); i++) hex.append(String.format("%02x", bytes.get(i)));
            System.out.println(String.join("\t", module, type.getSimpleName(), "" + version, hex, json.toString()));
            return;
        }
        System.err.println("nothing fits " + type + " " + version);
    }

    static Object fill(Class<?> type, double chance) throws Exception {
        Constructor<?> make = type.getDeclaredConstructor();
        make.setAccessible(true);
        Object made = make.newInstance();
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().equals("_unknownTaggedFields")) continue;
            field.setAccessible(true);
            if (dice.nextDouble() >= chance) continue;
            Object value = value(field.getGenericType(), chance);
            // Java's types for unsigned numbers are wider than those on the disk.
            if (field.getName().equals("port") && value instanceof Integer number) value = number & 0xffff;
            if (field.getName().equals("crc")) value = (Long) value & 0xffffffffL;
            field.set(made, value);
        }
        return made;
    }

    static Object value(Type type, double chance) throws Exception {
        if (type instanceof ParameterizedType generic) {
            List<Object> list = new ArrayList<>();
            int count = dice.nextInt(3);
            for (int i = 0; i < count; i++) list.add(value(generic.getActualTypeArguments()[0], chance));
            return list;
        }
        if (type == byte.class || type == Byte.class) return (byte) dice.nextInt();
        if (type == short.class || type == Short.class) return (short) dice.nextInt();
        if (type == int.class || type == Integer.class) return dice.nextInt();
        if (type == long.class || type == Long.class) return dice.nextLong();
        if (type == boolean.class || type == Boolean.class) return dice.nextBoolean();
        if (type == double.class || type == Double.class) return dice.nextInt(1000) / 8.0;
        if (type == String.class) return "t" + dice.nextInt(1000) + "é";
        if (type == byte[].class) return new byte[] {1, 2, (byte) 250};
        if (type == ByteBuffer.class) return ByteBuffer.wrap(new byte[] {3, (byte) 200});
        if (type == Uuid.class) return new Uuid(dice.nextLong(), dice.nextLong());
        return fill((Class<?>) type, chance);
    }
}
