package survey

import (
	"context"
	"errors"
	"slices"
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

// exists tells whether a path exists, as a request of a walk.
func (s *Survey) exists(
	ctx context.Context, path string,
) (exists bool, stat *zk.Stat, err error) {
	err = s.insist(ctx, path, func() (err error) {
		exists, stat, err = s.ask.exists(path)
		return err
	})
	return exists, stat, err
}

// found is what a visit finds at a path.
type found int

const (
	nothing found = iota
	aZnode
	aLock // it is a lock's, or may be
)

// visit walks from a path downwards, and reports what is at the path. likely says that
// the znode is watched unless it is certainly no lock's: it is a root, or has just been
// created among locks. It fails only with ctx.
func (s *Survey) visit(
	ctx context.Context, path string, likely bool,
) (what found, err error) {
	if path == "/zookeeper" {
		return aZnode, nil
	}
	listed, watched, what := s.known(path)
	if !watched {
		listed, what, err = s.enter(ctx, path, likely)
	} else if err = s.recheck(ctx, path); err == nil && what == aLock {
		err = s.rights(ctx, path)
	}
	if err != nil {
		return what, ctxError(ctx)
	}
	hasLocks := false
	for _, child := range queues.Below(path, listed.children) {
		inside := zkpath.Join(path, child)
		below, err := s.visit(ctx, inside, false)
		if err != nil {
			return what, err
		}
		_, isWatched, _ := s.known(inside)
		hasLocks = hasLocks || below == aLock || isWatched || s.isRegistered(inside)
		if below == nothing { // so that it is new to a look that finds it
			listed.children = without(listed.children, child)
		} else if what == aLock && below != aLock && child != queues.MarkName {
			s.addUnrelated(inside)
		}
	}
	if hasLocks && what != aLock && !watched {
		if err := s.first(ctx, path, listed, len(listed.children)); err != nil {
			return what, ctxError(ctx)
		}
	}
	return what, nil
}

// without returns names without one of them.
func without(names []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == one
	})
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
func (s *Survey) known(path string) (as view, watched bool, what found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirs[path]
	if d == nil || !d.watched {
		return view{}, false, nothing
	}
	idle := d.stat != nil && mayBecomeLock(d.stat) && len(d.children) == 0
	what = aZnode
	if d.lock.recipe != "" || idle {
		what = aLock
	}
	return view{children: d.children, stat: d.stat}, true, what
}

// mayBecomeLock tells of a znode without children whether it may be a lock's that nobody
// uses: it has had children. (Clients are not told which znodes are containers.)
func mayBecomeLock(stat *zk.Stat) bool { return stat.Cversion > 0 }

// enter looks at a znode that is not watched, and watches it if it is a lock, or may
// become one, or is likely to.
func (s *Survey) enter(
	ctx context.Context, path string, likely bool,
) (listed view, what found, err error) {
	var exists bool
	exists, listed.stat, err = s.exists(ctx, path)
	switch {
	case err != nil:
		return view{}, aZnode, err
	case exists && queues.Owned(listed.stat):
		what, err = s.register(ctx, path)
		return view{}, what, err
	}
	s.forgetRegistration(path)
	switch {
	case !exists:
		s.later(ctx, path)
		return view{}, nothing, nil
	case listed.stat.NumChildren > childrenAtMost:
		s.failed(path, tooLong(listed.stat.NumChildren))
		return view{}, aZnode, nil
	}
	what, err = s.list(ctx, path, likely || s.isFresh(listed.stat), &listed)
	if errors.Is(err, zk.ErrNoNode) {
		s.later(ctx, path)
		return view{}, nothing, nil
	}
	return listed, what, err
}

// list lists a znode that exists, for enter.
func (s *Survey) list(
	ctx context.Context, path string, likely bool, listed *view,
) (what found, err error) {
	what = aZnode
	if listed.stat.NumChildren > 0 {
		err = s.insist(ctx, path, func() (err error) {
			listed.children, listed.stat, err = s.ask.list(path)
			return err
		})
		switch lock := queues.LockAt(path, listed.children); lock {
		case "":
		case path:
			what = aLock
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.leasedLocked(ctx, lock)
			return aLock, nil
		}
	} else if mayBecomeLock(listed.stat) {
		what = aLock
	}
	_, name := zkpath.Split(path)
	likely = likely || isPart(name) || slices.ContainsFunc(listed.children, isPart)
	if err == nil && (what == aLock || likely) {
		err = s.first(ctx, path, *listed, len(queues.Queued("", listed.children)))
	}
	if err == nil && what == aLock {
		err = s.rights(ctx, path)
	}
	return what, err
}

// isPart tells whether a directory of a semaphore has that name: more may follow.
func isPart(name string) bool { return slices.Contains(subs[1:], name) }

// leasedLocked takes note of a semaphore that was found by its leases.
func (s *Survey) leasedLocked(ctx context.Context, path string) {
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

// later looks again for what does not exist, though it is to be expected: for a root, and
// for what its parent was listed with, since that may have been after it was created
// again.
func (s *Survey) later(ctx context.Context, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent, name := zkpath.Split(path)
	above := s.dirs[parent]
	switch {
	case above != nil && above.watched && slices.Contains(above.children, name):
		s.revisitLocked(ctx, path, s.betweenLooks())
	case slices.Contains(s.config.Roots, path):
		s.revisitLocked(ctx, path, rootRetry)
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
	ctx context.Context, path string, listed view, reads int,
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

// recheck looks anew at the directories of a path that have changed though their watches
// did not tell. A server uses up the watch of a login that may not read the path when it
// changes, without a word, and the login may have that right again.
func (s *Survey) recheck(ctx context.Context, path string) error {
	for _, d := range s.dirsOf(path) {
		exists, now, err := s.exists(ctx, d.path)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if d.stat != nil && (!exists || now.Pzxid > d.stat.Pzxid) {
			s.renewLocked(ctx, d)
		}
		s.mu.Unlock()
	}
	return nil
}

// dirsOf returns the directories of the lock at a path.
func (s *Survey) dirsOf(path string) (all []*dir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.locks[path]; l != nil {
		for _, d := range l.dirs {
			if d != nil {
				all = append(all, d)
			}
		}
	}
	return all
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
