//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// A nemesis makes faults, each of its hands one at a time: one of servers, the other of
// lines and workers.
type nemesis struct {
	e        *ensemble
	pausable []pausable
	// How many locks are held for long through a server.
	holds func(server int) int
	// The session timeout: the measure of what a fault may last.
	session time.Duration
	// See faults.Net.
	cut, mended func(worker int)

	faults.Hands
}

// A pausable is a worker that can be stopped where it stands.
type pausable struct {
	name          string
	pause, resume func() error
}

// run makes faults until ctx is done. When it returns all of them have ended, and the
// error tells which could not be made or ended.
func (n *nemesis) run(ctx context.Context, seed uint64) error {
	return n.Run(ctx, seed,
		faults.Hand{Rest: 2 * n.session, Faults: n.ofServers()},
		faults.Hand{Rest: n.session / 4, Faults: n.ofLines()},
	)
}

// ofServers are the faults of server processes.
func (n *nemesis) ofServers() []faults.Fault {
	t := n.session
	return []faults.Fault{
		ofServer("kill a follower", 4, t/20, t, n.server(n.aFollower, n.kill)),
		ofServer("kill the leader", 2, t/20, t, n.server(n.theLeader, n.kill)),
		ofServer("freeze a follower", 4, t/20, 2*t, n.server(n.aFollower, n.freeze)),
		ofServer("freeze the leader", 2, t/20, 2*t, n.server(n.theLeader, n.freeze)),
		ofServer("kill all servers", 1, t/20, t/4, n.killAll),
	}
}

// ofServer is a fault that may cost a majority of servers.
func ofServer(
	kind string, weight int, least, most time.Duration, begin faults.Begin,
) faults.Fault {
	f := faults.New(kind, weight, least, most, begin)
	f.Quorum = true
	return f
}

// server is the begin of a fault of one server.
func (n *nemesis) server(
	which func(d faults.Dice) (int, bool),
	do func(server int) (end func() error, err error),
) faults.Begin {
	return func(_ context.Context, d faults.Dice) (string, func() error, error) {
		server, ok := which(d)
		if !ok {
			return "", nil, faults.ErrNotNow
		}
		end, err := do(server)
		return serverName(server), end, err
	}
}

func serverName(server int) string { return fmt.Sprintf("server %d", server) }

func (n *nemesis) theLeader(faults.Dice) (server int, ok bool) { return n.e.leader() }

func (n *nemesis) aFollower(d faults.Dice) (server int, ok bool) {
	leader, ok := n.e.leader()
	servers := len(n.e.Servers)
	return (leader + 1 + d.IntN(servers-1)) % servers, ok
}

func (n *nemesis) kill(server int) (end func() error, err error) {
	s := n.e.Servers[server]
	return s.Restart, s.Kill()
}

func (n *nemesis) freeze(server int) (end func() error, err error) {
	s := n.e.Servers[server]
	return s.Thaw, s.Freeze()
}

func (n *nemesis) killAll(
	context.Context, faults.Dice,
) (what string, end func() error, err error) {
	var kills, restarts []func() error
	for _, s := range n.e.Servers {
		kills, restarts = append(kills, s.Kill), append(restarts, s.Restart)
	}
	end = func() error { return faults.InParallel(restarts) }
	return "all servers", end, faults.InParallel(kills)
}

// ofLines are the faults of lines and of workers.
func (n *nemesis) ofLines() []faults.Fault {
	t, net := n.session, faults.Net{
		Lines: n.e.toServer, Cut: n.cut, Mended: n.mended,
	}
	all := []faults.Fault{
		faults.New("partition a worker", 4, t/20, 3*t, net.Partition),
		faults.New("slow lines", 1, t/20, t, net.Slow),
		faults.New("reset connections", 2, t/20, t/5, net.Reset),
		faults.New("pause a worker", 3, t/20, 2*t, n.pauseWorker),
	}
	if len(n.e.between) == 0 {
		return all
	}
	return append(all,
		ofServer("cut a follower from the leader", 6, 5*t/4, 3*t, n.cutFollower),
		ofServer("isolate a server from the others", 2, t/2, 2*t, n.isolate),
		ofServer("isolate a worker with a follower", 3, 5*t/4, 3*t, n.isolateTogether))
}

func (n *nemesis) pauseWorker(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	w := faults.Pick(d, n.pausable...)
	return w.name, w.resume, w.pause()
}

// cutFollower leaves a follower with its clients, whom it answers reads from what it
// knows, until it or the leader gives up. It is that follower through which more is held.
func (n *nemesis) cutFollower(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	leader, ok := n.e.leader()
	if !ok {
		return "", nil, faults.ErrNotNow
	}
	follower := -1
	for i := range n.e.Servers {
		if i != leader && (follower < 0 || n.holds(i) > n.holds(follower)) {
			follower = i
		}
	}
	toxics, how := faults.Cuts(d)
	end, err = faults.Put([]*faults.Line{n.e.following(follower, leader)}, toxics...)
	return fmt.Sprintf("server %d from server %d, %s", follower, leader, how), end, err
}

func (n *nemesis) isolate(
	_ context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	server := d.IntN(len(n.e.Servers))
	toxics, how := faults.Cuts(d)
	end, err = faults.Put(n.e.peersOf(server), toxics...)
	return serverName(server) + ", " + how, end, err
}

// isolateTogether drives a worker to a follower and then cuts that one from the leader:
// once the follower gives up, the worker is alone, having been answered for longer than
// the leader has known.
func (n *nemesis) isolateTogether(
	ctx context.Context, d faults.Dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.e.toServer))
	follower, ok := n.aFollower(d)
	if !ok {
		return "", nil, faults.ErrNotNow
	}
	others := slices.Delete(slices.Clone(n.e.toServer[worker]), follower, follower+1)
	rescue, err := faults.Put(others, faults.Toxic{
		Kind: faults.ResetPeer, Direction: faults.ToServer,
	})
	if err != nil {
		return "", nil, err
	}
	faults.Sleep(ctx, n.session/2)
	cut, err := faults.Put(
		n.e.peersOf(follower),
		faults.Toxic{Kind: faults.Stall, Direction: faults.ToServer},
		faults.Toxic{Kind: faults.Stall, Direction: faults.FromServer},
	)
	if err != nil {
		return "", nil, errors.Join(err, rescue())
	}
	return fmt.Sprintf("worker %d with server %d", worker, follower),
		func() error { return faults.InParallel([]func() error{rescue, cut}) }, nil
}
