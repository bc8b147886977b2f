import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;

/**
 * Uses each recipe of Curator with two clients of the servers that are its argument, and says of each on a line of its own whether it
 * did what it is for: {@code passed NAME} or {@code failed NAME WHY}.
 */
public final class Recipes {
    private interface Check {
        void run() throws Exception;
    }

    private final CuratorFramework one;
    private final CuratorFramework two;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Map<String, Check> checks = new LinkedHashMap<>();

    private Recipes(String servers) {
        one = connect(servers);
        two = connect(servers);
        checks.put("InterProcessMutex", () -> excludes(new InterProcessMutex(one, "/mutex"), new InterProcessMutex(two, "/mutex")));
        checks.put("InterProcessSemaphoreMutex",
                () -> excludes(new InterProcessSemaphoreMutex(one, "/sm"), new InterProcessSemaphoreMutex(two, "/sm")));
        checks.put("InterProcessReadWriteLock", this::readWrite);
        checks.put("InterProcessMultiLock", () -> excludes(
                new InterProcessMultiLock(one, Arrays.asList("/m1", "/m2")), new InterProcessMultiLock(two, Arrays.asList("/m2", "/m3"))));
        checks.put("InterProcessSemaphoreV2", this::semaphore);
        checks.put("LeaderLatch", this::leaderLatch);
        checks.put("LeaderSelector", this::leaderSelector);
        checks.put("SharedCount", this::sharedCount);
        checks.put("DistributedAtomicLong", this::atomicLong);
        checks.put("DistributedBarrier", this::barrier);
        checks.put("DistributedDoubleBarrier", this::doubleBarrier);
        checks.put("DistributedQueue", this::queue);
        checks.put("CuratorCache", this::cache);
        checks.put("PersistentWatcher", this::persistentWatcher);
        checks.put("PersistentNode", this::persistentNode);
        checks.put("PersistentTtlNode", this::persistentTtlNode);
        checks.put("GroupMember", this::groupMember);
        checks.put("transaction", this::transaction);
    }

    public static void main(String[] arguments) throws Exception {
        new Recipes(arguments[0]).runAll();
        Runtime.getRuntime().halt(0); // a check that failed may have left threads behind
    }

    private static CuratorFramework connect(String servers) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new RetryNTimes(3, 100));
        client.start();
        return client;
    }

    private void runAll() {
        checks.forEach((name, check) -> {
            Future<Void> done = threads.submit(() -> {
                check.run();
                return null;
            });
            try {
                done.get(30, TimeUnit.SECONDS);
                System.out.println("passed " + name);
            } catch (Exception e) {
                Throwable why = e.getCause() == null ? e : e.getCause();
                System.out.println("failed " + name + " " + why.toString().replaceAll("\\s+", " "));
            }
        });
    }

    private static void expect(boolean is, String what) {
        if (!is) {
            throw new AssertionError("not so: " + what);
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void eventually(Condition condition, String what) throws Exception {
        for (int i = 0; i < 1000; i++) {
            if (condition.holds()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("never: " + what);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Two that exclude each other count with what is not atomic. */
    private void excludes(InterProcessLock mine, InterProcessLock theirs) throws Exception {
        mine.acquire();
        expect(!threads.submit(() -> theirs.acquire(50, TimeUnit.MILLISECONDS)).get(), "the lock is held");
        mine.release();
        int[] count = new int[1];
        List<Future<?>> users = new ArrayList<>();
        for (InterProcessLock lock : Arrays.asList(mine, theirs)) {
            users.add(threads.submit(() -> {
                for (int i = 0; i < 50; i++) {
                    lock.acquire();
                    int before = count[0];
                    Thread.yield();
                    count[0] = before + 1;
                    lock.release();
                }
                return null;
            }));
        }
        for (Future<?> user : users) {
            user.get();
        }
        expect(count[0] == 100, "100 increments are " + count[0]);
    }

    private void readWrite() throws Exception {
        InterProcessReadWriteLock mine = new InterProcessReadWriteLock(one, "/rw");
        InterProcessReadWriteLock theirs = new InterProcessReadWriteLock(two, "/rw");
        mine.readLock().acquire();
        expect(threads.submit(() -> {
            boolean shared = theirs.readLock().acquire(5, TimeUnit.SECONDS);
            theirs.readLock().release();
            return shared;
        }).get(), "readers share");
        expect(!threads.submit(() -> theirs.writeLock().acquire(50, TimeUnit.MILLISECONDS)).get(), "a reader excludes writers");
        mine.readLock().release();
        excludes(mine.writeLock(), theirs.writeLock());
    }

    private void semaphore() throws Exception {
        InterProcessSemaphoreV2 mine = new InterProcessSemaphoreV2(one, "/semaphore", 2);
        InterProcessSemaphoreV2 theirs = new InterProcessSemaphoreV2(two, "/semaphore", 2);
        var held = mine.acquire();
        var other = theirs.acquire();
        expect(mine.acquire(50, TimeUnit.MILLISECONDS) == null, "there are two leases");
        theirs.returnLease(other);
        var third = mine.acquire(5, TimeUnit.SECONDS);
        expect(third != null, "a lease was returned");
        mine.returnAll(Arrays.asList(held, third));
        expect(theirs.getParticipantNodes().isEmpty(), "all leases were returned");
    }

    private void leaderLatch() throws Exception {
        LeaderLatch first = new LeaderLatch(one, "/latch", "first");
        LeaderLatch second = new LeaderLatch(two, "/latch", "second");
        first.start();
        expect(first.await(10, TimeUnit.SECONDS), "the first leads");
        second.start();
        eventually(() -> second.getParticipants().size() == 2, "there are two");
        expect(second.getLeader().getId().equals("first"), "the second knows who leads");
        first.close();
        expect(second.await(10, TimeUnit.SECONDS), "the second follows");
        second.close();
    }

    private void leaderSelector() throws Exception {
        AtomicInteger leaders = new AtomicInteger();
        CountDownLatch terms = new CountDownLatch(6);
        var listener = new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                expect(leaders.incrementAndGet() == 1, "one leads at a time");
                Thread.sleep(10);
                leaders.decrementAndGet();
                terms.countDown();
            }
        };
        for (CuratorFramework client : Arrays.asList(one, two)) {
            LeaderSelector selector = new LeaderSelector(client, "/selector", listener);
            selector.autoRequeue();
            selector.start();
        }
        expect(terms.await(20, TimeUnit.SECONDS), "there were six terms");
    }

    private void sharedCount() throws Exception {
        SharedCount mine = new SharedCount(one, "/count", 1);
        SharedCount theirs = new SharedCount(two, "/count", 1);
        mine.start();
        theirs.start();
        mine.setCount(7);
        eventually(() -> theirs.getCount() == 7, "the other sees it");
        var old = theirs.getVersionedValue();
        mine.setCount(8);
        expect(!theirs.trySetCount(old, 9) || mine.getCount() == 9, "only the newest value can be replaced");
    }

    private void atomicLong() throws Exception {
        List<Future<?>> users = new ArrayList<>();
        for (CuratorFramework client : Arrays.asList(one, two)) {
            DistributedAtomicLong number = new DistributedAtomicLong(client, "/long", new RetryNTimes(1000, 1));
            users.add(threads.submit(() -> {
                for (int i = 0; i < 50; i++) {
                    expect(number.increment().succeeded(), "an increment");
                }
                return null;
            }));
        }
        for (Future<?> user : users) {
            user.get();
        }
        long is = new DistributedAtomicLong(one, "/long", new RetryNTimes(0, 0)).get().postValue();
        expect(is == 100, "100 increments are " + is);
    }

    private void barrier() throws Exception {
        DistributedBarrier mine = new DistributedBarrier(one, "/barrier");
        mine.setBarrier();
        Future<Boolean> passed = threads.submit(() -> new DistributedBarrier(two, "/barrier").waitOnBarrier(10, TimeUnit.SECONDS));
        Thread.sleep(50);
        expect(!passed.isDone(), "it stands");
        mine.removeBarrier();
        expect(passed.get(), "it falls");
    }

    private void doubleBarrier() throws Exception {
        Future<Boolean> other = threads.submit(() -> {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(two, "/double", 2);
            return barrier.enter(10, TimeUnit.SECONDS) && barrier.leave(10, TimeUnit.SECONDS);
        });
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(one, "/double", 2);
        expect(barrier.enter(10, TimeUnit.SECONDS), "both enter");
        expect(barrier.leave(10, TimeUnit.SECONDS) && other.get(), "both leave");
    }

    private void queue() throws Exception {
        LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
        QueueSerializer<String> serializer = new QueueSerializer<>() {
            @Override
            public byte[] serialize(String item) {
                return bytes(item);
            }

            @Override
            public String deserialize(byte[] data) {
                return new String(data, StandardCharsets.UTF_8);
            }
        };
        QueueConsumer<String> consumer = new QueueConsumer<>() {
            @Override
            public void consumeMessage(String message) {
                came.add(message);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        };
        DistributedQueue<String> to = QueueBuilder.builder(one, null, serializer, "/queue").buildQueue();
        DistributedQueue<String> from = QueueBuilder.builder(two, consumer, serializer, "/queue").buildQueue();
        to.start();
        for (int i = 0; i < 20; i++) {
            to.put("item " + i);
        }
        expect(to.flushPuts(10, TimeUnit.SECONDS), "all are written");
        from.start();
        for (int i = 0; i < 20; i++) {
            expect(("item " + i).equals(came.poll(10, TimeUnit.SECONDS)), "item " + i + " comes in its turn");
        }
    }

    private void cache() throws Exception {
        List<String> events = Collections.synchronizedList(new ArrayList<>());
        one.create().forPath("/cache");
        CuratorCache cache = CuratorCache.build(one, "/cache");
        cache.listenable().addListener(CuratorCacheListener.builder()
                .forAll((type, before, after) -> events.add(type + " " + (after == null ? before : after).getPath())).build());
        cache.start();
        eventually(() -> events.contains("NODE_CREATED /cache"), "it knows its root");
        two.create().creatingParentsIfNeeded().forPath("/cache/a/b", bytes("x"));
        eventually(() -> events.contains("NODE_CREATED /cache/a/b"), "it hears of a znode");
        two.setData().forPath("/cache/a/b", bytes("y"));
        eventually(() -> events.contains("NODE_CHANGED /cache/a/b"), "it hears of a change");
        two.delete().forPath("/cache/a/b");
        eventually(() -> events.contains("NODE_DELETED /cache/a/b"), "it hears of the end");
        cache.close();
    }

    private void persistentWatcher() throws Exception {
        LinkedBlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        one.create().forPath("/watched");
        CountDownLatch set = new CountDownLatch(1);
        PersistentWatcher watcher = new PersistentWatcher(one, "/watched", true);
        watcher.getListenable().addListener(events::add);
        watcher.getResetListenable().addListener(set::countDown);
        watcher.start();
        expect(set.await(10, TimeUnit.SECONDS), "it is set");
        for (String path : Arrays.asList("/watched/a", "/watched/a/b", "/watched/c")) {
            two.create().forPath(path);
            expect(path.equals(events.poll(10, TimeUnit.SECONDS).getPath()), "it tells of " + path);
        }
        watcher.close();
    }

    private void persistentNode() throws Exception {
        PersistentNode node = new PersistentNode(one, CreateMode.EPHEMERAL, false, "/persistent", bytes("x"));
        node.start();
        expect(node.waitForInitialCreate(10, TimeUnit.SECONDS), "it is created");
        two.delete().forPath("/persistent");
        eventually(() -> two.checkExists().forPath("/persistent") != null, "it comes back");
        node.close();
        eventually(() -> two.checkExists().forPath("/persistent") == null, "it goes with its owner");
    }

    private void persistentTtlNode() throws Exception {
        PersistentTtlNode node = new PersistentTtlNode(one, "/ttl", 500, bytes("x"));
        node.start();
        expect(node.waitForInitialCreate(10, TimeUnit.SECONDS), "it is created");
        Thread.sleep(1000);
        expect(two.checkExists().forPath("/ttl") != null, "it stays while it is touched");
        node.close();
        eventually(() -> two.checkExists().forPath("/ttl") == null, "it goes after its time");
    }

    private void groupMember() throws Exception {
        GroupMember first = new GroupMember(one, "/group", "first");
        GroupMember second = new GroupMember(two, "/group", "second");
        first.start();
        second.start();
        eventually(() -> first.getCurrentMembers().size() == 2, "each sees both");
        second.close();
        eventually(() -> first.getCurrentMembers().size() == 1, "one leaves");
        first.close();
    }

    private void transaction() throws Exception {
        one.transaction().forOperations(
                one.transactionOp().create().forPath("/tx"), one.transactionOp().setData().forPath("/tx", bytes("y")));
        try {
            one.transaction().forOperations(
                    one.transactionOp().create().forPath("/tx/a"), one.transactionOp().delete().forPath("/missing"));
            throw new AssertionError("a part of it failed");
        } catch (KeeperException.NoNodeException expected) {
            expect(two.checkExists().forPath("/tx/a") == null, "all or nothing");
        }
    }
}
