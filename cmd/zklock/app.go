package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"
)

const about = `flock(1) for a cluster: run commands under locks in ZooKeeper

Flags end at the first argument that is not a flag, and no shell is involved:
"zklock run -n /locks/report -- tar -c ." runs tar with -c.

If zklock dies (kill -9, a crash, a network outage), its lock remains until the session
timeout has passed. CMD does not: on Linux the kernel kills it, and on every system a
second process of zklock kills what is left of CMD's process group. This does not reach
processes that CMD has put into their own group or session, or that run as another user.
If somebody stops zklock with SIGSTOP, CMD continues alone: let what CMD writes to reject
a ZKLOCK_TOKEN that is lower than one it has seen.

A lock is held while CMD runs, and no longer: unlike flock(1), zklock does not keep it
for processes that CMD leaves behind in the background, which continue to run.

`

// newApp returns the tree of the commands.
func newApp(stdout, stderr io.Writer) *cli.Command {
	c := &connection{stderr: stderr}
	app := &cli.Command{
		Name:                      "zklock",
		Usage:                     "run commands under locks in ZooKeeper",
		Version:                   version(),
		Flags:                     c.flags(),
		Writer:                    stdout,
		ErrWriter:                 stderr,
		ExitErrHandler:            func(context.Context, *cli.Command, error) {},
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		UseShortOptionHandling:    false,
		Commands: []*cli.Command{
			runCommand(c, stderr), onceCommand(c, stderr), leadCommand(c, stderr),
			registerCommand(c, stderr),
			lsCommand(c, stdout, stderr), watchCommand(c, stdout),
			revokeCommand(c, stdout), evictCommand(c, stdout),
			doctorCommand(c, stdout), serveCommand(c, stderr),
			gcCommand(c, stdout, stderr), proveCommand(c, stdout, stderr),
			helpCommand(), manCommand(stdout), completionCommand(stdout),
		},
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.Args().Present() {
				return usage("%s: there is no such command; see zklock --help",
					echo(cmd.Args().First()))
			}
			return usage("no command: run, once, lead, register, ls, watch, revoke, " +
				"evict, doctor, serve, gc or prove; see zklock --help")
		},
	}
	describe(app)
	prepare(app)
	return app
}

// helpCommand is --help for those who type help.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "print the help of zklock, or of a command",
		UsageText: "zklock help [COMMAND]",
		Action: func(ctx context.Context, cmd *cli.Command) error {
			name := cmd.Args().First()
			switch {
			case name == "":
				return cli.ShowRootCommandHelp(cmd.Root())
			case cmd.Root().Command(name) == nil:
				return noSuchTopic(name)
			}
			return cli.ShowCommandHelp(ctx, cmd.Root(), name)
		},
	}
}

func noSuchTopic(name string) error {
	return usage("help %s: there is no such command; see zklock --help", echo(name))
}

// untopical is an error of the app, as zklock says it: urfave/cli does not give all of
// them to OnUsageError.
func untopical(err error) error {
	if err != nil {
		if found := noTopic.FindStringSubmatch(err.Error()); found != nil {
			return noSuchTopic(found[1])
		}
	}
	return err
}

// prepare sets what is the same for all commands.
func prepare(cmd *cli.Command) {
	cmd.OnUsageError = func(
		_ context.Context, cmd *cli.Command, err error, _ bool,
	) error {
		return usage("%s; see %s --help", inPlainWords(cmd, err), cmd.FullName())
	}
	for _, sub := range cmd.Commands {
		// urfave/cli takes what follows --help for a command of the command's.
		sub.CommandNotFound = func(ctx context.Context, sub *cli.Command, _ string) {
			_ = cli.ShowCommandHelp(ctx, sub.Root(), sub.Name) // it is there
		}
		prepare(sub)
	}
}

// What urfave/cli says of flags. Of a value's error the first word tells the flag's type.
var (
	unknownFlag = regexp.MustCompile(`(?s)^flag provided but not defined: -(.*)$`)
	badValue    = regexp.MustCompile(`(?s)^invalid value "(.*)" for flag -(\S+): (\S+)`)
	noTopic     = regexp.MustCompile(`(?s)^No help topic for '(.*)'$`)
)

// inPlainWords says what is wrong with the flags in plain words.
func inPlainWords(cmd *cli.Command, err error) string {
	text := err.Error()
	if found := unknownFlag.FindStringSubmatch(text); found != nil {
		text := "unknown flag " + echo(asTyped(cmd, found[1]))
		if hint := ofFlock[found[1]]; hint != "" {
			text += "; " + hint
		}
		return text
	}
	wanted := map[string]string{
		"strconv.ParseInt:": "a number", "time:": "a duration, such as 30s",
		"parse": "true or false", "seconds:": "seconds, or a duration, such as 1m30s",
	}
	if found := badValue.FindStringSubmatch(text); found != nil {
		if want, known := wanted[found[3]]; known {
			return asTyped(cmd, found[2]) + " " + echo(found[1]) + ": want " + want
		}
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// dashed is a flag as one types it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// version is that of the module, as go install has it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

// one returns the single argument of a command that takes one.
func one(cmd *cli.Command, what string) (string, error) {
	switch args := cmd.Args(); args.Len() {
	case 0:
		return "", usage("%s: no %s", cmd.Name, what)
	case 1:
		return args.First(), nil
	default:
		return "", usage("%s: one %s is wanted, and these are %d: %s", cmd.Name, what,
			args.Len(), echoAll(args.Slice()))
	}
}

// within says of which command, on what, an error is. One without words stays so.
func within(cmd *cli.Command, what string, err *error) {
	if told := (&exitError{}); errors.As(*err, &told) && told.err == nil {
		return
	}
	if errors.Is(*err, zk.ErrInvalidACL) {
		*err = fmt.Errorf("%w; if the servers know of no login of this client, as by "+
			"its certificate, give --acl world", *err)
	}
	if *err != nil {
		*err = fmt.Errorf("%s: %w", strings.TrimSpace(cmd.Name+" "+what), *err)
	}
}
