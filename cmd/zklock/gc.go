package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutGC = `It is for lock paths from servers before 3.5, which have no container
znodes: there an empty lock path remains forever. It lists the znodes below ROOT that are
empty and persistent, have had children, and are older than --age. Nothing tells a lock
path from another program's empty znode: look at the list before you give --delete.

With --delete it deletes them one by one, each on condition that it has not changed. It
deletes nothing that has children or data, and neither ROOT nor anything outside. What is
left out, and named on standard error: what may not be read, and a znode on which the
parent's ACL grants somebody less than on the parent: whoever may create there would own
the next znode of that name. An ACL that keeps others out is worth keeping.

`

// A sweep is one "zklock gc".
type sweep struct {
	stdout, stderr io.Writer
	age            time.Duration
	delete         bool

	client *recipes.Client
	root   string
	looked int
	left   int // znodes that were not looked at
}

func gcCommand(c *connection, stdout, stderr io.Writer) *cli.Command {
	s := &sweep{stdout: stdout, stderr: stderr}
	return &cli.Command{
		Name:        "gc",
		Usage:       "list, or delete, empty lock paths below ROOT that no server reaps",
		UsageText:   "zklock gc [FLAGS] ROOT",
		Description: aboutGC + exitCodes,
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name: "delete", Destination: &s.delete, Usage: "delete them",
			},
			&cli.DurationFlag{
				Name: "age", Destination: &s.age, Value: 24 * time.Hour,
				Usage: "leave out what was created, or written, within `DURATION`",
			},
		},
		Metadata: map[string]any{"argument": "ROOT"},
		Action: onPath(c, func(
			ctx context.Context, client *recipes.Client, root string,
		) error {
			if s.age < 0 {
				return usage("--age %v: is negative", s.age)
			}
			s.client, s.root = client, root
			children, err := s.children(root)
			if err == nil {
				err = s.below(ctx, root, children)
			}
			if s.left > 0 {
				s.skip(root, fmt.Errorf("%d znodes, and what is below them, were not "+
					"looked at: give a ROOT further down", s.left))
			}
			return err
		}),
	}
}

// sweepMost bounds how many znodes are looked at.
const sweepMost = 100_000

func (s *sweep) below(ctx context.Context, dir string, children []string) error {
	slices.Sort(children)
	for i, child := range children {
		node := zkpath.Join(dir, "/"+child)
		if node == "/zookeeper" {
			continue
		}
		if s.looked++; s.looked > sweepMost {
			s.left += len(children) - i
			return nil
		}
		if err := s.one(ctx, dir, node); err != nil {
			return err
		}
	}
	return nil
}

// one looks at what is below a znode, and then at the znode.
func (s *sweep) one(ctx context.Context, dir, node string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	children, err := s.children(node)
	if err != nil {
		return s.unless(node, err)
	}
	if err := s.below(ctx, node, children); err != nil {
		return err
	}
	exists, stat, err := s.client.Unwrap().Exists(s.client.ServerPath(node))
	if err != nil || !exists || !s.empty(stat) {
		return err
	}
	keeps, err := s.keepsOut(dir, node)
	if err != nil {
		return s.unless(node, err)
	}
	if keeps {
		s.skip(node, errors.New("is left: its ACL is stricter than that of its parent"))
		return nil
	}
	what := "empty"
	if s.delete {
		switch err := s.client.Delete(node, stat.Version); {
		case err == nil:
			what = "deleted"
		case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion),
			errors.Is(err, zk.ErrNoNode):
			return nil // somebody uses it
		default:
			return s.unless(node, err)
		}
	}
	_, err = fmt.Fprintf(s.stdout, "%s: %s, created %s\n", text.Printable(node), what,
		time.UnixMilli(stat.Ctime).Local().Format(time.DateTime))
	return err
}

// empty tells whether a znode is one that a lock can have left: no server deletes it, it
// has neither data nor children, but has had children.
func (s *sweep) empty(stat *zk.Stat) bool {
	written := time.UnixMilli(max(stat.Ctime, stat.Mtime))
	return stat.EphemeralOwner == 0 && stat.NumChildren == 0 && stat.DataLength == 0 &&
		stat.Cversion > 0 && time.Since(written) >= s.age
}

// keepsOut tells whether a znode grants somebody less than its parent does.
func (s *sweep) keepsOut(dir, node string) (bool, error) {
	above, _, err := s.client.Unwrap().GetACL(s.client.ServerPath(dir))
	if err != nil {
		return false, err
	}
	own, _, err := s.client.Unwrap().GetACL(s.client.ServerPath(node))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(above, func(entry zk.ACL) bool {
		return queues.Missing(entry, own) != 0
	}), nil
}

// children is empty for a znode that has gone.
func (s *sweep) children(node string) ([]string, error) {
	children, _, err := s.client.Children(node)
	if errors.Is(err, zk.ErrNoNode) && node != s.root {
		err = nil
	}
	return children, err
}

// unless skips a znode that may not be read.
func (s *sweep) unless(node string, err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		s.skip(node, err)
		return nil
	}
	return err
}

func (s *sweep) skip(node string, why error) {
	say(s.stderr, fmt.Sprintf("gc %s: %v", node, why))
}
