import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** What a Peer can be told to do. Everything that it makes gets a name, by which later commands call it. */
final class Commands {
    private final Map<String, Object> made = new ConcurrentHashMap<>();
    private final Consumer<String> revoked;

    /** @param revoked is told the name of a lock that is asked back. */
    Commands(Consumer<String> revoked) {
        this.revoked = revoked;
    }

    List<String> run(String verb, List<String> a) throws Exception {
        switch (verb) {
            case "open":
                return List.of(Clients.open(this::make, a.get(0), a.get(1), number(a.get(2)), a.size() > 3 ? a.get(3) : null));
            case "close":
                client(a.get(0)).close();
                return List.of();
            case "expire":
                Clients.expire(client(a.get(0)));
                return List.of();
            case "make":
                makeRecipe(a.get(0), a.get(1), client(a.get(2)), a.subList(3, a.size()));
                return List.of();
            case "revoke":
                Revoker.attemptRevoke(client(a.get(0)), a.get(1));
                return List.of();
            case "get":
                return List.of(Integer.toString(count(a.get(0)).getCount()));
            case "set":
                count(a.get(0)).setCount(number(a.get(1)));
                return List.of();
            case "leases":
                return lease(semaphore(a.get(0)), number(a.get(1)), a.size() > 2 ? number(a.get(2)) : null);
            case "return":
                for (String lease : a) {
                    get(lease, Lease.class).close();
                }
                return List.of();
            case "stand":
                candidate(a.get(0)).stand();
                return List.of();
            case "leave":
                candidate(a.get(0)).leave();
                return List.of();
            case "leads":
                return List.of(Boolean.toString(candidate(a.get(0)).leads()));
            case "leader":
                return List.of(told(candidate(a.get(0)).leader()));
            case "enlist":
                get(a.get(0), GroupMember.class).start();
                return List.of();
            case "payload":
                get(a.get(0), GroupMember.class).setThisData(a.get(1).getBytes(UTF_8));
                return List.of();
            case "members":
                return get(a.get(0), GroupMember.class).getCurrentMembers().entrySet().stream()
                        .map(m -> m.getKey() + "=" + new String(m.getValue(), UTF_8)).sorted().collect(Collectors.toList());
            case "desert":
                get(a.get(0), GroupMember.class).close();
                return List.of();
            case "cached":
                return get(a.get(0), CuratorCache.class).stream().filter(d -> d.getPath().startsWith(a.get(1) + "/"))
                        .map(d -> d.getPath().substring(a.get(1).length() + 1) + "=" + new String(d.getData(), UTF_8))
                        .sorted().collect(Collectors.toList());
            case "candidates":
                return candidate(a.get(0)).candidates().stream().map(Commands::told).collect(Collectors.toList());
            default:
                return runLock(verb, a);
        }
    }

    private static String told(Participant p) {
        return p.getId() + "=" + p.isLeader();
    }

    private List<String> runLock(String verb, List<String> a) throws Exception {
        String name = a.get(0);
        switch (verb) {
            case "acquire":
                lock(name).acquire();
                return List.of();
            case "try":
                return List.of(Boolean.toString(lock(name).acquire(number(a.get(1)), TimeUnit.MILLISECONDS)));
            case "release":
                lock(name).release();
                return List.of();
            case "held":
                return List.of(Boolean.toString(lock(name).isAcquiredInThisProcess()));
            case "participants":
                return new ArrayList<>(participants(name));
            case "revocable":
                get(name, InterProcessMutex.class).makeRevocable(lock -> revoked.accept(name), Executors.newSingleThreadExecutor());
                return List.of();
            case "increment":
                Shared.increment(lock(name), client(a.get(1)), number(a.get(2)), a.subList(3, a.size()));
                return List.of();
            case "compare":
                Shared.compare(lock(name), client(a.get(1)), number(a.get(2)), a.subList(3, a.size()));
                return List.of();
            default:
                throw new IllegalArgumentException("no command: " + verb);
        }
    }

    private void makeRecipe(String name, String kind, CuratorFramework client, List<String> a) throws Exception {
        String path = a.get(0);
        switch (kind) {
            case "mutex":
                make(name, new InterProcessMutex(client, path));
                return;
            case "readwrite":
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                make(name + ".read", both.readLock());
                make(name + ".write", both.writeLock());
                return;
            case "semaphoremutex":
                make(name, new InterProcessSemaphoreMutex(client, path));
                return;
            case "multilock":
                make(name, new InterProcessMultiLock(client, a));
                return;
            case "semaphore":
                make(name, new InterProcessSemaphoreV2(client, path, number(a.get(1))));
                return;
            case "sharedsemaphore":
                make(name, new InterProcessSemaphoreV2(client, path, count(a.get(1))));
                return;
            case "leaselock":
                make(name, new LeaseLock(new InterProcessSemaphoreV2(client, path, 1)));
                return;
            case "leaderselector":
                make(name, new Candidate.Selector(client, path, a.get(1)));
                return;
            case "cache":
                CuratorCache cache = CuratorCache.build(client, path);
                cache.start();
                make(name, cache);
                return;
            case "groupmember":
                make(name, new GroupMember(client, path, a.get(1), a.get(2).getBytes(UTF_8)));
                return;
            case "leaderlatch":
                make(name, new Candidate.Latch(client, path, a.get(1)));
                return;
            case "count":
                SharedCount count = new SharedCount(client, path, number(a.get(1)));
                count.start();
                make(name, count);
                return;
            default:
                throw new IllegalArgumentException("no recipe: " + kind);
        }
    }

    /** The names of the leases, none where the time ran out. */
    private List<String> lease(InterProcessSemaphoreV2 semaphore, int quantity, Integer millis) throws Exception {
        Collection<Lease> leases =
                millis == null ? semaphore.acquire(quantity) : semaphore.acquire(quantity, millis, TimeUnit.MILLISECONDS);
        if (leases == null) {
            return List.of();
        }
        leases.forEach(lease -> make(lease.getNodeName(), lease));
        return leases.stream().map(Lease::getNodeName).collect(Collectors.toList());
    }

    private Collection<String> participants(String name) throws Exception {
        Object asked = get(name, Object.class);
        return asked instanceof InterProcessSemaphoreV2
                ? ((InterProcessSemaphoreV2) asked).getParticipantNodes()
                : ((InterProcessMutex) asked).getParticipantNodes();
    }

    private void make(String name, Object thing) {
        if (made.putIfAbsent(name, thing) != null) {
            throw new IllegalArgumentException("made twice: " + name);
        }
    }

    private <T> T get(String name, Class<T> type) {
        Object thing = made.get(name);
        if (thing == null) {
            throw new IllegalArgumentException("never made: " + name);
        }
        return type.cast(thing);
    }

    private CuratorFramework client(String name) {
        return get(name, CuratorFramework.class);
    }

    private InterProcessLock lock(String name) {
        return get(name, InterProcessLock.class);
    }

    private InterProcessSemaphoreV2 semaphore(String name) {
        return get(name, InterProcessSemaphoreV2.class);
    }

    private Candidate candidate(String name) {
        return get(name, Candidate.class);
    }

    private SharedCount count(String name) {
        return get(name, SharedCount.class);
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }
}
