import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** What users do with locks: the functions of the Go package worker, in the same order. */
final class Shapes {
    private static final long SETTLED = 200; // milliseconds

    private final Team team;
    private final Load load;
    private final Servers servers;

    Shapes(Team team) {
        this.team = team;
        this.load = team.load;
        this.servers = new Servers(load.servers, load.pids);
    }

    Result run() throws Exception {
        switch (load.shape) {
            case "cycle":
                return cycle();
            case "handover":
                return handOver();
            case "drain":
                return drain();
            case "tries":
                return tries();
            case "idle":
                return idle();
            case "waiting":
                return waiting();
            case "holding":
                return holding();
            default:
                throw new IllegalArgumentException("no shape: " + load.shape);
        }
    }

    /** All users acquire and release until the time is up. */
    private Result cycle() throws Exception {
        List<User> users = team.users(load.sessions * load.users);
        AtomicBoolean over = new AtomicBoolean();
        List<AtomicLong> tallies = new ArrayList<>();
        List<Future<Void>> loops = new ArrayList<>();
        for (User u : users) {
            AtomicLong tally = new AtomicLong();
            tallies.add(tally);
            loops.add(u.go(() -> {
                while (!over.get()) {
                    u.once();
                    tally.incrementAndGet();
                }
                return null;
            }));
        }
        TimeUnit.NANOSECONDS.sleep(load.warmUp);
        Meter meter = new Meter(servers);
        long before = sum(tallies);
        long began = System.nanoTime();
        TimeUnit.NANOSECONDS.sleep(load.time);
        while (sum(tallies) - before < load.least) {
            Thread.sleep(1);
        }
        Result r = new Result();
        r.ops = sum(tallies) - before;
        r.took = System.nanoTime() - began;
        meter.stop(r);
        over.set(true);
        await(loops);
        return r;
    }

    /** Two users hand the lock over to one another; each time it is timed. */
    private Result handOver() throws Exception {
        List<User> users = team.users(2);
        List<Long> times = new ArrayList<>();
        long warm = System.nanoTime() + load.warmUp;
        while (System.nanoTime() - warm < load.time || times.isEmpty()) {
            boolean counts = System.nanoTime() - warm > 0;
            long took = handOverOnce(users.get(0), users.get(1));
            if (counts) {
                times.add(took);
            }
            Collections.reverse(users);
        }
        return timed(times);
    }

    private long handOverOnce(User from, User to) throws Exception {
        from.go(() -> {
            from.lock.acquire();
            return null;
        }).get();
        Future<Long> granted = to.go(() -> {
            to.lock.acquire();
            return System.nanoTime();
        });
        team.awaitQueue(2, 20 * load.settle);
        Future<Long> released = from.go(() -> {
            long began = System.nanoTime();
            from.lock.release();
            return began;
        });
        long took = granted.get() - released.get();
        to.go(() -> {
            to.lock.release();
            return null;
        }).get();
        return took;
    }

    /** A queue behind a holder drains. */
    private Result drain() throws Exception {
        List<User> users = team.users(load.users);
        User holder = team.holder();
        AtomicLong last = new AtomicLong();
        List<Future<Void>> all = queueUp(users, last);
        team.awaitCrowd(users.size() + 1, servers);
        Meter meter = new Meter(servers);
        long began = System.nanoTime();
        release(holder);
        await(all);
        Result r = new Result();
        r.ops = users.size();
        r.took = last.get() - began;
        meter.stop(r);
        return r;
    }

    private static List<Future<Void>> queueUp(List<User> users, AtomicLong last) {
        List<Future<Void>> all = new ArrayList<>();
        for (User u : users) {
            all.add(u.go(() -> {
                u.lock.acquire();
                last.set(System.nanoTime());
                u.lock.release();
                return null;
            }));
        }
        return all;
    }

    /** All users try in vain, and each try is timed. */
    private Result tries() throws Exception {
        List<User> users = team.users(load.sessions * load.users);
        User holder = team.holder();
        Meter meter = new Meter(servers);
        long began = System.nanoTime();
        List<Future<List<Long>>> loops = new ArrayList<>();
        for (User u : users) {
            loops.add(u.go(() -> {
                List<Long> times = new ArrayList<>();
                while (System.nanoTime() - began < load.time) {
                    long begin = System.nanoTime();
                    if (u.lock.acquire(load.patience)) {
                        throw new IllegalStateException("a try was granted what another one holds");
                    }
                    times.add(System.nanoTime() - begin);
                }
                return times;
            }));
        }
        List<Long> times = new ArrayList<>();
        for (Future<List<Long>> loop : loops) {
            times.addAll(loop.get());
        }
        Result r = timed(times);
        meter.stop(r);
        release(holder);
        return r;
    }

    /** What sessions with one waiter each cost a second, while nothing happens. */
    private Result idle() throws Exception {
        List<User> users = team.users(load.sessions);
        team.holder();
        queueUp(users, new AtomicLong());
        team.awaitCrowd(users.size() + 1, servers);
        TimeUnit.NANOSECONDS.sleep(load.warmUp);
        Meter meter = new Meter(servers);
        long began = System.nanoTime();
        TimeUnit.NANOSECONDS.sleep(load.time);
        Result r = new Result();
        r.ops = users.size() * TimeUnit.NANOSECONDS.toSeconds(load.time);
        r.took = System.nanoTime() - began;
        meter.stop(r);
        return r; // their threads are interrupted
    }

    /** What waiters cost. */
    private Result waiting() throws Exception {
        List<User> users = team.users(load.users);
        team.holder();
        Footprint before = new Footprint(servers);
        queueUp(users, new AtomicLong());
        team.awaitCrowd(users.size() + 1, servers);
        Thread.sleep(SETTLED);
        return before.until(new Footprint(servers), users.size()); // their threads are interrupted
    }

    /** What holders cost, each of a lock of its own, and each in a thread of its own. */
    private Result holding() throws Exception {
        List<User> users = team.users(load.users);
        Footprint before = new Footprint(servers);
        for (User u : users) {
            u.go(() -> {
                u.lock.acquire();
                return null;
            }).get();
        }
        Thread.sleep(SETTLED);
        return before.until(new Footprint(servers), users.size());
    }

    /** What the process and the servers have at one moment. */
    private static final class Footprint {
        private final long heap;
        private final long threads = ManagementFactory.getThreadMXBean().getThreadCount();
        private final long watches;

        Footprint(Servers servers) throws Exception {
            System.gc();
            System.gc();
            heap = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
            watches = servers.watches();
        }

        /** Shares what was added out among n users, whose threads do not count. */
        Result until(Footprint later, int n) {
            Result r = new Result();
            r.ops = n;
            r.heap = each(later.heap - heap, n);
            r.threads = each(later.threads - threads - n, n);
            r.watches = each(later.watches - watches, n);
            return r;
        }
    }

    private static void release(User u) throws Exception {
        u.go(() -> {
            u.lock.release();
            return null;
        }).get();
    }

    private static <T> void await(List<Future<T>> all) throws Exception {
        for (Future<T> f : all) {
            f.get();
        }
    }

    private static Result timed(List<Long> times) {
        Collections.sort(times);
        Result r = new Result();
        r.ops = times.size();
        r.took = times.stream().mapToLong(Long::longValue).sum();
        r.median = times.get(times.size() / 2);
        return r;
    }

    private static long sum(List<AtomicLong> tallies) {
        return tallies.stream().mapToLong(AtomicLong::get).sum();
    }

    static Double each(long sum, long n) {
        return n == 0 ? null : (double) sum / n;
    }
}
