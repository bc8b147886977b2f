package zkconn_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

var errEnough = errors.New("enough")

// fake is a client of a server that has every znode asked for, and can be made silent,
// disconnected or closed. Only what the tests use is there: a call of anything else
// panics.
type fake struct {
	zkconn.Client

	mu      sync.Mutex
	id      int64
	state   zk.State
	latency time.Duration
	err     error                    // what calls end with
	mute    chan struct{}            // calls hang until it is closed; nil: they do not
	syncs   int                      // how many Syncs were sent
	heard   time.Time                // when the last Sync was sent that was answered
	watches map[string]chan zk.Event // pending, by path
	set     int                      // how many watches were set
	lists   int                      // how many lists without a watch were sent
	czxid   int64                    // of all znodes
	gone    bool                     // they go as soon as they were watched
	deleted func() error             // what a delete ends with, at once; may be nil

	containers error // what a create of one ends with
}

func newFake() *fake {
	return &fake{id: 1, state: zk.StateHasSession, watches: map[string]chan zk.Event{}}
}

func (f *fake) SessionID() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

func (f *fake) State() zk.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fake) Sync(path string) (string, error) {
	sent := time.Now()
	f.change(func() { f.syncs++ })
	if err := f.answer(); err != nil {
		return "", err
	}
	f.change(func() { f.heard = sent })
	return path, nil
}

func (f *fake) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	f.change(func() { f.set++ })
	if err := f.answer(); err != nil {
		return nil, nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	events := make(chan zk.Event, 1)
	if f.gone {
		events <- zk.Event{Type: zk.EventNodeDeleted, Path: path}
		close(events)
	} else {
		f.watches[path] = events
	}
	return []byte("watched"), &zk.Stat{Czxid: f.czxid}, events, nil
}

func (f *fake) Children(string) ([]string, *zk.Stat, error) {
	f.change(func() { f.lists++ })
	return []string{"child"}, &zk.Stat{}, f.answer()
}

func (f *fake) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	_, stat, events, err := f.GetW(path + "/children")
	return []string{"child"}, stat, events, err
}

// Delete is answered also by a server that is mute.
func (f *fake) Delete(string, int32) error {
	f.mu.Lock()
	deleted := f.deleted
	f.mu.Unlock()
	if deleted == nil {
		return nil
	}
	return deleted()
}

func (f *fake) Create(path string, _ []byte, _ int32, _ []zk.ACL) (string, error) {
	return path, f.answer()
}

func (f *fake) CreateContainer(
	path string, _ []byte, _ int32, _ []zk.ACL,
) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return path, f.containers
}

func (f *fake) Get(string) ([]byte, *zk.Stat, error) {
	return []byte("read"), &zk.Stat{}, f.answer()
}

// answer takes as long as the server, and is what it says at the end.
func (f *fake) answer() error {
	f.mu.Lock()
	latency, mute := f.latency, f.mute
	f.mu.Unlock()
	time.Sleep(latency)
	if mute != nil {
		<-mute
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// change changes the fake under its mutex.
func (f *fake) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

// silence makes all calls that begin from now on hang, until end lets them go, failed.
func (f *fake) silence() (end func()) {
	mute := make(chan struct{})
	f.change(func() { f.mute = mute })
	return func() {
		f.change(func() { f.mute, f.err = nil, zk.ErrConnectionClosed })
		close(mute)
		synctest.Wait()
		f.change(func() { f.err = nil })
	}
}

// beats returns how many Syncs were sent.
func (f *fake) beats() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// lastHeard returns when the last Sync was sent that was answered.
func (f *fake) lastHeard() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// watchesSet returns how many watches were asked for.
func (f *fake) watchesSet() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set
}

// fire ends the watch on path with a change of the znode.
func (f *fake) fire(path string, what zk.EventType) {
	f.end(path, zk.Event{Type: what, Path: path})
}

// end ends the watch on path as the client does: one event, and the channel is closed.
func (f *fake) end(path string, with zk.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches[path] <- with
	close(f.watches[path])
	delete(f.watches, path)
}

// reconnect has the connection away for a while, which the ticks see.
func (f *fake) reconnect() {
	f.change(func() { f.state = zk.StateDisconnected })
	time.Sleep(time.Second)
	f.change(func() { f.state = zk.StateHasSession })
}

// use returns the Session of conn to a user who knows the given session timeout and is
// done when the test ends.
func use(t *testing.T, conn zkconn.Client, timeout time.Duration) *zkconn.Conn {
	t.Helper()
	return useWith(t, conn, config(timeout))
}

// useWrapped is use for a connection of no known kind.
func useWrapped(
	t *testing.T, conn zkconn.Client, timeout time.Duration,
) *zkconn.Conn {
	t.Helper()
	cfg := config(timeout)
	cfg.Plain = false
	return useWith(t, conn, cfg)
}

func useWith(t *testing.T, conn zkconn.Client, cfg zkconn.Config) *zkconn.Conn {
	t.Helper()
	s := zkconn.Use(conn, cfg)
	t.Cleanup(func() {
		s.Release()
		// Calls under way end by themselves; one that does not fails the test.
		time.Sleep(2 * time.Minute)
	})
	return s
}

func config(timeout time.Duration) zkconn.Config {
	return zkconn.Config{
		Timeout: func() time.Duration { return timeout }, Advice: "ask", Plain: true,
		InOrder: true,
	}
}

// ephemeral is a znode that notes when and why it was lost.
type ephemeral struct {
	lost chan struct{} // closed at the first loss
	once sync.Once
	at   time.Time
	why  error
}

func newEphemeral() *ephemeral { return &ephemeral{lost: make(chan struct{})} }

func (l *ephemeral) Lose(cause error) {
	l.once.Do(func() {
		l.at, l.why = time.Now(), cause
		close(l.lost)
	})
}

// await waits for the loss.
func (l *ephemeral) await(t *testing.T) {
	t.Helper()
	select {
	case <-l.lost:
	case <-time.After(time.Hour):
		t.Fatal("not told of the loss within an hour")
	}
}

// isLost tells what has happened up to now.
func (l *ephemeral) isLost() bool {
	synctest.Wait()
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// contact makes one call that the clock takes notice of.
func contact(s *zkconn.Conn) error { return s.Sync("/x") }

// awaitReady waits until s has a session.
func awaitReady(ctx context.Context, s *zkconn.Conn) error {
	return s.Retry(ctx, func() error { return nil })
}

// cancelled returns a ctx that is done, with a cause.
func cancelled(t *testing.T, cause error) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}
