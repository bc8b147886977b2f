//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// An ensemble is three real servers with a proxy in each line to them and between them,
// so that any one line can be stalled, slowed down or cut, in either direction.
type ensemble struct {
	*zkserver.Cluster
	// By worker and server: what a worker reaches a server through.
	toServer [][]*faults.Line
	between  []peers // the ordered pairs of servers; none where they run in containers
}

// peers are the lines by which one server reaches another one.
type peers struct {
	from, to         int // indices of Cluster.Servers
	quorum, election *faults.Line
}

// startEnsemble starts an ensemble with lines to it for a number of workers.
func startEnsemble(t *testing.T, workers int, opts ...zkserver.Option) *ensemble {
	t.Helper()
	e := &ensemble{}
	lines := faults.NewLines()
	t.Cleanup(lines.Close)
	route := func(from, to int, actual zkserver.PeerPorts) (zkserver.PeerPorts, error) {
		p := peers{from: from, to: to}
		var quorum, election error
		p.quorum, quorum = lines.Open(faults.LocalAddr(actual.Quorum))
		p.election, election = lines.Open(faults.LocalAddr(actual.Election))
		if err := errors.Join(quorum, election); err != nil {
			return actual, err
		}
		e.between = append(e.between, p)
		return zkserver.PeerPorts{
			Quorum: p.quorum.Port(), Election: p.election.Port(),
		}, nil
	}
	e.Cluster = zkserver.Start(
		t, append(opts, zkserver.Servers(3), zkserver.RoutePeers(route))...,
	)
	for range workers {
		var own []*faults.Line
		for _, server := range e.Servers {
			l, err := lines.Open(server.Addr)
			require.NoError(t, err)
			own = append(own, l)
		}
		e.toServer = append(e.toServer, own)
	}
	return e
}

// connect is the connect string of a worker.
func (e *ensemble) connect(worker int) string {
	if isLongHolder(worker) {
		return e.toServer[worker][worker-busyWorkers].Addr()
	}
	var addrs []string
	for _, l := range e.toServer[worker] {
		addrs = append(addrs, l.Addr())
	}
	return strings.Join(addrs, ",")
}

// leader asks all servers who leads; ok is false where none does, or none is known to.
func (e *ensemble) leader() (index int, ok bool) {
	var wg sync.WaitGroup
	leads := make([]bool, len(e.Servers))
	for i, s := range e.Servers {
		wg.Go(func() {
			answer, err := s.FourLetter("srvr")
			leads[i] = err == nil && strings.Contains(answer, "Mode: leader")
		})
	}
	wg.Wait()
	for i, yes := range leads {
		if yes {
			return i, true
		}
	}
	return 0, false
}

// diverged tells of a server whose znodes are not its leader's after the same
// transactions: servers keep a digest of their znodes, and compare it at each
// transaction. It is met with version 3.8.0, where a follower that has lost its leader
// comes back with transactions that no quorum had: later versions have fixes of that kind
// (ZOOKEEPER-4712, ZOOKEEPER-4785). What comes of it are two znodes with one sequence
// number, waiters behind a znode that nobody else sees, and two holders.
func (e *ensemble) diverged() error {
	for i, s := range e.Servers {
		if found := s.LogLines("First digest mismatch on txn"); len(found) > 0 {
			return fmt.Errorf("server %d differs: %s", i, found[0])
		}
	}
	return nil
}

// addrs are those of the servers themselves.
func (e *ensemble) addrs() (all []string) {
	for _, s := range e.Servers {
		all = append(all, s.Addr)
	}
	return all
}

// String tells what the servers say of themselves: for a run that fails.
func (e *ensemble) String() string {
	var b strings.Builder
	for i, s := range e.Servers {
		for _, command := range []string{"srvr", "dump"} {
			answer, err := s.FourLetter(command)
			fmt.Fprintf(&b, "server %d says to %s: %s", i, command, answer)
			if err != nil {
				fmt.Fprintf(&b, "%v\n", err)
			}
		}
		fmt.Fprintf(&b, "and its log ends:\n%s\n", s.Log())
	}
	return b.String()
}

// views tells which znodes each server has below root, and whose: servers that differ are
// broken.
func (e *ensemble) views(root string) string {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var b strings.Builder
	for i, addr := range e.addrs() {
		conn, err := dialPlain(ctx, addr, patience, func() {})
		if err != nil {
			fmt.Fprintf(&b, "server %d shows nothing: %v\n", i, err)
			continue
		}
		fmt.Fprintf(&b, "server %d has\n", i)
		writeTree(&b, conn, root)
		conn.Close()
	}
	return b.String()
}

func writeTree(b *strings.Builder, conn simulator.Client, path string) {
	names, stat, err := conn.Children(path)
	if err != nil {
		fmt.Fprintf(b, "%s: %v\n", path, err)
		return
	}
	fmt.Fprintf(b, "%s czxid %#x session %#x\n", path, stat.Czxid, stat.EphemeralOwner)
	slices.Sort(names)
	for _, name := range names {
		writeTree(b, conn, path+"/"+name)
	}
}

// peersOf returns the pairs that a server is one of.
func (e *ensemble) peersOf(server int) (found []*faults.Line) {
	for _, p := range e.between {
		if p.from == server || p.to == server {
			found = append(found, p.quorum, p.election)
		}
	}
	return found
}

// following is the line by which a server follows a leader.
func (e *ensemble) following(follower, leader int) *faults.Line {
	for _, p := range e.between {
		if p.from == follower && p.to == leader {
			return p.quorum
		}
	}
	panic("BUG: no such pair of servers")
}
