package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// An Owner is told what becomes of a Keeper's znode, on the Keeper's goroutine.
type Owner interface {
	// Obtaining is called when the Keeper begins to wait for a znode.
	Obtaining()
	// IsTaken is called when the name is found to be another's.
	IsTaken()
	// Held is called with each znode, which is held, and not known to be lost.
	Held(n *znode.Node)
	// Failed is called when the wait has ended without one.
	Failed(err error)
}

// A Keeper keeps a znode under one name in existence from Start to Close. It is safe for
// concurrent use.
type Keeper struct {
	// Set by New.
	use   func() *zkconn.Conn
	spec  znode.Spec
	path  string
	owner Owner

	*keeping // of the goroutine that Start begins

	mu sync.Mutex // guards what follows
	state
}

// A keeping is of the Keeper's goroutine.
type keeping struct {
	conn    *zkconn.Conn
	name    name
	named   bool // the name is this Keeper's
	claim   *znode.Claim
	pace    pace
	applied int // the number of the data that the znode has
}

// A state is what callers of a Keeper see of it.
type state struct {
	changed chan struct{} // closed at each change of what follows
	closed  bool
	stop    context.CancelFunc // ends the goroutine; nil: there is none
	ended   chan struct{}      // closed when that has ended
	err     error              // why it has ended by itself, or why there is no znode
	node    *znode.Node        // the one that is held, or was last; nil: there was none
	taken   *znode.TakenError  // the name is another's
	paused  bool               // others have deleted the znode too often for another now

	data      []byte
	latest    int   // the number of data: how often they were set
	written   int   // of those that a znode has
	tried     int   // of those that were tried last
	rejection error // why written is less than tried

	removal *calls.Pending[struct{}] // of what may be left, once ended is closed
	// waits for the delete of the one that was held; nil: there was none
	awaitDelete func(ctx context.Context) error
}

// ErrClosed ends what is done with a Keeper after Close.
var ErrClosed = errors.New("it was closed")

// New returns a Keeper of the znode that is spec's, for a connection that use returns.
func New(spec znode.Spec, use func() *zkconn.Conn, owner Owner) *Keeper {
	return &Keeper{
		use: use, spec: spec, path: zkpath.Join(spec.Dir, spec.Kind), owner: owner,
		state: state{changed: make(chan struct{}), data: spec.Data},
	}
}

// change makes a change of the state, and wakes those who wait for one.
func (k *Keeper) change(f func(s *state)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.state)
	close(k.changed)
	k.changed = make(chan struct{})
}

// Start begins, unless the Keeper is at it, or closed.
func (k *Keeper) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop, k.ended, k.err = stop, make(chan struct{}), nil
	conn := k.use()
	k.keeping = &keeping{
		conn: conn, name: name{conn, k.path}, claim: znode.NewClaim(conn, k.path),
	}
	go k.run(ctx, k.removal)
}

// run is the Keeper's goroutine. former is the removal of what the last one has left, or
// nil.
func (k *Keeper) run(ctx context.Context, former *calls.Pending[struct{}]) {
	if former != nil { // it has the name until then
		_, _ = former.Wait(ctx)
	}
	var err error
	keep := func() error { return k.keepOne(ctx) }
	for err == nil {
		if err = keep(); outcome.Refused(err) && k.rejected(err) {
			err = k.conn.Insist(ctx, keep)
		}
	}
	if ctx.Err() == nil && !errors.Is(err, outcome.ErrClosed) {
		k.spec.Log.Error("zookeeper registration: given up",
			"node", k.path, "error", outcome.WithCause(err))
	}
	k.end(err)
}

// rejected takes note that no znode can be created, which ends the Keeper if there never
// was one: nobody has to see to it that one comes back.
func (k *Keeper) rejected(err error) (hadOne bool) {
	k.change(func(s *state) {
		if hadOne = s.node != nil; hadOne {
			s.err = err
		}
	})
	if hadOne {
		k.spec.Log.Error("zookeeper registration: rejected; the znode is still being "+
			"created", "node", k.path, "error", err)
	}
	return hadOne
}

// keepOne obtains a znode, and keeps it until it is lost.
func (k *Keeper) keepOne(ctx context.Context) error {
	k.owner.Obtaining()
	o := &obtaining{Keeper: k}
	err := wait.Until(ctx, k.conn, o)
	n := o.node
	if err != nil {
		k.owner.Failed(err)
		if !errors.Is(err, znode.ErrEnded) {
			if n != nil {
				n.Withdraw()
			}
			return err
		}
	} else {
		k.owner.Held(n)
		k.change(func(s *state) {
			s.node, s.taken, s.err = n, nil, nil
			s.written, s.tried = k.applied, k.applied
		})
		k.setData(ctx, n)
	}
	if ctx.Err() != nil {
		return outcome.Cancelled(ctx)
	}
	return k.afterLoss(ctx, n)
}

// afterLoss waits until the next znode may be created.
func (k *Keeper) afterLoss(ctx context.Context, n *znode.Node) error {
	n.Withdraw() // nobody relies on it
	k.spec.Log.Info("zookeeper registration: znode lost, creating it again",
		"node", k.path, "cause", n.Cause())
	_ = n.AwaitRemoval(ctx)
	pause := time.Duration(0)
	if errors.Is(n.Cause(), znode.ErrGone) {
		pause = k.pace.next()
	}
	if pause > 0 {
		k.change(func(s *state) { s.paused = true })
		defer k.change(func(s *state) { s.paused = false })
	}
	// Also for a ctx that is done, or a connection that is closed.
	return k.conn.Pause(ctx, pause)
}

// setData gives a znode each data that are set, until it has ended.
func (k *Keeper) setData(ctx context.Context, n *znode.Node) {
	for ctx.Err() == nil && !n.HasEnded() {
		k.mu.Lock()
		data, latest, tried, changed := k.data, k.latest, k.tried, k.changed
		k.mu.Unlock()
		if tried == latest {
			select {
			case <-changed:
			case <-n.Ended().Done():
			case <-ctx.Done():
			}
			continue
		}
		err := n.Set(ctx, data)
		switch {
		case err == nil:
			k.change(func(s *state) { s.written, s.tried = latest, latest })
		case outcome.Final(err) && !n.HasEnded():
			k.spec.Log.Error("zookeeper registration: cannot set data",
				"node", k.path, "error", err)
			k.change(func(s *state) { s.tried, s.rejection = latest, err })
		}
	}
}

// wanted returns the data of the next znode, and their number.
func (k *Keeper) wanted() (data []byte, number int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data, k.latest
}

// isTaken takes note of who has the name.
func (k *Keeper) isTaken(t *znode.TakenError) {
	isNew := false
	k.change(func(s *state) { isNew, s.taken = s.taken == nil, t })
	if isNew {
		k.owner.IsTaken()
	}
}

// end ends the goroutine, and begins to remove what is left.
func (k *Keeper) end(err error) {
	k.mu.Lock()
	n := k.node
	k.mu.Unlock()
	var awaitDelete func(context.Context) error
	if n != nil && !n.HasEnded() {
		awaitDelete = n.StartLeaving()
	}
	kept := k.keeping
	removal := calls.Start(kept.conn, func() (none struct{}, err error) {
		defer kept.conn.Release()
		if kept.named {
			defer kept.name.giveBack()
		}
		return none, kept.claim.Discard(k.spec.Log, n)
	})
	k.change(func(s *state) {
		s.err, s.removal, s.awaitDelete, s.taken = err, removal, awaitDelete, nil
		s.stop()
		s.stop = nil
		close(s.ended)
	})
}

// Await waits until the znode is there and held.
func (k *Keeper) Await(ctx context.Context) error {
	k.Start()
	return k.await(ctx, func(s *state) (bool, error) {
		switch {
		case s.node != nil && !s.node.HasEnded():
			return true, nil
		case s.stop == nil, s.err != nil:
			return true, s.err
		}
		return false, nil
	})
}

// await waits until the state is as wanted.
func (k *Keeper) await(ctx context.Context, ok func(s *state) (bool, error)) error {
	for asked := time.Now(); ; {
		k.mu.Lock()
		if k.closed {
			k.mu.Unlock()
			return ErrClosed
		}
		done, err := ok(&k.state)
		changed, taken, paused, kept := k.changed, k.taken, k.paused, k.keeping
		k.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			at := wait.Place{}
			switch {
			case taken != nil:
				at = wait.Place{Text: taken.Error(), Behind: k.path, Ahead: 1}
			case paused:
				at = wait.Place{Text: "others have deleted it, more than once: " +
					"it is created again after a pause"}
			}
			err := wait.Explain(kept.conn, outcome.Cancelled(ctx), at, asked)
			if taken != nil && errors.Is(err, wait.ErrBusy) {
				return &existsError{err}
			}
			return err
		}
	}
}

// An existsError is a wait that ended while a name was another's.
type existsError struct{ error }

func (e *existsError) Unwrap() []error { return []error{e.error, zk.ErrNodeExists} }

// SetData sets the data of the znode, now and of each later one. It waits until a znode
// has them, or later ones, if the Keeper was started, or the Keeper ends by itself. If
// the request is rejected, the znode keeps those that it has; the next one has these all
// the same.
func (k *Keeper) SetData(ctx context.Context, data []byte) error {
	var number int
	k.change(func(s *state) {
		s.latest++
		s.data, number = slices.Clone(data), s.latest
	})
	return k.await(ctx, func(s *state) (bool, error) {
		switch {
		case s.written >= number:
			return true, nil
		case s.stop == nil:
			return true, s.err
		case s.tried >= number:
			return true, s.rejection
		}
		return false, nil
	})
}

// A Removal is what Close has begun, in the order in which to wait for it.
type Removal struct {
	// of the znode that was held; nil: there was none
	AwaitDelete func(ctx context.Context) error
	// of what former sessions may have left
	AwaitFormer func(ctx context.Context) error
}

// Stop has the Keeper end, in the background. The channel is closed once it has; nil: it
// was stopped before, or never began.
func (k *Keeper) Stop() (ended <-chan struct{}) {
	k.change(func(s *state) {
		if !s.closed {
			ended = s.ended
		}
		s.closed = true
		if s.stop != nil {
			s.stop()
		}
	})
	return ended
}

// Close ends the Keeper. The zero Removal says that there is nothing to be done. If an
// observer delays it for longer than ctx lasts, late gets the Removal once there is one.
func (k *Keeper) Close(ctx context.Context, late func(Removal)) (Removal, error) {
	ended := k.Stop()
	if ended == nil {
		return Removal{}, nil
	}
	select {
	case <-ended:
		return k.begunRemoval(), nil
	case <-ctx.Done():
		go func() {
			<-ended
			late(k.begunRemoval())
		}()
		return Removal{}, fmt.Errorf("close not confirmed: an observer delays it: %w",
			outcome.Cancelled(ctx))
	}
}

// begunRemoval returns what end has begun.
func (k *Keeper) begunRemoval() Removal {
	k.mu.Lock()
	defer k.mu.Unlock()
	removal := k.removal
	return Removal{k.awaitDelete, func(ctx context.Context) error {
		_, err := removal.Wait(ctx)
		return err
	}}
}
