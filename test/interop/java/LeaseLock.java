import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** A semaphore with one lease as a lock, so that what is shown of locks is shown of it too. */
final class LeaseLock implements InterProcessLock {
    private final InterProcessSemaphoreV2 semaphore;
    private volatile Lease lease;

    LeaseLock(InterProcessSemaphoreV2 semaphore) {
        this.semaphore = semaphore;
    }

    @Override
    public void acquire() throws Exception {
        lease = semaphore.acquire();
    }

    @Override
    public boolean acquire(long time, TimeUnit unit) throws Exception {
        Lease acquired = semaphore.acquire(time, unit);
        if (acquired != null) {
            lease = acquired;
        }
        return acquired != null;
    }

    @Override
    public void release() throws Exception {
        Lease held = lease; // the next holder may set it as soon as the lease is back
        lease = null;
        held.close();
    }

    @Override
    public boolean isAcquiredInThisProcess() {
        return lease != null;
    }
}
