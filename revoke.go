package recipes

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// revokeMessage is Revoker.REVOKE_MESSAGE: set as a lock znode's data, it asks for the
// lock back.
const revokeMessage = "__REVOKE__"

// errNoMember says that a path is not that of a participant.
var errNoMember = errors.New("this is not the path of a lock's znode; " +
	"Participants and Inspect return those, such as …-lock-0000000007")

// AttemptRevoke asks the participant whose znode is nodePath to release the lock, or to
// stop waiting (Curator's Revoker.attemptRevoke). Its process decides; it receives the
// request through [InterProcessMutex.MakeRevocable]. The znode's data is lost; a missing
// znode is no error. A path whose name is not that of a queue's znode is an error before
// anything is sent. AttemptRevoke survives an outage until ctx is done.
func AttemptRevoke(ctx context.Context, conn Conn, nodePath string) error {
	const op = "revoke"
	err := cmp.Or(checkConn(conn), zkpath.Check(nodePath), notNil(ctx))
	if err != nil {
		return refuse(op, nodePath, err)
	}
	if _, name := zkpath.Split(nodePath); !seqname.IsMember(name, observe.Names("")...) {
		return wrap(op, nodePath, errNoMember)
	}
	settings, _ := newSettings(nil)
	use := zkconn.Use(conn, settings.sessionConfig(conn))
	defer use.Release()
	err = use.Retry(ctx, func() error {
		_, err := calls.Call(ctx, use, func() (*zk.Stat, error) {
			return use.Set(nodePath, []byte(revokeMessage), -1)
		})
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return wrapAsked(op, nodePath, err)
}

// watchLocked watches the znode of an ownership that is held, if the lock is revocable.
func (o *ownership) watchLocked() {
	if o.grant != nil && o.lock.listener != nil {
		o.grant.node.WatchSelf()
	}
}

// DataChanged implements seqnode.Listener.
func (o *ownership) DataChanged(data []byte) {
	if string(data) != revokeMessage {
		return
	}
	o.lock.book.mu.Lock()
	defer o.lock.book.mu.Unlock()
	o.tellRevokeLocked()
}

// listenersAtOnce bounds the calls of the listener that run for one ownership: whoever
// has the permission WRITE can ask as often as they like.
const listenersAtOnce = 16

// tellRevokeLocked calls the listener, or leaves that for later.
func (o *ownership) tellRevokeLocked() {
	listener := o.lock.listener
	o.revokePending = listener == nil || o.listening == listenersAtOnce
	if o.revokePending {
		return
	}
	o.listening++
	go o.listen(listener)
}

// listen is a goroutine of the listener's.
func (o *ownership) listen(listener func()) {
	lock := o.lock
	defer func() {
		lock.book.mu.Lock()
		defer lock.book.mu.Unlock()
		o.listening--
		if o.revokePending && lock.ownedLocked(o.stay.who) == o {
			o.tellRevokeLocked()
		}
	}()
	listener()
}

func (r *reentrant) makeRevocable(listener func()) {
	if r == nil {
		return
	}
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	r.listener = listener
	if listener == nil {
		return
	}
	select {
	case <-r.revocable:
	default:
		close(r.revocable)
	}
	for o := range r.eachLocked {
		o.watchLocked()
		if o.revokePending {
			o.tellRevokeLocked()
		}
	}
}
