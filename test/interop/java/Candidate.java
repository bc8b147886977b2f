import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** A candidate of an election. It stands once, and leads until it leaves. */
interface Candidate {
    /** Joins the election and waits until it leads. */
    void stand() throws Exception;

    void leave() throws Exception;

    boolean leads();

    Collection<Participant> candidates() throws Exception;

    Participant leader() throws Exception;

    final class Latch implements Candidate {
        private final LeaderLatch latch;

        Latch(CuratorFramework client, String path, String id) {
            latch = new LeaderLatch(client, path, id);
        }

        @Override
        public void stand() throws Exception {
            latch.start();
            latch.await();
        }

        @Override
        public void leave() throws Exception {
            latch.close();
        }

        @Override
        public boolean leads() {
            return latch.hasLeadership();
        }

        @Override
        public Collection<Participant> candidates() throws Exception {
            return latch.getParticipants();
        }

        @Override
        public Participant leader() throws Exception {
            return latch.getLeader();
        }
    }

    final class Selector extends LeaderSelectorListenerAdapter implements Candidate {
        private final LeaderSelector selector;
        private final CountDownLatch leading = new CountDownLatch(1);
        private final CountDownLatch over = new CountDownLatch(1);

        Selector(CuratorFramework client, String path, String id) {
            selector = new LeaderSelector(client, path, this);
            selector.setId(id);
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws Exception {
            leading.countDown();
            over.await();
        }

        @Override
        public void stand() throws Exception {
            selector.start();
            leading.await();
        }

        @Override
        public void leave() {
            over.countDown();
            selector.close();
        }

        @Override
        public boolean leads() {
            return selector.hasLeadership();
        }

        @Override
        public Collection<Participant> candidates() throws Exception {
            return selector.getParticipants();
        }

        @Override
        public Participant leader() throws Exception {
            return selector.getLeader();
        }
    }
}
