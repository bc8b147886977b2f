package lock_test

import (
	"fmt"
	"maps"
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
}

// A modelStay is the time for which an owner goes on to have something of a book.
type modelStay struct{ who modelOwner }

// A modelRecord is what one acquisition has got, until it ends.
type modelRecord struct {
	lock         *modelLock
	who          modelOwner
	stay         *modelStay // of its owner
	tenure       *modelTenure
	members      []*modelRecord
	grantedAgain bool
	ended        bool
	wasLost      bool // when it ended
}

// A modelTenure is what the records of one owner share: they are lost together.
type modelTenure struct{ lost bool }

// A modelNaming names an owner for as long as one of its stays lasts, of which there is
// at most one for each book.
type modelNaming struct {
	who   modelOwner
	stays map[*modelBook]*modelStay
}

func (s *modelNaming) String() string { return fmt.Sprint(s.who) }

// A modelCaller is a goroutine with a ctx.
type modelCaller struct {
	goroutine int
	fresh     int // of the package's Acquire: who it is where ctx names nobody; else 0
	namings   []*modelNaming
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

// stay is that of an owner who has something; nil: it has nothing.
func (b *modelBook) stay(who modelOwner) *modelStay {
	for _, side := range b.sides {
		if r := side.of(who); r != nil {
			return r.stay
		}
	}
	return nil
}

// lasts tells whether one of the stays does.
func (s *modelNaming) lasts() bool {
	for b, stay := range s.stays {
		if b.stay(s.who) == stay {
			return true
		}
	}
	return false
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

// at is who the caller is at a lock, and by which naming; nil: by none.
func (c *modelCaller) at(b *modelBook) (who modelOwner, by *modelNaming) {
	for _, s := range c.namings {
		if s.stays[b] != nil && s.lasts() {
			return s.who, s
		}
	}
	switch {
	case c.all != modelOwner{}:
		return c.all, nil
	case c.fresh != 0:
		return modelOwner{identity: c.fresh}, nil
	}
	return modelOwner{goroutine: c.goroutine}, nil
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
		if !r.isLost() && (l.room > 1 || !r.grantedAgain) {
			return r
		}
	}
	if n := len(l.records); n > 0 && !l.records[n-1].grantedAgain {
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
		held := slices.DeleteFunc(slices.Clone(l.records), (*modelRecord).isLost)
		if len(held) >= l.room {
			return nil, modelResult{busy: true}
		}
		for _, r := range l.records {
			r.grantedAgain = true
		}
		return l.addOf(c, &modelTenure{}), modelResult{}
	}
	who, _ := c.at(l.book)
	if r := l.of(who); r != nil {
		if r.isLost() {
			return nil, modelResult{lost: true}
		}
		return l.addOf(c, r.tenure), modelResult{}
	}
	if r := l.refused(who); !r.ok() {
		return nil, r
	}
	return l.addOf(c, &modelTenure{}), modelResult{}
}

// addOf adds a record of a leaf, in the stay that the caller is in or that begins. What a
// ctx acquires counts for the ctx, too.
func (l *modelLock) addOf(c *modelCaller, tenure *modelTenure) *modelRecord {
	who, by := c.at(l.book)
	stay := l.book.stay(who)
	if stay == nil {
		stay = &modelStay{who}
	}
	if by != nil {
		by.stays[l.book] = stay
	}
	return l.add(&modelRecord{who: who, stay: stay, tenure: tenure})
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

// namings are for a ctx that carries the record's owners.
func (r *modelRecord) namings() (all []*modelNaming) {
	if r.lock.members == nil {
		return []*modelNaming{{r.who, map[*modelBook]*modelStay{r.lock.book: r.stay}}}
	}
	for _, member := range r.members {
		for _, s := range member.namings() {
			same := func(o *modelNaming) bool { return o.who == s.who }
			at := slices.IndexFunc(all, same)
			if at < 0 {
				all = append(all, s)
				continue
			}
			maps.Copy(all[at].stays, s.stays)
		}
	}
	return all
}
