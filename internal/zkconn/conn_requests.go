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
	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// An op is a kind of request.
type op struct {
	name string
	// counts reports by the outcome whether the ensemble's leader had a part in it; nil
	// if the leader never has.
	counts func(error) bool
	// perm is the permission that it needs, as ZooKeeper calls it, on the znode itself or
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
	// The leader has answered a sync that succeeds; any error may be a follower's.
	syncOp = op{name: "sync", counts: succeeded, perm: "READ"}
)

// A request is one call of the Client, from just before it is sent to its answer.
type request struct {
	conn    *Conn
	op      *op
	path    string
	size    int       // all of it, in bytes
	data    int       // that much of it is the data of a znode
	session int64     // in which an op that may count was sent; 0: none
	sent    time.Time // not later than it was sent
}

// make makes a request by call. Each request that a lock needs for itself passes here, so
// that no caller can forget to record what its outcome shows: the loss clock runs on
// writes and syncs, availability on all answers. A transaction of the user's (Hold.Multi)
// does not. extra is the size of what is neither head nor path nor data.
func (c *Conn) make(
	op *op, path string, extra int, data []byte, call func() error,
) error {
	r := &request{
		conn: c, op: op, path: path, size: headSize + len(path) + extra + len(data),
		data: len(data),
	}
	if err := c.checkSizeOrSync(r); err != nil {
		return r.refusal(err)
	}
	r.begin()
	if c.cfg.Foreign {
		return r.end(c.contain(op, call))
	}
	return r.end(call())
}

// contain calls a Client that is code of the user's.
func (c *Conn) contain(op *op, call func() error) (err error) {
	what := fmt.Sprintf("the %s of %T", op.name, c.client)
	if broken := usercode.Contain(what, func() { err = call() }); broken != nil {
		return outcome.Broken{Err: broken}
	}
	return err
}

// checkSizeOrSync returns an error if r would break the connection, as far as is known.
// If r broke it the last time, a sync is sent first: once that is answered, there is no
// outage.
func (c *Conn) checkSizeOrSync(r *request) error {
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
		limit = 0 // the servers may be configured differently by now
	}
	c.mu.Unlock()
	switch {
	case limit > 0 && r.size >= limit:
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d bytes of data "+
			"among them, and %d tries of one with %d bytes broke the connection, while "+
			"other requests got through; is the servers' jute.maxbuffer lower than "+
			"that? %w", r.size, r.data, cutsAtMost, limit, zk.ErrConnectionClosed))
	case cut:
		// It broke the connection the last time, or an outage did. If another request
		// gets through first, and this one breaks the connection again, it was no outage.
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
// requests are held back: the list that follows a create is sent concurrently, and counts
// only if it comes second.
func (r *request) begin() {
	r.conn.awaitQuiet()
	c, now := r.conn, time.Now()
	r.sent = now
	if r.op.counts != nil {
		// Before the client sends it: if the session changes in between, the contact does
		// not count, which is safe. See learn.
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

// end is called with the Client's error, and returns the caller's.
func (r *request) end(err error) error {
	r.conn.learn(r, err)
	if errors.Is(err, zk.ErrClosing) {
		r.conn.ConnClosed()
	}
	return r.refusal(err)
}

// learn records what a request's outcome shows of its connection.
func (c *Conn) learn(r *request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if outcome.Answered(err) {
		c.availability.hear(now)
		c.availability.measure(now.Sub(r.sent))
	}
	c.suspicion.note(err, now)
	c.cuts.note(r.cutKey(), r.sent, err)
	if outcome.ConnectionLost(err) {
		c.reconnects.lost = true // the connection may be back before the next look
	}
	// An answer that comes in another session than the request was sent in proves nothing
	// for either. The newer session may have contacts of its own already.
	if r.session != 0 && r.op.counts(err) && c.client.SessionID() == r.session {
		c.ledger.Heard(r.session, r.sent)
	}
}

// refusal returns err with the request that it rejects, and with the permission if that
// is what is missing. A lost connection is left as it is: it says nothing about the
// request.
func (r *request) refusal(err error) error {
	if !outcome.Final(err) {
		return err
	}
	// A wrapper that has added to the error knows better.
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

// Read is Get of a znode without children. Data that is too long to be read is nil: a
// caller that does not need others' data must not depend on its length.
func (c *Conn) Read(path string) (data []byte, stat *zk.Stat, err error) {
	data, stat, err = c.Get(path)
	if outcome.IsReplyTooLong(err) { // a list has the stat, too, and no data
		_, stat, err = c.Children(path)
	}
	return data, stat, err
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

// ReadW is Read with GetW. The watch on data that is too long tells of the znode's end,
// and not of its data.
func (c *Conn) ReadW(path string) (
	data []byte, stat *zk.Stat, events <-chan zk.Event, err error,
) {
	data, stat, events, err = c.GetW(path)
	if outcome.IsReplyTooLong(err) {
		_, stat, events, err = c.ChildrenW(path)
	}
	return data, stat, events, err
}

// Create is the Client's.
func (c *Conn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	err = c.make(&createOp, path, extraOfCreate(acl), data, func() (err error) {
		created, err = c.client.Create(path, data, flags, acl)
		return err
	})
	return created, err
}

// extraOfCreate is the size of what a create has behind its path, without the data: the
// length of that, the ACLs, each with two texts, and the flags.
func extraOfCreate(acl []zk.ACL) int {
	size := 3 * numberSize
	for _, a := range acl {
		size += 3*numberSize + len(a.Scheme) + len(a.ID)
	}
	return size
}

// CreateContainer creates an empty znode that the server deletes after it has lost its
// last child; a persistent one if the server is known to have no containers.
func (c *Conn) CreateContainer(path string, acl []zk.ACL) error {
	c.mu.Lock()
	noContainers := c.noContainers
	c.mu.Unlock()
	if noContainers {
		_, err := c.Create(path, []byte{}, zk.FlagPersistent, acl)
		return err
	}
	return c.make(&createOp, path, extraOfCreate(acl), nil, func() error {
		_, err := c.client.CreateContainer(path, []byte{}, flagContainer, acl)
		if outcome.Unimplemented(err) { // and the server closes the connection: see there
			c.mu.Lock()
			c.noContainers = true
			c.mu.Unlock()
		}
		return err
	})
}

// flagContainer is zk.FlagContainer of v1.0.4; v1.0.3 wants the same number for it under
// another name.
const flagContainer = 4

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

// List lists a directory as the server that answers knows it. With sync it has caught up
// with the leader before: the list shows whatever anybody had seen by then.
func (c *Conn) List(dir string, sync bool) ([]string, *zk.Stat, error) {
	if sync {
		if err := c.Sync(dir); err != nil {
			return nil, nil, err
		}
	}
	return c.Children(dir)
}

// CatchUp sends a sync, before a list or a read that is sent otherwise.
func (c *Conn) CatchUp(ctx context.Context, dir string) error {
	_, err := calls.Call(ctx, c, func() (none struct{}, err error) {
		return none, c.Sync(dir)
	})
	return err
}

// closeWithin is how long a client may take to end after its server has ended the
// session.
const closeWithin = 10 * time.Millisecond

// HoldBack is called when an event says that a znode of this process was deleted, and not
// by its own delete. Most likely the connection is being closed: its server first deletes
// the session's znodes, and then answers the close. A request that reaches *zk.Conn in
// between can leave the client's loop stuck forever. So for closeWithin no lock sends
// one, unless the connection tells of a close before that.
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
	for !c.TellsClose() { // HoldBack may be called again while this sleeps
		c.mu.Lock()
		wait := time.Until(c.quietUntil)
		c.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait) // callers do not wait for it: see Pending.Wait
	}
}

// Retry runs f, each time once the connection has a session, until it succeeds, fails
// with a permanent error (outcome.Final), ctx is done or the connection closed. f may
// itself wait for something: Retry makes that wait outlast an outage.
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

// A rejected request is made again after a second at first, then less and less often.
const (
	insistSoon   = time.Second
	insistAtMost = 30 * time.Second
)

// Insist goes on with f after a refusal. f is an obligation, not a caller's request: it
// lasts until f succeeds, fails with an error that is no refusal, as when the session has
// ended, ctx is done, or the connection is closed. The permission that was missing may be
// granted at any time, or come with another login at a reconnect.
func (c *Conn) Insist(ctx context.Context, f func() error) error {
	reconnected := c.Reconnected()
	for pause := insistSoon; ; pause = min(2*pause, insistAtMost) {
		if err := c.pauseUntil(ctx, reconnected, pause); err != nil {
			return err
		}
		reconnected = c.Reconnected() // before f: a reconnect during f counts, too
		err := c.Retry(ctx, f)
		if !outcome.Refused(err) {
			return err
		}
	}
}

// pauseUntil is Pause, or less if done is closed before that.
func (c *Conn) pauseUntil(
	ctx context.Context, done <-chan struct{}, d time.Duration,
) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-c.closed:
		return outcome.ClosedError{}
	}
	return nil
}

const readyPoll = 20 * time.Millisecond

// ready waits until the connection has a session. A request that is made without one
// stays unanswered, or fails at once, again and again. Or the client sends it in the next
// session, in which it means something else.
func (c *Conn) ready(ctx context.Context) error {
	for c.client.State() != zk.StateHasSession || c.client.SessionID() == 0 {
		if err := c.Pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	return c.Pause(ctx, 0) // for a ctx that is done, or a connection that is closed
}

// Pause waits for d, or until ctx is done or the connection closed, which it reports even
// if d is 0.
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
	return c.pauseUntil(ctx, nil, d)
}

// A Backoff says how long to wait before the next attempt: not at all at first, since
// most requests fail by the loss of their connection, and Retry waits for the next one;
// then from 10 ms up to half a second.
type Backoff int

// Next returns the wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	if *b++; *b == 1 {
		return 0
	}
	return min(5*time.Millisecond<<min(*b-1, 10), 500*time.Millisecond)
}

// An availability knows whether ZooKeeper answers, for what callers receive: any answer
// counts. Holds depend on what the leader has heard of, which the loss clock judges. It
// is guarded by Conn.mu.
type availability struct {
	heard time.Time // when the last answer came or, if that is later, the first user
	asked time.Time // when the first request after that was made; zero: there was none
	// The least time that an answer has taken recently: on a busy machine many are slow.
	// Each answer raises it by growth at most.
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

// ErrNoAnswer says that ZooKeeper could not be reached.
var ErrNoAnswer = errors.New("no response from ZooKeeper")

// answerWithin is how long a request may be under way until ZooKeeper counts as
// unavailable.
const answerWithin = time.Second

// Unavailable reports whether ZooKeeper cannot be reached just now, as far as the
// connection knows: it has no session, or a request has had no answer for a second. Since
// the heartbeat makes requests, a silent network is noticed within a second of the next.
func (c *Conn) Unavailable() bool {
	if c.client.State() != zk.StateHasSession {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.availability.asked
	return !asked.IsZero() && time.Since(asked) >= answerWithin
}

// RoundTrip is the least time that an answer has taken recently, and zero at first. A
// fast answer lowers it at once; it rises slowly.
func (c *Conn) RoundTrip() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.availability.roundTrip
}

// NoAnswer returns an ErrNoAnswer for a caller that has asked at the given time: since
// then, or since the last answer to any request if that was earlier.
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

// Missing reports whether the server says that there is no such znode. It sends a small
// read.
func (c *Conn) Missing(ctx context.Context, path string) bool {
	_, err := calls.Call(ctx, c, func() (none struct{}, err error) {
		_, _, err = c.Read(path)
		return none, err
	})
	return errors.Is(err, zk.ErrNoNode)
}

// containerOwner is what some servers return as the owner of a container.
const containerOwner = math.MinInt64

// IsOwnerless reports whether a znode belongs to no session: it stays until somebody
// deletes it.
func IsOwnerless(stat *zk.Stat) bool {
	return stat.EphemeralOwner == 0 || stat.EphemeralOwner == containerOwner
}

// IsDirectory reports whether a znode is no participant of any queue, whatever its name:
// it has children, or has had some, as a lock's path does.
func IsDirectory(stat *zk.Stat) bool {
	return IsOwnerless(stat) && (stat.NumChildren > 0 || stat.Cversion > 0)
}
