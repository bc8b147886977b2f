package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutLs = `One line for each participant in the queue of a lock, semaphore or
election, in order. If there is none, standard error says why (exit code 0). SINCE is
when it joined the queue. An exclusive "zklock run" has two znodes, a mutex's and a write
lock's. They are one line, lock+write, which holds once both do; ZNODE is the write
lock's, and --json has both. What is not UTF-8 is also in "path64", "nodes64" or "data64",
in base64.

What -r cannot read is named on standard error and left out (exit code 77, or 69 if a
list is too long, for instance). What exceeds
--limit is left out without an error. Characters that a terminal would obey or hide are
escaped.

`

// A list is one "zklock ls".
type list struct {
	stdout    io.Writer
	stderr    io.Writer
	json      bool
	recursive bool
	limit     int
}

func lsCommand(c *connection, stdout, stderr io.Writer) *cli.Command {
	l := &list{stdout: stdout, stderr: stderr}
	return &cli.Command{
		Name:        "ls",
		Usage:       "list who holds and who waits at PATH",
		UsageText:   "zklock ls [FLAGS] PATH",
		Description: aboutLs + exitCodes,
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name: "json", Destination: &l.json, Usage: "print an array of objects",
			},
			&cli.BoolFlag{
				Name: "r", Aliases: []string{"recursive"}, Destination: &l.recursive,
				Usage: "list all locks at PATH and below",
			},
			&cli.IntFlag{
				Name: "limit", Destination: &l.limit, Value: listMost,
				Usage: "list at most `N` participants, and with -r examine as many " +
					"children of a znode, and ten times as many in all; 0: all",
			},
		},
		Metadata: map[string]any{"argument": "PATH"},
		Action:   onPath(c, l.run),
	}
}

const (
	// listMost is how many participants are shown of how many there may be.
	listMost = 1000
	// looksPerRow bounds, with that, the znodes that are looked at below a path.
	looksPerRow = 10
	// alikeShown is how many lines are shown of those that are alike.
	alikeShown = 20
)

func (l *list) run(
	ctx context.Context, client *recipes.Client, path string,
) (err error) {
	if l.limit < 0 {
		return usage("--limit %d: is negative", l.limit)
	}
	most := l.limit
	if most == 0 {
		most = math.MaxInt / looksPerRow
	}
	seen := &seen{most: most, head: &head{Client: client}, rows: []queues.Row{}}
	visit := func(path string) error { return seen.visit(ctx, path) }
	code := 0
	if l.recursive {
		skipped := 0
		skip := func(path string, err error) {
			code = codeOf(err)
			if skipped++; skipped <= alikeShown {
				say(l.stderr, fmt.Sprintf("ls %s: %v", path, err))
			}
		}
		w := &walk{
			client: client, visit: visit, skip: skip,
			most: most * looksPerRow, each: most,
		}
		err = w.down(ctx, path)
		l.more(path, skipped-alikeShown, "znodes that cannot be read")
		l.more(path, w.left, "znodes that were not looked at; see --limit")
	} else {
		err = visit(path)
	}
	if err == nil {
		err = l.write(seen.rows)
	}
	if err == nil && len(seen.rows) == 0 && code == 0 {
		err = l.nobody(client, path)
	}
	l.more(path, seen.left, "participants; see --limit")
	if err == nil {
		err = exitWith(code)
	}
	return err
}

// nobody says why nothing was listed: a path that was misspelt would look like a free
// lock.
func (l *list) nobody(client *recipes.Client, path string) error {
	exists, _, err := client.Unwrap().Exists(client.ServerPath(path))
	if err != nil {
		return err
	}
	switch {
	case !exists:
		say(l.stderr, fmt.Sprintf("ls %s: there is no such znode: nobody uses the path, "+
			"or it is misspelt", path))
	case l.recursive:
		say(l.stderr, fmt.Sprintf("ls %s: nobody holds it, or a lock below it, or waits",
			path))
	default:
		say(l.stderr, fmt.Sprintf("ls %s: nobody holds it or waits", path))
	}
	return nil
}

// more says how many of something are left out.
func (l *list) more(path string, n int, what string) {
	if n > 0 {
		say(l.stderr, fmt.Sprintf("ls %s: and %d more %s", path, n, what))
	}
}

// A seen is what a list has so far.
type seen struct {
	head *head
	most int // participants
	read int
	rows []queues.Row
	left int // participants that are not among the rows
}

// visit adds the queue at a path.
func (s *seen) visit(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, recipes.ErrUnavailable)
	defer cancel()
	s.head.most = max(0, s.most-s.read)
	rows, left, err := s.head.inspect(ctx, path)
	for _, r := range rows {
		s.read += len(r.Nodes)
	}
	s.rows, s.left = append(s.rows, rows...), s.left+left
	return err
}

func (l *list) write(rows []queues.Row) error {
	if l.json {
		exact := make([]queues.Row, len(rows)) // an array also if there is none
		for i, r := range rows {
			exact[i] = r.Exact()
		}
		return text.WriteJSON(l.stdout, exact)
	}
	return writeTable(l.stdout, rows, listed)
}

// answerLimit bounds what is asked of ZooKeeper by those who only look.
const answerLimit = 30 * time.Second

// onPath is the action of a command with one path, on a connection.
func onPath(
	c *connection,
	do func(ctx context.Context, client *recipes.Client, path string) error,
) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) (err error) {
		path, client, err := open(ctx, cmd, c)
		if err != nil {
			return err
		}
		defer client.Close()
		defer within(cmd, path, &err)
		return do(ctx, client, path)
	}
}

// open checks a command with one path and connects.
func open(
	ctx context.Context, cmd *cli.Command, c *connection,
) (path string, client *recipes.Client, err error) {
	path, err = one(cmd, cmd.Metadata["argument"].(string))
	if err != nil {
		return "", nil, err
	}
	if err := zkpath.Check(path); err != nil {
		return "", nil, usage("%s: %w", cmd.Name, hide(err, path, wantPath))
	}
	to, err := c.check()
	if err == nil {
		client, err = to.look(ctx)
	}
	within(cmd, path, &err)
	return path, client, err
}

// columns are those of a table, from left to right.
type columns []string

var listed = columns{"KIND", "STATE", "ZNODE", "SESSION", "SINCE", "DATA"}

// dataMost bounds the data of a row, in characters.
const dataMost = 100

// writeTable writes the rows for people.
func writeTable(to io.Writer, rows []queues.Row, order columns) error {
	if len(rows) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, strings.Join(order, "\t"))
	for _, r := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(cells(r, order), "\t"))
	}
	return table.Flush() // tells what went wrong before, too
}

func cells(r queues.Row, order columns) []string {
	all := map[string]string{
		"KIND": r.Kind, "STATE": r.State, "ZNODE": text.Printable(r.Node),
		"SESSION": r.Session, "SINCE": r.Since.Local().Format(time.DateTime),
		"TIME": r.Since.Local().Format(time.TimeOnly),
		"DATA": text.Shorten(text.Printable(r.Data), dataMost),
	}
	cells := make([]string, len(order))
	for i, name := range order {
		cells[i] = all[name]
	}
	return cells
}
