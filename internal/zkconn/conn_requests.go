package zkconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// An op is a kind of request.
type op struct {
	name string
	// counts tells by its outcome whether the leader of the ensemble had a part in it;
	// nil where he never has.
	counts func(error) bool
	// perm is the permission that it takes, as ZooKeeper calls it, on the znode itself or
	// on its parent.
	perm     string
	onParent bool
}

var (
	listOp   = op{name: "list", perm: "READ"}
	readOp   = op{name: "read", perm: "READ"}
	createOp = op{name: "create", counts: outcome.Judged, perm: "CREATE", onParent: true}
	deleteOp = op{name: "delete", counts: outcome.Judged, perm: "DELETE", onParent: true}
	setOp    = op{name: "set", counts: outcome.Judged, perm: "WRITE"}
	// The leader has answered a sync if it succeeds; no error is known to be his.
	syncOp = op{name: "sync", counts: succeeded, perm: "READ"}
)

// A request is one call of the Client, from just before it is sent to its answer.
type request struct {
	conn    *Conn
	op      *op
	path    string
	size    int       // all of it, in bytes
	data    int       // that much of it is the data of a znode
	session int64     // of an op that may count: the one that it was sent in; 0: none
	sent    time.Time // not later than it was sent
}

// make makes a request by call. rest is how long it is without its head and the path.
func (c *Conn) make(
	op *op, path string, rest int, data []byte, call func() error,
) error {
	r := request{
		conn: c, op: op, path: path, size: headSize + len(path) + rest + len(data),
		data: len(data),
	}
	if err := c.checkSize(r); err != nil {
		return r.refusal(err)
	}
	r.begin()
	return r.end(call())
}

// checkSize returns an error if r would break the connection.
func (c *Conn) checkSize(r request) error {
	if r.size < someLength {
		return nil
	}
	if r.size > MaxRequest {
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d of them data: "+
			"ZooKeeper accepts at most %d (jute.maxbuffer)", r.size, r.data, MaxRequest))
	}
	c.mu.Lock()
	cut, limit := c.cuts.times[r.cutKey()] > 0, c.cuts.limit
	if !time.Now().Before(c.cuts.until) {
		limit = 0
	}
	c.mu.Unlock()
	switch {
	case limit > 0 && r.size >= limit:
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d bytes of data "+
			"among them, and %d tries of one with %d bytes broke the connection, while "+
			"other requests got through; is the servers' jute.maxbuffer lower than "+
			"that? %w", r.size, r.data, cutsAtMost, limit, zk.ErrConnectionClosed))
	case cut:
		return c.Sync("/")
	}
	return nil
}

func (r *request) cutKey() cutKey { return cutKey{r.op.name, r.path, r.size} }

// The sizes of what a request has besides texts: its head, with the length of the path;
// a number; a flag.
const (
	headSize   = 12
	numberSize = 4
	flagSize   = 1
)

// begin is called just before the Client is. It takes no longer than it must, unless
// requests are held back: a list may be on its way behind a create, and has to come
// second.
func (r *request) begin() {
	r.conn.awaitQuiet()
	c, now := r.conn, time.Now()
	r.sent = now
	if r.op.counts != nil {
		r.session = c.client.SessionID()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.availability.ask(now)
	c.cuts.begin(r.cutKey())
	if r.op.counts != nil {
		c.ledger.Asked()
	}
}

// end is called with what the Client returned, and returns what the caller is told.
func (r request) end(err error) error {
	r.conn.learn(r, err)
	if errors.Is(err, zk.ErrClosing) {
		r.conn.ConnClosed()
	}
	return r.refusal(err)
}

// learn takes note of what a request's outcome tells about its connection.
func (c *Conn) learn(r request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if outcome.Answered(err) {
		c.availability.hear(now)
		c.availability.measure(now.Sub(r.sent))
	}
	c.suspicion.note(err, now)
	c.cuts.note(r.cutKey(), r.sent, err)
	if outcome.ConnectionLost(err) { // it may be back before the next tick
		c.reconnects.lost = true
	}
	// An answer to another session than it was sent in says nothing of either; and one
	// that began meanwhile may have its own contacts already.
	if r.session != 0 && r.op.counts(err) && c.client.SessionID() == r.session {
		c.ledger.Heard(r.session, r.sent)
	}
}

// refusal names the request that err refuses, and the permission where that is what is
// missing. A lost connection is left as it is: it says nothing about the request.
func (r request) refusal(err error) error {
	if !outcome.Final(err) {
		return err
	}
	// A Client that says more than that knows better.
	if errors.Is(err, zk.ErrNoAuth) && errors.Unwrap(err) == nil {
		on := r.path
		if r.op.onParent {
			on = zkpath.Parent(r.path)
		}
		return fmt.Errorf("%s %s: %w (the session lacks %s on %s)",
			r.op.name, r.path, err, r.op.perm, on)
	}
	return fmt.Errorf(
		"%s %s: %w", r.op.name, zkpath.Brief(r.path), outcome.WithMeaning(err))
}

func succeeded(err error) bool { return err == nil }

// SessionID is the Client's.
func (c *Conn) SessionID() int64 { return c.client.SessionID() }

// Children is the Client's.
func (c *Conn) Children(path string) (names []string, stat *zk.Stat, err error) {
	err = c.make(&listOp, path, flagSize, nil, func() (err error) {
		names, stat, err = c.client.Children(path)
		return err
	})
	return names, stat, err
}

// ChildrenW is the Client's. Its watch is the caller's own, as GetW's is.
func (c *Conn) ChildrenW(path string) (
	names []string, stat *zk.Stat, events <-chan zk.Event, err error,
) {
	err = c.make(&listOp, path, flagSize, nil, func() (err error) {
		names, stat, events, err = c.client.ChildrenW(path)
		return err
	})
	return names, stat, events, err
}

// Get is the Client's.
func (c *Conn) Get(path string) (data []byte, stat *zk.Stat, err error) {
	err = c.make(&readOp, path, flagSize, nil, func() (err error) {
		data, stat, err = c.client.Get(path)
		return err
	})
	return data, stat, err
}

// Stat returns the stat of a znode without children, also if its data is too long to be
// read: whoever does not need the data of others does not depend on it.
func (c *Conn) Stat(path string) (*zk.Stat, error) {
	_, stat, err := c.Get(path)
	if outcome.IsReplyTooLong(err) {
		_, stat, err = c.Children(path)
	}
	return stat, err
}

// GetW is the Client's. Its watch is the caller's own; see Watch for one that is shared.
func (c *Conn) GetW(path string) (
	data []byte, stat *zk.Stat, events <-chan zk.Event, err error,
) {
	err = c.make(&readOp, path, flagSize, nil, func() (err error) {
		data, stat, events, err = c.client.GetW(path)
		return err
	})
	return data, stat, events, err
}

// Create is the Client's.
func (c *Conn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	err = c.make(&createOp, path, restOfCreate(acl), data, func() (err error) {
		created, err = c.client.Create(path, data, flags, acl)
		return err
	})
	return created, err
}

// restOfCreate is the size of what a create has behind its path, without the data: the
// length of that, the ACLs, each with two texts, and the flags.
func restOfCreate(acl []zk.ACL) int {
	size := 3 * numberSize
	for _, a := range acl {
		size += 3*numberSize + len(a.Scheme) + len(a.ID)
	}
	return size
}

// CreateContainer creates an empty znode that the server reaps when it has lost its last
// child, or a persistent one where the server is known to have no containers. It is known
// by its first answer, which costs the connection: see Unimplemented.
func (c *Conn) CreateContainer(path string, acl []zk.ACL) error {
	if c.hasNoContainers() {
		_, err := c.Create(path, []byte{}, zk.FlagPersistent, acl)
		return err
	}
	return c.make(&createOp, path, restOfCreate(acl), nil, func() error {
		_, err := c.client.CreateContainer(path, []byte{}, flagContainer, acl)
		if outcome.Unimplemented(err) {
			c.noteNoContainers()
		}
		return err
	})
}

// flagContainer is zk.FlagContainer of v1.0.4; v1.0.3 wants the same number for it under
// another name.
const flagContainer = 4

func (c *Conn) hasNoContainers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noContainers
}

func (c *Conn) noteNoContainers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noContainers = true
}

// Delete is the Client's.
func (c *Conn) Delete(path string, version int32) error {
	return c.make(&deleteOp, path, numberSize, nil, func() error {
		return c.client.Delete(path, version)
	})
}

// Set is the Client's.
func (c *Conn) Set(
	path string, data []byte, version int32,
) (stat *zk.Stat, err error) {
	err = c.make(&setOp, path, 2*numberSize, data, func() (err error) {
		stat, err = c.client.Set(path, data, version)
		return err
	})
	return stat, err
}

// Sync is the Client's.
func (c *Conn) Sync(path string) error {
	return c.make(&syncOp, path, 0, nil, func() error {
		_, err := c.client.Sync(path)
		return err
	})
}

// closeWithin is how long a client may take to end once its server has ended the session.
const closeWithin = 10 * time.Millisecond

// HoldBack is called when an event says that a znode of this process was deleted, and not
// by its own delete. Most likely the connection is being closed: its server deletes our
// znodes first, and then answers the close. A request that goes to *zk.Conn in between
// can leave the client's loop stuck forever. So none does for closeWithin, unless the
// connection tells of a close before that.
func (c *Conn) HoldBack() {
	if c.TellsClose() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quietUntil = time.Now().Add(closeWithin)
}

// awaitQuiet returns once no request has to be held back.
func (c *Conn) awaitQuiet() {
	for !c.TellsClose() {
		c.mu.Lock()
		wait := time.Until(c.quietUntil)
		c.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait) // callers do not wait for it: see Pending.Wait
	}
}

// Retry runs f, each time once the connection has a session, until it succeeds or fails
// for good (see Final), ctx is done or the connection closed. f may itself wait for
// something: then it is what makes the wait outlast an outage.
func (c *Conn) Retry(ctx context.Context, f func() error) error {
	var backoff Backoff
	for {
		err := c.ready(ctx)
		if err == nil {
			err = f()
		}
		if err == nil || outcome.Final(err) {
			return err
		}
		if err := c.Pause(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// What was refused is tried again after a second at first, then less and less often.
const (
	insistSoon   = time.Second
	insistAtMost = 30 * time.Second
)

// Insist goes on with f after a refusal, of an f that is an obligation and no call: it
// lasts until f succeeds, or fails with an error that is no refusal, as once the session
// has ended, or the connection is closed. The rights that were lacking may come back at
// any time, and at a reconnect with another login.
func (c *Conn) Insist(f func() error) error {
	reconnected := c.Reconnected()
	for pause := insistSoon; ; pause = min(2*pause, insistAtMost) {
		if err := c.pauseUntil(reconnected, pause); err != nil {
			return err
		}
		reconnected = c.Reconnected()
		err := c.Retry(context.Background(), f)
		if !outcome.Refused(err) {
			return err
		}
	}
}

// pauseUntil waits for d, or until done is closed, and reports a closed connection.
func (c *Conn) pauseUntil(done <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-c.closed:
		return outcome.ClosedError{}
	}
	return nil
}

const readyPoll = 20 * time.Millisecond

// ready waits until the connection has a session. A request that is made while there is
// none hangs, or fails at once and is tried in vain; and the client would run it in the
// next session, in which it means something else.
func (c *Conn) ready(ctx context.Context) error {
	for c.client.State() != zk.StateHasSession || c.client.SessionID() == 0 {
		if err := c.Pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	return c.Pause(ctx, 0)
}

// Pause waits for d, or until ctx is done or the connection closed, which it reports,
// also where d is 0.
func (c *Conn) Pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return outcome.Cancelled(ctx)
	}
	if c.isClosed() {
		return outcome.ClosedError{}
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-c.closed:
		return outcome.ClosedError{}
	}
}

// A Backoff says how long to wait before the next try: not at all at first, since what
// fails a request is mostly the loss of its connection, which Retry waits out; then from
// 10 ms up to half a second.
type Backoff int

// Next returns the wait before the next try.
func (b *Backoff) Next() time.Duration {
	if *b++; *b == 1 {
		return 0
	}
	return min(5*time.Millisecond<<min(*b-1, 10), 500*time.Millisecond)
}

// An availability knows whether ZooKeeper answers, for what callers are told: any answer
// counts. What the leader has heard of, on which holds depend, is the clock's. It is
// guarded by Conn.mu.
type availability struct {
	heard time.Time // when the last answer came, or the first user if none has
	asked time.Time // when the first request after that was made; zero: there was none
	// What an answer takes at least, of late: a busy machine makes many slow. It grows by
	// no more than growth with each answer.
	roundTrip time.Duration
}

func (a *availability) ask(now time.Time) {
	if a.asked.IsZero() {
		a.asked = now
	}
}

func (a *availability) hear(now time.Time) { a.heard, a.asked = now, time.Time{} }

func (a *availability) measure(took time.Duration) {
	a.roundTrip = min(took, a.roundTrip+growth)
}

const growth = time.Millisecond / 8

// ErrNoAnswer says that ZooKeeper could not be asked.
var ErrNoAnswer = errors.New("no response from ZooKeeper")

// answerWithin is how long a request may be under way until ZooKeeper counts as
// unavailable.
const answerWithin = time.Second

// Unavailable tells whether ZooKeeper cannot be asked just now, as far as the connection
// knows: it has no session, or a request is without an answer for a second. The heartbeat
// makes one now and then, so a silent network is noticed a second after it.
func (c *Conn) Unavailable() bool {
	if c.client.State() != zk.StateHasSession {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.availability.asked
	return !asked.IsZero() && time.Since(asked) >= answerWithin
}

// RoundTrip is what an answer has taken at least, of late, and zero at first. A fast
// answer lowers it at once; it rises slowly.
func (c *Conn) RoundTrip() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.availability.roundTrip
}

// NoAnswer returns an ErrNoAnswer of a caller who has asked at the given time: since
// then, or since the last answer to anybody, where that was before.
func (c *Conn) NoAnswer(asked time.Time) error {
	c.mu.Lock()
	since := c.availability.heard
	c.mu.Unlock()
	if asked.Before(since) {
		since = asked
	}
	silence := time.Since(since)
	if silence > time.Second {
		silence = silence.Round(time.Millisecond)
	}
	return fmt.Errorf("%w for %v, since %s",
		ErrNoAnswer, silence, since.Format(time.RFC3339))
}

// Missing tells whether the server says that there is no such znode. It takes a small
// read.
func (c *Conn) Missing(ctx context.Context, path string) bool {
	_, err := calls.Call(ctx, c, func() (none struct{}, err error) {
		_, err = c.Stat(path)
		return none, err
	})
	return errors.Is(err, zk.ErrNoNode)
}

// containerOwner is what some servers return as the owner of a container.
const containerOwner = math.MinInt64

// IsOwnerless tells whether a znode belongs to no session: it stays until somebody
// deletes it.
func IsOwnerless(stat *zk.Stat) bool {
	return stat.EphemeralOwner == 0 || stat.EphemeralOwner == containerOwner
}

// IsDirectory tells whether a znode is no participant of any queue, whatever its name: it
// has children, or has had some, as a lock's path does.
func IsDirectory(stat *zk.Stat) bool {
	return IsOwnerless(stat) && (stat.NumChildren > 0 || stat.Cversion > 0)
}
