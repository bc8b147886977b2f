package recipes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A count that was deleted to be set again is there again within this time; it is looked
// for as often as lookForCount says.
const (
	countIsBackWithin = time.Second
	lookForCount      = 50 * time.Millisecond
)

// A sharedCount is the znode with a shared maximum, for one call that acquires leases.
type sharedCount struct {
	use    *zkconn.Conn
	path   string
	single bool // of a single attempt, which does not wait for one that is missing
}

// read is a leases.Maximum. It reads the count each time, as the leader knows it: with an
// old one, more leases might be granted than there are. A count that is missing it looks
// for until countIsBackWithin is over. If ctx ends before that, the error says that the
// count is missing, too.
func (c *sharedCount) read(
	ctx context.Context, watch bool,
) (most int, changed <-chan zk.Event, err error) {
	began := time.Now()
	most, changed, err = c.readOnce(ctx, watch)
	for isMissing(err) && !c.single && time.Since(began) < countIsBackWithin {
		missing := c.failed(err)
		if err = c.use.Pause(ctx, lookForCount); err == nil {
			most, changed, err = c.readOnce(ctx, watch)
		}
		if outcome.Cancellation(err) != nil {
			return 0, nil, fmt.Errorf("%w; %w", missing, err)
		}
	}
	if err != nil {
		return 0, nil, c.failed(err)
	}
	return most, changed, nil
}

func (c *sharedCount) readOnce(
	ctx context.Context, watch bool,
) (most int, changed <-chan zk.Event, err error) {
	if watch { // first, so that no change goes unseen
		if changed, err = c.use.Watch(ctx, c.path); err != nil {
			return 0, nil, err
		}
	}
	data, err := calls.Call(ctx, c.use, func() ([]byte, error) {
		if err := c.use.Sync(c.path); err != nil {
			return nil, err
		}
		data, _, err := c.use.Get(c.path)
		return data, err
	})
	if err == nil {
		most, err = parseCount(data)
	}
	return most, changed, err
}

func isMissing(err error) bool { return errors.Is(err, zk.ErrNoNode) }

// failed says why the count could not be read.
func (c *sharedCount) failed(err error) error {
	path := zkpath.Brief(c.path)
	if isMissing(err) {
		return fmt.Errorf("shared count %s: %w; create it with SetSharedCount", path, err)
	}
	return fmt.Errorf("shared count %s: %w", path, err)
}

// parseCount reads what Curator's SharedCount writes: a big-endian int32.
func parseCount(data []byte) (int, error) {
	if len(data) != 4 {
		return 0, fmt.Errorf(
			"%w: %d bytes are no big-endian int32", zk.ErrBadArguments, len(data),
		)
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}

// SetSharedCount creates or sets the znode with a shared maximum, 1 to 2147483647. It
// survives an outage until ctx is done; then the error matches ErrUnavailable: the
// maximum may have been set, or may still be set a moment later. WithACL sets the ACL of
// the znodes that it creates; else anyone may change the maximum. Other options are
// errors.
//
// Without that znode, Acquire's error wraps zk.ErrNoNode. Acquire looks for the znode for
// up to a second, since it may be deleted to be set again; a single attempt looks once.
func SetSharedCount(
	ctx context.Context, conn Conn, countPath string, maximum int, opts ...Option,
) error {
	const op = "set shared count"
	settings, err := build(conn, countPath, opts)
	if err == nil {
		err = cmp.Or(notNil(ctx), onlyACL(opts))
	}
	if err == nil && (maximum < 1 || maximum > math.MaxInt32) {
		err = fmt.Errorf("maximum: %d is not between 1 and %d", maximum, math.MaxInt32)
	}
	if err != nil {
		return refuse(op, countPath, err)
	}
	//nolint:gosec // it was checked above
	data := binary.BigEndian.AppendUint32(nil, uint32(maximum))
	use := zkconn.Use(conn, settings.sessionConfig(conn))
	defer use.Release()
	dir := znode.NewDir(use, zkpath.Parent(countPath), settings.acl)
	err = use.Retry(ctx, func() error {
		return setOrCreate(ctx, use, dir, countPath, data, settings.acl)
	})
	if err != nil {
		dir.Unmake(ctx)
	}
	return wrapAsked(op, countPath, err)
}

// onlyACL returns an error for options that set anything but the ACL.
func onlyACL(opts []Option) error {
	var s settings
	_ = apply(&s, opts) // which build has done
	s.acl, s.restricted = nil, false
	if !reflect.ValueOf(s).IsZero() {
		return errors.New("options: a shared count accepts only WithACL")
	}
	return nil
}

// errChangedMeanwhile says that what was missing is there now, or the other way round, by
// somebody else's doing.
var errChangedMeanwhile = errors.New("it was created, or its parent deleted, meanwhile")

// setOrCreate sets the data of a znode, which it creates in dir where it is missing.
func setOrCreate(
	ctx context.Context, use *zkconn.Conn, dir *znode.Dir, path string, data []byte,
	acl []zk.ACL,
) error {
	_, err := calls.Call(
		ctx, use, func() (*zk.Stat, error) { return use.Set(path, data, -1) },
	)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	hasParent := zkpath.Parent(path) != "/"
	if hasParent {
		if err := dir.Make(ctx); err != nil {
			return err
		}
	}
	_, err = calls.Call(ctx, use, func() (string, error) {
		return use.Create(path, data, zk.FlagPersistent, acl)
	})
	if errors.Is(err, zk.ErrNodeExists) || hasParent && errors.Is(err, zk.ErrNoNode) {
		return errChangedMeanwhile
	}
	return err
}
