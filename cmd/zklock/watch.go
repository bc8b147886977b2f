package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

func watchCommand(c *connection, stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "show who holds and who waits at PATH, and each change",
		UsageText: "zklock watch [FLAGS] PATH",
		Description: "In a terminal the queue is redrawn when it changes; q leaves. " +
			"Elsewhere, and\nwhere TERM is dumb or not set, each change is a line, " +
			"until nobody reads them. Nothing\nis polled. Of a long queue the first " +
			"1000 are shown.\n\n" + exitCodes,
		Metadata: map[string]any{"argument": "PATH"},
		Action: onPath(c, func(
			ctx context.Context, client *recipes.Client, path string,
		) error {
			if drawable() {
				return show(ctx, client, path)
			}
			return tell(ctx, client, path, stdout)
		}),
	}
}

// drawable tells whether standard output can be drawn on.
func drawable() bool {
	kind := os.Getenv("TERM")
	return kind != "" && kind != "dumb" && term.IsTerminal(int(os.Stdout.Fd()))
}

// A view is the queue at a moment.
type view struct {
	rows []queues.Row
	left int // participants beyond rows
	at   time.Time
	err  error // ZooKeeper could not be asked; rows are those of before
}

// follow calls f with the queue, now and at each change, until ctx is done or no retry
// mends what went wrong.
func follow(
	ctx context.Context, client *recipes.Client, path string, f func(view),
) error {
	watched := &watches{client: client, changed: map[string]<-chan zk.Event{
		path: nil, zkpath.Join(path, "/leases"): nil, zkpath.Join(path, "/locks"): nil,
	}}
	first := &head{Client: client, most: listMost, known: &readings{}}
	now := view{}
	for {
		now.at = time.Now()
		now.err = watched.renew()
		if now.err == nil {
			var rows []queues.Row
			var left int
			if rows, left, now.err = first.inspect(ctx, path); now.err == nil {
				now.rows, now.left = rows, left
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if now.err != nil && codeOf(now.err) != exitUnavailable {
			return now.err
		}
		f(now)
		watched.await(ctx, now.err != nil)
	}
}

// watches are those on the children of some directories, which may not exist.
type watches struct {
	client  *recipes.Client
	changed map[string]<-chan zk.Event // nil where there is none
}

// renew sets the watches that have been used up.
func (w *watches) renew() error {
	for dir, changed := range w.changed {
		for changed == nil {
			var err error
			_, _, changed, err = w.client.ChildrenW(dir)
			if !errors.Is(err, zk.ErrNoNode) {
				if err != nil {
					return unreadable(dir, err)
				}
				break
			}
			var exists bool
			exists, _, changed, err = w.client.Unwrap().ExistsW(w.client.ServerPath(dir))
			if err != nil {
				return err
			}
			if exists {
				changed = nil // made meanwhile
			}
		}
		w.changed[dir] = changed
	}
	return nil
}

// await returns when a watch tells of something, or ctx is done; where something is to be
// tried again, after a second at the latest.
func (w *watches) await(ctx context.Context, again bool) {
	timer := make(<-chan time.Time)
	if again {
		timer = time.After(time.Second)
	}
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer)},
	}
	var dirs []string
	for dir, changed := range w.changed {
		if changed != nil {
			dirs = append(dirs, dir)
			cases = append(cases, reflect.SelectCase{
				Dir: reflect.SelectRecv, Chan: reflect.ValueOf(changed),
			})
		}
	}
	if chosen, _, _ := reflect.Select(cases); chosen >= 2 {
		w.changed[dirs[chosen-2]] = nil
	}
}

// tell writes a line for each change.
func tell(
	ctx context.Context, client *recipes.Client, path string, to io.Writer,
) error {
	ctx, cancel, stop := withSignals(ctx)
	defer stop()
	go func() {
		awaitReader()
		cancel(unwritten(syscall.EPIPE))
	}()
	before := map[string]queues.Row{}
	silent := false
	err := follow(ctx, client, path, func(now view) {
		lines := changes(before, now.rows)
		switch {
		case now.err != nil && !silent:
			lines = append(lines, "ZooKeeper does not answer")
		case now.err == nil && silent:
			lines = append(lines, "ZooKeeper answers again")
		}
		silent = now.err != nil
		for _, line := range lines {
			_, err := fmt.Fprintf(to, "%s  %s\n", now.at.Format(time.DateTime), line)
			if err != nil {
				cancel(err)
			}
		}
	})
	return signalled(ctx, err)
}

// awaitReader returns when nobody reads what zklock writes: a pipe has no reader.
func awaitReader() {
	const stdout = 1
	out := []unix.PollFd{{Fd: stdout}} // errors alone
	for {
		n, err := unix.Poll(out, -1)
		if err != nil && !errors.Is(err, unix.EINTR) || n > 0 {
			return
		}
	}
}

// changes says what has changed since before, which becomes rows.
func changes(before map[string]queues.Row, rows []queues.Row) []string {
	var lines []string
	now := map[string]queues.Row{}
	for _, r := range rows {
		now[r.Node] = r
		if old, known := before[r.Node]; !known || old.State != r.State {
			lines = append(lines, fmt.Sprintf("%-5s  %s  %s  session %s  %s",
				r.State, r.Kind, text.Printable(r.Node), r.Session,
				text.Shorten(text.Printable(r.Data), dataMost)))
		}
	}
	var left []string
	for node, r := range before {
		if _, here := now[node]; !here {
			left = append(left, fmt.Sprintf("%-5s  %s  %s", "left", r.Kind,
				text.Printable(node)))
			delete(before, node)
		}
	}
	for node, r := range now {
		before[node] = r
	}
	return append(left, lines...)
}
