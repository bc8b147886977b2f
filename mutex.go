package recipes

import (
	"github.com/zkrecipes/recipes/internal/seqname"
)

// mutexName is what Curator calls the znodes of InterProcessMutex and of
// InterProcessSemaphoreV2's queue.
const mutexName = "lock-"

// everybody is the rule of the exclusive locks: whoever is ahead must go first.
func everybody(_, _ seqname.Name) bool { return true }

// InterProcessMutex is Curator's reentrant mutex across processes. Use it if one owner at
// a time may work. All values for one path, in Go or Java, are the same lock. Owners get
// it in the order in which they joined its queue. An owner that holds it may acquire it
// again, through the same value, and releases it as often. [ReadLock] and [WriteLock]
// have the same methods.
type InterProcessMutex struct {
	*reentrant
}

var _ InterProcessLock = (*InterProcessMutex)(nil)

// self implements nativeLock.
func (l *InterProcessMutex) self() nativeLock { return l }

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
	if err != nil {
		return nil, refuse("NewInterProcessMutex", path, err)
	}
	return lock, nil
}

func newMutex(conn Conn, path string, opts []Option) (*InterProcessMutex, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, err
	}
	settings.look = settings.lookout("mutex", path)
	queue := settings.queue(path, mutexName, []string{mutexName}, everybody)
	enter := through(queue, settings.keep)
	return &InterProcessMutex{
		newReentrant(conn, settings, "mutex", queue, enter),
	}, nil
}
