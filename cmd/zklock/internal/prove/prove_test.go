package prove

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// workerVariable makes the test binary a worker: its value is the connect string.
const workerVariable = "PROVE_WORKER"

func TestMain(m *testing.M) {
	if servers := os.Getenv(workerVariable); servers != "" {
		err := Work(context.Background(), os.Stdin, os.Stdout, accessTo(servers))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(zkserver.Main(m))
}

func accessTo(servers string) Access {
	return Access{
		Servers: strings.Split(servers, ","), ACL: zk.WorldACL(zk.PermAll),
		Connect: func(
			ctx context.Context, session time.Duration, opts ...recipes.ClientOption,
		) (*recipes.Client, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return recipes.Connect(ctx, servers, session, opts...)
		},
	}
}

// hostOf is this machine, whose workers are this test binary.
func hostOf(servers string) Host {
	return Host{
		Access: accessTo(servers),
		Worker: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), workerVariable+"="+servers)
			return cmd
		},
		Start: func(cmd *exec.Cmd) (<-chan struct{}, error) {
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = cmd.Process.Wait() // how it ended is told otherwise
			}()
			return ended, nil
		},
	}
}

func configFor(t *testing.T, servers string) Config {
	t.Helper()
	return Config{
		Host: hostOf(servers), For: 3 * time.Second, Workers: 2, Rate: 100,
		Root: "/prove-it", Session: 30 * time.Second, Seed: 1, Calm: true,
		Say: t.Logf,
	}
}

func prove(t *testing.T, c Config) *Report {
	t.Helper()
	return proveUntil(t.Context(), t, c)
}

// proveUntil is prove for as long as ctx lasts, at most.
func proveUntil(ctx context.Context, t *testing.T, c Config) *Report {
	t.Helper()
	report, err := c.Run(ctx)
	require.NoError(t, err)
	t.Log("\n" + report.Text())
	for _, f := range report.Findings {
		t.Logf("%s: %s", f.What, f.Text) // in full
	}
	return report
}

// requireProven requires that a run has proven. If its judge stood still, as a machine
// does at times, it may decide nothing instead.
func requireProven(t *testing.T, r *Report) {
	t.Helper()
	if r.Verdict == Undecided && r.Late > r.Session/lateMost {
		t.Logf("the machine stood still for %v", r.Late)
		return
	}
	require.Equal(t, Proven, r.Verdict)
}

// serve is one server of its own, in real time: the workers are processes.
func serve(t *testing.T) (servers string, client *recipes.Client) {
	t.Helper()
	server := zkserver.Start(t, zkserver.Tick(time.Second/2)).Servers[0]
	client, err := accessTo(server.Addr).Connect(t.Context(), 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return server.Addr, client
}

// A calm run on a server that keeps its promises proves, measures, leaves nothing behind,
// and its file proves the same again.
func TestACalmRun(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	c := configFor(t, servers)
	c.For, c.Workers = 10*time.Second, 4 // so that some wait for others
	var kept bytes.Buffer
	c.History = &kept
	report := prove(t, c)
	requireProven(t, report)
	require.Positive(t, report.Counts.Acquired)
	require.Positive(t, report.Counts.Written)
	require.Zero(t, report.Counts.Faults)
	e := report.Ensemble
	require.Equal(t, time.Second/2, e.Tick)
	require.Equal(t, Span{time.Second, time.Minute}, e.Sessions)
	require.Positive(t, e.Acquisitions)
	require.Positive(t, e.HandOver.Count)
	require.Positive(t, e.Commit.Count)
	require.Positive(t, e.RoundTrip.Count)
	children, _, err := client.Children("/")
	require.NoError(t, err)
	require.Equal(t, []string{"zookeeper"}, children)

	again, err := Check(&kept)
	require.NoError(t, err)
	require.Equal(t, report.Verdict, again.Verdict)
	require.Equal(t, report.Counts, again.Counts)
	require.Equal(t, report.Ensemble, again.Ensemble)
}

// With faults nothing is found either. Whether the judge is late is up to the machine.
func TestARunWithFaults(t *testing.T) {
	t.Parallel()
	servers, _ := serve(t)
	c := configFor(t, servers)
	c.Calm, c.For, c.Session = false, 10*time.Second, 0
	report := prove(t, c)
	require.NotEqual(t, Violated, report.Verdict)
	require.Positive(t, report.Counts.Acquired)
	require.Positive(t, report.Counts.Faults)
	require.Equal(t, 3*time.Second, report.Session)
	if report.Verdict == Undecided {
		require.NotEmpty(t, report.Skipped)
	}
}

// counted passes connections on to a server, and tells when requests came that the page
// counts: no pings and no handshakes.
func counted(t *testing.T, server string) (address string, sent func() []time.Time) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	tap := wiretap.New(nil)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := tap.Dial("tcp", server, time.Minute)
			if err != nil {
				_ = client.Close()
				continue
			}
			for from, to := range map[net.Conn]net.Conn{client: to, to: client} {
				go func() {
					_, _ = io.Copy(to, from) // until one of both hangs up
					_ = to.Close()
				}()
			}
		}
	}()
	return listener.Addr().String(), func() (all []time.Time) {
		for _, r := range tap.Requests() {
			all = append(all, r.At)
		}
		slices.SortFunc(all, time.Time.Compare)
		return all
	}
}

// What the page says that a run sends at most: in no time more than half of its rate, and
// as much again that had been saved up. What is under way for longer than usual comes
// together with what is sent later.
func TestARunKeepsToItsRate(t *testing.T) {
	t.Parallel()
	server, sent := counted(t, zkserver.Start(t).Servers[0].Addr)
	c := configFor(t, server)
	c.Rate, c.Workers, c.For = 40, 4, 10*time.Second
	watch := simulator.StartWatchdog()
	prove(t, c)
	late, all := 2*watch.Late(), sent()
	const atTheBegin = 10 // claims the root, before anybody works
	half := float64(c.Rate) / 2
	for i, from := range all {
		for n, at := range all[i:] {
			most := half*(at.Sub(from)+late).Seconds() + half + atTheBegin
			require.LessOrEqual(t, float64(n), most, "from %v to %v",
				from.Sub(all[0]), at.Sub(all[0]))
		}
	}
	lasted := all[len(all)-1].Sub(all[0])
	t.Logf("%d requests in %v, late by %v", len(all), lasted, late)
	require.Greater(t, float64(len(all)), half*lasted.Seconds()/4,
		"it asks for too little to show anything")
}

func TestARunIsInterrupted(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	c := configFor(t, servers)
	c.For = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		awaitWork(t, client, c)
		cancel(errors.New("Ctrl-C"))
	}()
	report := proveUntil(ctx, t, c)
	require.Equal(t, Undecided, report.Verdict)
	require.Contains(t, report.Text(), "Ctrl-C")
	_, _, err := client.Get(c.Root)
	require.ErrorIs(t, err, zk.ErrNoNode)
}

// A run deletes nothing that no run has made.
func TestARootOfSomebodyElse(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	world := zk.WorldACL(zk.PermAll)
	for _, path := range []string{"/prove-it", "/prove-it/precious"} {
		_, err := client.Create(path, []byte("theirs"), zk.FlagPersistent, world)
		require.NoError(t, err)
	}
	c := configFor(t, servers)
	_, err := c.Run(t.Context())
	require.ErrorIs(t, err, errNotOurs)
	_, _, err = client.Get("/prove-it/precious")
	require.NoError(t, err)
}

// What a run has left that was killed, the next one removes, unless that still goes on.
func TestARootOfAFormerRun(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	world := zk.WorldACL(zk.PermAll)
	c := configFor(t, servers)
	for _, path := range []string{c.Root, c.Root + "/3", c.Root + "/3/mutex-1"} {
		_, err := client.Create(path, []byte(marker), zk.FlagPersistent, world)
		require.NoError(t, err)
	}
	_, err := client.Create("/prove-it-not", nil, zk.FlagPersistent, world)
	require.NoError(t, err)
	_, err = client.Create(c.Root+runningName, nil, zk.FlagEphemeral, world)
	require.NoError(t, err)
	_, err = c.Run(t.Context())
	require.ErrorContains(t, err, "another run uses it")
	_, _, err = client.Get(c.Root + "/3/mutex-1")
	require.NoError(t, err)

	require.NoError(t, client.Delete(c.Root+runningName, -1))
	require.NotEqual(t, Violated, prove(t, c).Verdict)
	children, _, err := client.Children("/")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"prove-it-not", "zookeeper"}, children)
}

// await waits for a znode of which that holds.
func await(
	t *testing.T, client *recipes.Client, path string, holds func(stat *zk.Stat) bool,
) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, stat, err := client.Get(path); err == nil && holds(stat) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func written(stat *zk.Stat) bool { return stat.Version > 0 }

// awaitWork waits until the workers of a run use locks.
func awaitWork(t *testing.T, client *recipes.Client, c Config) {
	t.Helper()
	await(t, client, c.Root+"/0/mutex-1", func(*zk.Stat) bool { return true })
}

// forget makes a znode anew once it has been written to, and waits until it has been
// again.
func forget(t *testing.T, client *recipes.Client, path string) error {
	t.Helper()
	await(t, client, path, written)
	_, err := client.Multi(&zk.DeleteRequest{Path: path, Version: -1},
		&zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)})
	await(t, client, path, written)
	return err
}

// Servers that forget what they have confirmed break what locks stand on, although no
// lock has noticed.
func TestServersThatForget(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	c := configFor(t, servers)
	ctx, stop := context.WithCancelCause(t.Context())
	var once sync.Once
	c.For = time.Hour
	c.Say = func(string, ...any) {
		once.Do(func() {
			go func() { stop(forget(t, client, c.Root+witnessName)) }()
		})
	}
	report := proveUntil(ctx, t, c)
	require.Equal(t, context.Canceled, context.Cause(ctx))
	require.Equal(t, Violated, report.Verdict)
	require.Contains(t, report.Text(), "the servers forget")
}

// setBack lets a server come back with the data that it had before the last writes to a
// znode: a quorum of 3.8.0 can do that, and so does a machine's snapshot.
func setBack(
	t *testing.T, server *zkserver.Server, client *recipes.Client, path string,
) error {
	t.Helper()
	conf, err := server.FourLetter("conf")
	if err != nil {
		return err
	}
	dir := regexp.MustCompile(`(?m)^dataDir=(.*)$`).FindStringSubmatch(conf)[1]
	former := filepath.Join(t.TempDir(), "data")
	await(t, client, path, written)
	if err := os.CopyFS(former, os.DirFS(dir)); err != nil {
		return err
	}
	await(t, client, path, func(stat *zk.Stat) bool { return stat.Version > 4 })
	if err := server.Kill(); err != nil {
		return err
	}
	killed := time.Now().UnixMilli()
	err = errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(former)),
		server.Restart())
	await(t, client, path, func(stat *zk.Stat) bool { return stat.Mtime > killed })
	return err
}

// What comes of it at the locks is no finding of its own: the first that the report says
// is that the servers have forgotten, and its file says so, too.
func TestServersThatComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "a server's files")
	server := zkserver.Start(t, zkserver.Tick(time.Second/2)).Servers[0]
	client, err := accessTo(server.Addr).Connect(t.Context(), 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	c := configFor(t, server.Addr)
	c.For, c.Session = time.Hour, 0
	var kept bytes.Buffer
	c.History = &kept
	ctx, stop := context.WithCancelCause(t.Context())
	go func() { stop(setBack(t, server, client, c.Root+witnessName)) }()
	report := proveUntil(ctx, t, c)
	require.Equal(t, context.Canceled, context.Cause(ctx))
	again, err := Check(&kept)
	require.NoError(t, err)
	for _, r := range []*Report{report, again} {
		require.Equal(t, Violated, r.Verdict)
		first, rest, _ := strings.Cut(r.Text(), "\n")
		require.Contains(t, first, "the servers do not keep what they confirm")
		require.Regexp(t, `^  violated: the servers forget: the write \d+ of /witness `,
			rest)
	}
}

func TestAConfigThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want   string
		change func(c *Config)
	}{
		{"--for", func(c *Config) { c.For = 0 }},
		{"--workers", func(c *Config) { c.Workers = 1 }},
		{"--workers", func(c *Config) { c.Workers = 33 }},
		{"--rate", func(c *Config) { c.Rate = 19 }},
		{"--rate", func(c *Config) { c.Rate = 10_001 }},
		{"--root", func(c *Config) { c.Root = "/" }},
	} {
		c := configFor(t, "127.0.0.1:1")
		test.change(&c)
		_, err := c.Run(t.Context())
		require.ErrorContains(t, err, test.want)
	}
}

// A worker ends with its judge.
func TestAWorkerWhoseJudgeHasGone(t *testing.T) {
	t.Parallel()
	err := Work(t.Context(), strings.NewReader(""), &bytes.Buffer{}, Access{})
	require.ErrorIs(t, err, errNoOrder)
	require.ErrorIs(t, err, errGone)
	err = Work(t.Context(), strings.NewReader(strings.Repeat("x", 2*lineMost)),
		&bytes.Buffer{}, Access{})
	require.Error(t, err)
}

// TestOnARealEnsemble runs for some seconds, or for as long as PROVE says, a duration
// such as 10m, on one real server and on three, calm and with faults.
func TestOnARealEnsemble(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "disks, and a quorum")
	length, err := time.ParseDuration(cmp.Or(os.Getenv("PROVE"), "5s"))
	require.NoError(t, err, "PROVE")
	for _, n := range []int{1, 3} {
		cluster := zkserver.Start(t, zkserver.Servers(n), zkserver.Tick(time.Second))
		var addrs []string
		for _, server := range cluster.Servers {
			addrs = append(addrs, server.Addr)
		}
		for _, calm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d servers, calm %v", n, calm), func(t *testing.T) {
				c := configFor(t, strings.Join(addrs, ","))
				c.For, c.Calm, c.Workers, c.Rate = length, calm, 4, 200
				c.Session = 0
				report := prove(t, c)
				require.NotEqual(t, Violated, report.Verdict)
				require.Positive(t, report.Counts.Acquired)
				require.Equal(t, calm, report.Counts.Faults == 0)
			})
		}
	}
}
