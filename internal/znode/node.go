package znode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Node is an ephemeral znode of this process: waiting at first, then held. It ends
// once: it leaves, or it is lost. It is safe for concurrent use.
type Node struct {
	// Set by newNode.
	Path    string
	spec    *Spec
	conn    *zkconn.Conn
	hooks   Hooks
	id      string // part of the name: the creation's
	claim   *Claim // knows whose a znode with a given name is; nil of any other
	session int64  // the ZooKeeper session that the znode lives in
	orphans bool   // there may be others with the id

	// The version of the data of a znode with a given name, as far as is known. It stands
	// behind a bool, where it takes no memory of its own: there are many Nodes.
	version atomic.Int32

	// The fencing token, 0 while it is not known. The first that learns it sets it; only
	// SetToken replaces it.
	token atomic.Int64

	ended ending
	loss  loss
	self  selfWatch

	// mu guards life and the second half of self. A caller that has it does not wait, and
	// takes no other mutex than those of package zkconn. The mutexes of the packages
	// above come before it.
	mu   sync.Mutex
	life life
}

// An ending is done when the Node has ended: end does that, once.
type ending struct {
	ctx     context.Context
	cancel  context.CancelFunc
	removal *calls.Pending[struct{}] // set before ctx is done, and read after that
}

// A loss is done, with its cause, when the holder is notified that the Node can no longer
// be relied on. loseLocked does that, and nothing else.
type loss struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// A life is what changes of a Node; guarded by Node.mu.
//
// ZooKeeper deletes the znodes of a session moments after its end. ClickHouse Keeper
// gives a client that reconnects another session, and keeps the znodes of the former one
// for that one's timeout: its own process would queue behind them. So a znode that
// outlives its session is deleted by its path, in whatever session there is, once nobody
// relies on the Node: the owner of a held one has left, and the margins are over. No
// other znode has that path, since the Node's id is in it.
type life struct {
	state    state
	reliedOn bool // somebody relies on it, or did when it ended
	// The two conditions for that delete.
	sessionOver bool // see sessionEndedLocked
	abandoned   bool // see abandonLocked

	guarded int32 // transactions that the znode guards and whose outcome is open
	cause   error // why it ended
	// The znode stays until then, however the Node ends: a holder may take that long to
	// stop, and others go on once the znode is gone.
	lingers deadline
	times   *times              // nil: ExpireLater was not called, and it was not lost
	tenants map[Tenant]struct{} // who else is notified of a loss
	// Those who were notified of a loss, whatever its cause, have until then to stop:
	// what has outlived its session is not deleted before. (lingers delays every delete,
	// but is extended only by a loss that leavesMargin.)
	margins deadline
}

// Times are those of the end of a hold. Most Nodes have none.
type times struct {
	expires time.Time // set by ExpireLater; zero: never
	cancel  func()    // takes back what ExpireLater planned; nil: nothing
	lost    time.Time // set by loseLocked, before the loss is done
}

// A deadline is a time that most Nodes do not have. The zero one is over.
type deadline struct{ at *time.Time }

// extend moves it, if it is over before that time has passed.
func (d *deadline) extend(by time.Duration) {
	if by > max(0, d.remaining()) {
		until := time.Now().Add(by)
		d.at = &until
	}
}

// remaining is the time until the deadline, 0 or less if it is over.
func (d *deadline) remaining() time.Duration {
	if d.at == nil {
		return 0
	}
	return time.Until(*d.at)
}

// The state of a Node only moves forward, by Hold and by end; unhold alone goes back. See
// the package's page.
type state uint8

const (
	stateQueued state = iota // nobody relies on it
	stateHeld                // somebody relies on it
	stateEnded               // it left or was lost; its znode is about to go, or has gone
)

var (
	// ErrGone says that somebody deleted the znode.
	ErrGone = errors.New(
		"the znode was deleted (by somebody, or because the session ended)")
	// ErrExpired says that a hold has lasted for as long as its Terms allow.
	ErrExpired = errors.New("the hold reached the limit set by WithMaxHold")
	// ErrUnlisted is ErrGone as far as a list tells, which may be wrong: something
	// between us and the server can have made it up. A znode that is there after all
	// would block everybody, so it is deleted in any case.
	ErrUnlisted = fmt.Errorf("%w: its parent znode does not list it", ErrGone)
	// ErrEnded ends what somebody does with a Node that has ended. It is permanent.
	ErrEnded = outcome.Permanent(errors.New("the queue entry was lost"))
	// ErrLeft is the cause of the end of a Node that left by itself.
	ErrLeft = errors.New("left the queue")
)

// LeaveWithin is how long a call whose wait has ended waits for its delete, so that it
// usually leaves nothing behind.
const LeaveWithin = 80 * time.Millisecond

// Name is the name of the znode in its directory.
func (n *Node) Name() string {
	_, name := zkpath.Split(n.Path)
	return name
}

// Hooks is what the Node was created with.
func (n *Node) Hooks() Hooks { return n.hooks }

// Session is the id of the ZooKeeper session that the znode lives in.
func (n *Node) Session() int64 { return n.session }

// Token is the znode's fencing token. That of a held Node is known; of another one it may
// be 0.
func (n *Node) Token() int64 { return n.token.Load() }

// LearnToken takes note of the token, unless it is known.
func (n *Node) LearnToken(token int64) { n.token.CompareAndSwap(0, token) }

// SetToken gives the Node another token than the znode's own.
func (n *Node) SetToken(token int64) { n.token.Store(token) }

// Lost is done, with the cause, as soon as a held Node can no longer be relied on. It
// stays open when the Node leaves, unless the session is lost before ZooKeeper has
// confirmed that.
func (n *Node) Lost() context.Context { return n.loss.ctx }

// Ended is done once the Node has ended, and Hooks.End has returned. See HasEnded.
func (n *Node) Ended() context.Context { return n.ended.ctx }

// Cause tells why the Node ended, nil if it has not.
func (n *Node) Cause() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.cause
}

// Guard begins a transaction that checks n's znode; false where n has ended. unguard ends
// it, once its outcome is known. While that is open the next in the queue waits until the
// znode is gone, also where n has left: the transaction may still be done.
func (n *Node) Guard() (unguard func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state == stateEnded {
		return nil, false
	}
	n.life.guarded++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.life.guarded--
	}, true
}

// InUse tells whether something may still be done under the znode although nobody relies
// on it.
func (n *Node) InUse() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.guarded > 0 || n.life.lingers.remaining() > 0
}

// Linger keeps the znode for d from now on, however n ends before that.
func (n *Node) Linger(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.lingers.extend(d)
}

// HasEnded turns true inside of Hooks.End, in one step with Lost, before Ended is done.
func (n *Node) HasEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life.state == stateEnded
}

// Hold makes a waiting Node, whose token is known, a held one. It fails with ErrEnded if
// the Node has ended. With any other error the Node is queued as before: after
// outcome.ErrOutOfTouch until the server has confirmed the session; the others are
// permanent.
func (n *Node) Hold() error {
	n.mu.Lock()
	if n.life.state == stateEnded {
		n.mu.Unlock()
		return ErrEnded
	}
	// Before Conn.Hold: the holder must be notified of a loss right behind that.
	n.life.state, n.life.reliedOn = stateHeld, true
	n.mu.Unlock()
	err := n.conn.Hold(n.Path, n.spec.LossMargin)
	switch {
	case err == nil && n.ended.ctx.Err() != nil: // it ended in between
		return ErrEnded
	case err == nil:
		n.WatchSelfLater(Soon)
		return nil
	case errors.Is(err, outcome.ErrSessionEnded):
		n.Lose(err)
		return ErrEnded
	default:
		n.unhold()
		return err
	}
}

// Rest says that n is far from its turn: its session needs no proof until Approach, or
// Hold. One with a loss margin does not rest, since Hold would have to wait for proof.
func (n *Node) Rest() (rests bool) {
	if n.spec.LossMargin > 0 {
		return false
	}
	n.conn.Rest(n.Path)
	return true
}

// Approach undoes Rest. It returns a sync that is under way, if one is due, which may be
// the proof that Hold needs; otherwise nil.
func (n *Node) Approach() (proof *calls.Pending[struct{}]) {
	return n.conn.Approach(n.Path)
}

// unhold undoes a hold that the session rejected, and of which nobody was notified.
func (n *Node) unhold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.reliedOn = false
	if n.life.state == stateHeld {
		n.life.state = stateQueued
	}
}

// isReliedOnLocked reports whether somebody relies on n, or did when it ended: the
// Tenants if the znode is cached, else the holder.
func (n *Node) isReliedOnLocked() bool {
	return n.life.reliedOn && (!n.spec.Cached || len(n.life.tenants) > 0)
}

// IsIdle tells whether nobody uses a Node, nor waits with it: it is cached, held and has
// no Tenant, or it is a single attempt's that is not held, or it has ended and is on its
// way out.
func (n *Node) IsIdle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.life.state {
	case stateHeld:
		return n.spec.Cached && len(n.life.tenants) == 0
	case stateEnded:
		return true
	}
	return n.spec.SingleAttempt
}

// ExpireLater ends a held Node after the longest time that its Terms allow.
func (n *Node) ExpireLater() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spec.MaxHold > 0 && n.life.state == stateHeld {
		n.life.times = &times{
			expires: time.Now().Add(n.spec.MaxHold),
			cancel:  n.conn.After(n.spec.MaxHold, func() { n.end(ErrExpired) }),
		}
	}
}

// Until is when Lost is done if nothing more is heard of the session until then; after
// that, when it was.
func (n *Node) Until() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch t := n.life.times; {
	case n.loss.ctx.Err() != nil:
		return t.lost
	case t != nil:
		return Earlier(n.conn.Until(n.Path), t.expires)
	}
	return n.conn.Until(n.Path)
}

// Earlier is the time, of two that may be zero, that comes first.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// Attach lets t rely on n, and be notified of a loss from now on; false if n is not held,
// or not any more.
func (n *Node) Attach(t Tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state != stateHeld {
		return false
	}
	if n.life.tenants == nil {
		n.life.tenants = map[Tenant]struct{}{}
	}
	n.life.tenants[t] = struct{}{}
	return true
}

// Detach undoes Attach; false if n is not held any more, and t was notified.
func (n *Node) Detach(t Tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state != stateHeld {
		return false
	}
	delete(n.life.tenants, t)
	return true
}

// Tenants returns who is attached.
func (n *Node) Tenants() []Tenant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.life.tenants))
}

// Check asks the clock whether n, which is held, can be relied on at this moment. If it
// cannot, although nobody may have been notified yet, n is lost, unless it has ended
// before.
func (n *Node) Check() error {
	err := n.conn.Judge(n.Path)
	if errors.Is(err, outcome.ErrTooShort) { // by what is known of the servers since
		err = fmt.Errorf("%w: %w", outcome.ErrOutOfTouch, err)
	}
	if err != nil && !n.HasEnded() { // one that has may be untracked
		n.Lose(err)
	}
	return err
}

// Gone ends the Node since its znode is gone, or is about to be: cause is ErrGone,
// ErrUnlisted or outcome.ErrSessionEnded. Unlike Lose it does nothing to a Node that has
// left: most likely the znode went by its own delete, whose answer tells if it did not.
func (n *Node) Gone(cause error) { n.end(cause) }

// Lose implements reliance.Ephemeral: it records that the session or the znode is gone,
// or can no longer be relied on. The holder is also notified if the Node has left and the
// delete is not confirmed: its caller still waits for that.
func (n *Node) Lose(cause error) {
	if n.end(cause) {
		return
	}
	select {
	case <-n.ended.removal.Done():
		// Its caller has the answer by now, and relies on nothing any more.
	default:
		n.tellLoss(cause)
	}
}

// tellLoss notifies those that rely on n, or did when it ended.
func (n *Node) tellLoss(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.reliedOn {
		n.loseLocked(cause)
	}
}

// loseLocked notifies the Tenants before the Node. A Tenant that waits for the delete is
// woken by the Node's loss, and then has to find its own.
func (n *Node) loseLocked(cause error) {
	if n.life.margins.at == nil && n.isReliedOnLocked() {
		n.life.margins.extend(n.spec.LossMargin)
	}
	for t := range n.life.tenants {
		t.Lost(cause)
	}
	if n.loss.ctx.Err() == nil {
		if n.life.times == nil {
			n.life.times = &times{}
		}
		n.life.times.lost = time.Now()
	}
	n.loss.cancel(cause)
}

// end ends the Node, once; a Node ends in no other way. The hooks and the holder learn of
// it as one step, then those who wait for the Node are woken.
func (n *Node) end(cause error) bool {
	if n.HasEnded() || !n.hooks.End(cause, func() bool { return n.endOnce(cause) }) {
		return false
	}
	n.ended.cancel()
	return true
}

// endOnce is end's part under the mutexes. The znode is deleted at once, unless the
// holder has a margin in which to stop.
func (n *Node) endOnce(cause error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &n.life
	if l.state == stateEnded { // the second caller finds Lost closed by now
		return false
	}
	if isDeleted(cause) {
		n.conn.HoldBack() // before anybody who hears of it sends a request
	}
	// Before the state changes, and before the delete is sent: nobody may see an ended
	// Node, and no other process may get the lock, while the holder relies on it.
	if l.state == stateHeld && !errors.Is(cause, ErrLeft) {
		n.loseLocked(cause)
	}
	l.state, l.cause = stateEnded, cause
	// This process has decided that by itself, so the znode is there. The holder has its
	// margin in which to stop, and the znode keeps others out meanwhile.
	if n.isReliedOnLocked() && leavesMargin(cause) {
		l.lingers.extend(n.spec.LossMargin)
	}
	after := l.lingers.remaining()
	if l.times != nil && l.times.cancel != nil {
		l.times.cancel()
	}
	n.self.stopLocked()
	if !l.reliedOn || errors.Is(cause, ErrLeft) {
		n.abandonLocked() // else StartLeaving does, when the holder has stopped
	}
	// Set before Ended is done: GiveUp and StartLeaving read it after that.
	n.ended.removal = calls.Start(n.conn, func() (none struct{}, _ error) {
		_ = n.conn.Pause(context.Background(), after) // it ends with the connection
		return none, n.remove(cause)
	})
	return true
}

// removed ends what newNode has begun, once nothing is left to be done about the znode.
func (n *Node) removed(err error) {
	defer n.conn.Release()
	defer n.conn.Untrack(n.Path, n)
	n.hooks.Removed(err == nil || errors.Is(err, ErrGone))
	if errors.Is(err, outcome.ErrSessionEnded) { // nothing tells whether it is gone
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sessionEndedLocked()
	}
}

// StartLeaving deletes the znode, in the background for as long as the session lasts.
// awaitDelete waits for that until its ctx is done. Its error says why the Node had been
// lost before, ErrGone or outcome.ErrSessionEnded among others, or why the outcome is not
// known yet.
func (n *Node) StartLeaving() (awaitDelete func(ctx context.Context) error) {
	if !n.end(ErrLeft) { // it had ended before; now nobody relies on it any more
		n.mu.Lock()
		defer n.mu.Unlock()
		n.abandonLocked()
		return func(context.Context) error { return n.Cause() }
	}
	return func(ctx context.Context) error {
		removal := n.ended.removal
		select {
		case <-removal.Done(): // an answer that is in wins over a ctx that is done
			return removal.Err()
		default:
		}
		select {
		case <-removal.Done():
			return removal.Err()
		case <-ctx.Done():
			return outcome.Cancelled(ctx)
		case <-n.loss.ctx.Done():
			return context.Cause(n.loss.ctx)
		}
	}
}

// Withdraw is StartLeaving without waiting for any result.
func (n *Node) Withdraw() { n.StartLeaving() }

// AwaitRemoval waits until nothing is left to be done about a Node that has ended. A
// znode with a given name may outlive its session: see Claim.Discard.
func (n *Node) AwaitRemoval(ctx context.Context) error {
	_, err := n.ended.removal.Wait(ctx)
	if n.claim != nil && (err == nil || errors.Is(err, ErrGone)) {
		n.claim.forget(n)
	}
	return err
}

// GiveUp withdraws without a result, in a time that a caller who has run out of time can
// spare. It goes on in the background. Nodes of a later group leave once those of the
// former have, or that time is over.
func GiveUp(ctx context.Context, groups ...[]*Node) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LeaveWithin)
	defer cancel()
	for _, nodes := range groups {
		// All deletes of a group are under way before the first of them is waited for.
		for _, n := range nodes {
			n.Withdraw()
		}
		for _, n := range nodes {
			_, _ = n.ended.removal.Wait(ctx)
		}
	}
}

// OrWithdraw calls f, which calls code of the user's. If that panics, or ends the
// goroutine, nobody waits any more: the Nodes are withdrawn.
func OrWithdraw(nodes []*Node, f func()) {
	returned := false
	defer func() {
		if !returned {
			for _, n := range nodes {
				n.Withdraw()
			}
		}
	}()
	f()
	returned = true
}

// remove deletes the znode of a Node that ended by cause, trying for as long as the
// session lasts, and returns the first answer.
func (n *Node) remove(cause error) error {
	if isDeleted(cause) {
		n.removed(cause)
		return cause
	}
	try := deleteTry(n.conn, n.session, n.delete)
	err := n.conn.Retry(context.Background(), try)
	switch {
	case outcome.Refused(err):
		// The call that asked for the delete gets this answer. n stays a participant
		// until the znode is gone, since that blocks others.
		insist(n.conn, n.spec.Log, n.Path, err, try, n.removed)
		return err
	case isLoss(err): // it was lost before its owner left, who has not heard of it yet
		n.tellLoss(err)
	}
	n.removed(err)
	return err
}

// leavesMargin tells whether the znode of a lost hold may stay for the margin: this
// process has decided by itself that the hold is lost. All other losses are the doing of
// ZooKeeper or of somebody else, and others may hold the lock already.
func leavesMargin(cause error) bool {
	return errors.Is(cause, outcome.ErrOutOfTouch) || errors.Is(cause, ErrExpired)
}

// isDeleted tells of the cause of an end whether the znode has gone, for certain.
func isDeleted(cause error) bool {
	return errors.Is(cause, ErrGone) && !errors.Is(cause, ErrUnlisted)
}

// isLoss tells whether err says that a znode was lost, and not that a call failed.
func isLoss(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, outcome.ErrSessionEnded) ||
		errors.Is(err, outcome.ErrOutOfTouch) || errors.Is(err, outcome.ErrClosed)
}

// abandonLocked records that nobody relies on the Node any more, or that it was never
// held. It may be called again.
func (n *Node) abandonLocked() {
	if !n.life.abandoned {
		n.life.abandoned = true
		n.deleteOutlivedLocked()
	}
}

// sessionEndedLocked records that the session has ended, and the znode may be there. It
// is called once.
func (n *Node) sessionEndedLocked() {
	n.life.sessionOver = true
	n.deleteOutlivedLocked()
}

// deleteOutlivedLocked begins to delete what has outlived its session (see life), unless
// one of the two conditions is not met. It ends with the connection at the latest.
func (n *Node) deleteOutlivedLocked() {
	// One with a given name is its Claim's to delete.
	if !n.life.sessionOver || !n.life.abandoned || n.claim != nil {
		return
	}
	// Those that were notified of the loss may still be busy, each for its margin.
	after := max(n.life.lingers.remaining(), n.life.margins.remaining())
	calls.Start(n.conn, func() (none struct{}, _ error) {
		_ = n.conn.Pause(context.Background(), after)
		return none, deleteOrInsist(n.conn, n.spec.Log, n.Path, n.delete, func(error) {})
	})
}

// MayHaveOrphans tells whether a create of unknown outcome may have left another znode.
func (n *Node) MayHaveOrphans() bool { return n.orphans }

// DiscardOrphan deletes the znode of that name if it is one with n's id.
func (n *Node) DiscardOrphan(name string) {
	if !hasID(name, n.id) || name == n.Name() {
		return
	}
	discard(n.conn, n.spec.Log, zkpath.Join(n.spec.Dir, name), n.session)
}

// delete sends the delete of the znode: by its path, which no other znode has, or by what
// is known of one with a given name.
func (n *Node) delete() error {
	if n.claim == nil {
		return n.conn.Delete(n.Path, -1)
	}
	return n.claim.delete(func(stat *zk.Stat, data []byte) bool {
		isOwn := n.isOwn(stat, data)
		if isOwn { // the next try meets no later znode of the session
			n.LearnToken(stat.Czxid)
		}
		return isOwn && n.claim.last.Load() == n // else it may be the next Node's
	})
}

// What follows is of Nodes with a given name; see Claim.

// isOwn tells whether a znode that was read at n's path is n's.
func (n *Node) isOwn(stat *zk.Stat, _ []byte) bool {
	token := n.Token()
	return n.claim == nil ||
		stat.EphemeralOwner == n.session && (token == 0 || token == stat.Czxid)
}

// Version is that of the znode's data, as far as is known, by which a transaction checks
// that it exists: any, of one whose path no other znode has.
func (n *Node) Version() int32 {
	if n.claim == nil {
		return -1
	}
	return n.version.Load()
}

// Set sets the data of a znode with a given name, and returns once it has them, or n has
// ended. It goes on if ctx is done, for as long as n lasts.
func (n *Node) Set(ctx context.Context, data []byte) error {
	_, err := calls.Call(ctx, n.conn, func() (none struct{}, err error) {
		return none, n.conn.Retry(n.ended.ctx, func() error { return n.set(data) })
	})
	return err
}

func (n *Node) set(data []byte) error {
	stat, err := n.conn.Set(n.Path, data, n.Version())
	if errors.Is(err, zk.ErrBadVersion) {
		// Another has set them, or our own request, whose answer was lost.
		if err := n.conn.Sync(n.Path); err != nil {
			return err
		}
		var now []byte
		if now, stat, err = n.conn.Read(n.Path); err == nil && n.isOwn(stat, nil) {
			n.version.Store(stat.Version)
			// Read leaves out data that is too long.
			if !bytes.Equal(now, data) || int(stat.DataLength) != len(data) {
				return errDataChanged // not final: set again
			}
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && !n.isOwn(stat, nil):
		cause := ErrGone
		if n.conn.SessionID() != n.session {
			cause = outcome.ErrSessionEnded
		}
		n.Gone(cause)
		return ErrEnded
	case err == nil:
		n.version.Store(stat.Version)
	}
	return err
}
