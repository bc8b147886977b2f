package recipes

import (
	"context"
	"iter"
	"time"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
)

// What Curator calls the znodes of InterProcessReadWriteLock.
const (
	readName  = observe.ReadName
	writeName = observe.WriteName
)

// InterProcessReadWriteLock is Curator's reentrant read/write lock across processes.
// Readers share it, a writer holds it alone. All get it in the order in which they joined
// the queue, so neither readers nor writers starve. An owner that holds the write lock
// may acquire the read lock at once, with the write lock's fencing token, and keeps it
// after it releases the write lock (a downgrade). The reverse gives ErrUpgrade. Both, and
// re-entry, work only between the two sides of one value. An owner is the same on both
// sides; acquiring both for the first time on two goroutines at once can deadlock.
type InterProcessReadWriteLock struct {
	read  *ReadLock
	write *WriteLock
}

// ReadLock is the shared side of an InterProcessReadWriteLock.
type ReadLock struct{ lock *reentrant }

// WriteLock is the exclusive side of an InterProcessReadWriteLock.
type WriteLock struct{ lock *reentrant }

var (
	_ InterProcessLock = (*ReadLock)(nil)
	_ InterProcessLock = (*WriteLock)(nil)
)

// NewInterProcessReadWriteLock returns the read/write lock at path.
func NewInterProcessReadWriteLock(
	conn Conn, path string, opts ...Option,
) (*InterProcessReadWriteLock, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, refuse("NewInterProcessReadWriteLock", path, err)
	}
	settings.lint = settings.newLint("read/write lock", path)
	kinds := []string{readName, writeName}
	side := func(recipe, name string) *reentrant {
		queue := settings.queue(path, name, kinds, readWriteRule)
		queue.Nested = mayBeUnder
		return newReentrant(conn, settings, recipe, queue)
	}
	read, write := side("read lock", readName), side("write lock", writeName)
	read.other, write.other = write, read
	write.book, write.side = read.book, 1
	return &InterProcessReadWriteLock{&ReadLock{read}, &WriteLock{write}}, nil
}

// ReadLock returns the shared side, always the same value.
func (l *InterProcessReadWriteLock) ReadLock() *ReadLock {
	if l == nil || l.read == nil {
		return new(ReadLock)
	}
	return l.read
}

// WriteLock returns the exclusive side, always the same value.
func (l *InterProcessReadWriteLock) WriteLock() *WriteLock {
	if l == nil || l.write == nil {
		return new(WriteLock)
	}
	return l.write
}

// mayBeUnder reports whether a read lock that is taken under its owner's write lock may
// turn up ahead: a reader does not wait for it.
func mayBeUnder(self seqname.Name) bool { return self.Kind != readName }

// readWriteRule: a writer waits for everybody ahead, a reader for each writer. (Curator's
// reader watches the first writer, and all readers behind later ones wake in vain.) A
// znode of the same number is the same owner's, a read lock under its write lock.
func readWriteRule(ahead, self seqname.Name) bool {
	return ahead.Seq != self.Seq && (ahead.Kind != readName || self.Kind != readName)
}

// inner is nil of a nil ReadLock, and of a zero one.
func (l *ReadLock) inner() *reentrant {
	if l == nil {
		return nil
	}
	return l.lock
}

// Acquire implements InterProcessLock. A holder re-enters without requests; after a loss
// it gets ErrLockLost until it has released as often as acquired. An owner that holds the
// write lock does not wait.
func (l *ReadLock) Acquire(ctx context.Context) error {
	_, err := l.inner().acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock.
func (l *ReadLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return acquireTimeout(ctx, l.inner(), timeout)
}

// Release implements InterProcessLock. Without a hold it returns ErrNotOwner.
func (l *ReadLock) Release(ctx context.Context) error {
	return release(ctx, l.inner())
}

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (l *ReadLock) IsAcquiredInThisProcess() bool {
	return isAcquired(l.inner())
}

// IsOwned reports whether ctx's owner holds the read lock and has not lost it.
func (l *ReadLock) IsOwned(ctx context.Context) bool {
	return l.inner().IsOwned(ctx)
}

// Hold returns the read hold of ctx's owner, or nil if there is none, as
// [InterProcessMutex.Hold] does.
func (l *ReadLock) Hold(ctx context.Context) *Hold {
	return holdOf(ctx, l.inner())
}

// LockPath returns the read znode of ctx's owner, or "" if that owner does not hold the
// read lock.
func (l *ReadLock) LockPath(ctx context.Context) string {
	return l.inner().LockPath(ctx)
}

// ParticipantNodes returns the full paths of the readers, in queue order, as the leader
// has it now.
func (l *ReadLock) ParticipantNodes(ctx context.Context) ([]string, error) {
	return l.inner().ParticipantNodes(ctx)
}

// Participants returns the whole queue, readers and writers, as
// [InterProcessMutex.Participants] does.
func (l *ReadLock) Participants(ctx context.Context) ([]Participant, error) {
	return l.inner().Participants(ctx)
}

// WatchParticipants yields the whole queue now and at each change, as
// [InterProcessMutex.WatchParticipants] does.
func (l *ReadLock) WatchParticipants(
	ctx context.Context,
) iter.Seq2[[]Participant, error] {
	return l.inner().WatchParticipants(ctx)
}

// MakeRevocable sets the function that is called each time another process asks for the
// read lock, as [InterProcessMutex.MakeRevocable] does.
func (l *ReadLock) MakeRevocable(listener func()) {
	l.inner().makeRevocable(listener)
}

// inner is nil of a nil WriteLock, and of a zero one.
func (l *WriteLock) inner() *reentrant {
	if l == nil {
		return nil
	}
	return l.lock
}

// Acquire implements InterProcessLock. A holder re-enters without requests; after a loss
// it gets ErrLockLost until it has released as often as acquired. An owner that holds
// only the read lock gets ErrUpgrade.
func (l *WriteLock) Acquire(ctx context.Context) error {
	_, err := l.inner().acquire(newAcquisition(ctx, bound{}))
	return err
}

// AcquireTimeout implements InterProcessLock.
func (l *WriteLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	return acquireTimeout(ctx, l.inner(), timeout)
}

// Release implements InterProcessLock. Without a hold it returns ErrNotOwner.
func (l *WriteLock) Release(ctx context.Context) error {
	return release(ctx, l.inner())
}

// IsAcquiredInThisProcess implements InterProcessLock; false after a loss.
func (l *WriteLock) IsAcquiredInThisProcess() bool {
	return isAcquired(l.inner())
}

// IsOwned reports whether ctx's owner holds the write lock and has not lost it.
func (l *WriteLock) IsOwned(ctx context.Context) bool {
	return l.inner().IsOwned(ctx)
}

// Hold returns the write hold of ctx's owner, or nil if there is none, as
// [InterProcessMutex.Hold] does.
func (l *WriteLock) Hold(ctx context.Context) *Hold {
	return holdOf(ctx, l.inner())
}

// LockPath returns the write znode of ctx's owner, or "" if that owner does not hold the
// write lock.
func (l *WriteLock) LockPath(ctx context.Context) string {
	return l.inner().LockPath(ctx)
}

// ParticipantNodes returns the full paths of the writers, in queue order, as the leader
// has it now.
func (l *WriteLock) ParticipantNodes(ctx context.Context) ([]string, error) {
	return l.inner().ParticipantNodes(ctx)
}

// Participants returns the whole queue, readers and writers, as
// [InterProcessMutex.Participants] does.
func (l *WriteLock) Participants(ctx context.Context) ([]Participant, error) {
	return l.inner().Participants(ctx)
}

// WatchParticipants yields the whole queue now and at each change, as
// [InterProcessMutex.WatchParticipants] does.
func (l *WriteLock) WatchParticipants(
	ctx context.Context,
) iter.Seq2[[]Participant, error] {
	return l.inner().WatchParticipants(ctx)
}

// MakeRevocable sets the function that is called each time another process asks for the
// write lock, as [InterProcessMutex.MakeRevocable] does.
func (l *WriteLock) MakeRevocable(listener func()) {
	l.inner().makeRevocable(listener)
}

func (l *ReadLock) core() core { return l.inner() }

func (l *WriteLock) core() core { return l.inner() }
