package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

const (
	// comparedTimeout is the session timeout of the programs.
	comparedTimeout = 8 * time.Second
	// wrongFor is for how long the page may be wrong about a hold.
	wrongFor = 2 * time.Second
	// sampled is how often it is asked, at most. On a busy machine a wrong hold counts
	// once it was in as many answers as there would be on an idle one.
	sampled = 100 * time.Millisecond
	wrongIn = int(wrongFor / sampled)
)

// What "zklock serve" says of holds, on its pages, in JSON and in metrics, is what the
// programs say of themselves, whatever they are made with: wrong for two seconds at most,
// but in an outage, which the page tells. ZKLOCK_COMPARE is for how long; the first of
// the faults come at once.
func TestThePageSaysWhatTheProgramsSay(t *testing.T) {
	t.Parallel()
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("ZKLOCK_COMPARE"), "20s"))
	require.NoError(t, err)
	s := &comparison{
		T: t, paths: []string{"/seen/a", "/seen/b", "/seen/c"},
		visits: map[holdAt]*visit{}, wrong: map[wrongHold]*wrongness{},
		lines: faults.NewLines(), programs: map[string]string{},
	}
	kinds := peerKinds(t)
	s.cluster = zkserver.Start(t)
	t.Cleanup(s.lines.Close)
	ctx, cancel := context.WithCancel(t.Context())
	for _, kind := range kinds {
		line, err := s.lines.Open(s.cluster.Connect())
		require.NoError(t, err)
		slot := &slot{comparison: s, kind: kind, line: line}
		s.slots = append(s.slots, slot)
		s.running.Go(func() { slot.run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		s.running.Wait()
	})
	s.connect()
	s.serve()
	s.running.Go(func() { s.harm(ctx) })
	late := lasts + patience // where programs take long to start
	for began := time.Now(); time.Since(began) < lasts ||
		time.Since(began) < late && !s.complete(kinds); time.Sleep(sampled) {
		s.sample()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d samples, %d of them in outages; %v; %d visits of %v", s.samples, s.outages,
		s.faults, s.done, s.byKind)
	require.Positive(t, s.outages, "the page tells of no outage")
	for _, kind := range kinds {
		require.Positive(t, s.byKind[kind.name], "%s never held", kind.name)
	}
}

// complete tells whether all was compared that is to be: programs of each kind, and an
// outage.
func (s *comparison) complete(kinds []peerKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outages > 0 && !slices.ContainsFunc(kinds, func(kind peerKind) bool {
		return s.byKind[kind.name] == 0
	})
}

// A comparison is of what programs say with what is shown.
type comparison struct {
	*testing.T
	cluster *zkserver.Cluster
	lines   *faults.Lines
	paths   []string
	url     string   // of the page
	look    *zk.Conn // asks whether a znode is there that its program has left
	slots   []*slot
	running sync.WaitGroup

	// Of the goroutine of the test.
	wrong            map[wrongHold]*wrongness
	samples, outages int

	mu     sync.Mutex // guards what follows
	visits map[holdAt]*visit
	faults map[string]int
	// programs are the kinds of the sessions.
	programs map[string]string
	byKind   map[string]int
	done     int
}

// A holdAt is a session at a lock.
type holdAt struct{ path, session string }

// A visit is what a program says of itself: the state of its session at a lock.
type visit struct {
	state string // idle, wants, holds, leaves
	n     int    // grows with each change
}

// A wrongHold is what is wrong, and where it is shown.
type wrongHold struct {
	where string
	holdAt
	n    int // of the visit
	says bool
}

type wrongness struct {
	since time.Time
	in    int // answers
	last  int // sample
}

func (s *comparison) connect() {
	s.Helper()
	look, _, err := zk.Connect([]string{s.cluster.Connect()}, 10*time.Second,
		zk.WithLogger(nothing{}))
	require.NoError(s, err)
	s.look = look
	s.Cleanup(look.Close)
}

// nothing is a logger.
type nothing struct{}

func (nothing) Printf(string, ...any) {}

// stands tells whether ZooKeeper has a znode of a session at a lock: nobody else knows
// when the session of a process ends that was killed.
func (s *comparison) stands(at holdAt) bool {
	return slices.ContainsFunc(s.queue(at.path), func(one string) bool {
		return strings.HasPrefix(one, at.session+" ") || one == unknown
	})
}

// queue is the queue of a lock as ZooKeeper has it: the session of each znode, with its
// number and program.
func (s *comparison) queue(path string) (all []string) {
	children, _, err := s.look.Children(path)
	slices.SortFunc(children, func(a, b string) int {
		return cmp.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
	})
	for _, child := range children {
		_, stat, no := s.look.Exists(path + "/" + child)
		if err = errors.Join(err, no); no == nil && stat.EphemeralOwner != 0 {
			session := fmt.Sprintf("0x%x", stat.EphemeralOwner)
			all = append(all, fmt.Sprintf("%s %s %s", session, child[len(child)-10:],
				s.programs[session]))
		}
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		all = append(all, unknown)
	}
	return all
}

// serve starts "zklock serve".
func (s *comparison) serve() {
	s.Helper()
	cmd := zklockProcess(s.T, s.cluster.Connect(), "serve", "--listen", "127.0.0.1:0",
		"/seen")
	out, err := cmd.StderrPipe()
	require.NoError(s, err)
	require.NoError(s, cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill() // else it has ended
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s, err)
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), "serving on ")
	go func() { _, _ = io.Copy(io.Discard, out) }() // what it logs
}

// zklockProcess is zklock with these arguments, as a process.
func zklockProcess(t *testing.T, servers string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := proving(t, servers)
	cmd.Args = append(cmd.Args[:1], args...)
	return cmd
}

// A slot is a program of a kind; another one follows it when it has ended.
type slot struct {
	*comparison
	kind peerKind
	line *faults.Line

	process *peerProcess // guarded by comparison.mu; nil: none
}

func (s *slot) run(ctx context.Context) {
	for ctx.Err() == nil {
		process, err := startPeer(s.kind, s.line.Addr(), s.paths)
		if err != nil { // in an outage
			if process != nil {
				process.kill()
			}
			pause(ctx, time.Second)
			continue
		}
		s.mu.Lock()
		s.process = process
		s.programs[process.session] = s.kind.name
		for _, path := range s.paths {
			s.visits[holdAt{path, process.session}] = &visit{state: "idle"}
		}
		s.mu.Unlock()
		var workers sync.WaitGroup
		for _, path := range s.paths {
			workers.Go(func() { s.work(ctx, process, path) })
		}
		stop := context.AfterFunc(ctx, func() { s.leave(process) })
		workers.Wait()
		stop()
		s.leave(process)
	}
}

// leave ends a process, about whose locks nothing is certain any more.
func (s *comparison) leave(p *peerProcess) {
	s.forget(p)
	p.kill()
}

// work acquires and releases one lock, until the process has ended or anything fails.
func (s *slot) work(ctx context.Context, p *peerProcess, path string) {
	steps := []struct {
		verb, during, after string
	}{{"acquire", "wants", "holds"}, {"release", "leaves", "idle"}}
	for {
		for _, step := range steps {
			s.becomes(p, path, step.during)
			if _, err := p.ask(path, step.verb, path); err != nil {
				s.Logf("%s: %s %s: %v", s.kind.name, step.verb, path, err)
				s.leave(p)
				return
			}
			s.becomes(p, path, step.after)
			pause(ctx, someTime())
		}
	}
}

// becomes takes note of what a program says of itself.
func (s *slot) becomes(p *peerProcess, path, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.visits[holdAt{path, p.session}]; v != nil {
		v.state, v.n = state, v.n+1
	}
	if state == "holds" {
		s.count(&s.byKind, s.kind.name)
		s.done++
	}
}

func (s *comparison) count(in *map[string]int, what string) {
	if *in == nil {
		*in = map[string]int{}
	}
	(*in)[what]++
}

// someTime is short, or longer than what is wrong may last.
func someTime() time.Duration {
	if rand.IntN(4) > 0 {
		return rand.N(500 * time.Millisecond)
	}
	return wrongFor + rand.N(2*time.Second)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// harm has one fault after the other happen.
func (s *comparison) harm(ctx context.Context) {
	pause(ctx, 2*time.Second)
	for i := 0; ctx.Err() == nil; i++ {
		victim := s.slots[rand.IntN(len(s.slots))]
		s.mu.Lock()
		process := victim.process
		s.mu.Unlock()
		name := []string{"restart", "cut", "kill", "short stop", "long stop"}[i%5]
		s.mu.Lock()
		s.count(&s.faults, name)
		s.mu.Unlock()
		if err := s.fault(ctx, name, victim, process); err != nil {
			s.Errorf("%s: %v", name, err)
		}
		pause(ctx, time.Second+rand.N(3*time.Second))
	}
}

func (s *comparison) fault(
	ctx context.Context, name string, victim *slot, process *peerProcess,
) error {
	if name == "restart" {
		server := s.cluster.Servers[0]
		err := server.Kill()
		pause(context.WithoutCancel(ctx), 4*time.Second)
		return errors.Join(err, server.Restart())
	}
	if process == nil {
		return nil
	}
	switch name {
	case "cut":
		heal, err := faults.Put([]*faults.Line{victim.line},
			faults.Toxic{Kind: faults.ResetPeer, Direction: faults.ToServer})
		if err != nil {
			return err
		}
		pause(context.WithoutCancel(ctx), 500*time.Millisecond)
		return heal()
	case "kill":
		s.leave(process)
	case "short stop":
		_ = process.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended
		pause(ctx, rand.N(2*time.Second))
		_ = process.cmd.Process.Signal(syscall.SIGCONT)
	case "long stop": // what it believes afterwards is as wrong as it is old
		_ = process.cmd.Process.Signal(syscall.SIGSTOP)
		s.forget(process)
		pause(ctx, comparedTimeout+2*time.Second)
		_ = process.cmd.Process.Signal(syscall.SIGCONT)
		pause(ctx, time.Second)
		s.leave(process)
	}
	return nil
}

// forget compares nothing that a process says any more.
func (s *comparison) forget(p *peerProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.paths {
		delete(s.visits, holdAt{path, p.session})
	}
}

// sample compares once.
func (s *comparison) sample() {
	s.samples++
	says, outage := s.shown()
	s.mu.Lock()
	defer s.mu.Unlock()
	if outage {
		s.outages++
		clear(s.wrong)
		return
	}
	for where, holders := range says {
		s.compareLocked(where, holders)
	}
	for what, w := range s.wrong {
		if w.last != s.samples {
			delete(s.wrong, what)
		} else if w.in > wrongIn && time.Since(w.since) > wrongFor {
			s.judgeLocked(what, w)
			delete(s.wrong, what)
		}
	}
}

// judgeLocked asks ZooKeeper who is right. A program goes on in another session without a
// word; the session that it has named has no znode then.
func (s *comparison) judgeLocked(what wrongHold, w *wrongness) {
	queue := s.queue(what.path)
	switch v := s.visits[what.holdAt]; {
	case slices.Contains(queue, unknown): // an outage has just begun
	case !what.says && v != nil && !s.stands(what.holdAt):
		for _, slot := range s.slots {
			if p := slot.process; p != nil && p.session == what.session {
				s.Logf("%s goes on in another session", slot.kind.name)
				s.running.Go(func() { s.leave(p) })
			}
		}
	default:
		s.Errorf("for %v in %d answers %s says that %s holds %s: %v; the program: %+v; "+
			"ZooKeeper has %v", time.Since(w.since), w.in, what.where, what.session,
			what.path, what.says, v, queue)
	}
}

// unknown is in a queue that ZooKeeper did not tell.
const unknown = "unknown"

// compareLocked compares what is shown somewhere: which sessions hold. Metrics have no
// sessions, and show how many hold.
func (s *comparison) compareLocked(where string, shown map[holdAt]bool) {
	for at, v := range s.visits {
		switch holds := shown[at]; {
		case holds && v.state == "idle", !holds && v.state == "holds":
			s.isWrong(wrongHold{where, at, v.n, holds})
		}
	}
	for at := range shown {
		if s.visits[at] == nil && !s.stands(at) {
			s.isWrong(wrongHold{where, at, 0, true})
		}
	}
}

func (s *comparison) isWrong(what wrongHold) {
	w := s.wrong[what]
	if w == nil {
		w = &wrongness{since: time.Now()}
		s.wrong[what] = w
	}
	w.in++
	w.last = s.samples
}

// shown is who holds, by where it says so. outage is whether any of them tells of one.
func (s *comparison) shown() (says map[string]map[holdAt]bool, outage bool) {
	var state survey.State
	require.NoError(s, json.Unmarshal([]byte(s.get("/api/locks")), &state))
	says = map[string]map[holdAt]bool{"the API": {}, "the page": {}}
	outage = !state.Outdated.IsZero()
	for _, l := range state.Locks {
		for _, p := range l.Holders() {
			says["the API"][holdAt{l.Path, p.Session}] = true
		}
	}
	for _, path := range s.paths {
		page := s.get("/lock?path=" + url.QueryEscape(path))
		outage = outage || strings.Contains(page, `class="status bad"`)
		for _, row := range aHolder.FindAllStringSubmatch(page, -1) {
			says["the page"][holdAt{path, html.UnescapeString(row[1])}] = true
		}
	}
	metrics := s.get("/metrics")
	age, err := strconv.ParseFloat(anAge.FindStringSubmatch(metrics)[1], 64)
	require.NoError(s, err)
	s.compareMetrics(metrics, outage || age > 0)
	return says, outage
}

var (
	aHolder = regexp.MustCompile(
		`<tr class="holds">.*?data-label="session"><code>([^<]*)<`)
	anAge    = regexp.MustCompile(`(?m)^zklock_state_age_seconds (\S+)$`)
	aHolders = regexp.MustCompile(`(?m)^zklock_holders\{path="([^"]*)",[^}]*\} (\d+)$`)
)

// compareMetrics compares how many hold: as many as say so, where nobody else may.
func (s *comparison) compareMetrics(metrics string, outage bool) {
	if outage {
		return
	}
	shown := map[string]string{}
	for _, m := range aHolders.FindAllStringSubmatch(metrics, -1) {
		shown[m[1]] = m[2]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, v := range s.visits {
		if v.state == "holds" && shown[at.path] != "1" {
			where := fmt.Sprintf("/metrics with %q holders", shown[at.path])
			s.isWrong(wrongHold{where, at, v.n, false})
		}
	}
	for _, path := range s.paths {
		if !slices.Contains([]string{"", "0", "1"}, shown[path]) {
			s.isWrong(wrongHold{"/metrics: several", holdAt{path, "somebody"}, 0, true})
		}
	}
}

// get asks the page. It answers at once, also in an outage.
func (s *comparison) get(path string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(s.url, "/")+path, nil)
	require.NoError(s, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	if answer.StatusCode == http.StatusNotFound {
		return "" // the lock is not known yet
	}
	require.Equal(s, http.StatusOK, answer.StatusCode, "%s", body)
	return string(body)
}
