package recipes

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// Multi does several operations in one transaction: all of them, or none. Each is a
// *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest
// with a path below the chroot; anything else is refused with zk.ErrBadArguments before
// anything is sent. The operations are not changed.
//
// Multi returns a response for each operation, in their order, also if one of them fails:
// then those before it have no error, and those after it an error that only says that
// another one failed. The error that Multi returns is that of the operation that failed,
// or why the transaction has no outcome, or none that is known.
//
// For a transaction that is done only while a lock is held see [Hold.Multi]. The
// operation of [Hold.Check] is not for here where there is a chroot: its path is the
// server's.
func (c *Client) Multi(ops ...any) ([]zk.MultiResponse, error) {
	if err := c.over(); err != nil {
		return nil, err
	}
	located, err := eachOp(ops, c.locateNew)
	if err != nil {
		return nil, err
	}
	responses, err := c.zk.Multi(located...)
	for i, r := range responses {
		if r.String != "" {
			responses[i].String = c.clientPath(r.String)
		}
	}
	return responses, err
}

// eachOp returns a copy of the operations of a Multi in which each has the path that
// place gives it; flags are those of a create. It checks the paths, which zk sends as it
// gets them.
func eachOp(
	ops []any, place func(path string, flags int32) (string, error),
) ([]any, error) {
	check := func(path string, flags int32) (string, error) {
		name := path
		if flags&zk.FlagSequence != 0 {
			name += "0" // the number may be all that a name consists of
		}
		if err := zkpath.Check(name); err != nil {
			return "", err
		}
		return place(path, flags)
	}
	placed := make([]any, len(ops))
	for i, op := range ops {
		var err error
		if placed[i], err = placeOp(op, check); err != nil {
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
	switch op := op.(type) {
	case *zk.CreateRequest:
		to := *op
		to.Path, err = place(op.Path, op.Flags)
		return &to, err
	case *zk.DeleteRequest:
		to := *op
		to.Path, err = place(op.Path, 0)
		return &to, err
	case *zk.SetDataRequest:
		to := *op
		to.Path, err = place(op.Path, 0)
		return &to, err
	case *zk.CheckVersionRequest:
		to := *op
		to.Path, err = place(op.Path, 0)
		return &to, err
	}
	known := []string{"Create", "Delete", "SetData", "CheckVersion"}
	return nil, fmt.Errorf("want a *zk.%sRequest: %w",
		strings.Join(known, "Request, *zk."), zk.ErrBadArguments)
}
