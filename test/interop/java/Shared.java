import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;

/** Work on znodes that is only right under a lock. Each znode holds a decimal number. */
final class Shared {
    private Shared() {}

    /** Adds one to each of the numbers, without a look at the version. */
    static void increment(InterProcessLock lock, CuratorFramework client, int times, List<String> paths) throws Exception {
        for (int i = 0; i < times; i++) {
            lock.acquire();
            try {
                List<Long> numbers = read(client, paths);
                for (int at = 0; at < paths.size(); at++) {
                    byte[] next = Long.toString(numbers.get(at) + 1).getBytes(StandardCharsets.UTF_8);
                    client.setData().forPath(paths.get(at), next);
                }
            } finally {
                lock.release();
            }
        }
    }

    /** Reads all numbers, which must be the same. */
    static void compare(InterProcessLock lock, CuratorFramework client, int times, List<String> paths) throws Exception {
        for (int i = 0; i < times; i++) {
            lock.acquire();
            try {
                List<Long> numbers = read(client, paths);
                if (new HashSet<>(numbers).size() != 1) {
                    throw new IllegalStateException("a reader beside a writer has read " + numbers);
                }
            } finally {
                lock.release();
            }
        }
    }

    private static List<Long> read(CuratorFramework client, List<String> paths) throws Exception {
        List<Long> numbers = new ArrayList<>();
        for (String path : paths) {
            numbers.add(Long.parseLong(new String(client.getData().forPath(path), StandardCharsets.UTF_8)));
        }
        return numbers;
    }
}
