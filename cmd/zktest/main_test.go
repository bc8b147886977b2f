package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// build compiles the command, once.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "zktest")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	_, _ = os.Stderr.Write(out)
	return path, err
})

// binaries is a directory that is gone after the run. Set by TestMain.
var binaries string

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "zktest-"); err != nil {
		panic(err)
	}
	code := zkserver.Main(m)
	_ = os.RemoveAll(binaries) // the system's own clean-up gets what is left
	os.Exit(code)
}

// A process is the command at work.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	servers, admin string
	chroot         string
	ended          chan error
}

// start runs the command with flags, until the test ends.
func start(t *testing.T, flags ...string) *process {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(path, flags...), ended: make(chan error, 1)}
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // most likely it has ended
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "it tells the connect string")
	p.servers, p.chroot, _ = strings.Cut(lines.Text(), "/")
	require.True(t, lines.Scan(), "it tells where its admin surface is")
	p.admin = lines.Text()
	go func() { p.ended <- p.cmd.Wait() }()
	return p
}

// wait returns how the command has ended.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(20 * time.Second):
		p.t.Fatal("the command does not end")
		return nil
	}
}

// request asks the admin surface, with a form in the place of a body.
func (p *process) request(method, path, form string) (status int, text string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(
		p.t.Context(), method, p.admin+path, strings.NewReader(form),
	)
	require.NoError(p.t, err)
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	return answer.StatusCode, string(body)
}

// look returns what the admin surface shows.
func (p *process) look(path string) string {
	p.t.Helper()
	status, text := p.request(http.MethodGet, path, "")
	require.Equal(p.t, http.StatusOK, status, text)
	return text
}

// disturb makes a fault.
func (p *process) disturb(path, form string) {
	p.t.Helper()
	status, text := p.request(http.MethodPost, path, form)
	require.Equal(p.t, http.StatusOK, status, text)
	require.Empty(p.t, text)
}

func TestSignalsEndIt(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p := start(t)
			conn := connect(t, p.servers)
			require.NoError(t, p.stdin.Close(), "which ends nothing")
			require.Contains(t, p.look("/sessions"), hex(conn.SessionID()))
			require.NoError(t, p.cmd.Process.Signal(signal))
			require.NoError(t, p.wait())
			_, err := net.Dial("tcp", p.servers)
			require.Error(t, err)
		})
	}
}

func TestTheEndOfStandardInputEndsItIfAsked(t *testing.T) {
	p := start(t, "-eof")
	_, err := io.WriteString(p.stdin, "is not read\n")
	require.NoError(t, err)
	connect(t, p.servers)
	require.NoError(t, p.stdin.Close())
	require.NoError(t, p.wait())
}

// A job in the background of a script has nothing for its standard input.
func TestTheEndOfStandardInputIsNotThereInTheBackground(t *testing.T) {
	zkserver.Programs(t, "sh")
	path, err := build()
	require.NoError(t, err)
	said, err := exec.Command("sh", "-c", `"$0" -eof & wait $!`, path).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitUsage, exit.ExitCode())
	require.Contains(t, string(said), "want -with-parent")
}

func TestWithParent(t *testing.T) {
	zkserver.Programs(t, "sh")
	path, err := build()
	require.NoError(t, err)
	shell := exec.Command("sh", "-c", `"$0" -with-parent & read end`, path)
	end, err := shell.StdinPipe()
	require.NoError(t, err)
	out, err := shell.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	servers := lines.Text()
	require.True(t, lines.Scan())
	time.Sleep(300 * time.Millisecond) // it looks several times
	connect(t, servers)
	require.NoError(t, end.Close())
	ended := make(chan bool)
	go func() { ended <- lines.Scan() }()
	select {
	case more := <-ended:
		require.False(t, more)
	case <-time.After(20 * time.Second):
		t.Fatal("it outlives its parent")
	}
	_ = shell.Wait() // it ends as read does
}

func TestVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-version"}, nil, &stdout, &stderr)
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^zktest (v\d+\.\d+\.\d+\S*|\(\w+\))\n$`, stdout.String())
	require.Empty(t, stderr.String())
}

// Where it listens for all, it tells an address at which others find it.
func TestPublic(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0"} {
		p := start(t, "-public", "-listen", addr)
		host, _, err := net.SplitHostPort(p.servers)
		require.NoError(t, err)
		require.False(t, net.ParseIP(host).IsUnspecified(), p.servers)
		require.NotNil(t, net.ParseIP(host).To4(), p.servers)
		connect(t, p.servers)
		require.Contains(t, p.look("/servers"), "1 "+p.servers+" leader")
	}
}

func TestContainerCheck(t *testing.T) {
	p := start(t, "-container-check", "1ms", "-tick", "20ms")
	conn := connect(t, p.servers)
	_, err := conn.CreateContainer("/c", nil, zk.FlagContainer, anyone)
	require.NoError(t, err)
	_, err = conn.Create("/c/n", nil, 0, anyone)
	require.NoError(t, err)
	_, err = conn.CreateTTL("/t", nil, zk.FlagTTL, anyone, time.Millisecond)
	require.NoError(t, err)
	require.Contains(t, p.look("/znodes"), "/c/n\n")
	require.NoError(t, conn.Delete("/c/n", -1))
	require.Eventually(t, func() bool { return p.look("/znodes") == "" }, 20*time.Second,
		10*time.Millisecond)
}

func TestShuffle(t *testing.T) {
	t.Setenv("ZKTEST_SHUFFLE", "")
	for _, flags := range [][]string{nil, {"-shuffle"}} {
		conn := connect(t, start(t, flags...).servers)
		for i := range 20 {
			_, err := conn.Create(fmt.Sprint("/", i), nil, 0, anyone)
			require.NoError(t, err)
		}
		children, _, err := conn.Children("/")
		require.NoError(t, err)
		require.Equal(t, flags == nil, slices.IsSorted(children), children)
	}
}

// A Keeper gives a client that reconnects a new session, without a word of the old one.
func TestKeeper(t *testing.T) {
	p := start(t, "-keeper", "-keeper-unknown", "multi,create-container")
	conn, states := connectAnd(t, p.servers)
	session := conn.SessionID()
	_, err := conn.Create("/e", nil, zk.FlagEphemeral, anyone)
	require.NoError(t, err)
	p.disturb("/network/reset", "")
	for state := range states {
		require.NotEqual(t, zk.StateExpired, state)
		if state == zk.StateHasSession {
			break
		}
	}
	require.NotEqual(t, session, conn.SessionID())
	require.Equal(t, hex(session)+hex(conn.SessionID()), p.look("/sessions"))
	require.Equal(t, "/e\n", p.look("/znodes"))
	_, err = conn.CreateContainer("/c", nil, zk.FlagContainer, anyone)
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	require.Equal(t, "/e\n", p.look("/znodes"))
}

// The record of package zktest lists its options. Each has a flag, but for those that
// take a function of Go or are for bubbles.
func TestEveryOptionHasAFlag(t *testing.T) {
	record, err := os.ReadFile(filepath.Join("..", "..", "test", "api", "zktest.txt"))
	require.NoError(t, err)
	onlyInGo := []string{"Log", "TimeLimit"}
	var options []string
	for _, m := range regexp.MustCompile(`(?m)^func With(\w+)\(.*\) Option$`).
		FindAllStringSubmatch(string(record), -1) {
		if !slices.Contains(onlyInGo, m[1]) {
			options = append(options, m[1])
		}
	}
	require.ElementsMatch(t, options, slices.Collect(maps.Keys(flagOf)))
	set := new(flags).set()
	for _, name := range flagOf {
		require.NotNil(t, set.Lookup(name), name)
	}
}

func TestListOfAddresses(t *testing.T) {
	p := start(t, "-listen", "127.0.0.1:0,127.0.0.1:0,127.0.0.1:0")
	addrs := strings.Split(p.servers, ",")
	require.Len(t, addrs, 3)
	for _, addr := range addrs {
		connect(t, addr)
	}
}

func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"-nonsense", exitUsage, "flag provided but not defined: -nonsense"},
		{"-servers", exitUsage, "flag needs an argument: -servers"},
		{"-servers none", exitUsage, `"none" for flag -servers`},
		{"-servers 0", exitUsage, "-servers 0: want 1 at least"},
		{"-tick 5us", exitUsage, "-tick 5µs: want a millisecond at least"},
		{"-tick 200", exitUsage, `"200" for flag -tick: want a duration, such as 200ms`},
		{"-max-session 1s", exitUsage, "-max-session 1s: want 4s at least"},
		{"-min-session -1s", exitUsage, "-min-session -1s: want a millisecond"},
		{"-container-check 0s", exitUsage, "-container-check 0s: want a millisecond"},
		{"-slow-commit -1s", exitUsage, "-slow-commit -1s: want 0 at least"},
		{"-slow-close -1s", exitUsage, "-slow-close -1s: want 0 at least"},
		{"-listen 2181", exitUsage, "-listen 2181: address 2181: missing port"},
		{"-listen 127.0.0.1:x", exitUsage, "-listen 127.0.0.1:x: want a port"},
		{
			"-listen 127.0.0.1:0,127.0.0.1:0 -servers 3", exitUsage,
			",127.0.0.1:0: want one address, or one for each of 3 servers",
		},
		{"-listen 127.0.0.1:0,", exitUsage, `-listen "127.0.0.1:0,": want HOST:PORT`},
		{
			"-listen 0.0.0.0:0", exitUsage, "-listen 0.0.0.0:0: any machine could " +
				"connect; want an address such as 127.0.0.1:2181, or -public",
		},
		{"-listen :0", exitUsage, "-listen :0: any machine could connect"},
		{"-listen 127.0.0.1:0,[::]:0", exitUsage, "-listen [::]:0: any machine"},
		{"-listen [::%lo]:0", exitUsage, "-listen [::%lo]:0: any machine"},
		{"-listen [::ffff:0.0.0.0]:0", exitUsage, "0.0.0.0]:0: any machine"},
		{"-listen=", exitUsage, `-listen "": want HOST:PORT`},
		{"-admin 0.0.0.0:0", exitUsage, `-admin "0.0.0.0:0": want a loopback address`},
		{"-admin x", exitUsage, `-admin "x": address x: missing port`},
		{"-chroot a", exitUsage, `-chroot "a": want a path that begins with /`},
		{"-chroot /a//b", exitUsage, `-chroot "/a//b": create /a/: zk: invalid path`},
		{"-super secret", exitUsage, `-super "secret": want USER:PASSWORD`},
		{"-sasl-user x", exitUsage, `"x" for flag -sasl-user: want USER:PASSWORD`},
		{
			"-keeper -keeper-unknown set-watches,any", exitUsage,
			`"set-watches,any" for flag -keeper-unknown: want requests, such as set-`,
		},
		{"-keeper-unknown multi", exitUsage, "-keeper-unknown: want -keeper, too"},
		{"-tls-ca main.go", exitUsage, "TLS: want -tls-cert and -tls-key"},
		{"-tls-cert x -tls-key y", exitUsage, "-tls-cert x -tls-key y: open x: no such"},
		{"run", exitUsage, `"run": want flags only`},
		{"-listen " + taken.Addr().String(), exitUnavailable, "address already in use"},
		{"-admin " + taken.Addr().String(), exitUnavailable, "address already in use"},
		{"-listen a..b:0", exitUnavailable, "lookup a..b"},
		{"-listen 192.0.2.1:2181", exitUnavailable, "cannot assign requested address"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel() // it would serve if it found nothing wrong
			code := run(ctx, strings.Fields(tc.args), nil, &stdout, &stderr)
			require.Equal(t, tc.code, code)
			require.Contains(t, stderr.String(), tc.want)
			require.Regexp(t, `^zktest: [^\n]*\n$`, stderr.String(), "one line")
			require.Empty(t, stdout.String())
		})
	}
}

func TestPermissionIsAStatusOfItsOwn(t *testing.T) {
	err := &net.OpError{Op: "listen", Err: syscall.EACCES}
	require.Equal(t, exitNoPerm, exitCode(err))
}

func TestChroot(t *testing.T) {
	p := start(t, "-chroot", "/some/where/")
	require.Equal(t, "some/where", p.chroot)
	require.Equal(t, "/some\n/some/where\n", p.look("/znodes"))
	require.Equal(t, p.servers+"/some/where\n", p.look("/connect"))
}

// The help has all flags, and no others.
func TestHelpIsTheDoc(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-help"}, nil, &stdout, &stderr)
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr.String())
	text := stdout.String()
	require.True(t, strings.HasPrefix(text, "Zktest is a ZooKeeper for tests"))
	require.NotContains(t, text, "package main")
	var want []string
	new(flags).set().VisitAll(func(f *flag.Flag) { want = append(want, f.Name) })
	_, section, _ := strings.Cut(text, "# Flags")
	section, _, _ = strings.Cut(section, "# The admin surface")
	var got []string
	for _, m := range regexp.MustCompile(`(?m)(?:^\t|, )-([a-z-]+)`).
		FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	require.ElementsMatch(t, append(want, "help"), got)
}

// The image starts with flags that the command accepts.
func TestFlagsOfTheImage(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)ENTRYPOINT \["/zktest"\]\nCMD (\[[^\n]*\])`).
		FindSubmatch(file)
	require.NotNil(t, list)
	var args []string
	require.NoError(t, json.Unmarshal(list[1], &args))
	_, err = parse(args)
	require.NoError(t, err)
}
