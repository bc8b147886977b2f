package main

import (
	"context"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A runner is what the flags of run, once, lead and register say about CMD.
type runner struct {
	noMargin  bool // CMD may end when the lock has passed on
	killAfter time.Duration
	maxHold   time.Duration
	data      string
}

func (r *runner) flags() []cli.Flag {
	return []cli.Flag{
		r.killFlag("lock"),
		&cli.DurationFlag{
			Name: "max-hold", Destination: &r.maxHold, HideDefault: true,
			Usage: "end CMD and release the lock after `DURATION`",
		},
		r.dataFlag(),
	}
}

func (r *runner) killFlag(of string) cli.Flag {
	return &cli.DurationFlag{
		Name: "kill-after", Destination: &r.killAfter, Value: 5 * time.Second,
		Usage: "`DURATION` from SIGTERM to SIGKILL if the " + of + " is lost",
	}
}

func (r *runner) dataFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "data", Destination: &r.data,
		Usage: "`TEXT` that the znode holds (default: host, pid and command)",
	}
}

// grace is what is left, of the margin before the lock can pass on, when CMD was killed.
const grace = time.Second

func (r *runner) margin() time.Duration {
	if r.noMargin {
		return 0
	}
	return r.killAfter + grace
}

// check refuses settings that cannot be kept.
func (r *runner) check(cmd *cli.Command, sessionTimeout time.Duration) error {
	if r.killAfter < 0 {
		return usage("--kill-after %v: is negative", r.killAfter)
	}
	if cmd.IsSet("max-hold") && r.maxHold <= 0 {
		return usage("--max-hold %v: must be positive", r.maxHold)
	}
	return r.fits(sessionTimeout, "--session-timeout")
}

// fits refuses a session timeout within which CMD could not be ended in time.
func (r *runner) fits(sessionTimeout time.Duration, whose string) error {
	if 4*r.margin() <= sessionTimeout {
		return nil
	}
	fitting := "no --kill-after fits it"
	if most := sessionTimeout/4 - grace; most >= 0 {
		fitting = "or give --kill-after " + most.String()
	}
	return usage("--kill-after %v does not fit %s %v: give --session-timeout %v "+
		"(maxSessionTimeout of the servers, 40s by default, must allow it), %s",
		r.killAfter, whose, sessionTimeout, 4*r.margin(), fitting)
}

func (r *runner) options(cmd *cli.Command) []recipes.Option {
	options := []recipes.Option{recipes.WithLossMargin(r.margin())}
	if cmd.IsSet("data") {
		options = append(options, recipes.WithData([]byte(r.data)))
	}
	return options
}

// limit is --max-hold.
func (r *runner) limit() []recipes.Option {
	if r.maxHold == 0 {
		return nil
	}
	return []recipes.Option{recipes.WithMaxHold(r.maxHold)}
}

// A beginning is what comes before the lock.
type beginning struct {
	to      *target
	signals chan os.Signal
	// waiting is for what comes before CMD: a signal ends it, up to stop, and again from
	// resume on.
	waiting context.Context
	cancel  context.CancelCauseFunc
	stop    func()
}

// begin checks what the flags say, and catches signals until end.
func (r *runner) begin(
	ctx context.Context, cmd *cli.Command, c *connection,
) (*beginning, error) {
	to, err := c.check()
	if err != nil {
		return nil, err
	}
	if err := r.check(cmd, to.sessionTimeout); err != nil {
		return nil, err
	}
	b := &beginning{to: to, signals: make(chan os.Signal, 16)}
	notify(b.signals, ending)
	b.waiting, b.cancel = context.WithCancelCause(ctx)
	b.resume()
	return b, nil
}

func (b *beginning) resume() { b.stop = untilSignal(b.cancel, b.signals) }

func (b *beginning) end() {
	b.stop()
	release(b.signals)
}

// firstArg is where flags end: at the first argument that is none.
func firstArg() *int {
	one := 1
	return &one
}

// command splits "PATH [--] CMD [ARG...]", and checks it.
func command(cmd *cli.Command, what string) (path string, argv []string, err error) {
	args := cmd.Args().Slice()
	if len(args) == 0 {
		return "", nil, usage("%s: no %s", cmd.Name, what)
	}
	path, argv = args[0], args[1:]
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if err := zkpath.Check(path); err != nil {
		return path, nil, usage("%s: %w", cmd.Name, hide(err, path, wantPath))
	}
	if path == "/" {
		return path, nil, usage("%s /: the root cannot be used", cmd.Name)
	}
	err = findCommand(argv, what)
	within(cmd, path, &err)
	return path, argv, err
}
