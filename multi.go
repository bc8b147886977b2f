package recipes

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// eachOp returns a copy of the operations of a Multi in which each has the path that
// place gives it; flags are those of a create. It checks the paths, which zk sends as it
// gets them.
func eachOp(
	ops []any, place func(path string, flags int32) (string, error),
) ([]any, error) {
	placed := make([]any, len(ops))
	for i, op := range ops {
		var err error
		if placed[i], err = placeOp(op, place); err != nil {
			return nil, fmt.Errorf("operation %d, %T: %w", i, op, err)
		}
	}
	return placed, nil
}

func placeOp(
	op any, place func(path string, flags int32) (string, error),
) (placed any, err error) {
	if v := reflect.ValueOf(op); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("is nil: %w", zk.ErrBadArguments)
	}
	placed, path, flags, _ := copyOp(op)
	if placed == nil {
		known := []string{"Create", "Delete", "SetData", "CheckVersion"}
		return nil, fmt.Errorf("want a *zk.%sRequest: %w",
			strings.Join(known, "Request, *zk."), zk.ErrBadArguments)
	}
	name := *path
	if flags&zk.FlagSequence != 0 {
		name += "0" // the number may be all that a name consists of
	}
	if err := zkpath.Check(name); err != nil {
		return nil, err
	}
	*path, err = place(*path, flags)
	return placed, err
}

// copyOp returns a copy of an operation, where its path stands, a create's flags, and
// what it does, for errors; nil: it is no operation.
func copyOp(op any) (placed any, path *string, flags int32, does string) {
	switch op := op.(type) {
	case *zk.CreateRequest:
		to := *op
		return &to, &to.Path, op.Flags, "create"
	case *zk.DeleteRequest:
		to := *op
		return &to, &to.Path, 0, "delete"
	case *zk.SetDataRequest:
		to := *op
		return &to, &to.Path, 0, "set"
	case *zk.CheckVersionRequest:
		to := *op
		return &to, &to.Path, 0, "check"
	}
	return nil, nil, 0, ""
}

// Multi executes ops, those of [Client.Multi], in one transaction if the lock is still
// held, and returns one response for each. Otherwise nothing is done, and the error
// matches ErrLockLost, or ErrNotOwner after Release. Use it to write to ZooKeeper itself:
// it does nothing while another owner holds the lock, even if this process cannot know of
// its loss yet, so it needs no fencing token. If an op fails, none is done; the error
// wraps its error and says which one it was. If the connection breaks before the answer,
// the error says that the outcome is unknown and matches zk.ErrConnectionClosed: read
// what was to be written. After any other error nothing was done. A multi lock's members
// must all be held, on one Conn.
func (h *Hold) Multi(ops ...any) ([]zk.MultiResponse, error) {
	responses, err := h.multi(ops)
	return responses, wrap("multi under", h.name(), err)
}

func (h *Hold) multi(ops []any) ([]zk.MultiResponse, error) {
	switch {
	case h.isZero():
		return nil, errZeroHold
	case h.isPartReleased():
		return nil, cmp.Or(h.Err(), errReleased)
	}
	grants := h.each()
	conn, err := connOf(grants)
	if err != nil {
		return nil, err
	}
	// Here, so that what the client refuses to send does not look like a lost connection.
	asGiven := func(path string, _ int32) (string, error) { return path, nil }
	if _, err := eachOp(ops, asGiven); err != nil {
		return nil, err
	}
	unguard, err := guardAll(grants)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, held := range grants {
		all = append(all, &zk.CheckVersionRequest{
			Path: held.path(), Version: held.node.Version(),
		})
	}
	responses, err := conn.Multi(append(all, ops...)...)
	failed := slices.IndexFunc(responses, func(r zk.MultiResponse) bool {
		return r.Error != nil
	})
	if err == nil || failed >= 0 || outcome.NotDone(err) {
		unguard()
	}
	switch {
	case err == nil:
		return responses[len(grants):], nil
	case failed >= len(grants):
		at := failed - len(grants)
		_, path, _, does := copyOp(ops[at])
		return responses[len(grants):], fmt.Errorf(
			"operation %d, %s %s: %w", at, does, *path, err,
		)
	case failed >= 0:
		return nil, grants[failed].checkFailed(conn, err)
	case outcome.NotDone(err):
		return nil, err
	}
	if !errors.Is(err, zk.ErrConnectionClosed) { // it may be the network's own
		err = fmt.Errorf("%w: %w", zk.ErrConnectionClosed, err)
	}
	return nil, fmt.Errorf("outcome unknown: no response received: %w", err)
}

// connOf returns the one connection of all grants.
func connOf(grants []*grant) (Conn, error) {
	conn := grants[0].reporter.conn
	for _, held := range grants {
		if held.reporter.conn != conn {
			return nil, errors.New(
				"the members of the multi lock are on several connections",
			)
		}
	}
	return conn, nil
}

// guardAll lets nobody have a lock of grants, on whose znodes a transaction depends,
// before its outcome is known or those znodes are gone: an owner of this process would
// not wait for that. Where the outcome stays unknown the request may still be on its way
// to the leader.
func guardAll(grants []*grant) (unguard func(), err error) {
	var each []func()
	unguard = func() {
		for _, f := range each {
			f()
		}
	}
	for _, held := range grants {
		one, ok := held.node.Guard()
		if !ok {
			unguard()
			return nil, held.heldNow()
		}
		each = append(each, one)
		if err := held.heldNow(); err != nil {
			unguard()
			return nil, err
		}
	}
	return unguard, nil
}

// heldNow tells why what one znode stood for is not held any more, as far as this
// process knows.
func (g *grant) heldNow() error {
	if err := g.err(); err != nil {
		return err
	}
	if g.node.Cause() != nil {
		return ErrNotOwner
	}
	return nil
}

// checkFailed tells what it means that the check of g's znode failed. A znode that is
// gone is a loss, if this process did not delete it itself; its owner need not wait to be
// told.
func (g *grant) checkFailed(conn Conn, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("check %s: %w (the session lacks READ on it)", g.path(), err)
	case errors.Is(err, zk.ErrBadVersion):
		return fmt.Errorf("check %s: %w (its data was changed, or it is another's by "+
			"now; try again if Err is nil)", g.path(), err)
	case !errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("check %s: %w", g.path(), err)
	}
	if err := g.heldNow(); err != nil {
		return err
	}
	cause := znode.ErrGone
	if conn.SessionID() != g.node.Session() {
		cause = outcome.ErrSessionEnded
	}
	g.node.Lose(cause)
	return &loss{g.path(), cause}
}
