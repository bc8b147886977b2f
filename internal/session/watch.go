package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// The client keeps a channel for every watch until it fires, and cannot remove one. So there is at most one pending watch
// for a path, and all who wait for that path, one after the other too, wait on it: ten thousand impatient callers cost one.

type watchKey struct {
	path     string
	children bool
}

type watch struct {
	set    *Pending[struct{}]
	events <-chan zk.Event // set once set is done; closed behind its only event
}

// fired tells whether the watch is over, or was never set.
func (w *watch) fired() bool {
	_, over := w.event()
	return over
}

// event returns what the watch fired with, unless one of those who share it has that
// already.
func (w *watch) event() (ev zk.Event, over bool) {
	select {
	case <-w.set.done:
	default:
		return ev, false
	}
	if w.set.err != nil {
		return ev, true
	}
	select {
	case ev = <-w.events:
		return ev, true
	default:
		return ev, false
	}
}

// saidClosed tells whether a watch that nobody waits for was ended by the connection's
// close.
func (s *Session) saidClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if ev, _ := w.event(); errors.Is(ev.Err, zk.ErrClosing) {
			return true
		}
	}
	return false
}

// Watch returns a channel that ends with the next change of the znode's data or with its deletion. The event itself
// reaches only one of those who share the watch; the others receive a zero zk.Event, which says nothing. A
// watch that was set earlier serves as well as a new one: it is pending, so nothing has happened since.
// zk.ErrNoNode says that there is no such znode.
func (s *Session) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	w, isNew := s.watchOf(watchKey{path, false})
	if isNew {
		w.set.run(func() (struct{}, error) {
			var err error
			_, _, w.events, err = s.GetW(path)
			return struct{}{}, err
		})
	}
	if _, err := w.set.Wait(ctx); err != nil {
		return nil, err
	}
	return w.events, nil
}

// Missing tells whether the server says that there is no such znode. It takes a small
// read.
func (s *Session) Missing(ctx context.Context, path string) bool {
	_, err := Call(ctx, s, func() ([]byte, error) {
		data, _, err := s.Get(path)
		return data, err
	})
	return errors.Is(err, zk.ErrNoNode)
}

// WatchChildren returns the children of the znode and a channel that ends with the next change of them, shared like Watch's.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	type listing struct {
		children []string
		stat     *zk.Stat
	}
	var l listing
	w, isNew := s.watchOf(watchKey{path, true})
	if isNew {
		w.set.run(func() (struct{}, error) {
			var err error
			l.children, l.stat, w.events, err = s.childrenW(path)
			return struct{}{}, err
		})
	}
	_, err := w.set.Wait(ctx)
	if err == nil && !isNew { // listed behind the watch, so that nothing goes unseen
		l, err = Call(ctx, s, func() (l listing, err error) {
			l.children, l.stat, err = s.Children(path)
			return l, err
		})
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return l.children, l.stat, w.events, nil
}

func (s *Session) watchOf(key watchKey) (w *watch, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[key]; w != nil && !w.fired() {
		return w, false
	}
	if len(s.watches) >= s.sweepAt {
		s.sweepLocked()
		s.sweepAt = max(16, 2*len(s.watches))
	}
	w = &watch{set: newPending[struct{}](s)}
	s.watches[key] = w
	return w, true
}

// sweepLocked forgets the watches that are over.
func (s *Session) sweepLocked() {
	for key, w := range s.watches {
		if w.fired() {
			delete(s.watches, key)
		}
	}
}
