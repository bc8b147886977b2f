//go:build unix

package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A tree is the znodes of one server by their paths.
type tree map[string]znode

// A znode is told from another one of the same path by the transaction that made it.
type znode struct{ czxid, owner int64 }

// diverged looks for a znode that one server has and another has not, or has as another
// one, although both are up to date: "" where there is none. That is a defect of
// ZooKeeper, and no lock can be right on top of it. It is met with version 3.8.0, where a
// follower that has lost its leader comes back with a transaction that no quorum had:
// later ones have fixes of that kind (ZOOKEEPER-4712, ZOOKEEPER-4785). Two znodes of one
// sequence number, and waiters behind the one that is not there, are what comes of it.
//
// It needs the sessions of that time: when they end, so does what they have left.
func (e *ensemble) diverged(ctx context.Context) (difference string) {
	const pause, within = 100 * time.Millisecond, endWithin / 2
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(pause) { // until all servers are there
		before, err := e.trees(ctx)
		if err != nil {
			continue
		}
		if after, err := e.trees(ctx); err == nil {
			return lastingDifference(before, after)
		}
	}
	return ""
}

// trees asks the servers, one after the other.
func (e *ensemble) trees(ctx context.Context) (all []tree, err error) {
	for _, s := range e.Servers {
		t, err := treeOf(ctx, s.Addr)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// treeOf asks one server for all its znodes.
func treeOf(ctx context.Context, server string) (tree, error) {
	client, err := recipes.Connect(ctx, server, 2*time.Second)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, err := client.Sync("/"); err != nil {
		return nil, err
	}
	found := tree{}
	var walk func(path string) error
	walk = func(path string) error {
		children, stat, err := client.Children(path)
		switch {
		case errors.Is(err, zk.ErrNoNode): // it went meanwhile
			return nil
		case err != nil:
			return err
		}
		found[path] = znode{stat.Czxid, stat.EphemeralOwner}
		for _, name := range children {
			if err := walk(strings.TrimSuffix(path, "/") + "/" + name); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk("/")
}

// lastingDifference names a znode that a server had before and after another one, which
// was asked in between, had not; "" where there is none.
func lastingDifference(before, after []tree) string {
	for i := range before {
		for path, made := range before[i] {
			if after[i][path] != made {
				continue // it went
			}
			for k := range before {
				between := after[k]
				if k > i {
					between = before[k]
				}
				if k != i && between[path] != made {
					return fmt.Sprintf("server %d has %s of zxid %#x, session %#x, and "+
						"server %d has %#x (0: none)", i, path, made.czxid, made.owner, k,
						between[path].czxid)
				}
			}
		}
	}
	return ""
}

func TestLastingDifference(t *testing.T) {
	t.Parallel()
	has := func(made ...int64) tree {
		found := tree{"/": {}}
		for i, czxid := range made {
			found[string(rune('a'+i))] = znode{czxid: czxid}
		}
		return found
	}
	for name, c := range map[string]struct {
		before, after []tree
		differ        bool
	}{
		"all the same": {[]tree{has(1, 2), has(1, 2)}, []tree{has(1, 2), has(1, 2)}, false},
		"one more at the first": {
			[]tree{has(1, 2), has(1)}, []tree{has(1, 2), has(1)}, true,
		},
		"one more at the last": {
			[]tree{has(1), has(1, 2)}, []tree{has(1), has(1, 2)}, true,
		},
		"another of one path": {
			[]tree{has(1), has(2)}, []tree{has(1), has(2)}, true,
		},
		"it went":    {[]tree{has(1, 2), has(1)}, []tree{has(1), has(1)}, false},
		"it came":    {[]tree{has(1), has(1, 2)}, []tree{has(1, 2), has(1, 2)}, false},
		"made anew":  {[]tree{has(1), has(2)}, []tree{has(2), has(2)}, false},
		"seen later": {[]tree{has(), has()}, []tree{has(1), has()}, false},
	} {
		differ := lastingDifference(c.before, c.after) != ""
		require.Equal(t, c.differ, differ, name)
	}
}

func TestServersThatAgreeHaveNotDiverged(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "servers of an ensemble")
	e := startEnsemble(t, 1)
	require.Empty(t, e.diverged(t.Context()))
	all, err := e.trees(t.Context())
	require.NoError(t, err)
	require.Contains(t, all[2], "/zookeeper/config", "the whole tree is walked")
}
