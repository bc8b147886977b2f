package recipes

import (
	"github.com/zkrecipes/recipes/internal/seqnode"
)

// What Curator calls the znodes of InterProcessReadWriteLock.
const (
	readName  = "__READ__"
	writeName = "__WRIT__"
)

// InterProcessReadWriteLock is Curator's reentrant read/write lock across processes:
// readers share it, a writer has it alone, and all get it in the order in which they
// asked for it, so that neither starves the other.
//
// An owner that holds the write lock may take the read lock at once, and keeps it when it
// releases the write lock (a downgrade; the read lock has the write lock's fencing
// token). The other way round is refused with ErrUpgrade.
//
// An owner is that of both sides: fn of a Do under the one, and its goroutines, may go
// through the other as the owner that called Do. An owner that asks for both for the
// first time on two goroutines at once can wait for itself.
//
// It is safe for concurrent use and needs no closing. A value may be made for each use,
// but re-entry, a downgrade, and the refusal of an upgrade are between the two locks of
// one value.
type InterProcessReadWriteLock struct {
	read  *ReadLock
	write *WriteLock
}

// ReadLock is the shared side of an InterProcessReadWriteLock.
type ReadLock struct{ *reentrant }

// WriteLock is the exclusive side of an InterProcessReadWriteLock.
type WriteLock struct{ *reentrant }

var (
	_ InterProcessLock = (*ReadLock)(nil)
	_ InterProcessLock = (*WriteLock)(nil)
)

// NewInterProcessReadWriteLock returns the read/write lock at path, which is created at
// the first Acquire. It asks nothing of ZooKeeper, and refuses what NewInterProcessMutex
// refuses.
func NewInterProcessReadWriteLock(
	conn Conn, path string, opts ...Option,
) (*InterProcessReadWriteLock, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, refuse("NewInterProcessReadWriteLock", path, err)
	}
	settings.look = settings.lookout("read/write lock", path)
	kinds := []string{readName, writeName}
	read := newReentrant(
		conn, settings, "read lock", path, readName, kinds, readWriteRule,
	)
	write := newReentrant(
		conn, settings, "write lock", path, writeName, kinds, readWriteRule,
	)
	write.queue.Relist = true
	write.refuse = func(who owner) error {
		if read.held(who) != nil {
			return ErrUpgrade
		}
		return nil
	}
	read.beside = func(who owner) *seqnode.Node {
		if h := write.held(who); h != nil {
			return h.besideWhich()
		}
		return nil
	}
	pair := &InterProcessReadWriteLock{&ReadLock{read}, &WriteLock{write}}
	read.pair, write.pair = pair, pair
	return pair, nil
}

// ReadLock returns the shared side; always the same value.
func (l *InterProcessReadWriteLock) ReadLock() *ReadLock {
	if l.read == nil {
		return new(ReadLock)
	}
	return l.read
}

// WriteLock returns the exclusive side; always the same value.
func (l *InterProcessReadWriteLock) WriteLock() *WriteLock {
	if l.write == nil {
		return new(WriteLock)
	}
	return l.write
}

// readWriteRule: a writer waits for the node right ahead, a reader for the nearest write
// node ahead. (Curator's reader watches the first one, and all readers behind later
// writers wake for nothing.) A node of the same number is the same owner's, a read lock
// under its write lock.
func readWriteRule(ahead []seqnode.Name, self seqnode.Name) int {
	at := len(ahead) - 1
	for at >= 0 && (ahead[at].Seq == self.Seq ||
		self.Kind == readName && ahead[at].Kind == readName) {
		at--
	}
	return at
}
