package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// errNoOrder says that somebody else has started this.
var errNoOrder = errors.New("a worker without an order")

// errGone ends a worker whose judge has gone.
var errGone = errors.New("the judge has gone")

// Work is the whole life of a worker process. It takes its order from the first line of
// in, passes its events on to out, ends once it is told to finish, and at once if in
// ends.
func Work(ctx context.Context, in io.Reader, out io.Writer, a Access) error {
	p := &process{
		Access: a, out: newLineWriter(out), finish: make(chan struct{}),
		expire: make(chan struct{}, 1), began: time.Now(),
	}
	ordered, gone := make(chan *order, 1), make(chan error, 1)
	go func() {
		gone <- errors.Join(errGone, readLines(in, func(m toWorker) error {
			return p.take(m, ordered)
		}))
	}()
	select {
	case o := <-ordered:
		done := make(chan error, 1)
		go func() { done <- p.work(ctx, *o) }()
		select {
		case err := <-done:
			return err
		case err := <-gone:
			return err
		}
	case err := <-gone:
		return errors.Join(errNoOrder, err)
	}
}

// A process is a worker seen from inside.
type process struct {
	Access
	out    *lineWriter
	finish chan struct{}
	once   sync.Once
	expire chan struct{} // has room for one request
	told   ledger
	began  time.Time
}

func (p *process) take(m toWorker, ordered chan<- *order) error {
	switch {
	case m.Order != nil && len(ordered) == 0:
		ordered <- m.Order
	case m.Taken > 0:
		p.told.taken(m.Taken)
	case m.Expire:
		select {
		case p.expire <- struct{}{}:
		default:
		}
	case m.Asked > 0:
		return p.out.write(fromWorker{Asked: m.Asked, Clock: time.Since(p.began)})
	case m.Finish:
		p.once.Do(func() { close(p.finish) })
	}
	return nil
}

// tell is simulator.Config.Tell.
func (p *process) tell(e simulator.Event) (taken <-chan struct{}) {
	e.Text = cutText(e.Text)
	done := make(chan struct{})
	p.told.tell(func(number uint64) {
		// Where it fails the judge has gone, which ends the process.
		_ = p.out.write(fromWorker{Number: number, Event: &e})
	}, func() { close(done) })
	return done
}

// looks lets each goroutine of a worker run, however busy its machine is.
const looks = 10_000

// work is one round.
func (p *process) work(ctx context.Context, o order) error {
	pace, keys := newLimiter(o.Rate), &keyring{dial: through(o.Lines)}
	c := simulator.Config{
		Seed: o.Seed, Session: measure(o.Session, o.Calm), Workers: 1, First: o.Worker,
		Owners: owners, Root: o.Root, Locks: locksOf(o.Root),
		Held: heldBelow(o.Root), HoldFor: 2 * o.Session,
		ACL: p.ACL, Guarded: true, Tell: p.tell, Looks: looks,
		Stuck: func() string { return p.seen(ctx, o, pace) },
		Pace: func(_ int, call, path string) time.Duration {
			return pace.pace(call, path)
		},
		Dial: func(ctx context.Context, _ int) (simulator.Client, error) {
			return p.Connect(ctx, o.Session, recipes.WithDialer(keys.Dial))
		},
	}
	if o.Calm {
		c.Removals, c.Held = -1, nil
	} else {
		c.Closes = -1 // what is held for long is to be lost by faults
	}
	world, err := simulator.New(c)
	if err != nil {
		return err
	}
	world.Start()
	p.await(ctx, func() {
		session := world.SessionID(o.Worker)
		if session == 0 {
			return
		}
		world.Expire(session)
		if err := keys.expire(session); err != nil {
			world.Recorder.Notef(
				"worker %d: its session was not ended: %v", o.Worker, err)
		}
	})
	within, cancel := context.WithTimeout(ctx, endWithin(o.Session))
	defer cancel()
	last := fromWorker{Done: true}
	if err := world.Finish(within); err != nil {
		last.Failed = cutText(err.Error())
	}
	return p.out.write(last)
}

// What a worker that is stuck shows of the round's znodes.
const (
	seenMost   = 100
	seenWithin = 10 * time.Second
)

// seen is which znodes there are, and whose, as a new session sees them.
func (p *process) seen(ctx context.Context, o order, pace *limiter) string {
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	client, err := p.Connect(ctx, o.Session, recipes.WithDialer(through(o.Lines)))
	if err != nil {
		return "nothing can be seen: " + err.Error()
	}
	defer client.Close()
	var lines []string
	for paths := []string{o.Root}; len(paths) > 0 && len(lines) < seenMost; {
		path := paths[0]
		paths = paths[1:]
		faults.Sleep(ctx, pace.pace("children", path))
		children, stat, err := client.Children(path)
		if err != nil {
			lines = append(lines, path+": "+err.Error())
			continue
		}
		if stat.EphemeralOwner != 0 {
			lines = append(lines, fmt.Sprintf("%s: czxid %#x, session %#x", path,
				stat.Czxid, stat.EphemeralOwner))
		}
		for _, child := range children {
			paths = append(paths, path+"/"+child)
		}
	}
	return strings.Join(lines, "\n")
}

// await waits until the worker is to finish, and ends sessions until then.
func (p *process) await(ctx context.Context, expire func()) {
	for {
		select {
		case <-p.finish:
			return
		case <-ctx.Done():
			return
		case <-p.expire:
			expire()
		}
	}
}

// through dials a server by way of its line.
func through(lines map[string]string) func(
	network, address string, timeout time.Duration,
) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		line, ok := lines[address]
		if !ok {
			return nil, fmt.Errorf("no line to %s", address)
		}
		return net.DialTimeout(network, line, timeout)
	}
}
