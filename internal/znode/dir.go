package znode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Dir is a directory that is made where it is missing, with its parents, and taken back
// by who made it and then had no use for it: servers before ZOOKEEPER-4915 reap no
// container that never had a child. One whose maker has run out of time is taken back
// later, unless somebody uses it by then. It is of one goroutine.
type Dir struct {
	conn *zkconn.Conn
	path string
	acl  []zk.ACL
	made []string // what is there by our doing, a parent before its child
}

// NewDir sends no request.
func NewDir(conn *zkconn.Conn, path string, acl []zk.ACL) *Dir {
	return &Dir{conn: conn, path: path, acl: acl}
}

// Make creates the directory and its parents as containers, or as plain znodes where the
// server has no containers. One that is there already is no error. If ctx is cancelled
// before its time is over (RanOut), nothing is left behind that is empty. A caller who
// has run out of time comes again, with no more time than that: the directory is created
// to its end, and stays for a while, or far from the servers no attempt would ever
// succeed.
func (d *Dir) Make(ctx context.Context) error {
	making := calls.Start(d.conn, func() (made []string, err error) {
		err = d.make(ctx, d.path, &made)
		return made, err
	})
	_, err := making.Wait(ctx)
	select {
	case <-making.Done(): // also after an error, of which a part is there
		made, err := making.Wait(ctx)
		d.made = append(d.made, made...)
		return err
	default: // the caller leaves
		making.Then(d.conn, func(made []string, err error) {
			if err == nil && RanOut(ctx) {
				d.keepForNext()
			}
			d.unmake(made)
		})
		return err
	}
}

// ErrTimeOver is the cause of a ctx that is cancelled on behalf of one who has run out of
// time.
var ErrTimeOver = errors.New("the time is over")

// RanOut tells whether ctx is done since the time was over, and not since its owner wants
// nothing more.
func RanOut(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		errors.Is(context.Cause(ctx), ErrTimeOver)
}

// nextWithin is how long a directory waits for the next attempt of one who had too little
// time.
const nextWithin = time.Minute

// keepForNext returns once the next attempt had its time, or the connection is closed.
func (d *Dir) keepForNext() { _ = d.conn.Pause(context.Background(), nextWithin) }

// make goes from the bottom up: it may have no permission above what exists.
func (d *Dir) make(ctx context.Context, path string, made *[]string) error {
	if ctx.Err() != nil && !RanOut(ctx) {
		return outcome.Cancelled(ctx)
	}
	switch err := d.conn.CreateContainer(path, d.acl); {
	case err == nil:
		*made = append(*made, path)
		return nil
	// after a lost answer it is unknown who created it
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case outcome.Unimplemented(err):
		// the server has closed the connection; the next try makes no container
		return errNotCreated
	case errors.Is(err, zk.ErrNoNode):
		parent := zkpath.Parent(path)
		if parent == "/" {
			return fmt.Errorf("the root is missing: %w", err)
		}
		if err := d.make(ctx, parent, made); err != nil {
			return err
		}
		return d.make(ctx, path, made) // the parent may be gone again by then
	default:
		return err
	}
}

// Unmake deletes what Make made and nobody uses: of a caller who has run out of time, as
// Make says. What cannot be deleted within the time that a caller can spare whose wait
// has ended is deleted in the background.
func (d *Dir) Unmake(ctx context.Context) {
	if len(d.made) == 0 {
		return
	}
	made, keep := d.made, RanOut(ctx)
	d.made = nil
	unmaking := calls.Start(d.conn, func() (struct{}, error) {
		if keep {
			d.keepForNext()
		}
		d.unmake(made)
		return struct{}{}, nil
	})
	if keep {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LeaveWithin)
	defer cancel()
	_, _ = unmaking.Wait(ctx)
}

// unmake goes from the bottom up as far as nobody else is there. Who comes just now finds
// the directory missing, as if the server had reaped it, and makes it again. Data that
// somebody has set there meanwhile (the version is 0 no more) is not ours to delete. A
// delete that the rights do not allow is tried again in the background, until the session
// ends: they may come back.
func (d *Dir) unmake(made []string) {
	if len(made) == 0 {
		return
	}
	session, last := d.conn.SessionID(), len(made)-1
	try := func() error {
		switch err := d.conn.Delete(made[last], 0); {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion):
			return outcome.Permanent(err) // it is in use
		default:
			return err
		}
	}
	err := d.conn.Retry(context.Background(), try)
	switch {
	case err == nil:
		d.unmake(made[:last])
	case outcome.Refused(err):
		calls.Start(d.conn, func() (none struct{}, _ error) {
			err := d.conn.Insist(context.Background(), func() error {
				if d.conn.SessionID() != session {
					return outcome.Permanent(outcome.ErrSessionEnded)
				}
				return try()
			})
			if err == nil {
				d.unmake(made[:last])
			}
			return none, err
		})
	}
}

// errNotCreated says that a create of unknown outcome has left no znode.
var errNotCreated = errors.New("the create did not reach the server")
