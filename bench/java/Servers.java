import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What the servers tell of themselves, by ZooKeeper's commands of four letters. */
final class Servers {
    private static final long TICK = 10_000_000; // nanoseconds, the unit of /proc

    private final List<String> addresses;
    private final List<Integer> pids;

    Servers(List<String> addresses, List<Integer> pids) {
        this.addresses = addresses;
        this.pids = pids;
    }

    /** The processor time that they have taken so far; null if that is not known. */
    Long cpu() throws IOException {
        if (pids == null || pids.isEmpty()) {
            return null;
        }
        long ticks = 0;
        for (int pid : pids) {
            Path file = Path.of("/proc/" + pid + "/stat");
            if (!Files.exists(file)) {
                return null;
            }
            String stat = Files.readString(file);
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            ticks += Long.parseLong(fields[11]) + Long.parseLong(fields[12]); // of the user and of the system
        }
        return ticks * TICK;
    }

    /** The packets that clients have sent so far, pings included. */
    long requests() throws IOException {
        return sum("srvr", "Received:");
    }

    /** The packets that have gone either way so far. */
    long packets() throws IOException {
        return sum("srvr", "Received:") + sum("srvr", "Sent:");
    }

    /** The watches on znodes; those on children are not told. */
    long watches() throws IOException {
        return sum("wchs", "Total watches:");
    }

    /** Adds up the numbers in a line of all servers' answers. */
    private long sum(String command, String title) throws IOException {
        long sum = 0;
        for (String address : addresses) {
            int colon = address.lastIndexOf(':');
            String host = address.substring(0, colon);
            try (Socket socket = new Socket(host, Integer.parseInt(address.substring(colon + 1)))) {
                socket.getOutputStream().write(command.getBytes(StandardCharsets.US_ASCII));
                String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                sum += answer.lines()
                        .filter(line -> line.startsWith(title))
                        .mapToLong(line -> Long.parseLong(line.substring(title.length()).trim()))
                        .sum();
            }
        }
        return sum;
    }
}
