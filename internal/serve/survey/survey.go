package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

// A Config says what a Survey looks at, and how often.
type Config struct {
	Roots   []string      // it looks at these paths, and at what is below them
	Rate    float64       // requests a second of a walk
	PerLock float64       // looks a second at one directory
	Rescan  time.Duration // between two walks
	Old     time.Duration // what is held for longer is a finding
	NoData  bool          // it asks for no data
	// Addresses says how to learn those of sessions. nil: they are not known.
	Addresses *Addresses
	// Seen is called with each event, in order for each lock. It must not wait, or call
	// the Survey. nil: nobody cares.
	Seen func(Event)
}

// Limits of what is known. They bound what a stranger can make a Survey keep.
const (
	// dirsAtMost is how many directories are watched.
	dirsAtMost = 50_000
	// childrenAtMost is how many children of a directory are listed: the list is one
	// reply of some 60 bytes for each.
	childrenAtMost = 20_000
	// queueAtMost is how many participants of a directory are read.
	queueAtMost = 1_000
	// notesAtMost is how many paths are kept of what is wrong, of each kind.
	notesAtMost = 1_000
	// historyAtMost is how many stays are kept in all.
	historyAtMost = 50_000
	// lookers look at what has changed, at the same time.
	lookers = 16
	// readsAtOnce are under way for one look.
	readsAtOnce = 16
	// retry is how long to wait after an error of the connection.
	retry = time.Second
	// rootRetry is how long to wait for a root that does not exist.
	rootRetry = 5 * time.Second
)

// A Survey knows the locks of a cluster. It is safe for concurrent use.
type Survey struct {
	config Config
	ask    *asker
	pacer  pacer
	todo   chan *dir     // what is to be looked at
	fresh  chan string   // paths that have just been created
	again  chan struct{} // asks for another walk; of capacity 1

	running sync.WaitGroup // all goroutines

	mu         sync.Mutex // guards what follows
	dirs       map[string]*dir
	locks      map[string]*lock
	skipped    notes             // why a path could not be looked at
	unrelated  notes             // znodes in the directories of locks that are no locks
	addresses  map[string]string // of the connections, by session
	exceeded   notes             // limits of what is known, as a finding says them
	registered map[string]visited
	visiting   map[string]bool // paths that are to be visited again
	history    history
	clock      clock
	contact    time.Time     // a request that was sent then was answered
	began      time.Time     // when the last walk began
	round      int           // the number of the last walk
	walked     time.Time     // when the last walk ended; zero: none has
	version    uint64        // grows with each change
	wake       chan struct{} // closed at the next change
}

// New returns a Survey of the cluster of a client.
func New(client *recipes.Client, config Config) *Survey {
	return &Survey{
		config: config, ask: &asker{client: client},
		pacer: newPacer(config.Rate),
		todo:  make(chan *dir), fresh: make(chan string), again: make(chan struct{}, 1),
		dirs: map[string]*dir{}, locks: map[string]*lock{},
		skipped: notes{}, unrelated: notes{}, exceeded: notes{},
		registered: map[string]visited{},
		visiting:   map[string]bool{},
		history:    history{most: historyAtMost},
		contact:    time.Now(), wake: make(chan struct{}),
	}
}

// Run surveys until ctx is done, and returns when all that it has started has ended.
func (s *Survey) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range lookers {
		s.running.Go(func() {
			for {
				select {
				case d := <-s.todo:
					s.look(ctx, d)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	s.running.Go(func() { s.pulse(ctx) })
	s.running.Go(func() { s.strangers(ctx) })
	if s.config.Addresses != nil {
		s.running.Go(func() { s.learnAddresses(ctx) })
	}
	s.running.Go(func() { cancel(s.walks(ctx)) })
	<-ctx.Done()
	s.running.Wait()
	return context.Cause(ctx)
}

// pulse asks for a sign of life each second, so that an outage shows at once.
func (s *Survey) pulse(ctx context.Context) {
	for ctx.Err() == nil {
		sent := time.Now()
		if err := s.ask.sync(); err == nil {
			s.mu.Lock()
			s.contact = sent
			s.mu.Unlock()
		}
		sleep(ctx, time.Until(sent.Add(time.Second)))
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// walks walks through all roots, now, each Rescan, and when watches have been lost.
func (s *Survey) walks(ctx context.Context) error {
	for {
		if err := s.walk(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(s.config.Rescan):
		case <-s.again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// changedLocked tells those who follow that something has changed.
func (s *Survey) changedLocked() {
	s.version++
	close(s.wake)
	s.wake = make(chan struct{})
}

// Next returns a channel that is closed at the next change.
func (s *Survey) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wake
}

// Requests is how many requests were sent so far.
func (s *Survey) Requests() Requests { return s.ask.requests() }

// failed takes note of a path that could not be looked at.
func (s *Survey) failed(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped.add(path, reason(err), s.round)
	s.changedLocked()
}

// notes are what walks have met, by path or by text. The number of the walk makes each
// last until a later walk has ended without it.
type notes map[string]note

type note struct {
	text string
	walk int
}

func (n notes) add(key, text string, walk int) {
	if _, known := n[key]; known || len(n) < notesAtMost {
		n[key] = note{text, walk}
	}
}

// forget drops what was not met since a walk began.
func (n notes) forget(walk int) {
	maps.DeleteFunc(n, func(_ string, one note) bool { return one.walk < walk })
}

// reason says in a few words why a path could not be looked at.
func reason(err error) string {
	var long tooLong
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return "no permission to read it"
	case errors.As(err, &long):
		return long.Error()
	}
	return err.Error()
}

// A tooLong says that a directory has more children than are listed.
type tooLong int32

// Error implements error.
func (n tooLong) Error() string {
	return fmt.Sprintf("it has %d children, and at most %d are listed", int32(n),
		childrenAtMost)
}
