import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** What a user acquires and releases, in one thread. */
interface Lock {
    void acquire() throws Exception;

    /** Tries for so long; false if others had it all the time. */
    boolean acquire(long nanos) throws Exception;

    void release() throws Exception;

    /** A recipe, which several users may have together. */
    static Object recipe(CuratorFramework client, String path, Load load) {
        switch (load.kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "read":
            case "write":
                return new InterProcessReadWriteLock(client, path);
            case "semaphoreMutex":
                return new InterProcessSemaphoreMutex(client, path);
            case "semaphore":
                return new InterProcessSemaphoreV2(client, path, load.leases);
            default:
                throw new IllegalArgumentException("no kind: " + load.kind);
        }
    }

    /** One user's lock of a recipe. */
    static Lock of(Object recipe, String kind) {
        if (recipe instanceof InterProcessSemaphoreV2) {
            return new OfLease((InterProcessSemaphoreV2) recipe);
        }
        if (recipe instanceof InterProcessReadWriteLock) {
            InterProcessReadWriteLock both = (InterProcessReadWriteLock) recipe;
            return new OfLock(kind.equals("read") ? both.readLock() : both.writeLock());
        }
        return new OfLock((InterProcessLock) recipe);
    }

    /** A lock of Curator's. */
    final class OfLock implements Lock {
        private final InterProcessLock lock;

        OfLock(InterProcessLock lock) {
            this.lock = lock;
        }

        @Override
        public void acquire() throws Exception {
            lock.acquire();
        }

        @Override
        public boolean acquire(long nanos) throws Exception {
            return lock.acquire(nanos, TimeUnit.NANOSECONDS);
        }

        @Override
        public void release() throws Exception {
            lock.release();
        }
    }

    /** A lease of a semaphore. */
    final class OfLease implements Lock {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease held;

        OfLease(InterProcessSemaphoreV2 semaphore) {
            this.semaphore = semaphore;
        }

        @Override
        public void acquire() throws Exception {
            held = semaphore.acquire();
        }

        @Override
        public boolean acquire(long nanos) throws Exception {
            held = semaphore.acquire(nanos, TimeUnit.NANOSECONDS);
            return held != null;
        }

        @Override
        public void release() {
            semaphore.returnLease(held);
        }
    }
}
