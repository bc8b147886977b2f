package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A list is one "zklock ls".
type list struct {
	stdout    io.Writer
	stderr    io.Writer
	json      bool
	recursive bool
}

func lsCommand(c *connection, stdout, stderr io.Writer) *cli.Command {
	l := &list{stdout: stdout, stderr: stderr}
	return &cli.Command{
		Name:      "ls",
		Usage:     "list who holds and who waits at PATH",
		UsageText: "zklock ls [FLAGS] PATH",
		Description: "One line for each znode in the queue of a lock, semaphore or " +
			"election, in order.\nA path that was never used has none. What -r may not " +
			"read is told on standard\nerror, and left out (77).\n\n" + exitCodes,
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name: "json", Destination: &l.json, Usage: "print an array of objects",
			},
			&cli.BoolFlag{
				Name: "r", Aliases: []string{"recursive"}, Destination: &l.recursive,
				Usage: "list all locks at PATH and below",
			},
		},
		Metadata: map[string]any{"argument": "PATH"},
		Action:   onPath(c, l.run),
	}
}

// A row is a participant, as ls and watch show it. The names are those of --json.
type row struct {
	Path    string    `json:"path"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Node    string    `json:"node"`
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
	Data    string    `json:"data"`
}

// States of a row.
const (
	holds = "holds"
	waits = "waits"
)

func rowsOf(path string, queue []recipes.Participant) []row {
	rows := make([]row, len(queue))
	for i, p := range queue {
		state := waits
		if p.Holding {
			state = holds
		}
		rows[i] = row{
			Path: path, Kind: p.Kind, State: state, Node: p.Node,
			Session: fmt.Sprintf("0x%x", uint64(p.Session)), Since: p.Since,
			Data: string(p.Data),
		}
	}
	return rows
}

func (l *list) run(
	ctx context.Context, client *recipes.Client, path string,
) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, recipes.ErrUnavailable)
	defer cancel()
	rows := []row{}
	visit := func(path string) error {
		queue, err := recipes.Inspect(ctx, client, path)
		rows = append(rows, rowsOf(path, queue)...)
		return err
	}
	code := 0
	if l.recursive {
		skip := func(path string, err error) {
			code = exitNoPermission
			say(l.stderr, fmt.Sprintf("ls %s: %v", path, err))
		}
		err = (&walk{client: client, visit: visit, skip: skip}).down(ctx, path)
	} else {
		err = visit(path)
	}
	if err == nil {
		err = l.write(rows)
	}
	if err == nil {
		err = exitWith(code)
	}
	return err
}

func (l *list) write(rows []row) error {
	if l.json {
		encoder := json.NewEncoder(l.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
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
		return "", nil, usage("%s: %w", cmd.Name, err)
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

// writeTable writes the rows for people.
func writeTable(to io.Writer, rows []row, order columns) error {
	if len(rows) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, strings.Join(order, "\t"))
	for _, r := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(r.cells(order), "\t"))
	}
	return table.Flush() // tells what went wrong before, too
}

func (r row) cells(order columns) []string {
	all := map[string]string{
		"KIND": r.Kind, "STATE": r.State, "ZNODE": r.Node, "SESSION": r.Session,
		"SINCE": r.Since.Local().Format(time.DateTime), "DATA": printable(r.Data),
	}
	cells := make([]string, len(order))
	for i, name := range order {
		cells[i] = all[name]
	}
	return cells
}

// printable shows data that may be anything: a terminal obeys control characters.
func printable(data string) string {
	plain := func(r rune) bool { return r != utf8.RuneError && strconv.IsPrint(r) }
	if strings.IndexFunc(data, func(r rune) bool { return !plain(r) }) < 0 {
		return data
	}
	return strconv.Quote(data)
}
