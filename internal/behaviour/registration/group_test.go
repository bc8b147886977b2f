package registration_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

const group = "/services"

// joined returns a member of the group, which has joined.
func joined(t *testing.T, conn recipes.Conn, id, data string) *recipes.GroupMember {
	t.Helper()
	m, err := recipes.NewGroupMember(conn, group, id, []byte(data))
	require.NoError(t, err)
	t.Cleanup(func() { //nolint:contextcheck // t's is done
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = m.Close(ctx)
	})
	require.NoError(t, m.Await(t.Context()))
	return m
}

// A watcher is a loop over a group, on a goroutine of its own.
type watcher struct {
	seen chan []recipes.Member
	err  chan error
	stop context.CancelFunc
	done chan struct{}
}

func watch(t *testing.T, conn recipes.Conn) *watcher {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watcher{
		seen: make(chan []recipes.Member, 10000), err: make(chan error, 1), stop: stop,
		done: make(chan struct{}),
	}
	go func() {
		defer close(w.done)
		loop(recipes.WatchMembers(ctx, conn, group), w)
	}()
	t.Cleanup(func() { stop(); <-w.done })
	return w
}

func loop(over iter.Seq2[[]recipes.Member, error], w *watcher) {
	for members, err := range over {
		if err != nil {
			w.err <- err
			continue
		}
		w.seen <- members
	}
}

// next returns the one value that was yielded by now.
func (w *watcher) next(t *testing.T) string {
	t.Helper()
	v := <-w.seen
	time.Sleep(time.Second)
	require.Empty(t, w.seen, "more than one change is told")
	return text(v)
}

// last returns what was yielded last.
func (w *watcher) last() (members []recipes.Member) {
	for len(w.seen) > 0 {
		members = <-w.seen
	}
	return members
}

func TestMembersOfAGroup(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		none, err := recipes.Members(t.Context(), b.Ours, group)
		require.NoError(t, err)
		require.Empty(t, none)
		require.NotContains(t, b.Cluster.Znodes(), group)

		began := time.Now().Add(-time.Second)
		second := joined(t, b.Other, "b", "two")
		first := joined(t, b.Ours, "a", "one")
		require.Equal(t, "a", first.ID())
		require.Equal(t, "/services/a", first.Path())
		members, err := recipes.Members(t.Context(), b.Ours, group)
		require.NoError(t, err)
		require.Equal(t, "a=one b=two ", text(members))
		require.Equal(t, b.Ours.SessionID(), members[0].Session)
		require.Equal(t, b.Other.SessionID(), members[1].Session)
		require.WithinRange(t, members[0].Since, began, time.Now().Add(time.Second))
		require.Contains(t, members[0].String(), `a: session 0x`)

		require.NoError(t, second.SetData(t.Context(), []byte("too")))
		require.NoError(t, first.Close(t.Context()))
		members, err = recipes.Members(t.Context(), b.Ours, group)
		require.NoError(t, err)
		require.Equal(t, "b=too ", text(members))
	})
}

func TestIDsThatNameNoZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for _, id := range []string{"", "a/b", "/a", ".", "..", "a\x00b"} {
			_, err := recipes.NewGroupMember(b.Ours, group, id, nil)
			require.ErrorContains(t, err, "recipes: NewGroupMember /services: id: ", id)
		}
		m, err := recipes.NewGroupMember(b.Ours, "/", "a", nil)
		require.NoError(t, err)
		require.Equal(t, "/a", m.Path())
		_, err = recipes.NewGroupMember(b.Ours, "services", "a", nil)
		require.ErrorIs(t, err, zk.ErrInvalidPath)
	})
}

func TestAGroupIsWatched(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		w := watch(t, b.Ours)
		require.Empty(t, w.next(t))
		require.NotContains(t, b.Cluster.Znodes(), group, "who looks creates nothing")
		first := joined(t, b.Other, "a", "one")
		require.Equal(t, "a=one ", w.next(t))
		second := joined(t, b.Ours, "b", "two")
		require.Equal(t, "a=one b=two ", w.next(t))
		for i := range 3 {
			data := fmt.Sprint("data ", i)
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			require.Equal(t, "a="+data+" b=two ", w.next(t))
		}
		require.NoError(t, first.SetData(t.Context(), []byte("data 2")))
		time.Sleep(time.Minute)
		require.Empty(t, w.seen, "nothing has changed")
		require.NoError(t, first.Close(t.Context()))
		require.Equal(t, "b=two ", w.next(t))
		require.NoError(t, second.Close(t.Context()))
		require.Empty(t, w.next(t))
		require.NoError(t, b.Other.Delete(group, -1))
		time.Sleep(time.Minute)
		require.Empty(t, w.seen)
		joined(t, b.Other, "c", "three")
		require.Equal(t, "c=three ", w.next(t))

		w.stop()
		<-w.done
		require.Empty(t, w.err)
	})
}

func TestAMemberThatIsReplacedIsSeen(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		joined(t, b.Other, "a", "one")
		w := watch(t, b.Ours)
		before := <-w.seen
		require.True(t, b.Cluster.ExpireSession(b.Other.SessionID()))
		time.Sleep(time.Minute)
		after := w.last()
		require.Len(t, after, 1)
		require.NotEqual(t, before[0].Session, after[0].Session)
		require.Equal(t, b.Other.SessionID(), after[0].Session)
	})
}

func TestAWatchOutlastsOutages(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		first := joined(t, b.Other, "a", "one")
		w := watch(t, b.Ours)
		require.Equal(t, "a=one ", w.next(t))
		for i, outage := range []time.Duration{
			time.Second, 20 * time.Second, time.Minute,
		} {
			b.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(outage)
			data := fmt.Sprint("data ", i)
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			b.Cluster.Link("ours").Heal()
			time.Sleep(5 * time.Second)
			require.Equal(t, "a="+data+" ", text(w.last()))
			data += ", later"
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			require.Equal(t, "a="+data+" ", w.next(t))
		}
		for _, s := range b.Cluster.Servers() {
			s.Stop()
		}
		time.Sleep(time.Minute)
		require.Empty(t, w.seen)
		for _, s := range b.Cluster.Servers() {
			s.Start()
		}
		time.Sleep(time.Minute)
		if seen := w.last(); seen != nil {
			require.Equal(t, "a=data 2, later ", text(seen))
		}
	})
}

func TestAWatchEndsWithAPermanentError(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		w := watch(t, b.Ours)
		require.Empty(t, w.next(t))
		b.Ours.Close()
		require.ErrorIs(t, <-w.err, zk.ErrConnectionClosed)
		<-w.done
		w = &watcher{err: make(chan error, 1), seen: make(chan []recipes.Member, 1)}
		loop(recipes.WatchMembers(t.Context(), b.Other, "services"), w)
		require.ErrorIs(t, <-w.err, zk.ErrInvalidPath)
		_, err := recipes.Members(t.Context(), b.Other, "services")
		require.ErrorIs(t, err, zk.ErrInvalidPath)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		loop(recipes.WatchMembers(ctx, b.Other, group), w)
		require.Empty(t, w.err)
		require.Empty(t, w.seen)
		_, err = recipes.Members(ctx, b.Other, group)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A change costs a read, and a join or a leave a list, too: nothing for the others.
func TestTheCostOfAGroup(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, tap := tapped(t, b)
		const size = 20
		members := make([]*recipes.GroupMember, size)
		for i := range members {
			members[i] = joined(t, b.Other, fmt.Sprintf("member %02d", i), "data")
		}
		before := b.Cluster.Watches()
		w := watch(t, ours)
		time.Sleep(time.Second)
		require.Len(t, w.last(), size)
		require.Equal(t, before+1+size, b.Cluster.Watches())
		require.Equal(t, map[wiretap.Op]int{
			wiretap.Sync: 1, wiretap.GetChildren2: 1, wiretap.GetData: size,
		}, counted(tap))

		tap.Reset()
		time.Sleep(25 * time.Second)
		require.Empty(t, counted(tap), "it polls")
		time.Sleep(10 * time.Minute)
		require.Zero(t, counted(tap)[wiretap.GetData], "members are read again")
		tap.Reset()
		require.NoError(t, members[3].SetData(t.Context(), []byte("new")))
		time.Sleep(time.Second)
		require.Equal(t, map[wiretap.Op]int{wiretap.GetData: 1}, counted(tap))
		require.Len(t, w.last(), size)

		tap.Reset()
		joined(t, b.Other, "one more", "data")
		time.Sleep(time.Second)
		require.Equal(t, map[wiretap.Op]int{
			wiretap.GetChildren2: 1, wiretap.GetData: 1,
		}, counted(tap))
		require.Len(t, w.last(), size+1)

		tap.Reset()
		require.NoError(t, members[7].Close(t.Context()))
		time.Sleep(time.Second)
		require.LessOrEqual(t, counted(tap)[wiretap.GetChildren2], 2)
		require.LessOrEqual(t, counted(tap)[wiretap.GetData], 1)
		require.Len(t, w.last(), size)

		second := watch(t, ours) // all readers of a connection share the watches
		time.Sleep(time.Second)
		require.Len(t, second.last(), size)
		require.Equal(t, before+1+size, b.Cluster.Watches())
	})
}

// A group of 1,000 whose members all restart does not keep a reader from anything else.
func TestAGroupOf1000ThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		b := &locktest.Bubble{Cluster: c, Other: locktest.ConnectThrough(t, c, "other")}
		ours, tap := tapped(t, b)
		mkdir(t, b.Other)
		const size = 1000
		restart := func() {
			for i := range size {
				_ = b.Other.Delete(fmt.Sprintf("/services/%d", i), -1)
				_, err := b.Other.Create(fmt.Sprintf("/services/%d", i), nil,
					zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}
		}
		restart()
		w := watch(t, ours)
		time.Sleep(10 * time.Second)
		require.Len(t, w.last(), size)
		tap.Reset()
		for range 3 {
			restart()
		}
		began := time.Now()
		for second := range 5 {
			time.Sleep(time.Second)
			n := counted(tap)
			tap.Reset()
			require.LessOrEqual(t, n[wiretap.GetChildren2], 11, "second %d", second)
			require.LessOrEqual(t, n[wiretap.GetData], 1100, "second %d", second)
		}
		members := w.last()
		require.Len(t, members, size)
		for _, m := range members {
			require.Equal(t, b.Other.SessionID(), m.Session)
		}
		now, err := recipes.Members(t.Context(), b.Other, group)
		require.NoError(t, err)
		require.Equal(t, now, members, "after %v", time.Since(began))
	})
}

// counted counts what was asked below the group.
func counted(tap *wiretap.Tap) map[wiretap.Op]int {
	counts := map[wiretap.Op]int{}
	for _, op := range asked(tap) {
		counts[op]++
	}
	return counts
}

// Servers that forget watches: what was missed is read again after a reconnect.
func TestServersThatDoNotSetWatchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithKeeper(zktest.OpSetWatches))
		ours := locktest.ConnectThrough(t, c, "ours")
		other := locktest.ConnectThrough(t, c, "other")
		first := joined(t, other, "a", "one")
		w := watch(t, ours)
		require.Equal(t, "a=one ", w.next(t))
		for i := range 3 {
			c.Link("ours").Cut()
			time.Sleep(time.Second)
			data := fmt.Sprint("data ", i)
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			c.Link("ours").Heal()
			time.Sleep(5 * time.Second)
			require.Equal(t, "a="+data+" ", text(w.last()))
			data += ", later"
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			require.Equal(t, "a="+data+" ", w.next(t))
		}
	})
}

// The watches could not be set again after a reconnect, and what they waited for happened
// in between (docs/appendix/hazards.md, E17): the members are read again.
func TestWatchesThatAreNotSetAgain(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, tap := tapped(t, b)
		first := joined(t, b.Other, "a", "one")
		w := watch(t, ours)
		require.Equal(t, "a=one ", w.next(t))
		tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Op == wiretap.SetWatches {
				return wiretap.Drop
			}
			return wiretap.Pass
		})
		b.Cluster.Link("tapped").Cut()
		time.Sleep(time.Second)
		require.NoError(t, first.SetData(t.Context(), []byte("two")))
		b.Cluster.Link("tapped").Heal()
		time.Sleep(5 * time.Second)
		require.Equal(t, "a=two ", text(w.last()))
		require.NoError(t, first.SetData(t.Context(), []byte("three")))
		require.Equal(t, "a=three ", w.next(t))
	})
}

// A hidingConn is never seen to be away.
type hidingConn struct{ recipes.Conn }

func (*hidingConn) State() zk.State { return zk.StateHasSession }

// A reconnect that the conn hides can cost watches: a poll reads the members again.
func TestAReconnectThatIsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("ours")
		names := strings.Join(c.Names(), ",")
		bare := locktest.ConnectBare(t, link, names, 10*time.Second)
		first := joined(t, locktest.ConnectThrough(t, c, "other"), "a", "one")
		w := watch(t, &hidingConn{bare})
		require.Equal(t, "a=one ", w.next(t))
		link.Throttle(zktest.OpSetWatches)
		link.Reset()
		time.Sleep(5 * time.Second)
		for _, data := range []string{"two", "three"} {
			require.NoError(t, first.SetData(t.Context(), []byte(data)))
			time.Sleep(time.Minute + time.Second)
			require.Equal(t, "a="+data+" ", text(w.last()))
		}
	})
}

// Data that is too long for this client hides no member, and nobody else.
func TestAMemberWhoseDataIsTooLong(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		client, err := recipes.Connect(t.Context(), b.Cluster.Names()[0], 10*time.Second,
			recipes.WithDialer(b.Cluster.Link("small").Dial), recipes.WithMaxReply(10000))
		require.NoError(t, err)
		defer client.Close()
		joined(t, b.Other, "a", strings.Repeat("x", 20000))
		joined(t, b.Other, "b", "two")
		w := watch(t, client)
		time.Sleep(time.Minute)
		require.Equal(t, "a= b=two ", text(w.last()))
		members, err := recipes.Members(t.Context(), client, group)
		require.NoError(t, err)
		require.Equal(t, "a= b=two ", text(members))
		w.stop()
		<-w.done
	})
}
