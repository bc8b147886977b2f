package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutDoctor = `It looks for znodes that nobody can own and that block the queue for
ever, for strangers in the directory, for a sequence counter near its limit, for servers
without container znodes, for a session timeout below four of the servers' ticks, and for
a clock of this machine that differs from ZooKeeper's. Nothing is changed; for a moment
there is an ephemeral znode /zklock-doctor-..., whose time is the servers'.

Each finding is a line; the exit code is 0 where all is well, and 1 where not.

`

// exitFindings is what doctor returns where it has found something.
const exitFindings = 1

func doctorCommand(c *connection, stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "look for what is wrong with the lock at PATH and its servers",
		UsageText:   "zklock doctor [FLAGS] PATH",
		Description: aboutDoctor + exitCodes,
		Metadata:    map[string]any{"argument": "PATH"},
		Action: onPath(c, func(
			ctx context.Context, client *recipes.Client, path string,
		) error {
			to, err := c.check()
			if err != nil {
				return err
			}
			d := &doctor{client: client, target: to, path: path, stdout: stdout}
			return d.examine(ctx)
		}),
	}
}

// A doctor examines one path.
type doctor struct {
	client *recipes.Client
	target *target
	path   string
	stdout io.Writer
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

func (d *doctor) line(mark, format string, args ...any) {
	_, _ = fmt.Fprintf(d.stdout, mark+format+"\n", args...)
}

// queue looks at the directories of the lock.
func (d *doctor) queue(ctx context.Context) error {
	for _, sub := range []string{"", "/" + leasesDir, "/" + gateDir} {
		dir := zkpath.Join(d.path, sub)
		children, stat, err := d.client.Children(dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) && sub == "":
			d.well("%s is not there: nobody uses it, or its directory has gone, which "+
				"is as it should be", dir)
			return nil
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil:
			return unreadable(dir, err)
		}
		if err := d.children(ctx, dir, sub == "", children); err != nil {
			return err
		}
		d.sequence(dir, stat)
	}
	return nil
}

// children looks at each znode of a directory.
func (d *doctor) children(
	ctx context.Context, dir string, top bool, children []string,
) error {
	participants, orphans := 0, 0
	for _, child := range children {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		node := zkpath.Join(dir, "/"+child)
		if !participant.MatchString(child) {
			if top && (child == leasesDir || child == gateDir || child == markName) {
				continue
			}
			if err := d.other(node); err != nil {
				return err
			}
			continue
		}
		_, stat, err := d.client.Get(node)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil:
			return unreadable(node, err)
		case !owned(stat):
			orphans++
			d.find("%s belongs to no session: it blocks the queue until somebody "+
				"deletes it", node)
		}
		participants++
	}
	switch {
	case orphans > 0:
	case participants == 0 && top && isSemaphore(children):
		d.well("%s is a semaphore", dir)
	case participants == 0:
		d.well("%s: nobody is in the queue", dir)
	case participants == 1:
		d.well("%s: 1 znode in the queue, with an owner", dir)
	default:
		d.well("%s: %d znodes in the queue, all with an owner", dir, participants)
	}
	return nil
}

// other looks at a znode that is not in the queue: it may be the directory of another
// lock.
func (d *doctor) other(node string) error {
	children, stat, err := d.client.Children(node)
	switch {
	case errors.Is(err, zk.ErrNoNode) || node == "/zookeeper":
	case errors.Is(err, zk.ErrNoAuth):
		d.line("?   ", "%s was not looked at: no permission to read it", node)
	case err != nil:
		return err
	case stat.EphemeralOwner != container && !isLock(children):
		d.find("%s is a stranger: no lock makes such a znode; it does no harm, but "+
			"keeps the directory", node)
	}
	return nil
}

// sequence tells how many znodes a directory has numbered: it counts creates, and shows
// the sum of creates and deletes (DataNode.copyStat).
func (d *doctor) sequence(dir string, stat *zk.Stat) {
	const limit = math.MaxInt32
	seen := (uint32(stat.Cversion) + uint32(stat.NumChildren)) / 2
	if seen > limit/10*9 {
		d.find("%s: the sequence counter is at %d, near its limit of %d: delete the "+
			"directory while nobody uses it", dir, seen, limit)
		return
	}
	d.well("%s: the sequence counter is at %d of %d", dir, seen, limit)
}

// servers asks each server for its version: containers came with 3.5.
func (d *doctor) servers(context.Context) error {
	for server := range strings.SplitSeq(d.target.servers, ",") {
		version := askVersion(server)
		switch has, known := hasContainers(version); {
		case !known:
			d.line("?   ", "%s does not tell its version (four-letter word srvr)", server)
		case !has:
			d.find("%s is ZooKeeper %s, without container znodes (3.5): directories of "+
				"locks stay for ever", server, version)
		default:
			d.well("%s is ZooKeeper %s, with container znodes", server, version)
		}
	}
	return nil
}

var versionLine = regexp.MustCompile(`(?m)^Zookeeper version: ([^ ,\n]+)`)

// askVersion returns "" where the server does not tell; one that talks TLS does not.
func askVersion(server string) string {
	const limit = 3 * time.Second
	conn, err := net.DialTimeout("tcp", server, limit)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit)) // never fails on an open one
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	told, _ := io.ReadAll(io.LimitReader(conn, 4096)) // a part may do
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
		d.find("the session timeout is %v, for which %v was asked: see "+
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
			"grant %v at the least, two ticks: it bears next to no outage", granted,
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
	_, err := d.client.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	after := time.Now()
	if errors.Is(err, zk.ErrNoAuth) {
		d.line("?   ", "the clock was not compared: no permission to create %s", node)
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
