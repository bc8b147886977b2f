package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// dirAt returns the directory at a path, which is about to be looked at; nil if there are
// too many, or somebody looks at it already. What was listed of a new one is what the
// look compares with.
func (s *Survey) dirAt(path string, listed view) *dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirLocked(s.placeLocked(path))
	if d != nil && d.stat == nil {
		d.children, d.listed = slices.Sorted(slices.Values(listed.children)), listed.stat
	}
	return d
}

// placeLocked returns the lock that a directory is of, and which of its directories.
func (s *Survey) placeLocked(path string) (l *lock, sub int) {
	parent, name := zkpath.Split(path)
	if of := s.locks[parent]; of != nil && of.isSemaphore() {
		sub = max(0, slices.Index(subs[1:], name)+1)
	}
	if sub > 0 {
		return s.locks[parent], sub
	}
	return s.lockAtLocked(path), 0
}

func (s *Survey) lockAtLocked(path string) *lock {
	if s.locks[path] == nil {
		s.locks[path] = &lock{path: path}
	}
	return s.locks[path]
}

// dirLocked returns a directory of a lock, as dirAt does.
func (s *Survey) dirLocked(l *lock, sub int) *dir {
	d := l.dirs[sub]
	switch {
	case d != nil && d.watched:
		return nil
	case d == nil && len(s.dirs) >= dirsAtMost:
		s.exceeded.add(fmt.Sprintf("there are more locks than the %d directories that "+
			"are watched", dirsAtMost), "", s.round)
		return nil
	case d == nil:
		d = &dir{path: zkpath.Join(l.path, subs[sub]), sub: subs[sub], lock: l}
		if other := s.dirs[d.path]; other != nil { // it was taken for a lock of its own
			s.loseLocked(other.lock)
		}
		s.dirs[d.path], l.dirs[sub] = d, d
	}
	d.watched = true
	return d
}

// look lists a directory whose token the caller has, reads who is new, and takes over
// what has changed. The token is with a watch from then on, or nobody has it.
func (s *Survey) look(ctx context.Context, d *dir) {
	if s.isLost(d) {
		return
	}
	d.next = time.Now().Add(s.betweenLooks())
	children, stat, events, err := s.ask.watch(d.path)
	v := view{children: children, stat: stat}
	if err == nil && queues.Owned(stat) {
		err = zk.ErrNoNode // an ephemeral znode is in its place
	}
	if err == nil {
		slices.Sort(children)
		err = s.readNew(ctx, d, &v)
	}
	switch {
	case err == nil:
		s.apply(ctx, d, v)
		s.running.Go(func() { s.await(ctx, d, events) })
	case errors.Is(err, zk.ErrNoNode):
		s.apply(ctx, d, view{})
		s.later(ctx, d.path)
	case isOfPath(err):
		s.failed(d.path, err)
		s.lose(d.lock)
	default:
		s.grownStale(d)
		s.running.Go(func() {
			sleep(ctx, retry)
			s.due(ctx, d)
		})
	}
}

// betweenLooks is the time between two looks at a directory.
func (s *Survey) betweenLooks() time.Duration {
	return time.Duration(float64(time.Second) / s.config.PerLock)
}

// await waits for the event of a watch, and until its directory may be looked at again.
func (s *Survey) await(ctx context.Context, d *dir, events <-chan zk.Event) {
	var event zk.Event
	select {
	case event = <-events:
	case <-ctx.Done():
		return
	}
	if event.Type == zk.EventNotWatching || event.Err != nil {
		s.grownStale(d)
		if s.drop(d) {
			select {
			case s.again <- struct{}{}:
			default:
			}
			return
		}
		if s.pace(ctx, 1) != nil {
			return
		}
	}
	sleep(ctx, time.Until(d.next))
	s.due(ctx, d)
}

// due has a directory looked at.
func (s *Survey) due(ctx context.Context, d *dir) {
	select {
	case s.todo <- d:
	case <-ctx.Done():
	}
}

// grownStale notes that what is known of a directory may be old from now on.
func (s *Survey) grownStale(d *dir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.stale.IsZero() && d.stat != nil {
		d.stale = s.contact
		s.changedLocked()
	}
}

// drop gives the token of a directory up, unless somebody is in its queue: those come
// first when all watches have been lost, and the next walk looks at the others.
func (s *Survey) drop(d *dir) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(d.inside) > 0 {
		return false
	}
	d.watched, d.dropped = false, s.round
	return true
}

// lose forgets a lock that may no longer be looked at: what is known of it would be old
// for good. The next walk tries again.
func (s *Survey) lose(l *lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseLocked(l)
	s.changedLocked()
}

func (s *Survey) loseLocked(l *lock) {
	for _, d := range l.dirs {
		if d != nil {
			s.forgetDirLocked(d)
		}
	}
	if s.locks[l.path] == l {
		delete(s.locks, l.path)
	}
}

// isLost tells whether the lock of a directory was forgotten after its look was due.
func (s *Survey) isLost(d *dir) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLostLocked(d)
}

func (s *Survey) isLostLocked(d *dir) bool { return s.dirs[d.path] != d }

// readNew reads those in the queue of a directory who were not there at the last look,
// and tells how many of them had left before.
func (s *Survey) readNew(ctx context.Context, d *dir, v *view) error {
	names := queues.Queued(d.sub, v.children)
	read := make([]inmate, min(len(names), queueAtMost))
	s.mu.Lock()
	inside := d.inside
	if d.isAnother(v.stat) {
		inside = nil
	}
	var missing []int
	for i := range read {
		one, known := inside[names[i]]
		if read[i] = one; !known {
			missing = append(missing, i)
		}
	}
	s.mu.Unlock()
	if err := readAll(ctx, missing, func(i int) (err error) {
		read[i], err = s.read(zkpath.Join(d.path, names[i]))
		return err
	}); err != nil {
		return err
	}
	v.read = make(map[string]inmate, len(read))
	for i, one := range read {
		if one.gone {
			v.unread++
		} else {
			v.read[names[i]] = one
		}
	}
	return nil
}

// readAll calls read for each of them, some at once, up to the first error, or until ctx
// is done.
func readAll(ctx context.Context, which []int, read func(i int) error) error {
	slots := make(chan struct{}, readsAtOnce)
	failed := make(chan error, 1)
	var running sync.WaitGroup
	for _, i := range which {
		slots <- struct{}{}
		if len(failed) > 0 || ctx.Err() != nil {
			break
		}
		running.Go(func() {
			if err := read(i); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
			<-slots
		})
	}
	running.Wait()
	close(failed)
	return cmp.Or(<-failed, context.Cause(ctx))
}

// read reads a participant.
func (s *Survey) read(node string) (inmate, error) {
	var data []byte
	var stat *zk.Stat
	err := zk.ErrNoAuth
	if !s.config.NoData {
		data, stat, err = s.ask.read(node)
	}
	if errors.Is(err, zk.ErrNoAuth) || outcome.IsReplyTooLong(outcome.Named(err)) {
		var exists bool // to ask that needs no permission
		if exists, stat, err = s.ask.exists(node); err == nil && !exists {
			err = zk.ErrNoNode
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return inmate{gone: true}, nil
	case err != nil:
		return inmate{}, err
	}
	return inmateOf(node, data, stat), nil
}

// dataAtMost is how much of a znode's data is kept, in bytes.
const dataAtMost = 1024

// revokeRequest is what a request for the lock makes the data.
const revokeRequest = "__REVOKE__"

func inmateOf(node string, data []byte, stat *zk.Stat) inmate {
	one := inmate{
		Participant: recipes.Participant{
			Node: node, Kind: kindAt(node), DataSize: int(stat.DataLength),
			Data:  slices.Clone(data[:min(len(data), dataAtMost)]),
			Since: time.UnixMilli(stat.Ctime),
		},
		czxid:     stat.Czxid,
		directory: stat.NumChildren > 0 || stat.Cversion > 0,
	}
	if queues.Owned(stat) {
		one.Session = stat.EphemeralOwner
	}
	if stat.Version > 0 && string(data) != revokeRequest {
		one.noted = time.UnixMilli(stat.Mtime)
	}
	return one
}

// A view is a directory as it was listed; the zero view is of one that does not exist.
type view struct {
	children []string // sorted
	stat     *zk.Stat
	read     map[string]inmate
	unread   uint64 // participants that had left before they could be read
}

// lacks tells whether a znode that was created in the directory had gone by then.
func (v view) lacks(name string, czxid int64) bool {
	_, listed := slices.BinarySearch(v.children, name)
	return !listed && (v.stat == nil || czxid <= v.stat.Pzxid)
}

// includeLocked has the next look compare with a child, too, that was met since the last.
func (d *dir) includeLocked(name string) {
	if at, listed := slices.BinarySearch(d.children, name); !listed {
		d.children = slices.Insert(slices.Clone(d.children), at, name)
	}
}

// apply takes over a look at a directory.
func (s *Survey) apply(ctx context.Context, d *dir, v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLostLocked(d) {
		return
	}
	l, young, first := d.lock, s.isYoungLocked(v.stat), d.stat == nil
	now := seen{at: s.clock.now(), first: first && !young}
	if d.isAnother(v.stat) {
		s.forgetInLocked(d, d.children)
		d.children, d.inside = nil, nil
		l.leased = l.leased && d.sub != ""
		s.updateLocked(l, now)
	}
	joined, left := difference(d.children, v.children)
	below := queues.Below(d.path, d.children)
	s.forgetInLocked(d, left)
	if first {
		s.forgetGoneLocked(d.path, v)
	}
	if v.stat != nil {
		missed := unseen(cmp.Or(d.stat, d.listed, v.stat), v.stat, joined, left)
		if first || missed > 0 || d.dropped > 0 {
			s.againLocked(ctx, d, missed > 0)
		}
		switch {
		case !first:
			l.missed += missed
			s.learnLocked(d, v)
		case young:
			l.missed += unseen(&zk.Stat{}, v.stat, v.children, nil)
		}
	}
	l.missed += v.unread
	d.unread = max(0, len(queues.Queued(d.sub, v.children))-queueAtMost)
	d.children, d.stat, d.inside = v.children, v.stat, v.read
	d.dropped, d.stale = 0, time.Time{}
	s.updateLocked(l, now)
	if v.stat == nil {
		s.forgetDirLocked(d)
	} else if d.sub == "" {
		s.enterNewLocked(ctx, d, below)
		if lock := queues.LockAt(d.path, d.children); lock != "" && lock != d.path {
			s.leasedLocked(ctx, lock) // which loses d
		}
	}
	s.changedLocked()
}

// updateLocked takes over the queue of a lock, and tells what has happened.
func (s *Survey) updateLocked(l *lock, now seen) {
	for _, event := range l.update(now, &s.history) {
		if s.config.Seen != nil {
			s.config.Seen(event)
		}
	}
}

// forgetInLocked forgets what was found in a directory.
func (s *Survey) forgetInLocked(d *dir, names []string) {
	for _, name := range names {
		path := zkpath.Join(d.path, name)
		delete(s.registered, path)
		delete(s.unrelated, path)
	}
}

// learnLocked learns of the servers' clock from who has just joined.
func (s *Survey) learnLocked(d *dir, v view) {
	for name, one := range v.read {
		if _, known := d.inside[name]; !known && !one.Since.IsZero() {
			s.clock.learn(one.Since, time.Now())
		}
	}
}

// isYoungLocked tells whether a directory was created after the walk that would have
// found it: so whoever is in it has just joined.
func (s *Survey) isYoungLocked(stat *zk.Stat) bool {
	return stat != nil && !s.walked.IsZero() && time.UnixMilli(stat.Ctime).After(s.walked)
}

// unseen is how many participants have come and left between two looks. A server counts
// the creates and deletes in a directory.
func unseen(before, after *zk.Stat, joined, left []string) uint64 {
	counted := uint32(after.Cversion - before.Cversion)
	if after.Czxid != before.Czxid { // created again
		counted = uint32(after.Cversion)
		left = nil
	}
	return uint64(max(0, int64(counted)-int64(len(joined)+len(left)))) / 2
}

// difference returns who is only in one of two sorted lists.
func difference(before, after []string) (joined, left []string) {
	for len(before) > 0 && len(after) > 0 {
		switch {
		case before[0] == after[0]:
			before, after = before[1:], after[1:]
		case before[0] < after[0]:
			left, before = append(left, before[0]), before[1:]
		default:
			joined, after = append(joined, after[0]), after[1:]
		}
	}
	return append(joined, after...), append(left, before...)
}

// enterNewLocked has the directories of a semaphore looked at, and what locks can be in
// or below in d and could not be before. Leases become that when their gate goes.
func (s *Survey) enterNewLocked(ctx context.Context, d *dir, before []string) {
	if d.lock.isSemaphore() {
		s.enterSemaphoreLocked(ctx, d.lock)
	}
	below, _ := difference(before, queues.Below(d.path, d.children))
	for _, child := range below {
		path := zkpath.Join(d.path, child)
		s.running.Go(func() { s.meet(ctx, path) })
	}
}

// againLocked has visited what is in a directory and may have been created again: the
// locks that have gone, and, if something in it went and returned, the registrations.
func (s *Survey) againLocked(ctx context.Context, d *dir, changed bool) {
	for _, child := range d.children {
		path := zkpath.Join(d.path, child)
		isGone := s.locks[path] != nil && s.dirs[path] == nil
		if isGone || changed && s.registered[path].Path != "" {
			s.revisitLocked(ctx, path, 0)
		}
	}
}

// revisitLocked has a path visited after a while, once if its visit is to come already.
func (s *Survey) revisitLocked(ctx context.Context, path string, after time.Duration) {
	if s.visiting[path] {
		return
	}
	s.visiting[path] = true
	s.running.Go(func() {
		sleep(ctx, after)
		s.meet(ctx, path)
	})
}

// enterSemaphoreLocked has the directories of a semaphore looked at.
func (s *Survey) enterSemaphoreLocked(ctx context.Context, l *lock) {
	for sub := 1; sub < len(subs); sub++ {
		if d := s.dirLocked(l, sub); d != nil {
			s.running.Go(func() { s.due(ctx, d) })
		}
	}
}

// renewLocked has a watched directory looked at at once, whoever has its token: that one
// finds that the directory is lost.
func (s *Survey) renewLocked(ctx context.Context, d *dir) {
	if s.isLostLocked(d) || !d.watched {
		return
	}
	again := &dir{
		path: d.path, sub: d.sub, lock: d.lock, stat: d.stat, children: d.children,
		inside: d.inside, unread: d.unread, watched: true, stale: d.stale,
	}
	s.dirs[d.path] = again
	d.lock.dirs[slices.Index(d.lock.dirs[:], d)] = again
	s.running.Go(func() { s.due(ctx, again) })
}

// forgetDirLocked forgets a directory.
func (s *Survey) forgetDirLocked(d *dir) {
	d.watched = false
	d.lock.leased = d.lock.leased && d.sub != ""
	if !s.isLostLocked(d) {
		delete(s.dirs, d.path)
	}
	for i := range d.lock.dirs {
		if d.lock.dirs[i] == d {
			d.lock.dirs[i] = nil
		}
	}
}

// remembered is for how long a lock is known whose path has gone.
const remembered = 10 * time.Minute

// forgetLocked forgets the locks that have gone long ago, and what the walk which ends
// has not met: the directories and registrations that have gone without anybody's notice,
// and notes.
func (s *Survey) forgetLocked() {
	for _, d := range s.dirs {
		if !d.watched && d.dropped < s.round {
			s.forgetDirLocked(d)
		}
	}
	long := s.clock.now().Add(-remembered)
	for path, l := range s.locks {
		if l.dirs == [len(subs)]*dir{} && l.changed.Before(long) {
			delete(s.locks, path)
		}
	}
	for path, r := range s.registered {
		if r.walk < s.round {
			delete(s.registered, path)
		}
	}
	for _, n := range []notes{s.skipped, s.unrelated, s.exceeded} {
		n.forget(s.round)
	}
}
