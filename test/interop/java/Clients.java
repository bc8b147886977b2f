import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/** Curator clients: the beginning and the end of sessions. */
final class Clients {
    private static final int SECONDS = 20;

    private Clients() {}

    /** Makes a client and returns the number of its session, which has begun. */
    static String open(BiConsumer<String, Object> make, String name, String servers, int timeoutMillis, String namespace)
            throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(timeoutMillis)
                .namespace(namespace)
                .retryPolicy(new RetryNTimes(100, 100))
                .build();
        make.accept(name, client);
        client.start();
        if (!client.blockUntilConnected(SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no session with " + servers);
        }
        return Long.toString(client.getZookeeperClient().getZooKeeper().getSessionId());
    }

    /**
     * Ends a client's session on the server, by closing it through a second connection. The client, whose own connection the server
     * drops for the second, may take the session back in between: then once more, until the server says that the session is gone.
     */
    static void expire(CuratorFramework client) throws Exception {
        ZooKeeper victim = client.getZookeeperClient().getZooKeeper();
        String servers = client.getZookeeperClient().getCurrentConnectionString();
        for (KeeperState state = null; state != KeeperState.Expired; ) {
            CompletableFuture<KeeperState> settled = new CompletableFuture<>();
            ZooKeeper second = new ZooKeeper(servers, victim.getSessionTimeout(), event -> settle(settled, event),
                    victim.getSessionId(), victim.getSessionPasswd());
            state = settled.get(SECONDS, TimeUnit.SECONDS);
            second.close();
        }
    }

    private static void settle(CompletableFuture<KeeperState> settled, WatchedEvent event) {
        if (event.getType() == EventType.None && event.getState() != KeeperState.Disconnected) {
            settled.complete(event.getState());
        }
    }
}
