package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/prove"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutProve = `It starts worker processes that use every kind of lock below a path of
its own, cuts, stalls, delays and resets their connections, suspends and kills them, and
checks what they saw: at most one owner, by writes that ZooKeeper itself rejects from
anybody else, and by this process, which sees each grant, release and loss; the order of
arrival; tokens that grow; losses in time; nothing left behind; clocks that run alike.
Then it tells what it measured of the ensemble, and which session timeout to choose.

It harms nobody else: all faults are of its own connections and processes, and all znodes
below --root, which it deletes at the end. It sends at most --rate requests a second, next
to the pings and handshakes of its sessions. With --calm there are no faults.

Several machines prove together: one with --listen and --machines, the others with --join.
They talk by TLS, whose key is in the token, and no credentials of ZooKeeper go that way.
What a machine that has joined tells is believed: let none join that is not yours.

The exit code is 0 if nothing was found, 1 if a promise was not kept, and 3 if the run
cannot decide: this process was itself suspended, or the ensemble was not there.

`

// What prove returns.
const (
	exitViolated  = 1
	exitUndecided = 3
)

// proveWorkerName is what zklock calls itself as a worker of prove.
const proveWorkerName = "zklock-prove-worker"

// A proof is one "zklock prove".
type proof struct {
	connection     *connection
	stdout, stderr io.Writer
	config         prove.Config
	root           string
	json, html     string
	check          string

	listen, join string
	machines     int
	token        string
}

func proveCommand(c *connection, stdout, stderr io.Writer) *cli.Command {
	p := &proof{connection: c, stdout: stdout, stderr: stderr}
	return &cli.Command{
		Name:        "prove",
		Usage:       "prove on your own ensemble that its locks keep their promises",
		UsageText:   "zklock prove [FLAGS]",
		Description: aboutProve + exitCodes,
		Flags:       p.flags(),
		Action:      p.run,
	}
}

func (p *proof) flags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name: "for", Destination: &p.config.For, Value: 2 * time.Minute,
			Usage: "let the workers work for `DURATION`",
		},
		&cli.IntFlag{
			Name: "workers", Destination: &p.config.Workers, Value: 4,
			Usage: "start `N` worker processes, 2 to 32",
		},
		&cli.IntFlag{
			Name: "rate", Destination: &p.config.Rate, Value: 200,
			Usage: "send at most `N` requests a second, 20 to 10000",
		},
		&cli.BoolFlag{
			Name: "calm", Destination: &p.config.Calm, Usage: "make no faults",
		},
		&cli.StringFlag{
			Name: "root", Destination: &p.root,
			Usage: "create all znodes below `PATH`, which must not exist (default: " +
				"/zklock-prove-TIME-RANDOM)",
		},
		&cli.Uint64Flag{
			Name: "seed", Destination: &p.config.Seed, HideDefault: true,
			Usage: "draw workload and faults from `N`, as an earlier run did; the " +
				"timing differs",
		},
		&cli.StringFlag{
			Name: "json", Destination: &p.json, TakesFile: true,
			Usage: "keep the history and the report in `FILE`, a line of JSON each",
		},
		&cli.StringFlag{
			Name: "html", Destination: &p.html, TakesFile: true,
			Usage: "write a page with a timeline of holds and faults to `FILE`",
		},
		&cli.StringFlag{
			Name: "check", Destination: &p.check, TakesFile: true,
			Usage: "only check the history in `FILE` again; connects to nothing",
		},
		&cli.StringFlag{
			Name: "listen", Destination: &p.listen,
			Usage: "let other machines join at `HOST:PORT`; without HOST on this " +
				"machine only",
		},
		&cli.IntFlag{
			Name: "machines", Destination: &p.machines, Value: 2,
			Usage: "with --listen: begin once `N` take part, 2 to 16, this one among " +
				"them",
		},
		&cli.StringFlag{
			Name: "join", Destination: &p.join,
			Usage: "take part in the run that listens at `HOST:PORT`, until it ends",
		},
		&cli.StringFlag{
			Name: "token", Destination: &p.token,
			Usage: "`@FILE` with what lets a machine join: --listen writes it, --join " +
				"reads it",
		},
	}
}

func (p *proof) run(ctx context.Context, cmd *cli.Command) (err error) {
	defer within(cmd, "", &err)
	if cmd.Args().Present() {
		return usage("no argument is wanted: %s", echo(cmd.Args().First()))
	}
	if cmd.IsSet("machines") && p.listen == "" {
		return usage("--machines needs --listen")
	}
	if p.check != "" {
		return p.again()
	}
	to, err := p.connection.check()
	if err != nil {
		return err
	}
	chroot := to.chroot
	inner := *to
	inner.chroot = "/"
	p.config.Access = prove.Access{
		Servers: strings.Split(to.servers, ","), ACL: to.acl, TLS: to.tls != nil,
		Release: func(server string) string { return askVersion(server, to.tls) },
		Connect: func(
			ctx context.Context, session time.Duration, opts ...recipes.ClientOption,
		) (*recipes.Client, error) {
			one := inner
			one.sessionTimeout = session
			return one.open(ctx, append(opts, one.options...)...)
		},
	}
	if os.Args[0] == proveWorkerName {
		return prove.Work(ctx, os.Stdin, p.stdout, p.config.Access)
	}
	p.config.Worker, p.config.Start = proveWorker, startProveWorker
	p.config.Say = func(format string, args ...any) {
		say(p.stderr, fmt.Sprintf("prove: "+format, args...))
	}
	if cmd.IsSet("session-timeout") {
		p.config.Session = to.sessionTimeout
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if p.join != "" {
		return p.takePart(ctx)
	}
	if err := p.settle(chroot); err != nil {
		return err
	}
	return p.prove(ctx, to)
}

// settle fills in what has no flag, or none that was given.
func (p *proof) settle(chroot string) error {
	if p.root == "" {
		p.root = "/zklock-prove-" + time.Now().UTC().Format("20060102-150405") + "-" +
			strings.ToLower(rand.Text()[:8])
	}
	if err := zkpath.Check(p.root); err != nil {
		return usage("--root: %w", hide(err, p.root, wantPath))
	}
	if p.root == "/" {
		return usage("--root /: must be a path of its own")
	}
	p.config.Root = zkpath.Join(chroot, p.root)
	for p.config.Seed == 0 {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails
		p.config.Seed = uint64(binary.BigEndian.Uint32(random[:]))
	}
	p.config.Version = version()
	if err := p.config.Check(); err != nil {
		return usage("%w", err)
	}
	return nil
}

// prove makes a run and reports.
func (p *proof) prove(ctx context.Context, to *target) error {
	if p.listen != "" || p.token != "" {
		door, err := p.open()
		if err != nil {
			return err
		}
		defer func() { _ = door.Close() }() // else it is closed
	}
	first, err := to.connect(ctx) // creates the chroot, as every command does
	if err != nil {
		return err
	}
	first.Close()
	history, err := create("--json", p.json)
	if err != nil {
		return err
	}
	if history != nil {
		defer history.Close()
		p.config.History = history
	}
	page, err := create("--html", p.html) // now, lest an hour's run has none
	if err != nil {
		return err
	}
	report, err := p.config.Run(ctx)
	if err != nil {
		return err
	}
	return p.tell(report, page)
}

// open lets others join.
func (p *proof) open() (*prove.Door, error) {
	file, ok := strings.CutPrefix(p.token, "@")
	if !ok || file == "" || p.listen == "" {
		return nil, usage("--listen and --token @FILE go together")
	}
	host, port, err := net.SplitHostPort(p.listen)
	if err != nil {
		return nil, usage("--listen: want HOST:PORT: %w", err)
	}
	address := net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
	door, err := prove.OpenDoor(address, p.machines)
	if err != nil {
		return nil, usage("--listen: %w", err)
	}
	token, err := private(file)
	if err == nil {
		_, err = fmt.Fprintln(token, door.Token())
		err = errors.Join(err, token.Close())
	}
	if err != nil {
		return nil, errors.Join(usage("--token: %w", hide(err, file, wantFile)),
			door.Close())
	}
	p.config.Door = door
	p.config.Say("waiting at %s for %d machines", door.Address(), p.machines-1)
	return door, nil
}

// takePart is this machine's part in the run of another one.
func (p *proof) takePart(ctx context.Context) error {
	file, ok := strings.CutPrefix(p.token, "@")
	if !ok || file == "" || p.listen != "" {
		return usage("--join needs --token @FILE, and excludes --listen")
	}
	text, err := p.connection.secret("--token @"+file, file)
	if err != nil {
		return usage("--token: %w", hide(err, file, wantFile))
	}
	p.config.Say("taking part in the run at %s", p.join)
	err = prove.Join(ctx, p.join, strings.TrimSpace(string(text)), p.config.Host)
	if err != nil {
		return exit(exitUndecided, "%w", err)
	}
	return nil
}

// again checks a history of an earlier run.
func (p *proof) again() error {
	file, err := os.Open(p.check)
	if err != nil {
		return usage("--check: %w", hide(err, p.check, wantFile))
	}
	defer file.Close()
	report, err := prove.Check(file)
	if err != nil {
		return exit(exitUsage, "--check %s: %w", echo(p.check), err)
	}
	page, err := create("--html", p.html)
	if err != nil {
		return err
	}
	return p.tell(report, page)
}

// tell writes what was found, also to the page, if there is one.
func (p *proof) tell(report *prove.Report, page *os.File) error {
	_, err := io.WriteString(p.stdout, report.Text())
	if page != nil {
		err = errors.Join(err, report.WritePage(page), page.Close())
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	switch report.Verdict {
	case prove.Proven:
		return nil
	case prove.Violated:
		return exitWith(exitViolated)
	}
	return exitWith(exitUndecided)
}

// create creates the file that a flag names, nil if it names none.
func create(flag, name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	file, err := private(name)
	if err != nil {
		return nil, usage("%s: %w", flag, hide(err, name, wantFile))
	}
	return file, nil
}

// errTheirs says that a file is none to be written to.
var errTheirs = errors.New(
	"is there, and is no regular file of your own; give another name")

func theirs(name string) error {
	return &os.PathError{Op: "open", Path: name, Err: errTheirs}
}

// private creates a file for its owner alone. One that is there stays as it is, unless it
// is the owner's own regular file.
func private(name string) (*os.File, error) {
	// A pipe without a reader is not waited for.
	const flags = os.O_WRONLY | os.O_CREATE | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	file, err := os.OpenFile(name, flags, 0o600) //nolint:gosec // the user names it
	switch {
	case errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO): // a link, a pipe
		return nil, theirs(name)
	case err != nil:
		return nil, err
	}
	if err := emptyOwn(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// emptyOwn empties a file of the user's own, which nobody else may read then.
func emptyOwn(file *os.File) error {
	info, err := file.Stat() // of what is written to, whatever the name is of by now
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if !info.Mode().IsRegular() || owner != os.Geteuid() {
		return theirs(file.Name())
	}
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	return file.Truncate(0)
}

// proveWorker is zklock once more, with the same flags: it connects as this one does.
func proveWorker() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, os.Args[1:]...) //nolint:gosec // zklock itself
	cmd.Args[0] = proveWorkerName
	return cmd
}

// startProveWorker starts a worker, with a guard that kills it if this process dies: also
// one that is suspended then.
func startProveWorker(cmd *exec.Cmd) (<-chan struct{}, error) {
	guard := startGuard()
	changes, err := reaping.start(cmd)
	if err != nil {
		guard.dismiss()
		return nil, err
	}
	guard.tell(cmd.Process.Pid)
	ended := make(chan struct{})
	go func() {
		for range changes {
		}
		guard.dismiss()
		close(ended)
	}()
	return ended, nil
}
