import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.data.Stat;

/** Those who carry out a load, with their sessions. */
final class Team implements AutoCloseable {
    private static final int SESSION_MILLIS = 30_000;
    private static final int SECONDS = 30;

    final Load load;
    private final boolean shared; // the users of a session have a lock object together
    private final List<CuratorFramework> clients = new ArrayList<>();
    private final List<User> everybody = new ArrayList<>();
    private final Map<CuratorFramework, Map<String, Object>> recipes = new HashMap<>();

    Team(Load load, boolean shared) {
        this.load = load;
        this.shared = shared;
    }

    /** Opens the load's sessions and makes n users, who are dealt out to them in turn. */
    List<User> users(int n) throws Exception {
        List<CuratorFramework> sessions = new ArrayList<>();
        for (int i = 0; i < load.sessions; i++) {
            sessions.add(connect());
        }
        List<User> users = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            users.add(user(sessions.get(i % sessions.size()), i));
        }
        return users;
    }

    /** A user with a session of its own, who holds the lock. */
    User holder() throws Exception {
        User u = user(connect(), 0);
        u.go(() -> {
            u.lock.acquire();
            return null;
        }).get();
        return u;
    }

    private CuratorFramework connect() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(String.join(",", load.servers))
                .sessionTimeoutMs(SESSION_MILLIS)
                .retryPolicy(new RetryNTimes(100, 100))
                .build();
        clients.add(client);
        client.start();
        if (!client.blockUntilConnected(SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no session with " + load.servers);
        }
        return client;
    }

    private User user(CuratorFramework client, int n) {
        String path = load.path(n);
        Object recipe = shared
                ? recipes.computeIfAbsent(client, c -> new HashMap<>())
                        .computeIfAbsent(path, p -> Lock.recipe(client, p, load))
                : Lock.recipe(client, path, load);
        User u = new User(recipe, load);
        everybody.add(u);
        return u;
    }

    /** Returns once n users hold the lock or wait for it, or nobody has come for a while. */
    void awaitQueue(int n, long quietNanos) throws Exception {
        CuratorFramework client = clients.get(clients.size() - 1);
        int seen = 0;
        for (long since = System.nanoTime(); System.nanoTime() - since < quietNanos; ) {
            Stat stat = client.checkExists().forPath(load.path);
            int now = stat == null ? 0 : stat.getNumChildren();
            if (now >= n) {
                break;
            }
            if (now != seen) {
                seen = now;
                since = System.nanoTime();
            }
            TimeUnit.NANOSECONDS.sleep(load.settle / 2);
        }
        TimeUnit.NANOSECONDS.sleep(load.settle);
    }

    /** Returns once n users wait and hardly anything is asked any more. */
    void awaitCrowd(int n, Servers servers) throws Exception {
        final long pauseMillis = 200;
        final long few = 20; // packets
        final int most = 100; // pauses
        awaitQueue(n, TimeUnit.SECONDS.toNanos(1));
        long before = servers.packets();
        for (int i = 0; i < most; i++) {
            Thread.sleep(pauseMillis);
            long now = servers.packets();
            if (now - before < few) {
                return;
            }
            before = now;
        }
    }

    @Override
    public void close() {
        clients.forEach(CuratorFramework::close);
        everybody.forEach(User::leave);
    }
}
