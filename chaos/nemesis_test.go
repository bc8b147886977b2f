//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// A fault is something that goes wrong for a while.
type chaosFault struct {
	kind        string
	weight      int // how often it is chosen, in relation to the others
	least, most time.Duration
	// Leaves a majority of servers only if it is the only one of this sort.
	quorum bool
	// begin returns what is to be done to end it. errNotNow says that it makes no sense
	// at present.
	begin func(ctx context.Context, d dice) (what string, end func() error, err error)
}

var errNotNow = errors.New("not now")

// dice are a seed's choices.
type dice struct{ *rand.Rand }

// between returns a time from least to most; short times are more likely than long ones.
func (d dice) between(least, most time.Duration) time.Duration {
	share := d.Float64()
	return least + time.Duration(share*share*float64(most-least))
}

// pick returns one of several, each as likely as the others.
func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// A nemesis makes faults, each of its hands one at a time: one of servers, the other of
// lines and workers.
type nemesis struct {
	e        *ensemble
	pausable []pausable
	// How many locks are held for long through a server.
	holds func(server int) int
	// The session timeout: the measure of what a fault may last.
	session time.Duration
	note    func(format string, args ...any) // puts a remark into the history

	quorum sync.Mutex // held by a fault that leaves just a majority

	mu     sync.Mutex // guards what follows
	counts map[string]int
	failed []error
}

// A pausable is a worker that can be stopped where it stands.
type pausable struct {
	name          string
	pause, resume func() error
}

// run makes faults until ctx is done. When it returns all of them have ended, and the
// error tells which could not be made or ended.
func (n *nemesis) run(ctx context.Context, seed uint64) error {
	n.counts = map[string]int{}
	var hands sync.WaitGroup
	hand := func(number uint64, rest time.Duration, faults []chaosFault) {
		d := dice{rand.New(rand.NewPCG(seed, number))}
		for ctx.Err() == nil {
			sleep(ctx, d.between(0, rest))
			n.make(ctx, d, faults)
		}
	}
	hands.Go(func() { hand(0, 2*n.session, n.ofServers()) })
	hands.Go(func() { hand(1, n.session/4, n.ofLines()) })
	hands.Wait()
	return errors.Join(n.failed...)
}

// make makes one fault, from its beginning to its end.
func (n *nemesis) make(ctx context.Context, d dice, faults []chaosFault) {
	f := choose(d, faults)
	length, alone := d.between(f.least, f.most), d.IntN(5) > 0
	if f.quorum && alone { // mostly there is somebody who can take what another one loses
		n.quorum.Lock()
		defer n.quorum.Unlock()
		if ctx.Err() != nil {
			return
		}
	}
	what, end, err := f.begin(ctx, d)
	switch {
	case errors.Is(err, errNotNow):
		return
	case err != nil:
		n.fail(fmt.Errorf("begin %s: %w", f.kind, err))
		return
	}
	n.note("fault: %s: %s, for %v", f.kind, what, length.Round(time.Millisecond))
	sleep(ctx, length)
	if err := end(); err != nil {
		n.fail(fmt.Errorf("end %s: %s: %w", f.kind, what, err))
		return
	}
	n.note("fault: %s: %s, is over", f.kind, what)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[f.kind]++
}

func choose(d dice, faults []chaosFault) chaosFault {
	var all []chaosFault
	for _, f := range faults {
		all = append(all, slices.Repeat([]chaosFault{f}, f.weight)...)
	}
	return pick(d, all...)
}

func (n *nemesis) fail(err error) {
	n.note("fault: %v", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = append(n.failed, err)
}

// made is how many faults there were.
func (n *nemesis) made() (sum int) {
	for _, c := range n.counts {
		sum += c
	}
	return sum
}

// summary tells how many faults of each kind there were.
func (n *nemesis) summary() string {
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(n.counts)) {
		text = append(text, fmt.Sprintf("%s: %d", kind, n.counts[kind]))
	}
	return strings.Join(text, ", ")
}

// ofServers are the faults of server processes.
func (n *nemesis) ofServers() []chaosFault {
	t := n.session
	return []chaosFault{
		{"kill a follower", 4, t / 20, t, true, n.server(n.aFollower, n.kill)},
		{"kill the leader", 2, t / 20, t, true, n.server(n.theLeader, n.kill)},
		{"freeze a follower", 4, t / 20, 2 * t, true, n.server(n.aFollower, n.freeze)},
		{"freeze the leader", 2, t / 20, 2 * t, true, n.server(n.theLeader, n.freeze)},
		{"kill all servers", 1, t / 20, t / 4, true, n.killAll},
	}
}

// server is the begin of a fault of one server.
func (n *nemesis) server(
	which func(d dice) (int, bool), do func(server int) (end func() error, err error),
) func(context.Context, dice) (string, func() error, error) {
	return func(_ context.Context, d dice) (string, func() error, error) {
		server, ok := which(d)
		if !ok {
			return "", nil, errNotNow
		}
		end, err := do(server)
		return serverName(server), end, err
	}
}

func serverName(server int) string { return fmt.Sprintf("server %d", server) }

func (n *nemesis) theLeader(dice) (server int, ok bool) { return n.e.leader() }

func (n *nemesis) aFollower(d dice) (server int, ok bool) {
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
	context.Context, dice,
) (what string, end func() error, err error) {
	var kills, restarts []func() error
	for _, s := range n.e.Servers {
		kills, restarts = append(kills, s.Kill), append(restarts, s.Restart)
	}
	return "all servers", func() error { return inParallel(restarts) }, inParallel(kills)
}

// ofLines are the faults of lines and of workers.
func (n *nemesis) ofLines() []chaosFault {
	t := n.session
	faults := []chaosFault{
		{"partition a worker", 4, t / 20, 3 * t, false, n.partitionWorker},
		{"slow lines", 1, t / 20, t, false, n.slow},
		{"reset connections", 2, t / 20, t / 5, false, n.reset},
		{"pause a worker", 3, t / 20, 2 * t, false, n.pauseWorker},
	}
	if len(n.e.between) == 0 {
		return faults
	}
	return append(faults,
		chaosFault{
			"cut a follower from the leader", 6, 5 * t / 4, 3 * t, true, n.cutFollower,
		},
		chaosFault{"isolate a server from the others", 2, t / 2, 2 * t, true, n.isolate},
		chaosFault{
			"isolate a worker with a follower", 3, 5 * t / 4, 3 * t, true,
			n.isolateTogether,
		})
}

// cuts are the ways in which a line can be dead: in both directions or in one, with what
// was sent arriving late or never.
func cuts(d dice) (toxics []toxic, what string) {
	kind := pick(d, stall, stall, blackHole)
	directions := pick(d,
		[]string{toServer, fromServer}, []string{toServer}, []string{fromServer})
	for _, direction := range directions {
		toxics = append(toxics, toxic{Kind: kind, Direction: direction})
		what += " " + direction
	}
	return toxics, kind + what
}

func (n *nemesis) partitionWorker(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.e.toServer))
	lines, from := n.e.toServer[worker], "all servers"
	if d.IntN(2) == 0 {
		spared := d.IntN(len(lines))
		lines = slices.Delete(slices.Clone(lines), spared, spared+1)
		from = fmt.Sprintf("all but server %d", spared)
	}
	toxics, how := cuts(d)
	end, err = addToxics(lines, toxics...)
	return fmt.Sprintf("worker %d from %s, %s", worker, from, how), end, err
}

func (n *nemesis) slow(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	delay := 10 + d.IntN(200)
	attributes := map[string]int{"latency": delay, "jitter": delay / 2}
	var lines []*line
	server := d.IntN(len(n.e.Servers))
	for _, line := range n.e.toServer {
		lines = append(lines, line[server])
	}
	end, err = addToxics(lines,
		toxic{Kind: latency, Direction: toServer, Attributes: attributes},
		toxic{Kind: latency, Direction: fromServer, Attributes: attributes})
	return fmt.Sprintf("server %d, %d ms", server, delay), end, err
}

func (n *nemesis) reset(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.e.toServer))
	direction := pick(d, toServer, fromServer)
	end, err = addToxics(n.e.toServer[worker], toxic{
		Kind: resetPeer, Direction: direction,
	})
	return fmt.Sprintf("worker %d, %s", worker, direction), end, err
}

func (n *nemesis) pauseWorker(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	w := pick(d, n.pausable...)
	return w.name, w.resume, w.pause()
}

// cutFollower leaves a follower with its clients, whom it answers reads from what it
// knows, until it or the leader gives up. It is that follower through which more is held.
func (n *nemesis) cutFollower(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	leader, ok := n.e.leader()
	if !ok {
		return "", nil, errNotNow
	}
	follower := -1
	for i := range n.e.Servers {
		if i != leader && (follower < 0 || n.holds(i) > n.holds(follower)) {
			follower = i
		}
	}
	toxics, how := cuts(d)
	end, err = addToxics([]*line{n.e.following(follower, leader)}, toxics...)
	return fmt.Sprintf("server %d from server %d, %s", follower, leader, how), end, err
}

func (n *nemesis) isolate(
	_ context.Context, d dice,
) (what string, end func() error, err error) {
	server := d.IntN(len(n.e.Servers))
	toxics, how := cuts(d)
	end, err = addToxics(n.e.peersOf(server), toxics...)
	return serverName(server) + ", " + how, end, err
}

// isolateTogether drives a worker to a follower and then cuts that one from the leader:
// once the follower gives up, the worker is alone, having been answered for longer than
// the leader has known.
func (n *nemesis) isolateTogether(
	ctx context.Context, d dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.e.toServer))
	follower, ok := n.aFollower(d)
	if !ok {
		return "", nil, errNotNow
	}
	others := slices.Delete(slices.Clone(n.e.toServer[worker]), follower, follower+1)
	rescue, err := addToxics(others, toxic{Kind: resetPeer, Direction: toServer})
	if err != nil {
		return "", nil, err
	}
	sleep(ctx, n.session/2)
	cut, err := addToxics(
		n.e.peersOf(follower), toxic{Kind: stall, Direction: toServer},
		toxic{Kind: stall, Direction: fromServer},
	)
	if err != nil {
		return "", nil, errors.Join(err, rescue())
	}
	return fmt.Sprintf("worker %d with server %d", worker, follower),
		func() error { return inParallel([]func() error{rescue, cut}) }, nil
}

// sleep is what a fault lasts, or less where the faults are to end.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
