package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// ledger is where the jobs write to: a znode for each time that a slot was done.
const ledger = "/ledger"

// A trial is five hosts under faults.
type trial struct {
	*site
	random *rand.Rand // of the test's goroutine

	// All below is guarded by the site's mutex.

	working string               // the host whose job began last
	begun   map[time.Time]int    // how often a slot's job has
	killed  map[string]chan bool // is closed when what is left of a host may end
}

// book returns a job that writes what it does to the ledger. In every other slot it is
// like a process that was suspended: it goes on after its lock was lost, for longer than
// a session lasts.
func (tr *trial) book(name string) job {
	return func(ctx context.Context, _ *recipes.Hold, slot time.Time) ([]any, error) {
		tr.mu.Lock()
		tr.working = name
		tr.begun[slot]++
		tr.mu.Unlock()
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			if slot.Unix()%4 == 0 {
				return nil, context.Cause(ctx)
			}
			time.Sleep(2 * sessionTimeout)
		}
		tr.mu.Lock()
		grave := tr.killed[name]
		tr.mu.Unlock()
		if grave != nil {
			<-grave
		}
		return []any{&zk.CreateRequest{
			Path: ledger + "/" + slot.Format(time.RFC3339) + "-", Flags: zk.FlagSequence,
			Acl: zk.WorldACL(zk.PermAll),
		}}, nil
	}
}

// kill ends a host for good: nothing of it reaches ZooKeeper any more, and its job does
// not end.
func (tr *trial) kill(name string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.killed[name] = make(chan bool)
	tr.cluster.Link(name).Cut()
	tr.names = slices.DeleteFunc(tr.names, func(n string) bool { return n == name })
}

// target returns the host that works, or another one.
func (tr *trial) target() *zktest.Link {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	name := tr.working
	if tr.random.IntN(3) == 0 || !slices.Contains(tr.names, name) {
		name = tr.names[tr.random.IntN(len(tr.names))]
	}
	return tr.cluster.Link(name)
}

// fail does one thing to the hosts that are left, for up to 15 s, and repairs it.
func (tr *trial) fail() {
	lasts := time.Duration(tr.random.IntN(15000)) * time.Millisecond
	switch link := tr.target(); tr.random.IntN(5) {
	case 0:
		tr.links((*zktest.Link).Cut)
		time.Sleep(7 * time.Second)
	case 1:
		link.Cut()
		time.Sleep(lasts)
	case 2:
		link.Freeze()
		time.Sleep(lasts)
		link.Thaw()
	case 3: // the mark has moved, and the host does not know
		link.LoseReply(zktest.OpMulti)
		time.Sleep(lasts)
		link.Spare()
	case 4:
		sessions := tr.cluster.Sessions()
		tr.cluster.ExpireSession(sessions[tr.random.IntN(len(sessions))])
	}
	tr.links((*zktest.Link).Heal)
}

// Five hosts lose their connections, sessions and answers, some of them and all at once,
// one host is killed in the middle of its job, and jobs go on that should have stopped.
// In the ledger each slot is there once, and they are in order.
func TestEachSlotIsBookedExactlyOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { exactlyOnce(t, seed) })
		})
	}
}

func exactlyOnce(t *testing.T, seed uint64) {
	const slots, every = 100, 2 * time.Second
	tr := &trial{
		site:   emptySite(t, 5, every),
		random: rand.New(rand.NewPCG(seed, 0)),
		begun:  map[time.Time]int{}, killed: map[string]chan bool{},
	}
	observer := locktest.ConnectThrough(t, tr.cluster, "observer")
	_, err := observer.Create(ledger, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	tr.start(t, tr.book)

	time.Sleep(time.Until(tr.first.Add(20*every + every/10)))
	victim := holderOf(t, tr.cluster)
	during := tr.first.Add(20 * every)
	tr.kill(victim)
	for time.Since(tr.first) < 60*every {
		tr.fail()
		time.Sleep(time.Duration(tr.random.IntN(5000)) * time.Millisecond)
	}
	time.Sleep(time.Until(tr.first.Add(slots*every - every/2))) // all is made up for
	close(tr.killed[victim])
	tr.stop()
	tr.running.Wait()

	var booked, want []string // the last of them after the hosts were told to stop
	for _, name := range locktest.Children(t, observer, ledger) {
		booked = append(booked, strings.TrimRight(name, "0123456789"))
	}
	for _, slot := range tr.slots(max(slots, len(booked))) {
		want = append(want, slot.Format(time.RFC3339)+"-")
	}
	require.Equal(t, want, booked)
	require.Greater(t, tr.begun[during], 1, "the killed host's job was not run again")
}
