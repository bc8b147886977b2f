import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;

/** One user of the locks: a thread, which is Curator's owner. */
final class User {
    private final ExecutorService thread = Executors.newSingleThreadExecutor(User::daemon);
    private final int reads;
    final Lock lock;
    private final Lock read;

    User(Object recipe, Load load) {
        this.reads = load.reads;
        this.lock = Lock.of(recipe, load.kind);
        this.read = reads > 0 ? Lock.of(recipe, "read") : null;
    }

    private static Thread daemon(Runnable task) {
        Thread t = new Thread(task);
        t.setDaemon(true);
        return t;
    }

    /** Has the user's thread do something. */
    <T> Future<T> go(Callable<T> task) {
        return thread.submit(task);
    }

    /** Gets the lock once. */
    void once() throws Exception {
        Lock wanted = reads > 0 && ThreadLocalRandom.current().nextInt(1000) < reads ? read : lock;
        wanted.acquire();
        wanted.release();
    }

    void leave() {
        thread.shutdownNow();
    }
}
