package recipes

import "github.com/zkrecipes/recipes/internal/order"

// mutexName is what Curator calls the znodes of InterProcessMutex and of
// InterProcessSemaphoreV2's queue.
const mutexName = "lock-"

// everybody is the rule of the exclusive locks: whoever is ahead must go first.
func everybody(_, _ order.Name) bool { return true }

// InterProcessMutex is Curator's reentrant mutex across processes. An owner that holds it
// may acquire it again, and releases it as often; owners get it in the order in which
// they asked for it. All values for one path, in Go or Java, are the same lock.
//
// It is safe for concurrent use and needs no closing. A value may be made for each use,
// but re-entry is per value, as in Curator: an owner that holds the lock through one
// value and acquires it through another waits for itself. So whoever re-enters shares the
// value.
type InterProcessMutex struct {
	*reentrant
}

var _ InterProcessLock = (*InterProcessMutex)(nil)

// self implements nativeLock.
func (l *InterProcessMutex) self() nativeLock { return l }

// NewInterProcessMutex returns the mutex at path, which is created at the first Acquire.
// It asks nothing of ZooKeeper. It refuses a path that ZooKeeper would refuse (the error
// matches zk.ErrInvalidPath), a conn that is nil or of a type that is not comparable, and
// options that cannot work.
//
// What comes from outside, such as a customer's name, is to be escaped before it goes
// into a path, by url.PathEscape for instance: a "/" in it would name a znode elsewhere.
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
