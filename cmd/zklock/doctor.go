package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/prove"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

const aboutDoctor = `It looks for znodes that nobody can own and that block the queue
forever, for unrelated znodes in the parent znode, for rights on the parent that its
znodes do not grant, for numbers so far apart that the queue has no order, for a record of
"zklock once" that keeps CMD from running, for a sequence counter near its limit, for
servers that do not answer, have no container znodes, or are of a release that can lose
what it confirmed, for a session timeout below four server ticks, and for a clock of this
machine that differs from ZooKeeper's. Nothing is changed; for a moment there is an
ephemeral znode /zklock-doctor-..., whose time is the servers'. If ZooKeeper cannot be
reached, each server is asked all the same.

It tells since when the lock is held, and how many wait; a hold that is far older than
usual here is marked with "?".

With --deadlocks it reads the queues of all locks at PATH and below, and reports sessions
of which each waits for the next, and the last for the first. That is possible, and not
certain: a session stands for its whole process, of which one part may hold what has
nothing to do with what another part waits for.

Each finding is a line. The exit code is 0 if all is well, otherwise 1. Of each parent
znode the first 1000 in the queue are examined, and as many others. Of similar findings 20
are shown, and the number of the others.

`

// exitFindings is what doctor returns where it has found something.
const exitFindings = 1

func doctorCommand(c *connection, stdout io.Writer) *cli.Command {
	deadlocks := false
	d := &doctor{stdout: stdout} // of both looks, so that it says nothing twice
	examine := onPath(c, func(
		ctx context.Context, client *recipes.Client, path string,
	) (err error) {
		d.client, d.path = client, path
		if d.target, err = c.check(); err != nil {
			return err
		}
		if deadlocks {
			return d.deadlocks(ctx)
		}
		return d.examine(ctx)
	})
	return &cli.Command{
		Name:        "doctor",
		Usage:       "look for what is wrong with the lock at PATH and its servers",
		UsageText:   "zklock doctor [FLAGS] PATH",
		Description: aboutDoctor + exitCodes,
		Flags: []cli.Flag{&cli.BoolFlag{
			Name: "deadlocks", Destination: &deadlocks,
			Usage: "look instead at all locks at PATH and below for sessions that wait " +
				"for each other in a circle",
		}},
		Metadata: map[string]any{"argument": "PATH"},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			err := examine(ctx, cmd)
			if codeOf(err) != exitUnavailable {
				return err
			}
			if to, wrong := c.check(); wrong == nil { // which server is it?
				d.target = to
				_ = d.servers(ctx)
			}
			return err
		},
	}
}

// A doctor examines one path.
type doctor struct {
	client *recipes.Client
	target *target
	path   string
	stdout io.Writer
	said   []string // the lines
	ill    bool
}

func (d *doctor) examine(ctx context.Context) error {
	for _, one := range []func(context.Context) error{
		d.queue, d.servers, d.ticks, d.clock,
	} {
		if err := one(ctx); err != nil {
			return err
		}
	}
	if d.ill {
		return exitWith(exitFindings)
	}
	return nil
}

func (d *doctor) well(format string, args ...any) { d.line("ok  ", format, args...) }

func (d *doctor) find(format string, args ...any) {
	d.ill = true
	d.line("BAD ", format, args...)
}

func (d *doctor) doubt(format string, args ...any) { d.line("?   ", format, args...) }

// line says something that was not said before.
func (d *doctor) line(mark, format string, args ...any) {
	line := mark + text.Printable(fmt.Sprintf(format, args...))
	if !slices.Contains(d.said, line) {
		d.said = append(d.said, line)
		_, _ = fmt.Fprintln(d.stdout, line)
	}
}

// servers asks each server whether it serves, and for its version: containers came with
// 3.5.
func (d *doctor) servers(context.Context) error {
	for server := range strings.SplitSeq(d.target.servers, ",") {
		told, err := askServer(server, d.target.tls)
		version := versionIn(told)
		against := prove.Against(version)
		switch has, known := hasContainers(version); {
		case err != nil:
			d.find("%s does not answer: %v", server, err)
		case bytes.Contains(told, []byte(servesNobody)):
			d.find("%s serves nobody: it has no quorum, or is still starting", server)
		case !known:
			d.doubt("%s does not report its version (four-letter word srvr)", server)
		case !has:
			d.find("%s is ZooKeeper %s, without container znodes (3.5): "+
				"lock paths remain forever", server, version)
		case against != "":
			d.doubt("%s is ZooKeeper %s: %s (docs/servers.md)", server, version, against)
		default:
			d.well("%s is ZooKeeper %s, with container znodes", server, version)
		}
	}
	return nil
}

var versionLine = regexp.MustCompile(`(?m)^Zookeeper version: ([^ ,\n]+)`)

// servesNobody is what a server says that is cut off from its quorum.
const servesNobody = "is not currently serving requests"

// askVersion returns "" where the server does not tell. A nil config is for one that does
// not talk TLS.
func askVersion(server string, config *tls.Config) string {
	told, _ := askServer(server, config) // who does not answer does not tell
	return versionIn(told)
}

// askServer returns what the server tells of itself, if anything. An error says that it
// cannot be reached, or is silent.
func askServer(server string, config *tls.Config) (told []byte, err error) {
	const limit = 3 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := dialServer(ctx, server, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit)) // never fails on an open one
	if _, err = io.WriteString(conn, "srvr"); err == nil {
		told, err = io.ReadAll(io.LimitReader(conn, 4096))
	}
	if len(told) == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("nothing within %v", limit)
	}
	return told, nil // a part may do; one that does not know the word hangs up
}

// dialServer connects to a server to ask it a four-letter word.
func dialServer(
	ctx context.Context, server string, config *tls.Config,
) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil || config == nil {
		return conn, err
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(server) // servers has the ports
	}
	return tls.Client(conn, config), nil
}

// versionIn finds the version in a server's answer, "" where there is none.
func versionIn(told []byte) string {
	found := versionLine.FindSubmatch(told)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// hasContainers reads a version such as 3.4.14-....
func hasContainers(version string) (has, known bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return false, false
	}
	minor, err := strconv.Atoi(parts[1])
	return major > 3 || major == 3 && minor >= 5, err == nil
}

// ticks asks for a session of half the timeout. Servers grant two ticks at the least: if
// that is more than the half, the whole is below four ticks.
func (d *doctor) ticks(ctx context.Context) error {
	granted := d.client.SessionTimeout()
	if asked := d.target.sessionTimeout; granted != asked {
		d.find("the session timeout is %v, but %v was requested: see "+
			"minSessionTimeout and maxSessionTimeout of the servers", granted, asked)
	}
	half := *d.target
	half.sessionTimeout = granted / 2
	client, err := half.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if least := client.SessionTimeout(); least > granted/2 {
		d.find("the session timeout, %v, is below four ticks of the servers, which "+
			"grant at least %v, two ticks: locks survive next to no outage", granted,
			least)
		return nil
	}
	d.well("the session timeout, %v, is four ticks of the servers or more", granted)
	return nil
}

// clock compares this machine's with the servers', which note when a znode is made.
func (d *doctor) clock(context.Context) error {
	node := "/zklock-doctor-" + rand.Text()
	before := time.Now()
	_, err := d.client.Create(node, nil, zk.FlagEphemeral, d.target.acl)
	after := time.Now()
	if errors.Is(err, zk.ErrNoAuth) {
		d.doubt("the clock was not compared: no permission to create %s", node)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.client.Delete(node, -1) }() // it goes with the session
	_, stat, err := d.client.Get(node)
	if err != nil {
		return err
	}
	const most = 2 * time.Second
	switch off := clockOff(time.UnixMilli(stat.Ctime), before, after); {
	case off.Abs() > most:
		d.find("the clock of this machine differs from ZooKeeper's by %v",
			off.Round(time.Millisecond))
	default:
		d.well("the clocks of this machine and of ZooKeeper agree within %v", most)
	}
	return nil
}
