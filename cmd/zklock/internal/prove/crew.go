package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// A roundOrder is what the workers of one machine are to do in a round.
type roundOrder struct {
	Seed    uint64        `json:"seed"`
	First   int           `json:"first"` // the number of the first worker
	Workers int           `json:"workers"`
	Session time.Duration `json:"session"`
	Root    string        `json:"root"`
	Calm    bool          `json:"calm"`
	Rate    float64       `json:"rate"` // requests a second, of all workers together
	Length  time.Duration `json:"length"`
}

// A crew is the workers of one machine in one round, and what is done to them.
type crew struct {
	Host
	roundOrder
	to   bench
	open [][]*faults.Line

	mu     sync.Mutex // guards what follows
	slots  []*worker
	killed int
	// By slot: the number of the worker that was cut off last.
	cutOff []int
}

// run is one round. It returns how many faults there were.
func (h Host) run(ctx context.Context, o roundOrder, to bench) (made int, err error) {
	c := &crew{Host: h, roundOrder: o, to: to, cutOff: make([]int, o.Workers)}
	lines := faults.NewLines()
	defer lines.Close()
	if err := c.openLines(lines); err != nil {
		return 0, err
	}
	defer c.killAll()
	for slot := range o.Workers {
		if err := c.start(slot, o.First+slot); err != nil {
			return 0, err
		}
	}
	working, cancel := context.WithTimeout(ctx, o.Length)
	defer cancel()
	go c.askClocks(working)
	hands := &faults.Hands{Note: c.notef}
	if o.Calm {
		<-working.Done()
	} else {
		err = hands.Run(working, o.Seed, c.ofLines(), c.ofProcesses())
	}
	if ctx.Err() != nil {
		return hands.Made(), context.Cause(ctx)
	}
	return hands.Made(), errors.Join(err, c.finish(ctx))
}

func (c *crew) notef(format string, args ...any) {
	c.to.take(simulator.Event{
		Kind: simulator.Note, Text: fmt.Sprintf(format, args...),
	}, nil)
}

func (c *crew) openLines(lines *faults.Lines) error {
	for range c.Workers {
		var own []*faults.Line
		for _, server := range c.Servers {
			line, err := lines.Open(server)
			if err != nil {
				return err
			}
			own = append(own, line)
		}
		c.open = append(c.open, own)
	}
	return nil
}

// start starts a worker in a slot.
func (c *crew) start(slot, number int) error {
	o := order{
		Seed: c.Seed, Worker: number, Session: c.Session, Root: c.Root, Calm: c.Calm,
		Rate: c.Rate / float64(c.Workers), Lines: map[string]string{},
	}
	for i, server := range c.Servers {
		o.Lines[server] = c.open[slot][i].Addr()
	}
	w, err := c.startWorker(o, c.to)
	if w != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if slot == len(c.slots) {
			c.slots = append(c.slots, nil)
		}
		c.slots[slot] = w
	}
	return err
}

func (c *crew) in(slot int) *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots[slot]
}

func (c *crew) all() []*worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*worker{}, c.slots...)
}

// finish lets all workers come to their end.
func (c *crew) finish(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.killAll)
	defer stop()
	bound := time.AfterFunc(2*endWithin(c.Session), c.killAll)
	defer bound.Stop()
	var calls []func() error
	for _, w := range c.all() {
		calls = append(calls, w.finish)
	}
	return faults.InParallel(calls)
}

// killAll ends what has not ended.
func (c *crew) killAll() {
	for _, w := range c.all() {
		w.kill()
	}
}

// ofLines are the faults of connections. They are one at a time, so that what one takes
// off is what it has put on.
func (c *crew) ofLines() faults.Hand {
	net := faults.Net{Lines: c.open, Cut: c.cut, Mended: c.mended}
	t := c.Session
	return faults.Hand{Rest: t / 4, Faults: []faults.Fault{
		faults.New("partition", 3, t/20, t, net.Partition),
		faults.New("partition for longer than a session", 2, 5*t/4, 2*t, net.Partition),
		faults.New("reset, and partition for longer than a session", 3, 5*t/4, 2*t,
			net.PartitionAnew(t/8)),
		faults.New("slow lines", 1, t/20, t, net.Slow),
		faults.New("reset", 2, t/20, t/5, net.Reset),
	}}
}

func (c *crew) cut(slot int) {
	w := c.in(slot)
	c.mu.Lock()
	c.cutOff[slot] = w.number
	c.mu.Unlock()
	c.to.take(w.event(simulator.Cut), nil)
}

func (c *crew) mended(slot int) {
	c.mu.Lock()
	number := c.cutOff[slot]
	c.mu.Unlock()
	tellAndWait(c.to, (&worker{number: number}).event(simulator.Mended))
}

// ofProcesses are the faults of workers.
func (c *crew) ofProcesses() faults.Hand {
	t := c.Session
	all := []faults.Fault{
		faults.New("suspend", 4, t/20, 2*t, c.suspend),
		// Another one starts once the rate has forgotten the requests of the first.
		faults.New("kill", 1, burst, max(burst, t/4), c.killOne),
	}
	if !c.TLS { // else no worker knows the password
		all = append(all, faults.New("end a session", 1, 0, t/4, c.expire))
	}
	return faults.Hand{Rest: t / 2, Faults: all}
}

// expire has a worker end its own session by its password, from another connection.
func (c *crew) expire(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	w := c.in(d.IntN(c.Workers))
	_ = w.to.write(toWorker{Expire: true}) // else it has ended
	return fmt.Sprintf("worker %d", w.number), func() error { return nil }, nil
}

// suspend stops a worker's process. What is recorded is no longer than what happened.
func (c *crew) suspend(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	w := c.in(d.IntN(c.Workers))
	end = func() error {
		tellAndWait(c.to, w.event(simulator.Resumed))
		return w.signal(syscall.SIGCONT)
	}
	if err := w.signal(syscall.SIGSTOP); err != nil {
		return "", nil, err
	}
	c.to.take(w.event(simulator.Paused), nil)
	return fmt.Sprintf("worker %d", w.number), end, nil
}

// killOne kills a worker's process, and starts another one.
func (c *crew) killOne(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	slot := d.IntN(c.Workers)
	c.mu.Lock()
	may := c.killed < killedMost
	if may {
		c.killed++
	}
	c.mu.Unlock()
	if !may {
		return "", nil, faults.ErrNotNow
	}
	w := c.in(slot)
	w.kill()
	end = func() error { return c.start(slot, w.number+insteadApart) }
	return fmt.Sprintf("worker %d", w.number), end, nil
}
