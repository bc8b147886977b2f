package recipes

import (
	"context"
	"iter"
	"time"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
)

// mutexName is what Curator calls the znodes of InterProcessMutex and of
// InterProcessSemaphoreV2's queue.
const mutexName = observe.MutexName

// everybody is the rule of the exclusive locks: each participant ahead must go first.
func everybody(_, _ seqname.Name) bool { return true }

// InterProcessMutex is Curator's reentrant mutex across processes. Use it if one owner at
// a time may work. All values for one path, in Go or Java, are the same lock. Owners get
// it in the order in which they joined its queue. An owner that holds it may acquire it
// again, through the same value, and releases it as often.
type InterProcessMutex struct {
	lock *reentrant
}

var _ InterProcessLock = (*InterProcessMutex)(nil)

// NewInterProcessMutex returns the mutex at path, which is created at the first Acquire.
// It sends no requests. A path that ZooKeeper would reject is an error
// (zk.ErrInvalidPath), and so are a conn that is nil or whose type is not comparable, and
// options that cannot work. All of this holds for the other constructors too. Escape what
// comes from outside before it goes into a path, for example with url.PathEscape: a "/"
// in it would name another znode.
func NewInterProcessMutex(
	conn Conn, path string, opts ...Option,
) (*InterProcessMutex, error) {
	lock, err := newMutex(conn, path, opts)
	return lock, refuse("NewInterProcessMutex", path, err)
}

func newMutex(conn Conn, path string, opts []Option) (*InterProcessMutex, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, err
	}
	settings.lint = settings.newLint("mutex", path)
	queue := settings.queue(path, mutexName, []string{mutexName}, everybody)
	return &InterProcessMutex{newReentrant(conn, settings, "mutex", queue)}, nil
}

// inner is nil of a nil InterProcessMutex, and of a zero one.
func (l *InterProcessMutex) inner() *reentrant {
	if l == nil {
		return nil
	}
	return l.lock
}

// Acquire implements InterProcessLock. A holder re-enters without requests; after a loss
// it gets ErrLockLost until it has released as often as acquired.
func (l *InterProcessMutex) Acquire(ctx context.Context) error {
	_, err := l.inner().acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock.
func (l *InterProcessMutex) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return acquireTimeout(ctx, l.inner(), timeout)
}

// Release implements InterProcessLock. Without a hold it returns ErrNotOwner.
func (l *InterProcessMutex) Release(ctx context.Context) error {
	return release(ctx, l.inner())
}

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (l *InterProcessMutex) IsAcquiredInThisProcess() bool {
	return isAcquired(l.inner())
}

// IsOwned reports whether ctx's owner holds the lock and has not lost it (Curator's
// isOwnedByCurrentThread). It sends no requests.
func (l *InterProcessMutex) IsOwned(ctx context.Context) bool {
	return l.inner().IsOwned(ctx)
}

// Hold returns what ctx's owner has acquired last and not released, or nil if there is
// nothing. A lost hold remains its owner's, and is not nil, until it is released.
func (l *InterProcessMutex) Hold(ctx context.Context) *Hold {
	return holdOf(ctx, l.inner())
}

// LockPath returns the znode of ctx's owner (Curator's getLockPath), or "" if that owner
// does not hold the lock.
func (l *InterProcessMutex) LockPath(ctx context.Context) string {
	return l.inner().LockPath(ctx)
}

// ParticipantNodes returns the full paths of the participants, in queue order, as the
// leader has it now (Curator's getParticipantNodes).
func (l *InterProcessMutex) ParticipantNodes(ctx context.Context) ([]string, error) {
	return l.inner().ParticipantNodes(ctx)
}

// Participants returns the whole queue, in order. It sends a read for each participant;
// those that leave meanwhile are not included.
func (l *InterProcessMutex) Participants(ctx context.Context) ([]Participant, error) {
	return l.inner().Participants(ctx)
}

// WatchParticipants yields the queue, as Participants returns it, and again each time
// that a participant joins or leaves. It blocks between changes; those that come faster
// than they can be read are merged. A change costs a list, and a read for each new
// participant: a later change of Data alone is not reported. The loop creates no znode,
// survives outages and expired sessions, silently, and ends with ctx. A permanent error,
// such as a closed connection, is yielded last. It watches the parent znode, or its
// nearest existing ancestor, which the session must be permitted to read. All readers
// share that watch; it remains after the loop until the next change. Each loop starts
// over; several may run at once.
func (l *InterProcessMutex) WatchParticipants(
	ctx context.Context,
) iter.Seq2[[]Participant, error] {
	return l.inner().WatchParticipants(ctx)
}

// MakeRevocable sets the function that is called, on a new goroutine, each time another
// process asks a holder or waiter of this value for the lock ([AttemptRevoke], Curator's
// Revoker). Requests that come faster than they are read, or while 16 calls run, are
// merged. Set it at any time, also for later holds; nil removes it. Each znode then costs
// a read and a watch at once.
func (l *InterProcessMutex) MakeRevocable(listener func()) {
	l.inner().makeRevocable(listener)
}

func (l *InterProcessMutex) core() core { return l.inner() }
