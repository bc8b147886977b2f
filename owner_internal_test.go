package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A ctx that names nobody any more named its owner again: who had acquired a lock by it,
// as somebody else, could not release that. The last stay of a naming ends between the
// question whether one lasts and the next stay.
func TestANamingDoesNotComeBack(t *testing.T) {
	t.Parallel()
	a, b := newLeaseLock(nil, 1), newLeaseLock(nil, 1)
	calls := caller{self: aNewOwner()}
	last, _ := a.begin(calls)
	before, _ := b.begin(calls)
	ctx := callerOf(withStays(t.Context(), last, before))
	b.stopWaiting(before, nil, nil)

	who, by := b.lockFor(&ctx)
	a.stopWaiting(last, nil, nil)
	whoAtA := func() owner {
		c := ctx
		return c.at(&a.book)
	}
	asked := make(chan owner, 1)
	go func() { asked <- whoAtA() }()
	select {
	case who := <-asked: // before the stay at b begins
		asked <- who
	case <-time.After(10 * time.Millisecond): // it waits for that
	}
	require.Equal(t, calls.self, who)
	b.beginLocked(who, by, new(stay))
	b.unlock(by)
	require.Equal(t, <-asked, whoAtA())
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
		fastest := time.Hour
		for range 3 {
			m, calls := manyRecords(n)
			began := time.Now()
			for range 1000 {
				m.take(m.youngest(calls))
			}
			fastest = min(fastest, time.Since(began))
		}
		return fastest
	}
	require.Less(t, releasing(100_000), 30*releasing(1000))
}
