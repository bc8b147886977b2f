package hold_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// ensembleTest is a lock that is held through a follower and wanted through the leader.
type ensembleTest struct {
	t        *testing.T
	cluster  *zktest.Cluster
	follower *zktest.Server
	holder   *recipes.Client
	lock     *recipes.InterProcessMutex
}

const holdersLink = "the holder's"

func newEnsembleTest(
	t *testing.T, timeout time.Duration, opts ...zktest.Option,
) *ensembleTest {
	t.Helper()
	cluster := zktest.Start(t, append(opts, zktest.WithServers(3))...)
	e := &ensembleTest{t: t, cluster: cluster, follower: cluster.Server(0)}
	require.False(t, e.follower.Leading())
	e.holder = locktest.Connect(t, cluster.Link(holdersLink), e.follower.Addr(), timeout)
	e.lock = e.mutex(e.holder)
	return e
}

func (e *ensembleTest) mutex(client *recipes.Client) *recipes.InterProcessMutex {
	e.t.Helper()
	return locktest.NewMutex(e.t, client, "/lock")
}

// outlives acquires the lock, lets fault happen to the ensemble and waits until somebody
// else has the lock: by then Lost must be closed.
func (e *ensembleTest) outlives(fault func()) {
	e.t.Helper()
	other := e.mutex(locktest.Connect(
		e.t, e.cluster.Link("other"), e.cluster.Leader().Addr(), 40*time.Second,
	))
	ctx, others := locktest.Owner(e.t), locktest.Owner(e.t)
	require.NoError(e.t, e.lock.Acquire(ctx))
	hold, held := e.lock.Hold(ctx), time.Now()
	next := locktest.Start(func() error { return other.Acquire(others) })
	synctest.Wait()
	fault()
	require.NoError(e.t, <-next)
	require.ErrorIs(
		e.t, hold.Err(), recipes.ErrLockLost, "two holders, %v after the first acquired",
		time.Since(held),
	)
	require.Less(e.t, time.Since(held), time.Minute, "the session has not ended")
	require.NoError(e.t, other.Release(others))
}

// A follower that is cut off from its leader goes on to answer reads and pings for
// syncLimit ticks, while the leader ends the sessions of its clients. The loss clock must
// not run on such answers.
func TestLostBehindAFollowerWithoutALeader(t *testing.T) {
	for _, timeout := range []time.Duration{
		4 * time.Second, 6 * time.Second, 8 * time.Second,
	} {
		locktest.RunVirtual(t, timeout.String(), func(t *testing.T) {
			e := newEnsembleTest(t, timeout)
			e.outlives(func() {
				time.Sleep(20 * time.Second)
				e.follower.Isolate()
			})
		})
	}
}

// A follower tells its leader from whom it has heard every half tick only. One that dies
// before takes the last contact with it.
func TestLostBehindAFollowerThatDies(t *testing.T) {
	for _, timeout := range []time.Duration{
		4 * time.Second, 12 * time.Second, 40 * time.Second,
	} {
		const least = 10 * time.Second
		for idle := least; idle < least+timeout/2; idle += timeout / 40 {
			for _, lasts := range []time.Duration{
				0, 300 * time.Millisecond, time.Second, 3 * time.Second,
			} {
				name := fmt.Sprintf("%v after %v and %v", timeout, idle, lasts)
				locktest.RunVirtual(t, name, func(t *testing.T) {
					e := newEnsembleTest(t, timeout)
					time.Sleep(idle) // the client pings every third of its timeout
					e.outlives(func() {
						time.Sleep(lasts)
						e.cluster.Link(holdersLink).Cut()
						e.follower.Stop()
					})
				})
			}
		}
	}
}

// The leader pings a little later than half a tick after its last ping, since it works
// between two waits. So two contacts that are half a tick apart, the first right behind a
// ping, do not show that it has pinged in between.
func TestLostBehindAFollowerThatDiesBeforeALatePing(t *testing.T) {
	const timeout = 4 * time.Second // of two ticks
	for seed := range uint64(40) {  // it sets how late pings are
		locktest.RunVirtual(t, fmt.Sprint("seed ", seed+1), func(t *testing.T) {
			e := newEnsembleTest(t, timeout, zktest.WithSeed(seed+1))
			time.Sleep(10*time.Second + time.Duration(seed)*timeout/40)
			time.Sleep(time.Until(e.cluster.NextPing()) + time.Millisecond)
			e.outlives(func() {
				time.Sleep(time.Until(e.cluster.NextPing()) - time.Millisecond)
				e.cluster.Link(holdersLink).Cut()
				e.follower.Stop()
			})
		})
	}
}

// What holds up the heartbeat, a process that is stopped or a network that stands still,
// holds up the client's pings as well: they are no evidence for that time, should the
// follower die before it has reported what came behind.
func TestLostBehindAFollowerThatDiesAfterASilence(t *testing.T) {
	const timeout, tick = 4 * time.Second, 2 * time.Second
	for seed := range uint64(20) { // it sets when reports are
		for phase := tick * 4 / 5; phase < tick; phase += tick / 40 {
			locktest.RunVirtual(t, fmt.Sprintf("seed %d, phase %v", seed, phase), func(
				t *testing.T,
			) {
				e := newEnsembleTest(t, timeout,
					zktest.WithTick(tick), zktest.WithSeed(seed))
				link := e.cluster.Link(holdersLink)
				e.outlives(func() {
					time.Sleep(timeout + phase)
					link.Stall(zktest.Both)
					time.Sleep(timeout * 54 / 100)
					link.Heal()
					time.Sleep(tick * 2 / 5)
					link.Cut()
					e.follower.Stop()
				})
			})
		}
	}
}

// A silence that begins as the lock is asked for may be too short to be noticed, and hold
// up a ping that was due just then by more than the clock allows for.
func TestLostBehindAFollowerThatDiesAfterAShortSilence(t *testing.T) {
	const timeout, tick = 10 * time.Second, time.Second / 2
	for idle := 2 * timeout; idle < 2*timeout+timeout*2/5; idle += timeout / 120 {
		for _, lasts := range []time.Duration{timeout / 10, timeout * 14 / 100} {
			locktest.RunVirtual(t, fmt.Sprintf("%v after %v", lasts, idle), func(
				t *testing.T,
			) {
				e := newEnsembleTest(t, timeout, zktest.WithTick(tick))
				e.lock = locktest.NewMutex(t, e.holder, "/lock",
					recipes.WithServerTick(tick))
				link := e.cluster.Link(holdersLink)
				time.Sleep(idle)
				link.Stall(zktest.Both)
				time.AfterFunc(lasts, link.Heal)
				e.outlives(func() {
					time.Sleep(time.Until(e.cluster.NextPing()) - time.Millisecond)
					link.Cut()
					e.follower.Stop()
				})
			})
		}
	}
}

// With enableEagerACLCheck a follower refuses writes by itself, also one that is cut off
// from its leader. Its refusals must not keep the clock.
func TestLostBehindAFollowerThatRefusesByItself(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		acl     []zk.ACL
		refusal error
	}{
		"no permission": {"/forbidden", zk.WorldACL(zk.PermAll), zk.ErrNoAuth},
		"a bad ACL": {
			"/", []zk.ACL{{Perms: zk.PermAll, Scheme: "none"}}, zk.ErrInvalidACL,
		},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			e := newEnsembleTest(t, 4*time.Second, zktest.WithEagerACLCheck())
			closed := zk.DigestACL(zk.PermAll, "somebody", "else")
			_, err := e.holder.Create("/forbidden", nil, 0, closed)
			require.NoError(t, err)
			refused := locktest.NewMutex(t, e.holder, c.path, recipes.WithACL(c.acl))
			refusals := make(chan int, 1)
			e.outlives(func() {
				time.Sleep(20 * time.Second)
				e.follower.Isolate()
				go func() {
					n := 0
					for ctx := locktest.Owner(t); ; n++ {
						_, err := refused.AcquireTimeout(ctx, time.Second)
						if !errors.Is(err, c.refusal) {
							break
						}
						time.Sleep(100 * time.Millisecond)
					}
					refusals <- n
				}()
			})
			require.Greater(t, <-refusals, 40, "it refuses for four seconds at least")
		})
	}
}

// Where minSessionTimeout was lowered a session can last for less than two ticks, and
// what a follower has heard is old by the time it reports it.
func TestLostWithASessionBelowTwoTicks(t *testing.T) {
	const tick = 2 * time.Second
	for _, timeout := range []time.Duration{
		1650 * time.Millisecond, 2 * time.Second, 3 * time.Second,
	} {
		for phase := range 60 {
			locktest.RunVirtual(t, timeout.String()+" phase "+strconv.Itoa(phase), func(
				t *testing.T,
			) {
				e := newEnsembleTest(t, timeout,
					zktest.WithMinSessionTimeout(200*time.Millisecond),
					zktest.WithTick(tick), zktest.WithSeed(uint64(phase+1)))
				e.lock = locktest.NewMutex(t, e.holder, "/lock",
					recipes.WithServerTick(tick))
				e.outlives(func() {
					time.Sleep(6*time.Second + time.Duration(phase)*tick/60)
					e.cluster.Link(holdersLink).Cut()
					e.follower.Stop()
				})
			})
		}
	}
}

// A session that is too short for the tick cannot be relied on, and Acquire says so: the
// first one too, although the handshake before it counts by itself, for a while.
func TestASessionTooShortForTheTickIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t, zktest.WithMinSessionTimeout(200*time.Millisecond))
		client, err := recipes.Connect(t.Context(), cluster.Leader().Addr(), time.Second,
			recipes.WithDialer(cluster.Link(holdersLink).Dial),
			recipes.WithClientServerTick(10*time.Second))
		require.NoError(t, err)
		defer client.Close()
		lock := locktest.NewMutex(t, client, "/lock")
		ctx, cancel := context.WithTimeout(locktest.Owner(t), time.Minute)
		defer cancel()
		for range 2 {
			require.ErrorContains(t, lock.Acquire(ctx), "at least 8.25s is needed")
			time.Sleep(10 * time.Second)
		}
		children, _, err := client.Children("/lock")
		require.NoError(t, err)
		require.Empty(t, children)
	})
}

// A follower that is cut off from its leader disconnects nobody for five ticks, and the
// leader ends its clients' sessions after two. So where the session timeout is unknown a
// disconnect is not what to wait for.
func TestLostWithAnUnknownTimeoutBehindAFollowerWithoutALeader(t *testing.T) {
	for phase := range 30 {
		for name, fault := range map[string]func(e *ensembleTest){
			"isolated": func(e *ensembleTest) { e.follower.Isolate() },
			"dead": func(e *ensembleTest) {
				e.cluster.Link(holdersLink).Cut()
				e.follower.Stop()
			},
		} {
			locktest.RunVirtual(t, name+" phase "+strconv.Itoa(phase), func(
				t *testing.T,
			) {
				cluster := zktest.Start(t, zktest.WithServers(3),
					zktest.WithSeed(uint64(phase+1)))
				e := &ensembleTest{
					t: t, cluster: cluster, follower: cluster.Server(0),
				}
				t.Cleanup(func() { e.follower.Start(); e.follower.Rejoin() })
				conn := locktest.ConnectBare(
					t, cluster.Link(holdersLink), e.follower.Addr(), 4*time.Second,
				)
				e.lock = locktest.NewMutex(t, conn, "/lock")
				time.Sleep(10 * time.Second)
				e.outlives(func() {
					time.Sleep(time.Duration(phase) * 250 * time.Millisecond)
					fault(e)
				})
			})
		}
	}
}
