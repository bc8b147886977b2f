package survey

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// walk goes through all that is below the roots, and looks at what is not watched yet. It
// fails only with ctx.
func (s *Survey) walk(ctx context.Context) error {
	s.mu.Lock()
	s.began = s.clock.now()
	s.round++
	s.mu.Unlock()
	for _, root := range s.config.Roots {
		if _, err := s.visit(ctx, root, true); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walked = s.clock.now()
	s.forgetLocked()
	s.changedLocked()
	return nil
}

// strangers visits what has been created in a directory that is watched, or may have
// been.
func (s *Survey) strangers(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case path := <-s.fresh:
			s.mu.Lock()
			delete(s.visiting, path) // what changes from now on is worth another visit
			s.mu.Unlock()
			_, _ = s.visit(ctx, path, true) // it fails only with ctx
		case <-ctx.Done():
		}
	}
}

// pace returns once n requests of a walk may be sent.
func (s *Survey) pace(ctx context.Context, n int) error {
	for range n {
		if err := s.pacer.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// insist sends a request of a walk, again for as long as the connection fails. What can
// be asked of no path ends it, and so does ctx.
func (s *Survey) insist(ctx context.Context, path string, ask func() error) error {
	for {
		if err := s.pace(ctx, 1); err != nil {
			return err
		}
		switch err := ask(); {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return err
		case isOfPath(err):
			s.failed(path, err)
			return err
		}
		sleep(ctx, retry)
	}
}

// visit walks from a path downwards, and reports whether a lock is at the path, or may
// be. likely says that the znode is watched unless it is certainly none: it is a root, or
// has just been created among locks. It fails only with ctx.
func (s *Survey) visit(
	ctx context.Context, path string, likely bool,
) (isLock bool, err error) {
	if path == "/zookeeper" {
		return false, nil
	}
	children, watched, isLock := s.known(path)
	if !watched {
		children, isLock, err = s.enter(ctx, path, likely)
	} else if isLock {
		err = s.rights(ctx, path)
	}
	if err != nil {
		return false, ctxError(ctx)
	}
	hasLocks := false
	for _, child := range queues.Below(path, children) {
		inside := zkpath.Join(path, child)
		below, err := s.visit(ctx, inside, false)
		if err != nil {
			return false, err
		}
		_, isWatched, _ := s.known(inside)
		hasLocks = hasLocks || below || isWatched || s.isRegistered(inside)
		if isLock && !below && child != queues.MarkName {
			s.addUnrelated(inside)
		}
	}
	if hasLocks && !isLock && !watched {
		if err := s.first(ctx, path, children, len(children)); err != nil {
			return false, ctxError(ctx)
		}
	}
	return isLock, nil
}

// ctxError is the error of ctx; nil if that is not done.
func ctxError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// addUnrelated takes note of a znode in the path of a lock that no lock creates.
func (s *Survey) addUnrelated(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unrelated.add(path, "", s.round)
}

// known returns what is known of a directory.
func (s *Survey) known(path string) (children []string, watched, isLock bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirs[path]
	if d == nil || !d.watched {
		return nil, false, false
	}
	idle := d.stat != nil && mayBecomeLock(d.stat) && len(d.children) == 0
	return d.children, true, d.lock.recipe != "" || idle
}

// mayBecomeLock tells of a znode without children whether it may be a lock's that nobody
// uses: it has had children. (Clients are not told which znodes are containers.)
func mayBecomeLock(stat *zk.Stat) bool { return stat.Cversion > 0 }

// enter looks at a znode that is not watched, and watches it if it is a lock, or may
// become one, or is likely to.
func (s *Survey) enter(
	ctx context.Context, path string, likely bool,
) (children []string, isLock bool, err error) {
	var stat *zk.Stat
	var exists bool
	err = s.insist(ctx, path, func() (err error) {
		exists, stat, err = s.ask.exists(path)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case !exists && likely:
		s.forgetRegistration(path)
		s.later(ctx, path)
		return nil, false, nil
	case !exists:
		s.forgetRegistration(path)
		return nil, false, nil
	case queues.Owned(stat):
		return nil, false, s.register(ctx, path)
	case stat.NumChildren > childrenAtMost:
		s.failed(path, tooLong(stat.NumChildren))
		return nil, false, nil
	}
	if likely = likely || s.isFresh(stat); stat.NumChildren > 0 {
		err = s.insist(ctx, path, func() (err error) {
			children, _, err = s.ask.list(path)
			return err
		})
		lock := queues.LockAt(path, children)
		if isLock = lock == path; !isLock && lock != "" {
			s.leased(ctx, lock)
			return children, true, nil
		}
	} else {
		isLock = mayBecomeLock(stat)
	}
	if err == nil && (isLock || likely) {
		err = s.first(ctx, path, children, len(queues.Queued("", children)))
	}
	if err == nil && isLock {
		err = s.rights(ctx, path)
	}
	return children, isLock, err
}

// leased takes note of a semaphore that was found by its leases.
func (s *Survey) leased(ctx context.Context, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lockAtLocked(path)
	l.leased = true
	if d := l.dirs[0]; d != nil && d.watched {
		s.enterSemaphoreLocked(ctx, l)
	}
}

// freshFor is for how long a znode is fresh: whoever has created it may be about to
// create more in it.
const freshFor = 10 * time.Second

// isFresh tells whether a znode was created since the walk began, or shortly before.
func (s *Survey) isFresh(stat *zk.Stat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.UnixMilli(stat.Ctime).After(s.began.Add(-freshFor))
}

// later looks again for a root that does not exist.
func (s *Survey) later(ctx context.Context, path string) {
	for _, root := range s.config.Roots {
		if root == path {
			s.running.Go(func() {
				sleep(ctx, rootRetry)
				s.meet(ctx, path)
			})
		}
	}
}

// meet has a path visited.
func (s *Survey) meet(ctx context.Context, path string) {
	select {
	case s.fresh <- path:
	case <-ctx.Done():
	}
}

// first looks at a directory for the first time, with that many reads. The walk goes on
// to the children that it has listed.
func (s *Survey) first(
	ctx context.Context, path string, listed []string, reads int,
) error {
	d := s.dirAt(path, listed)
	if d == nil {
		return nil
	}
	if err := s.pace(ctx, 1+min(reads, queueAtMost)); err != nil {
		return err
	}
	s.look(ctx, d)
	return nil
}

// rights compares who may do what with a lock's path and with the znode that holds it. To
// ask takes the permission to read, without which servers tell of no change, either.
func (s *Survey) rights(ctx context.Context, path string) error {
	s.mu.Lock()
	l := s.locks[path]
	if l == nil || len(l.queue) == 0 {
		s.mu.Unlock()
		return nil
	}
	node := l.queue[0].Node
	s.mu.Unlock()
	var open, own []zk.ACL
	parent := zkpath.Parent(node)
	err := s.insist(ctx, parent, func() (err error) {
		open, err = s.ask.acl(parent)
		return err
	})
	if err == nil {
		err = s.insist(ctx, path, func() (err error) {
			if own, err = s.ask.acl(node); errors.Is(err, zk.ErrNoAuth) {
				err = nil // it is no business of ours
			}
			return err
		})
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case isOfPath(err):
		s.lose(l)
		return err
	case err != nil:
		return err
	}
	who, rights := "", ""
	if own != nil {
		who, rights = queues.Wider(open, own, false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.rights = ""
	if who != "" {
		l.rights = who + " has " + rights
	}
	return nil
}
