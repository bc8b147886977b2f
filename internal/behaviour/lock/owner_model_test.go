package lock_test

import (
	"slices"
)

// A model of who owns what, as docs/owners.md has it. It is sequential, and knows neither
// znodes nor queues: one attempt after the other, each of which finds the lock free or
// not.

// A modelOwner is an identity, or a goroutine.
type modelOwner struct{ identity, goroutine int }

// A modelLock is one of the locks: of a leaf it has the records.
type modelLock struct {
	name    string
	members []*modelLock // of a multi lock
	room    int          // of leases: how many records fit; 0: it is reentrant
	book    *modelBook
	shared  bool       // a read lock
	other   *modelLock // the other side of a read/write lock
	records []*modelRecord
}

// A modelBook is a lock whose owners are the same: both sides of a read/write lock are
// one.
type modelBook struct {
	sides []*modelLock
	stays *int // how many have begun, of all books
}

// A modelRecord is what one acquisition has got, until it ends.
type modelRecord struct {
	lock     *modelLock
	who      modelOwner
	since    int // when the stay of its owner began
	tenure   *modelTenure
	members  []*modelRecord
	passedOn bool
	ended    bool
	wasLost  bool // when it ended
}

// A modelTenure is what the records of one owner share: they are lost together.
type modelTenure struct{ lost bool }

// A modelShare names an owner for as long as it goes on to hold anything of one of the
// books.
type modelShare struct {
	who   modelOwner
	since int
	books []*modelBook
}

// A modelCaller is a goroutine with a ctx.
type modelCaller struct {
	goroutine int
	fresh     int // of the package's Acquire: who it is where ctx names nobody; else 0
	shares    []modelShare
	all       modelOwner
}

// A modelResult is what an error matches.
type modelResult struct{ busy, upgrade, lost, notOwner bool }

func (r modelResult) ok() bool { return r == modelResult{} }

func (r modelResult) and(o modelResult) modelResult {
	return modelResult{
		r.busy || o.busy, r.upgrade || o.upgrade,
		r.lost || o.lost, r.notOwner || o.notOwner,
	}
}

// since tells since when an owner has had something; 0: it has nothing.
func (b *modelBook) since(who modelOwner) int {
	for _, side := range b.sides {
		if r := side.of(who); r != nil {
			return r.since
		}
	}
	return 0
}

// lasts tells since when the stay has lasted, as others of its locks have it, or else
// that of b; 0: it is over.
func (s modelShare) lasts(b *modelBook) int {
	others := slices.DeleteFunc(slices.Clone(s.books), func(o *modelBook) bool {
		return o == b
	})
	for _, o := range append(others, b) {
		if since := o.since(s.who); since != 0 && since <= s.since {
			return since
		}
	}
	return 0
}

// of returns the youngest record of an owner.
func (l *modelLock) of(who modelOwner) *modelRecord {
	for _, r := range slices.Backward(l.records) {
		if r.who == who {
			return r
		}
	}
	return nil
}

// at is who the caller is at a lock, and since when its ctx says so.
func (c *modelCaller) at(b *modelBook) (who modelOwner, since int) {
	for _, s := range c.shares {
		if slices.Contains(s.books, b) {
			if since := s.lasts(b); since != 0 {
				return s.who, since
			}
		}
	}
	switch {
	case c.all != modelOwner{}:
		return c.all, 0
	case c.fresh != 0:
		return modelOwner{identity: c.fresh}, 0
	}
	return modelOwner{goroutine: c.goroutine}, 0
}

// owns tells whether the record, with all that it owns, is the caller's.
func (c *modelCaller) owns(r *modelRecord) bool {
	if r.lock.members == nil {
		who, _ := c.at(r.lock.book)
		return who == r.who
	}
	lacks := func(m *modelRecord) bool { return !c.owns(m) }
	return !slices.ContainsFunc(r.members, lacks)
}

// isLost tells whether what the record stands for was lost before it ended.
func (r *modelRecord) isLost() bool {
	if r.ended {
		return r.wasLost
	}
	if r.lock.members == nil {
		return r.tenure.lost
	}
	return slices.ContainsFunc(r.members, (*modelRecord).isLost)
}

// isWhole tells whether neither the record nor one that it owns has ended.
func (r *modelRecord) isWhole() bool {
	return !r.ended && !slices.ContainsFunc(r.members, func(m *modelRecord) bool {
		return !m.isWhole()
	})
}

// youngest returns what the caller releases by the lock, nil for nothing.
func (l *modelLock) youngest(c *modelCaller) *modelRecord {
	for _, r := range slices.Backward(l.records) {
		if c.owns(r) {
			return r
		}
	}
	if l.room == 0 {
		return nil
	}
	// Any caller may release leases.
	for _, r := range slices.Backward(l.records) {
		if !r.isLost() && (l.room > 1 || !r.passedOn) {
			return r
		}
	}
	if n := len(l.records); n > 0 && !l.records[n-1].passedOn {
		return l.records[n-1]
	}
	return nil
}

// acquire is one attempt.
func (l *modelLock) acquire(c *modelCaller) (*modelRecord, modelResult) {
	switch {
	case l.members != nil:
		return l.acquireAll(c)
	case l.room > 0:
		who, since := c.begin(l.book)
		held := slices.DeleteFunc(slices.Clone(l.records), (*modelRecord).isLost)
		if len(held) >= l.room {
			return nil, modelResult{busy: true}
		}
		for _, r := range l.records {
			r.passedOn = true
		}
		return l.addOf(who, since, &modelTenure{}), modelResult{}
	}
	who, since := c.begin(l.book)
	if r := l.of(who); r != nil {
		if r.isLost() {
			return nil, modelResult{lost: true}
		}
		return l.addOf(who, since, r.tenure), modelResult{}
	}
	if r := l.refused(who); !r.ok() {
		return nil, r
	}
	return l.addOf(who, since, &modelTenure{}), modelResult{}
}

// begin returns who the caller is, and the number of its stay: the older one of what it
// has and of what its ctx names, which become one, or a new one.
func (c *modelCaller) begin(b *modelBook) (who modelOwner, since int) {
	who, since = c.at(b)
	if here := b.since(who); since == 0 || here != 0 && here < since {
		since = here
	}
	if since == 0 {
		*b.stays++
		since = *b.stays
	}
	for _, side := range b.sides {
		for _, r := range side.records {
			if r.who == who {
				r.since = since
			}
		}
	}
	return who, since
}

// addOf adds a record of a leaf.
func (l *modelLock) addOf(who modelOwner, since int, tenure *modelTenure) *modelRecord {
	return l.add(&modelRecord{who: who, since: since, tenure: tenure})
}

// refused tells why an owner without a record does not get a reentrant lock.
func (l *modelLock) refused(who modelOwner) modelResult {
	held := func(side *modelLock, by func(r *modelRecord) bool) bool {
		kept := func(r *modelRecord) bool { return !r.isLost() && by(r) }
		return side != nil && slices.ContainsFunc(side.records, kept)
	}
	own := func(r *modelRecord) bool { return r.who == who }
	anybody := func(*modelRecord) bool { return true }
	switch {
	case l.shared && held(l.other, own):
		return modelResult{} // a downgrade
	case l.other != nil && !l.shared && held(l.other, own):
		return modelResult{upgrade: true}
	case !l.shared && held(l, anybody), held(l.other, anybody):
		return modelResult{busy: true}
	}
	return modelResult{}
}

func (l *modelLock) acquireAll(c *modelCaller) (*modelRecord, modelResult) {
	if r := l.youngest(c); r != nil && r.isLost() {
		return nil, modelResult{lost: true}
	}
	all := &modelRecord{}
	for _, member := range l.members {
		r, result := member.acquire(c)
		if !result.ok() {
			for _, r := range slices.Backward(all.members) {
				r.end()
			}
			return nil, result
		}
		all.members = append(all.members, r)
	}
	return l.add(all), modelResult{}
}

func (l *modelLock) add(r *modelRecord) *modelRecord {
	r.lock = l
	l.records = append(l.records, r)
	return r
}

// end ends a record, and what it owns.
func (r *modelRecord) end() (result modelResult) {
	if r.ended {
		return modelResult{notOwner: true}
	}
	r.wasLost = r.isLost()
	r.ended = true
	l := r.lock
	l.records = slices.DeleteFunc(l.records, func(o *modelRecord) bool { return o == r })
	if l.members == nil {
		return modelResult{lost: r.isLost()}
	}
	for _, member := range slices.Backward(r.members) {
		result = result.and(member.end())
	}
	return result
}

// shares are for a ctx that carries the record's owners.
func (r *modelRecord) shares() (all []modelShare) {
	if r.lock.members == nil {
		return []modelShare{{r.who, r.since, []*modelBook{r.lock.book}}}
	}
	for _, member := range r.members {
		for _, s := range member.shares() {
			at := slices.IndexFunc(all, func(o modelShare) bool { return o.who == s.who })
			if at < 0 {
				all = append(all, s)
				continue
			}
			all[at].since = max(all[at].since, s.since)
			all[at].books = slices.Concat(all[at].books, s.books)
		}
	}
	return all
}
