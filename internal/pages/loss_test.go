package pages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A loss is a run, in virtual time, in which process A holds a lock and process B waits
// for it, with what happened.
type loss struct {
	t       *testing.T
	cluster *zktest.Cluster
	a       *process
	next    *recipes.InterProcessMutex // B's
	hold    *recipes.Hold              // A's
	store   fencedStore

	mu       sync.Mutex // guards answered and lost
	answered []time.Time
	lost     time.Time

	inherited chan struct{} // closed when B has been granted the lock
	// Set before inherited is closed.
	granted time.Time
	heir    *recipes.Hold // B's
	unaware bool          // A did not know of its loss by then
}

const (
	sessionTimeout = 10 * time.Second
	lossMargin     = 2 * time.Second
	// For so long A has held the lock when it begins: not for a multiple of the tenths of
	// a second at which the library looks at the connection, since the order of what
	// happens at one moment differs.
	settled = 2*sessionTimeout + 950*time.Millisecond

	holds = "holds the lock"
)

// A process is a client that can be suspended: what the library does at a time of its
// own begins by asking for the connection's state, and gets no answer while the process
// is suspended.
type process struct {
	*recipes.Client
	running chan struct{} // holds an element while the process is suspended
}

func (p *process) Unwrap() recipes.Conn { return p.Client }

func (p *process) State() zk.State {
	p.running <- struct{}{}
	defer func() { <-p.running }()
	return p.Client.State()
}

// A fencedStore rejects a write with a token lower than one that it has seen.
type fencedStore struct{ seen int64 }

var errStale = errors.New("the token is stale")

func (s *fencedStore) write(token int64) error {
	if token < s.seen {
		return errStale
	}
	s.seen = token
	return nil
}

// newLoss returns once A has held the lock for a while, and B waits for it.
func newLoss(t *testing.T, opts ...recipes.Option) *loss {
	l := &loss{t: t, cluster: zktest.Start(t), inherited: make(chan struct{})}
	l.a = &process{l.connect("A", l.hear), make(chan struct{}, 1)}
	b := l.connect("B", func(wiretap.Packet) {})
	lock, err := recipes.NewInterProcessMutex(l.a, dir, opts...)
	require.NoError(t, err)
	l.next, err = recipes.NewInterProcessMutex(b, dir)
	require.NoError(t, err)
	l.hold, err = recipes.Acquire(t.Context(), lock)
	require.NoError(t, err)
	go func() {
		<-l.hold.Lost()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost = time.Now()
	}()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	go l.inherit(ctx)
	time.Sleep(settled)
	return l
}

func (l *loss) connect(name string, hear func(wiretap.Packet)) *recipes.Client {
	tap := wiretap.New(l.cluster.Link(name).Dial)
	tap.OnReply(func(request, _ wiretap.Packet) wiretap.Verdict {
		hear(request)
		return wiretap.Pass
	})
	client, err := recipes.Connect(
		l.t.Context(), strings.Join(l.cluster.Names(), ","), sessionTimeout,
		recipes.WithDialer(tap.Dial),
	)
	require.NoError(l.t, err)
	l.t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	return client
}

func (l *loss) hear(request wiretap.Packet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = append(l.answered, request.At)
}

// inherit waits for the lock as process B.
func (l *loss) inherit(ctx context.Context) {
	heir, err := recipes.Acquire(ctx, l.next)
	if err != nil {
		return
	}
	l.granted, l.heir, l.unaware = time.Now(), heir, l.hold.Err() == nil
	close(l.inherited)
}

// confirmed is when A sent the last request by which it counts: the one whose answer let
// the leader know of it for certain, as the loss of a hold without a margin shows.
func (l *loss) confirmed(margin time.Duration) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	const share = 20 // a twentieth is left
	at := l.lost.Add(margin - sessionTimeout + sessionTimeout/share)
	require.Contains(l.t, l.answered, at, "nothing was sent 0.95 T before Lost closed")
	return at
}

// The lanes of an outage.
const (
	laneNetwork = iota
	laneA
	laneSession
	laneB
)

// cut cuts A off, for a while or, for 0, until the end, and returns when.
func (l *loss) cut(length time.Duration) time.Time {
	at := time.Now()
	link := l.cluster.Link("A")
	link.Stall(zktest.Both)
	if length > 0 {
		time.Sleep(length)
		link.Heal()
	}
	time.Sleep(2 * sessionTimeout)
	return at
}

// outage draws a run from the moment that is called 0 s on.
func (l *loss) outage(title string, zero, cut time.Time, length time.Duration) *timeline {
	l.mu.Lock() // the heartbeats go on
	defer l.mu.Unlock()
	const shown = 18 * time.Second
	drawn := &timeline{
		title: title, lanes: []string{"network", "process A", "A's session", "process B"},
		length: shown, unit: 2 * time.Second,
	}
	began := cut.Sub(zero)
	add := func(s stretch) { drawn.spans = append(drawn.spans, s) }
	for _, at := range l.answered {
		if d := at.Sub(zero); d >= 0 && d <= shown {
			s := stretch{look: tick, from: d}
			if d == 0 {
				s.text = "last confirmed"
			}
			add(s)
		}
	}
	if length == 0 {
		length = shown - began
	}
	add(stretch{look: outage, from: began, to: began + length, text: "outage"})
	if l.lost.IsZero() {
		add(stretch{lane: laneA, look: held, to: shown, text: holds + " throughout"})
		add(stretch{lane: laneSession, look: alive, to: shown})
		add(stretch{lane: laneB, look: waits, to: shown, text: "waits"})
		return drawn
	}
	<-l.inherited
	drawn.vertical = sessionTimeout
	lostAt, grantedAt := l.lost.Sub(zero), l.granted.Sub(zero)
	add(stretch{lane: laneA, look: held, to: lostAt, text: holds})
	add(stretch{lane: laneA, look: left, from: lostAt, to: sessionTimeout})
	add(stretch{
		lane: laneA, look: lost, from: lostAt, before: true,
		text: "Lost closes at " + seconds(lostAt),
	})
	add(stretch{lane: laneSession, look: alive, to: grantedAt})
	add(stretch{lane: laneB, look: waits, to: grantedAt, text: "waits"})
	add(stretch{lane: laneB, look: held, from: grantedAt, to: shown, text: holds})
	return drawn
}

// suspension suspends A for three session timeouts, at whose end it writes.
func (l *loss) suspension(title string) *timeline {
	const length, shown = 3 * sessionTimeout, 36 * time.Second
	link, zero := l.cluster.Link("A"), time.Now()
	link.Freeze()
	l.a.running <- struct{}{}
	<-l.inherited
	require.True(l.t, l.unaware)
	time.Sleep(time.Second) // B works
	written := time.Since(zero)
	require.NoError(l.t, l.store.write(l.heir.FencingToken()))
	time.Sleep(length - written)
	link.Thaw()
	late := time.Since(zero)
	require.ErrorIs(l.t, l.store.write(l.hold.FencingToken()), errStale)
	<-l.a.running
	<-l.hold.Lost()
	synctest.Wait() // until that is recorded
	l.mu.Lock()
	defer l.mu.Unlock()
	granted := l.granted.Sub(zero)
	token := func(of string, h *recipes.Hold) string {
		return fmt.Sprintf("%s, token %d: ", of, h.FencingToken())
	}
	return &timeline{
		title: title, lanes: []string{"process A", "process B", "store"},
		length: shown, unit: 5 * time.Second, spans: []stretch{
			{look: suspended, to: length, text: "suspended, just before it writes"},
			{look: lost, from: l.lost.Sub(zero), text: "Lost closes"},
			{lane: 1, look: waits, to: granted, text: "waits"},
			{lane: 1, look: held, from: granted, to: shown, text: holds},
			{
				lane: 2, look: accepted, from: written,
				text: token("B", l.heir) + "accepted",
			},
			{
				lane: 2, look: refused, from: late, before: true,
				text: token("A", l.hold) + "rejected",
			},
		},
	}
}

// lossScene plays what guarantees.md says of a loss.
func lossScene(t *testing.T) (d drawing) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := lossTimelines(t)
		d = drawn(func(colors palette) []byte {
			const title = "How a hold is lost, with a session timeout T of 10 s"
			return timelines(colors, title, all)
		})
	})
	return d
}

func lossTimelines(t *testing.T) []*timeline {
	const short = 4 * time.Second
	long := newLoss(t)
	cut := long.cut(0)
	zero := long.confirmed(0)

	brief := newLoss(t)
	briefly := brief.cut(short)
	require.NoError(t, brief.hold.Err())

	careful := newLoss(t, recipes.WithLossMargin(lossMargin))
	carefully := careful.cut(0)

	return []*timeline{
		long.outage("A long outage: Lost closes before B is granted the lock",
			zero, cut, 0),
		brief.outage("An outage of 4 s: nothing is lost",
			briefly.Add(zero.Sub(cut)), briefly, short),
		careful.outage("WithLossMargin(2 s): Lost closes 2 s earlier",
			careful.confirmed(lossMargin), carefully, 0),
		newLoss(t).suspension(
			"A is suspended for 30 s: the store rejects its late write"),
	}
}
