package registration_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/registration"
	"github.com/zkrecipes/recipes/zktest"
)

// join creates a member by hand, and returns its path.
func join(t *testing.T, p *queuetest.Peer, id, data string) (path string) {
	t.Helper()
	path, err := p.Create(dir+"/"+id, []byte(data), zk.FlagEphemeral, queuetest.Anyone)
	require.NoError(t, err)
	return path
}

// A watcher is a reader of the group on a goroutine of its own.
type watcher struct {
	seen chan string
	stop context.CancelFunc
	err  error         // once done is closed
	done chan struct{} // closed by the goroutine
}

func watch(t *testing.T, p *queuetest.Peer) *watcher {
	t.Helper()
	ctx, stop := context.WithCancel(bounded(t))
	w := &watcher{seen: make(chan string, 10000), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = registration.Watch(ctx, p.S, dir, func(now []registration.Member) bool {
			w.seen <- text(now)
			return true
		})
	}()
	t.Cleanup(func() { stop(); <-w.done })
	return w
}

// next returns the one value that is told within a second.
func (w *watcher) next(t *testing.T) string {
	t.Helper()
	one := queuetest.Within(t, time.Second, w.seen, "nothing is told")
	time.Sleep(time.Second)
	require.Empty(t, w.seen, "more than one change is told")
	return one
}

func text(members []registration.Member) (all string) {
	for _, m := range members {
		all += fmt.Sprintf("%s=%s ", m.Name, m.Data)
	}
	return all
}

// The client closes a watch right behind its event. If a member was read again between
// the two, its watch seemed to be pending, and the next change was not seen.
func TestAWatchIsOverWithItsEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		asked.slow = 100 * time.Millisecond
		mkdir(t, other)
		one := join(t, other, "a", "first")
		w := watch(t, us)
		require.Equal(t, "a=first ", w.next(t))
		for _, data := range []string{"second", "third"} {
			_, err := other.Set(one, []byte(data), -1)
			require.NoError(t, err)
			require.Equal(t, "a="+data+" ", w.next(t))
		}
		asked.reset()
		two := join(t, other, "b", "more")
		require.Equal(t, "a=third b=more ", w.next(t))
		require.Equal(t, []string{"list", "watch"}, asked.ops())
		for _, member := range []string{one, two} { // that ends their watches
			require.NoError(t, other.Delete(member, -1))
			w.next(t)
		}
	})
}

func TestMembersAreReadInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		members := func() string {
			t.Helper()
			all, err := registration.Members(bounded(t), us.S, dir)
			require.NoError(t, err)
			require.NotNil(t, all)
			return text(all)
		}
		require.Empty(t, members(), "there is no group")
		mkdir(t, other)
		require.Empty(t, members())
		want := ""
		for i := range 100 { // more than are read at once
			id := fmt.Sprintf("%02d", i)
			join(t, other, id, "data "+id)
			want += fmt.Sprintf("%s=data %s ", id, id)
		}
		asked.reset()
		require.Equal(t, want, members())
		reads := 0
		for _, op := range asked.ops() {
			if op == "get" {
				reads++
			}
		}
		require.Equal(t, 100, reads)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := registration.Members(ctx, us.S, dir)
		require.ErrorIs(t, outcome.Cancellation(err), context.Canceled)
	})
}

// One that leaves between the list and its read is no member, and no error.
func TestAMemberThatLeavesMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		mkdir(t, other)
		leave := func(path string) {
			if path == dir+"/a" {
				_ = other.Delete(path, -1)
			}
		}
		asked.setBefore(func(path string) error { leave(path); return nil })
		join(t, other, "a", "leaves")
		join(t, other, "b", "stays")
		all, err := registration.Members(bounded(t), us.S, dir)
		require.NoError(t, err)
		require.Equal(t, "b=stays ", text(all))

		join(t, other, "a", "leaves")
		w := watch(t, us)
		require.Equal(t, "b=stays ", w.next(t))

		asked.setBefore(nil)
		known := join(t, other, "a", "known")
		require.Equal(t, "a=known b=stays ", w.next(t))
		// Its read tells, before any list does.
		listed := make(chan struct{})
		defer close(listed)
		asked.setBefore(func(path string) error {
			if path == dir {
				<-listed
			}
			leave(path)
			return nil
		})
		_, err = other.Set(known, []byte("leaves"), -1)
		require.NoError(t, err)
		require.Equal(t, "b=stays ", w.next(t))
	})
}

// What was missed while the connection was away is read again, also if no watch tells.
func TestAChangeInAnAbsenceIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		count(t, us).deaf = true
		mkdir(t, other)
		path := join(t, other, "a", "one")
		w := watch(t, us)
		require.Equal(t, "a=one ", w.next(t))
		_, err := other.Set(path, []byte("two"), -1)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Empty(t, w.seen, "the watch has fired")
		us.Link.Cut()
		time.Sleep(time.Second)
		us.Link.Heal()
		time.Sleep(3 * time.Second)
		require.Equal(t, "a=two ", w.next(t))
	})
}

// A member that is read again by the watch that it has is awaited once: the read of
// another one fails again and again meanwhile.
func TestAMemberThatIsReadAgainIsAwaitedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		mkdir(t, other)
		join(t, other, "a", "")
		join(t, other, "b", "")
		const times = 50
		failed := 0
		asked.setBefore(func(path string) error {
			if path == dir+"/b" && failed < times {
				failed++
				return zk.ErrNoServer
			}
			return nil
		})
		before := runtime.NumGoroutine()
		w := watch(t, us)
		require.Equal(t, "a= b= ", <-w.seen)
		require.Equal(t, times, failed)
		require.Less(t, runtime.NumGoroutine(), before+times/2)
	})
}

// After a reconnect all is read again, by the watches that are still there. The next
// change is told all the same.
func TestAChangeAfterAReconnectIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		mkdir(t, other)
		path := join(t, other, "a", "")
		w := watch(t, us)
		require.Equal(t, "a= ", w.next(t))
		for i := range 10 {
			us.Link.Reset()
			time.Sleep(5 * time.Second)
			require.Empty(t, w.seen)
			_, err := other.Set(path, fmt.Append(nil, i), -1)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("a=%d ", i), w.next(t))
		}
	})
}

// A reader that ends leaves no goroutine behind, of the many that wait for its watches.
func TestAReaderLeavesNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		mkdir(t, other)
		const size = 50
		for i := range size {
			join(t, other, fmt.Sprint(i), "")
		}
		before := runtime.NumGoroutine()
		w := watch(t, us)
		time.Sleep(time.Second)
		require.Greater(t, runtime.NumGoroutine(), before+size/2)
		w.stop()
		<-w.done
		time.Sleep(time.Second)
		require.Less(t, runtime.NumGoroutine(), before+size/2)
	})
}

// Joins, leaves and changes of data are told, once each, and nothing else is.
func TestEachChangeIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		w := watch(t, us)
		require.Empty(t, w.next(t), "there is no group")
		mkdir(t, other)
		first := join(t, other, "b", "one")
		require.Equal(t, "b=one ", w.next(t))
		join(t, other, "a", "")
		require.Equal(t, "a= b=one ", w.next(t))
		asked.reset()
		for i := range 3 {
			_, err := other.Set(first, fmt.Append(nil, i), -1)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("a= b=%d ", i), w.next(t))
			require.Equal(t, []string{"watch"}, asked.ops(), "others are read, too")
		}
		_, err := other.Set(first, []byte("2"), -1)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Empty(t, w.seen, "nothing has changed")
		// Replaced within one round: another member of that name, with the same data.
		_, err = other.Multi(&zk.DeleteRequest{Path: first, Version: -1},
			&zk.CreateRequest{
				Path: first, Data: []byte("2"), Flags: zk.FlagEphemeral,
				Acl: queuetest.Anyone,
			})
		require.NoError(t, err)
		require.Equal(t, "a= b=2 ", w.next(t))
		require.NoError(t, other.Delete(first, -1))
		require.Equal(t, "a= ", w.next(t))
		asked.reset()
		time.Sleep(20 * time.Second)
		require.Empty(t, asked.ops(), "it polls")

		w.stop()
		<-w.done
		require.ErrorIs(t, outcome.Cancellation(w.err), context.Canceled)
		require.NoError(t, other.Delete(dir+"/a", -1))
		time.Sleep(10 * time.Second)
		require.Empty(t, w.seen)
		require.Empty(t, asked.ops(), "one that was left goes on")
	})
}

// One who wants no more is told no more.
func TestAReaderThatHasSeenEnough(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		mkdir(t, other)
		told := 0
		require.NoError(t, registration.Watch(bounded(t), us.S, dir,
			func([]registration.Member) bool { told++; return false }))
		require.Equal(t, 1, told)
	})
}

// What is told is the caller's.
func TestWhatIsToldIsTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		mkdir(t, other)
		join(t, other, "a", "")
		var seen []string
		go func() {
			time.Sleep(time.Second)
			join(t, other, "b", "")
		}()
		require.NoError(t, registration.Watch(bounded(t), us.S, dir,
			func(now []registration.Member) bool {
				seen = append(seen, text(now))
				clear(now)
				return len(seen) < 2
			}))
		require.Equal(t, []string{"a= ", "a= b= "}, seen)
	})
}

// A group of 1,000 that restarts: ten rounds a second, with a list and a hundred reads
// each, at most.
func TestTheReadsOfAReaderAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		mkdir(t, other)
		const size = 1000
		for i := range size {
			join(t, other, fmt.Sprintf("%03d", i), "old")
		}
		asked.reset()
		w := watch(t, us)
		time.Sleep(10 * time.Second)
		requireAtMost(t, asked.reset(), "watch", 1100)
		for i := range size {
			path := fmt.Sprintf("%s/%03d", dir, i)
			require.NoError(t, other.Delete(path, -1))
			join(t, other, fmt.Sprintf("%03d", i), "new")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		requests := asked.reset()
		requireAtMost(t, requests, "watch", 1100)
		requireAtMost(t, requests, "list", 11)
		last := ""
		for len(w.seen) > 0 {
			last = <-w.seen
		}
		now, err := registration.Members(bounded(t), other.S, dir)
		require.NoError(t, err)
		require.Len(t, now, size)
		require.Equal(t, text(now), last)
	})
}

// requireAtMost requires that no second has more than most requests of a kind.
func requireAtMost(t *testing.T, requests []request, op string, most int) {
	t.Helper()
	var at []time.Time
	for _, r := range requests {
		if r.op == op {
			at = append(at, r.at)
		}
	}
	require.NotEmpty(t, at)
	for i := range at {
		if i >= most {
			require.GreaterOrEqual(t, at[i].Sub(at[i-most]), time.Second)
		}
	}
}
