package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A member is one znode of a queue, for those who act on it.
type member struct {
	client *recipes.Client
	node   string
	stat   *zk.Stat
	row    queues.Row   // what it is, as ls shows it
	next   []queues.Row // who waits, in order, without it
}

// errNoMember refuses what no recipe can have made.
var errNoMember = usage("that is no znode of a lock; \"zklock ls\" lists them")

// findMember returns nil if the znode is missing.
func findMember(
	ctx context.Context, client *recipes.Client, node string,
) (*member, error) {
	if _, name := zkpath.Split(node); !queues.Stands(name) {
		return nil, errNoMember
	}
	data, stat, err := client.Get(node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, unreadable(node, err)
	case stat.NumChildren > 0 || !queues.Owned(stat) && stat.EphemeralOwner != 0:
		return nil, errNoMember
	}
	m := &member{client: client, node: node, stat: stat, row: queues.Row{
		Node: node, Kind: "znode", State: "stands in the queue",
		Session: fmt.Sprintf("0x%x", uint64(stat.EphemeralOwner)),
		Since:   time.UnixMilli(stat.Ctime), Data: string(data),
	}}
	lock, err := lockOf(client, node)
	if err != nil {
		return nil, err
	}
	first := &head{Client: client, most: listMost}
	rows, _, err := first.inspect(ctx, lock)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		switch {
		case slices.Contains(r.Nodes, node):
			r.Data = m.row.Data
			m.row = r
		case r.State == queues.Waits:
			m.next = append(m.next, r)
		}
	}
	return m, nil
}

// lockOf is the path of the lock in whose queue a znode stands.
func lockOf(client *recipes.Client, node string) (string, error) {
	dir := zkpath.Parent(node)
	_, name := zkpath.Split(dir)
	if name != observe.LeasesDir && name != observe.GateDir {
		return dir, nil
	}
	above := zkpath.Parent(dir)
	children, _, err := client.Children(above)
	if err != nil {
		return "", unreadable(above, err)
	}
	if queues.IsSemaphore(children) {
		return above, nil
	}
	return dir, nil
}

// String is what it is, on one line.
func (m *member) String() string {
	session := "session " + m.row.Session
	if m.row.Session == queues.NoSession {
		session = "no session"
	}
	return fmt.Sprintf("%s %s since %s, of %s, with the data %q",
		m.row.Kind, m.row.State, m.row.Since.Local().Format(time.DateTime), session,
		text.Shorten(m.row.Data, dataMost))
}

// isThere tells whether the same znode is still there, and its stat.
func (m *member) isThere() (*zk.Stat, error) {
	exists, stat, err := m.client.Unwrap().Exists(m.client.ServerPath(m.node))
	if err != nil || !exists || stat.Czxid != m.stat.Czxid {
		return nil, err
	}
	return stat, nil
}

const aboutEvict = `It deletes one znode of a queue: the way out if its program is stuck
and cannot be restarted, or if the znode belongs to no session. It shows what it deletes,
and asks. NODE is a znode from "zklock ls". What has children, or a name that no recipe
gives, is rejected. A missing znode is no error.

The next in the queue may begin before the program whose znode is gone notices: if both
must not write at the same time, what they write to must reject the lower fencing token.
If the program does not notice at all (it is suspended), it goes on when it wakes up.

Just before the delete, zklock looks whether it is still the same znode. ZooKeeper cannot
delete on that condition. So if the znode goes, and another of the same name and version
comes, within that moment, the other is deleted. Names with a GUID (_c_...) do not come
twice.

`

func evictCommand(c *connection, stdout io.Writer) *cli.Command {
	yes := false
	return &cli.Command{
		Name:        "evict",
		Usage:       "delete the znode NODE of a queue",
		UsageText:   "zklock evict [FLAGS] NODE",
		Description: aboutEvict + exitCodes,
		Flags: []cli.Flag{&cli.BoolFlag{
			Name: "yes", Destination: &yes, Usage: "do not ask",
		}},
		Metadata: map[string]any{"argument": "NODE"},
		Action: onPath(c, func(
			ctx context.Context, client *recipes.Client, node string,
		) error {
			m, err := findMember(ctx, client, node)
			if err != nil {
				return err
			}
			if m == nil {
				_, err := fmt.Fprintf(stdout, "%s: it has gone\n", text.Printable(node))
				return err
			}
			return m.evict(stdout, yes)
		}),
	}
}

func (m *member) evict(stdout io.Writer, yes bool) error {
	name := text.Printable(m.node)
	_, err := fmt.Fprintf(stdout, "%s: %s\n", name, text.Printable(m.String()))
	if err != nil {
		return err
	}
	if !yes {
		if !term.IsTerminal(int(os.Stdin.Fd())) {
			return usage("there is no terminal to ask at: give --yes")
		}
		if !agrees(stdout, "delete "+name+"?") {
			return exit(exitFindings, "nothing was deleted")
		}
	}
	stat, err := m.isThere()
	switch {
	case err != nil:
		return err
	case stat == nil:
		return exit(exitFindings, "nothing was deleted: the znode has gone meanwhile")
	}
	switch err := m.client.Delete(m.node, stat.Version); {
	case errors.Is(err, zk.ErrNoNode):
		return exit(exitFindings, "nothing was deleted: the znode has gone meanwhile")
	case errors.Is(err, zk.ErrBadVersion):
		return exit(exitFindings, "nothing was deleted: the znode has just changed; try "+
			"again")
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("%w (the session lacks DELETE on %s)", err,
			zkpath.Parent(m.node))
	case err != nil:
		return err
	}
	return m.tellNext(stdout)
}

// tellNext says what comes after a delete.
func (m *member) tellNext(stdout io.Writer) error {
	lines := []string{"deleted"}
	for _, other := range m.row.Nodes {
		if other != m.node {
			lines = append(lines, "the same run also has "+other+", until it notices")
		}
	}
	switch {
	case m.row.State != queues.Holds:
	case len(m.next) == 0:
		lines = append(lines, "nobody waits")
	default:
		next := m.next[0]
		lines = append(lines, fmt.Sprintf("next is %s, of session %s, with the data %q; "+
			"it may begin before the one whose znode was deleted notices", next.Node,
			next.Session, text.Shorten(next.Data, dataMost)))
	}
	for _, line := range lines {
		_, err := fmt.Fprintf(stdout, "%s: %s\n", text.Printable(m.node),
			text.Printable(line))
		if err != nil {
			return err
		}
	}
	return nil
}

// agrees asks, and tells whether the answer is yes.
func agrees(stdout io.Writer, question string) bool {
	_, _ = fmt.Fprintf(stdout, "%s [y/N] ", question)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
