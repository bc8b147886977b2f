package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A ctx that names nobody any more named its owner again: who had acquired a lock by it,
// as somebody else, could not release that. What its owner holds is released between the
// question whether that lasts and the call that follows.
func TestANamingDoesNotComeBack(t *testing.T) {
	t.Parallel()
	a, b := newLeaseLock(nil, 1), newLeaseLock(nil, 1)
	calls := caller{self: aNewOwner()}
	last, before := a.acquired(calls), b.acquired(calls)
	ctx := callerOf(withOwners(t.Context(), append(last.scopes(), before.scopes()...)...))
	ctx.self = aNewOwner()
	b.unrecordLocked(before.stay)

	who, by := b.lockFor(&ctx)
	a.unrecordLocked(last.stay)
	of := b.beginCallLocked(who, by, new(stay))
	b.unlock(by)
	require.Equal(t, calls.self, who)
	require.Equal(t, calls.self, ctx.ownerAt(&b.book), "its call goes on")
	require.Equal(t, ctx.self, ctx.ownerAt(&a.book), "its owner holds nothing")
	got := new(Hold)
	of.recordLocked(got)
	by.called(of, got)
	require.Equal(t, calls.self, ctx.ownerAt(&b.book))
	require.Equal(t, ctx.self, ctx.ownerAt(&a.book), "it came back")
}

// A ctx of a hold that was released before named its owner for what that acquired later.
func TestACtxOfAReleasedHoldNamesNobody(t *testing.T) {
	t.Parallel()
	lock := newLeaseLock(nil, 1)
	calls := caller{self: aNewOwner()}
	first := lock.acquired(calls)
	of, by := lock.begin(calls) // another call of the owner's is under way
	lock.unrecordLocked(first.stay)
	lock.recordLocked(of, by)

	ctx := callerOf(withOwners(t.Context(), first.scopes()...))
	ctx.self = aNewOwner()
	require.Same(t, first.stay, of)
	require.Equal(t, ctx.self, ctx.ownerAt(&lock.book))
}

// acquired is the record of a call that acquired it.
func (m *leaseLock) acquired(c caller) *Hold {
	return m.recordLocked(m.begin(c))
}

func (m *leaseLock) recordLocked(of *stay, by *naming) *Hold {
	h := new(Hold)
	of.recordLocked(h)
	m.endCallLocked(of, by, h)
	return h
}

// manyRecords returns a multi lock with n records, and who has acquired them.
func manyRecords(n int) (*multiLock, caller) {
	member, calls := newLeaseLock(nil, 1), caller{self: aNewOwner()}
	of, _ := member.begin(calls)
	m := new(multiLock)
	for range n {
		m.record([]*Hold{{
			grant: &grant{lost: context.Background()}, book: &member.book, stay: of,
		}})
	}
	return m, calls
}

// To acquire and release a multi lock took the longer the more often its owner had
// acquired it.
func TestManyRecordsCostNoMoreThanAFew(t *testing.T) {
	releasing := func(n int) time.Duration {
		m, calls := manyRecords(n)
		fastest := time.Hour // of so short times that the machine stands still in few
		for range 20 {
			began := time.Now()
			for range 50 {
				m.take(m.youngest(calls))
			}
			fastest = min(fastest, time.Since(began))
		}
		return fastest
	}
	require.Less(t, releasing(100_000), 30*releasing(1000))
}
