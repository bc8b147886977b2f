package simulator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/acceptor"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

// A small is a run with the three owners of test/model/queue.pml: 0 and 1 share a
// connection, 2 has one of its own. What they do is told step by step, and each step
// comes to its end before the next.
type small struct {
	t       *testing.T
	tracer  *tracer
	cluster *zktest.Cluster
	conns   [2]*zk.Conn
	locks   [2]*recipes.InterProcessMutex
	owners  [3]context.Context
	holds   [3]*recipes.Hold
}

// connOf is the number of an owner's connection, and idOf its name in the trace.
func connOf(owner int) int { return owner / 2 }

func idOf(owner int) simulator.ID {
	return simulator.ID{Worker: connOf(owner), Owner: owner % 2}
}

// recordSmall returns the trace of what the steps do, with a loss margin.
func recordSmall(t *testing.T, steps func(*small)) (trace []acceptor.Line) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &small{t: t, tracer: &tracer{rec: simulator.NewRecorder(nil)}}
		s.cluster = zktest.Start(t, zktest.WithLog(s.tracer.committed))
		for n := range s.conns {
			s.connect(n)
		}
		for n := range s.owners {
			ctx := recipes.WithOwner(context.Background())
			s.owners[n] = context.WithValue(ctx, ownerKey{}, n)
		}
		steps(s)
		s.record(simulator.Event{Kind: simulator.Over})
		for _, conn := range s.conns {
			conn.Close()
		}
		s.tracer.rec.Close()
		time.Sleep(simForgets)
		trace = read(t, ndjson(t, s.tracer.rec.History()))
	})
	return trace
}

// ownerKey is what a ctx knows its owner by.
type ownerKey struct{}

// connect opens a connection, which tells the library no more than any other.
func (s *small) connect(n int) {
	link := s.link(n)
	link.Delay(mostLatency, mostLatency)
	conn, _, err := zk.Connect(s.cluster.Names(), simSession, zk.WithLogger(silent{}),
		zk.WithHostProvider(s.cluster.HostProvider()),
		zk.WithDialer(s.tracer.tap(n, "", link.Dial)))
	require.NoError(s.t, err)
	s.conns[n] = conn
	for path := "/locks"; n == 0 && path != ""; {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(s.t, err)
		path = map[string]string{"/locks": traced.Paths[0]}[path]
	}
	s.locks[n], err = recipes.NewInterProcessMutex(conn, traced.Paths[0],
		recipes.WithSessionTimeout(simSession), recipes.WithObserver(s.observe))
	require.NoError(s.t, err)
}

func (s *small) link(conn int) *zktest.Link {
	return s.cluster.Link(fmt.Sprint("connection ", conn))
}

func (s *small) record(e simulator.Event) { s.tracer.rec.Record(e) }

func (s *small) observe(ctx context.Context, e recipes.Event) {
	owner, _ := ctx.Value(ownerKey{}).(int)
	if e.Kind == recipes.EventQueued {
		s.record(simulator.Event{
			Kind: simulator.Queued, ID: idOf(owner), Path: e.Path, Node: e.Node,
		})
	}
}

// wants lets an owner acquire the lock, for as long as it takes.
func (s *small) wants(owner int) {
	s.record(simulator.Event{
		Kind: simulator.Called, ID: idOf(owner), Path: traced.Paths[0],
		Mode: simulator.Exclusive,
	})
	go func() {
		hold, err := recipes.Acquire(s.owners[owner], s.locks[connOf(owner)])
		if err != nil {
			return // the run has ended
		}
		s.holds[owner] = hold
		s.tracer.rec.Grant(simulator.Event{
			ID: idOf(owner), Path: traced.Paths[0], Mode: simulator.Exclusive,
			Token: hold.FencingToken(), Node: hold.Path(),
			Session: s.conns[connOf(owner)].SessionID(),
		}, hold)
	}()
	settle()
}

// settle waits until all is done that the last step has begun.
func settle() { time.Sleep(time.Second) }

// leaves lets a holder release the lock.
func (s *small) leaves(owner int) {
	e := simulator.Event{
		Kind: simulator.Releasing, ID: idOf(owner), Path: traced.Paths[0],
	}
	s.record(e)
	require.NoError(s.t, s.holds[owner].Release(s.owners[owner]))
	e.Kind, e.Outcome = simulator.Released, simulator.OK
	s.record(e)
	settle()
}

// isDeleted deletes a holder's znode, as an operator might.
func (s *small) isDeleted(owner int) {
	node := s.holds[owner].Path()
	s.record(simulator.Event{
		Kind: simulator.Removing, Path: traced.Paths[0], Node: node,
	})
	require.NoError(s.t, s.conns[1].Delete(node, -1))
	settle()
}

// isCutOff cuts an owner off until its session is over.
func (s *small) isCutOff(owner int) {
	s.link(connOf(owner)).Cut()
	time.Sleep(3 * simSession)
	s.link(connOf(owner)).Heal()
	settle()
}
