package prove

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// A toGuest is a message to a machine that has joined.
type toGuest struct {
	Order *guestOrder `json:"order,omitempty"`
	Taken uint64      `json:"taken,omitempty"`
	Ping  uint64      `json:"ping,omitempty"`
	End   bool        `json:"end,omitempty"` // of the run
}

// A guestOrder is a round, on the ensemble whose root was created with Czxid.
type guestOrder struct {
	roundOrder
	RunRoot string `json:"runRoot"`
	Czxid   int64  `json:"czxid"`
}

// A fromGuest is a message of such a machine.
type fromGuest struct {
	Hello  *hello           `json:"hello,omitempty"`
	Number uint64           `json:"number,omitempty"`
	Event  *simulator.Event `json:"event,omitempty"`
	Pong   uint64           `json:"pong,omitempty"`
	Clock  time.Duration    `json:"clock,omitempty"` // with Pong
	Done   *guestDone       `json:"done,omitempty"`
}

// A hello is the first message.
type hello struct {
	Format int    `json:"format"`
	Secret []byte `json:"secret"`
}

// A guestDone ends a round.
type guestDone struct {
	Made      int      `json:"made"`
	Stuck     []string `json:"stuck,omitempty"`     // workers that did not end
	Undecided []string `json:"undecided,omitempty"` // why nothing was shown
}

const (
	pingEvery = time.Second / 2
	// guestEvents bounds what a machine may tell in a round.
	guestEvents = eventsMost
)

// A guest is a machine that has joined, as the judge sees it.
type guest struct {
	conn  net.Conn
	in    lineReader
	out   *lineWriter
	czxid int64  // of the root
	root  string // of the run
	began time.Time

	mu    sync.Mutex // guards what follows
	pings map[uint64]time.Time
	last  uint64
	slow  time.Duration // the longest that a message and its answer took, in a round
	heard time.Time     // when the last message came
}

func newGuest(conn net.Conn) *guest {
	return &guest{
		conn: conn, in: newLineReader(conn), out: newLineWriter(conn),
		pings: map[uint64]time.Time{}, began: time.Now(),
	}
}

func (g *guest) close() { _ = g.conn.Close() }

// dismiss lets a machine know that the run has ended.
func (g *guest) dismiss() {
	_ = g.conn.SetWriteDeadline(time.Now().Add(goneAfter)) // else writing fails
	_ = g.out.write(toGuest{End: true})                    // else it has gone
	g.close()
}

// next reads a message.
func (g *guest) next(m *fromGuest) error {
	err := g.in.next(m)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = time.Now()
	return err
}

// A guestGone says that a machine is out of reach.
type guestGone struct{ why error }

func (g *guestGone) Error() string {
	return "a machine that had joined is gone: " + g.why.Error()
}

func (g *guestGone) Unwrap() error { return g.why }

// run implements host. What the machine tells is believed, within bounds. Of one that is
// gone nobody knows what its workers do: to the checks they are stopped for ever.
func (g *guest) run(ctx context.Context, o roundOrder, to bench) (made int, err error) {
	stop := context.AfterFunc(ctx, g.dismiss)
	defer stop()
	err = g.out.write(toGuest{Order: &guestOrder{o, g.root, g.czxid}})
	if err != nil {
		return 0, &guestGone{err}
	}
	pinging, end := context.WithCancel(ctx)
	defer end()
	go g.ping(pinging)
	workers, its := map[int]bool{}, &clock{over: o.Session}
	done, err := g.listen(o, to, workers, its)
	if err != nil {
		for number := range workers {
			to.take((&worker{number: number}).event(simulator.Paused), nil)
		}
		return 0, err
	}
	return max(0, done.Made), done.err()
}

// errImpossible is why a machine is not listened to any more.
var errImpossible = errors.New("it told what cannot be")

// goneAfter is when a machine that says nothing is out of reach: it answers pings.
const goneAfter = 10 * time.Second

// listen passes on what the machine tells, until the round has ended there.
func (g *guest) listen(
	o roundOrder, to bench, workers map[int]bool, its *clock,
) (*guestDone, error) {
	for events := 0; ; {
		// Of writing, too: one that does not read must not hold up the run.
		_ = g.conn.SetDeadline(time.Now().Add(goneAfter)) // else both fail
		var m fromGuest
		if err := g.next(&m); err != nil {
			return nil, &guestGone{err}
		}
		switch {
		case m.Pong > 0:
			if wrong := g.pong(m, its); wrong != "" {
				to.take(clockEvent(o.First, "machine", wrong), nil)
			}
		case m.Done != nil:
			return m.Done, g.conn.SetDeadline(time.Time{})
		case m.Event == nil:
		default:
			if events++; events > guestEvents || !o.mayTell(*m.Event) {
				return nil, &guestGone{errImpossible}
			}
			if m.Event.Worker >= o.First {
				workers[m.Event.Worker] = true
			}
			m.Event.Text = cutText(m.Event.Text)
			to.take(*m.Event, func() { _ = g.out.write(toGuest{Taken: m.Number}) })
		}
	}
}

// mayTell tells whether an event can be one of the round, and of that machine.
func (o roundOrder) mayTell(e simulator.Event) bool {
	ours := e.Worker >= o.First && e.Worker < o.First+workersApart
	switch e.Kind {
	case simulator.Note, simulator.Over, simulator.Expired, simulator.Removing,
		simulator.Removed: // which are of no worker
		ours = ours || e.Worker == 0
	case simulator.Calm:
		return false
	}
	below := func(path string) bool {
		return path == "" || strings.HasPrefix(path, o.Root+"/")
	}
	return ours && below(e.Path) && below(e.Node)
}

func (d *guestDone) err() error {
	var all []error
	for _, text := range d.Stuck {
		all = append(all, &stuckError{-1, text})
	}
	for _, text := range d.Undecided {
		all = append(all, &undecidedError{errors.New(text)})
	}
	return errors.Join(all...)
}

// ping finds out how long messages are under way: by so much the judge is late, too.
func (g *guest) ping(ctx context.Context) {
	for ; ctx.Err() == nil; faults.Sleep(ctx, pingEvery) {
		g.mu.Lock()
		g.last++
		n := g.last
		g.pings[n] = time.Now()
		g.mu.Unlock()
		if g.out.write(toGuest{Ping: n}) != nil {
			return
		}
	}
}

// pong takes an answer, and returns what is wrong with the machine's clock.
func (g *guest) pong(m fromGuest, its *clock) (wrong string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sent, ok := g.pings[m.Pong]
	if !ok {
		return ""
	}
	g.slow = max(g.slow, time.Since(sent))
	delete(g.pings, m.Pong)
	return its.take(reading{sent.Sub(g.began), time.Since(g.began), m.Clock})
}

// late is by how much what the machine told was late at worst, since the last call.
func (g *guest) late() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	slow := max(g.slow, time.Since(g.heard)-2*pingEvery)
	g.slow = 0
	clear(g.pings)
	return slow
}

// Join takes part in the run of another machine, until that ends.
func Join(ctx context.Context, address, text string, h Host) error {
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	conn, err := dialDoor(ctx, address, t)
	if err != nil {
		return fmt.Errorf("--join %s: %w", address, err)
	}
	defer conn.Close()
	return h.visit(ctx, conn, t)
}

// visit takes part by a connection.
func (h Host) visit(ctx context.Context, conn net.Conn, t token) error {
	v := &visitor{Host: h, conn: conn, out: newLineWriter(conn), began: time.Now()}
	asked := ctx
	ctx, v.cancel = context.WithCancelCause(ctx)
	defer v.cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err := v.out.write(fromGuest{Hello: &hello{fileFormat, t.secret[:]}})
	if err != nil {
		return err
	}
	err = readLines(conn, func(m toGuest) error { return v.take(ctx, m) })
	v.cancel(errGone)
	v.told.close()
	v.rounds.Wait()
	switch {
	case errors.Is(err, errEndOfRun):
		return nil
	case asked.Err() != nil:
		return context.Cause(asked)
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return errGone
	}
	return err
}

// errEndOfRun says that all is over.
var errEndOfRun = errors.New("the run has ended")

// A visitor is this machine in the run of another one.
type visitor struct {
	Host
	conn   net.Conn
	out    *lineWriter
	cancel context.CancelCauseFunc
	rounds sync.WaitGroup
	told   ledger
	began  time.Time

	mu   sync.Mutex // guards what follows
	busy bool       // a round is under way
}

// expectLocked has the judge say something soon, or not: it pings in rounds.
func (v *visitor) expectLocked() {
	var until time.Time
	if v.busy {
		until = time.Now().Add(goneAfter)
	}
	_ = v.conn.SetDeadline(until) // else reading fails
}

// take takes a message of the judge's.
func (v *visitor) take(ctx context.Context, m toGuest) error {
	v.mu.Lock()
	v.expectLocked()
	v.mu.Unlock()
	switch {
	case m.End:
		return errEndOfRun
	case m.Ping > 0:
		return v.out.write(fromGuest{Pong: m.Ping, Clock: time.Since(v.began)})
	case m.Taken > 0:
		v.told.taken(m.Taken)
	case m.Order != nil:
		return v.begin(ctx, *m.Order)
	}
	return nil
}

// begin begins a round.
func (v *visitor) begin(ctx context.Context, o guestOrder) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.busy || o.Workers < 1 || o.Workers > mostWorker || o.Session <= 0 ||
		o.Length <= 0 || o.Length > sessionMost || o.Rate <= 0 || o.Rate > mostRate ||
		!strings.HasPrefix(o.Root, o.RunRoot+"/") {
		return errors.New("an order that no run gives")
	}
	v.busy = true
	v.expectLocked()
	v.rounds.Go(func() {
		done := guestDone{}
		err := v.isSameEnsemble(ctx, o)
		if err == nil {
			done.Made, err = v.run(ctx, o.roundOrder, messenger{v})
		}
		for _, one := range flat(err) {
			var stuck *stuckError
			if errors.As(one, &stuck) {
				done.Stuck = append(done.Stuck, cutText(one.Error()))
			} else {
				done.Undecided = append(done.Undecided, cutText(one.Error()))
			}
		}
		v.mu.Lock()
		v.busy = false
		v.expectLocked()
		v.mu.Unlock()
		_ = v.out.write(fromGuest{Done: done.bounded()}) // else the judge has gone
	})
	return nil
}

// bounded fits into a message.
func (d guestDone) bounded() *guestDone {
	const most = lineMost / textMost / 4
	d.Stuck = d.Stuck[:min(len(d.Stuck), most)]
	d.Undecided = d.Undecided[:min(len(d.Undecided), most)]
	return &d
}

// errAnotherEnsemble says that two machines do not prove the same.
var errAnotherEnsemble = errors.New(
	"this machine's servers do not have the root of the run: are they another ensemble?")

func (v *visitor) isSameEnsemble(ctx context.Context, o guestOrder) error {
	client, err := v.Connect(ctx, o.Session)
	if err != nil {
		return err
	}
	defer client.Close()
	return isRoot(client, o.RunRoot, o.Czxid)
}

func isRoot(client *recipes.Client, path string, czxid int64) error {
	if _, err := client.Sync(path); err != nil {
		return err
	}
	_, stat, err := client.Get(path)
	if err != nil || stat.Czxid != czxid {
		return errors.Join(errAnotherEnsemble, err)
	}
	return nil
}

// A messenger is the bench of a visitor.
type messenger struct{ *visitor }

// take implements bench.
func (b messenger) take(e simulator.Event, taken func()) {
	if taken == nil {
		taken = func() {}
	}
	b.told.tell(func(number uint64) {
		// Where it fails the judge has gone, which ends all.
		_ = b.out.write(fromGuest{Number: number, Event: &e})
	}, taken)
}
