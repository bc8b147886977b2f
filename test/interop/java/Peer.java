import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Uses Curator's recipes as the Go tests tell it to, one line for each command on standard input: {@code ID THREAD VERB ARGUMENT...}.
 * The commands of one thread are done by one Java thread, which is Curator's owner of a lock, one after the other; those of
 * different threads at the same time. Each has one line of answer on standard output, {@code ID ok VALUE...} or
 * {@code ID failed EXCEPTION}, and a lock that is asked back has a line {@code event LOCK}. It ends with its standard input, so
 * that it does not outlive the tests.
 */
public final class Peer {
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Commands commands = new Commands(lock -> tell("event " + lock));

    public static void main(String[] args) throws IOException {
        new Peer().serve();
        Runtime.getRuntime().halt(0); // threads may wait for locks
    }

    private void serve() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = Arrays.asList(line.split(" "));
            threads.computeIfAbsent(words.get(1), name -> Executors.newSingleThreadExecutor(task -> new Thread(task, name)))
                    .execute(() -> tell(words.get(0) + " " + answer(words.get(2), words.subList(3, words.size()))));
        }
    }

    private String answer(String verb, List<String> arguments) {
        try {
            return ("ok " + String.join(" ", commands.run(verb, arguments))).trim();
        } catch (Throwable e) { // the test decides what it means
            e.printStackTrace();
            return "failed " + e.toString().replaceAll("\\s+", " ");
        }
    }

    private static void tell(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
