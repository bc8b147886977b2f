package registration_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// What the group may show late. A session of locktest's clients lasts for 10 s, and the
// servers end it at most two ticks of 2 s later; to read that takes a moment. A reconnect
// takes a dial or two, with a pause of a second between them, and a read.
const (
	deadAtMost   = 10*time.Second + 2*2*time.Second + 200*time.Millisecond
	reconnecting = 3 * time.Second
)

// A fleet is a service with instances that things happen to, and what is seen of it.
type fleet struct {
	cluster   *zktest.Cluster
	instances []*fleetInstance
	random    *rand.Rand

	mu    sync.Mutex
	shown map[string]bool // by id: what WatchMembers has yielded last
}

type fleetInstance struct {
	id     string
	client *recipes.Client
	link   *zktest.Link
	dead   time.Time // since when it has been suspended; zero: it runs
	live   time.Time // since when it has had a session to gain
}

func newFleet(t *testing.T, seed uint64) *fleet {
	t.Helper()
	f := &fleet{
		cluster: zktest.Start(t, zktest.WithServers(3)),
		random:  rand.New(rand.NewPCG(seed, 0)),
	}
	for i := range 5 {
		id := fmt.Sprint(i)
		client := locktest.ConnectThrough(t, f.cluster, id)
		joined(t, client, id, "data")
		f.instances = append(f.instances, &fleetInstance{
			id: id, client: client, link: f.cluster.Link(id), live: time.Now(),
		})
	}
	w := watch(t, locktest.ConnectThrough(t, f.cluster, "looking"))
	go func() {
		for {
			select {
			case members := <-w.seen:
				f.show(members)
			case <-w.done:
				return
			}
		}
	}()
	return f
}

func (f *fleet) show(members []recipes.Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = map[string]bool{}
	for _, m := range members {
		f.shown[m.ID] = true
	}
}

// pass lets time pass, and looks all the time.
func (f *fleet) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		f.look(t)
	}
}

// look requires that each instance is shown, or is not, as it must be by now.
func (f *fleet) look(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.instances {
		if i.dead.IsZero() && !f.shown[i.id] {
			require.LessOrEqual(t, time.Since(i.live), reconnecting,
				"%s lives, and is missed", i.id)
		}
		if !i.dead.IsZero() && f.shown[i.id] {
			require.LessOrEqual(t, time.Since(i.dead), deadAtMost,
				"%s is dead, and is shown", i.id)
		}
	}
}

// restart restarts a server. That is no excuse for anything: sessions outlast it.
func (f *fleet) restart(t *testing.T, s *zktest.Server) {
	t.Helper()
	s.Stop()
	f.pass(t, time.Duration(1+f.random.IntN(5))*time.Second)
	s.Start()
	f.pass(t, 5*time.Second)
}

// expire ends the session of an instance by hand.
func (f *fleet) expire(t *testing.T, i *fleetInstance) {
	t.Helper()
	i.live = time.Now()
	f.cluster.ExpireSession(i.client.SessionID())
	f.pass(t, time.Duration(f.random.IntN(10))*time.Second)
}

// suspend suspends the process of an instance, as the servers see it.
func (f *fleet) suspend(t *testing.T, i *fleetInstance) {
	t.Helper()
	i.dead = time.Now()
	i.link.Freeze()
	f.pass(t, time.Duration(f.random.IntN(30))*time.Second)
	i.link.Thaw()
	i.dead, i.live = time.Time{}, time.Now()
	f.pass(t, time.Duration(f.random.IntN(10))*time.Second)
}

// isWhole requires that each instance is a member, with its data and its session.
func (f *fleet) isWhole(t *testing.T) {
	t.Helper()
	members, err := recipes.Members(t.Context(), f.instances[0].client, group)
	require.NoError(t, err)
	require.Equal(t, "0=data 1=data 2=data 3=data 4=data ", text(members))
	for i, m := range members {
		require.Equal(t, f.instances[i].client.SessionID(), m.Session)
	}
}

// Five instances, whose servers are restarted one by one, whose sessions are ended by
// hand, and whose processes are suspended: at no time is a dead one shown for longer than
// its session lasts, or a live one missed for longer than a reconnect takes.
func TestAFleetIsShownAsItIs(t *testing.T) {
	for seed := range uint64(3) {
		locktest.RunVirtual(t, fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(t, seed)
			f.pass(t, time.Minute)
			for range 20 {
				i := f.instances[f.random.IntN(len(f.instances))]
				switch f.random.IntN(3) {
				case 0:
					for _, s := range f.cluster.Servers() {
						f.restart(t, s)
					}
				case 1:
					f.expire(t, i)
				case 2:
					f.suspend(t, i)
				}
			}
			f.pass(t, time.Minute)
			f.isWhole(t)
		})
	}
}
