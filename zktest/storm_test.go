package zktest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// A storm is all that may be done to a cluster and through it, at once.
type storm struct {
	*zktest.Cluster
	tick time.Duration
	wg   sync.WaitGroup
}

// everywhere goes round the servers of n goroutines, each with its own random numbers,
// until ctx is done.
func (s *storm) everywhere(ctx context.Context, n int, do func(*rand.Rand)) {
	for i := range n {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		s.wg.Go(func() {
			for ctx.Err() == nil {
				do(random)
				time.Sleep(time.Duration(random.Int64N(int64(s.tick))))
			}
		})
	}
}

func (s *storm) link(random *rand.Rand) *zktest.Link {
	return s.Link(fmt.Sprint(random.IntN(4)))
}

// injectFault uses every hook there is.
func (s *storm) injectFault(random *rand.Rand) {
	server, l := s.Server(random.IntN(len(s.Servers()))), s.link(random)
	hooks := []func(){
		server.Stop, server.Start, server.Start, server.Freeze, server.Thaw, server.Thaw,
		server.Isolate, server.Rejoin, server.Rejoin,
		func() { server.Lag(time.Duration(random.Int64N(int64(s.tick)))) },
		l.Cut, l.Heal, l.Heal, l.Reset, l.Freeze, l.Thaw, l.Thaw, l.Spare,
		func() { l.Stall(zktest.Direction(1 + random.IntN(3))) },
		func() { l.Delay(0, time.Duration(random.Int64N(int64(s.tick)))) },
		func() { l.LoseRequest(zktest.Any) },
		func() { l.LoseReply(zktest.OpCreate) },
		func() {
			for _, id := range s.Sessions() {
				s.ExpireSession(id)
			}
		},
		func() { _ = s.SetSequence("/", random.Int32N(1000)) }, // it may lag behind
		func() {
			s.Znodes()
			s.Watches()
			s.Leader()
			server.Leading()
			server.Zxid()
			server.Addr()
		},
	}
	hooks[random.IntN(len(hooks))]()
}

// work is a client's, until a request fails.
func (s *storm) work(random *rand.Rand) {
	conn, _, err := zk.Connect([]string{"x"}, 4*s.tick,
		zk.WithDialer(s.link(random).Dial), zk.WithHostProvider(s.HostProvider()),
		zk.WithLogger(noLog{}), zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	for range random.IntN(20) {
		path, err := conn.Create("/n-", nil, zk.FlagEphemeral|zk.FlagSequence, anyone)
		if err == nil {
			_, _, _, err = conn.ChildrenW("/")
		}
		if err == nil {
			_, err = conn.Sync("/")
		}
		if err != nil || conn.Delete(path, -1) != nil {
			return
		}
	}
}

func (s *storm) run(n int, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	s.everywhere(ctx, n, s.injectFault)
	s.everywhere(ctx, n, s.work)
	<-ctx.Done()
}

func TestStorm(t *testing.T) {
	const tick = 20 * time.Millisecond
	before := ours()
	c := newCluster(t,
		zktest.WithServers(3), zktest.WithTick(tick), zktest.WithSlowClose(tick))
	s := &storm{Cluster: c, tick: tick}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addrs := s.Addrs()
	s.everywhere(ctx, 2, func(random *rand.Rand) {
		conn, _, err := zk.Connect(
			addrs, 4*tick, zk.WithLogger(noLog{}), zk.WithLogInfo(false),
		)
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(5 * tick))))
		conn.Close()
	})
	s.run(4, time.Second)
	s.Close() // in the midst of it
	s.wg.Wait()
	require.Equal(t, before, ours())
}

func TestStormInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storm{
			Cluster: newCluster(t, zktest.WithServers(3), zktest.WithTick(tickTime)),
			tick:    tickTime,
		}
		s.run(4, 20*time.Minute)
		s.wg.Wait()
		for _, server := range s.Servers() {
			server.Start()
			server.Thaw()
			server.Rejoin()
			server.Lag(0)
		}
		for i := range 4 {
			l := s.Link(fmt.Sprint(i))
			l.Heal()
			l.Thaw()
			l.Delay(0, 0)
			l.Spare()
		}
		time.Sleep(2 * time.Minute)
		require.Empty(t, s.Sessions(), "all that are left have expired")
		require.Empty(t, s.Znodes())
		require.Zero(t, s.Watches())
		require.Greater(t, s.Leader().Zxid()>>32, int64(20), "there were elections")
		cl := connect(t, s.Link("0"), s.HostProvider(), sessionTimeout)
		cl.create("/calm", 0)
		for _, server := range s.Servers() {
			require.Equal(t, s.Leader().Zxid(), server.Zxid())
		}
		s.Close()
	})
}
