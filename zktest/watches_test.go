package zktest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func fired(table *watchTable[string], events ...event) []string {
	var all []string
	table.trigger(events, func(who string, e event) {
		all = append(all, fmt.Sprintf("%s %d %s", who, e.kind, e.path))
	})
	return all
}

func TestWatchesFireOnce(t *testing.T) {
	table := newWatchTable[string]()
	table.add(watchData, "/a", "x")
	table.add(watchData, "/a", "x")
	table.add(watchChild, "/a", "x")
	table.add(watchChild, "/a", "y")
	table.add(watchData, "/a", "y")
	table.add(watchChild, "/a", "z")
	require.Equal(t, 5, table.count())
	require.Equal(
		t, []string{"x 4 /a", "y 4 /a", "z 4 /a"},
		fired(&table, event{kind: eventNodeChildrenChanged, path: "/a"}),
	)
	require.Equal(
		t, []string{"x 3 /a", "y 3 /a"},
		fired(&table, event{kind: eventNodeDataChanged, path: "/a"}),
	)
	require.Zero(t, table.count())
}

func TestDeletionIsHeardOnce(t *testing.T) {
	table := newWatchTable[string]()
	table.add(watchData, "/a", "x")
	table.add(watchChild, "/a", "x")
	table.add(watchChild, "/a", "y")
	table.add(watchChild, "/", "x")
	require.Equal(t, []string{"x 2 /a", "y 2 /a", "x 4 /"},
		fired(
			&table, event{kind: eventNodeDeleted, path: "/a"},
			event{kind: eventNodeChildrenChanged, path: "/"},
		))
	require.Zero(t, table.count())
}

func TestWatchersHearInTheOrderOfTheirWatches(t *testing.T) {
	table := newWatchTable[string]()
	var want []string
	for i := range 30 {
		who := fmt.Sprint("w", i)
		table.add(watchData, "/a", who)
		want = append(want, who+" 1 /a")
	}
	require.Equal(t, want, fired(&table, event{kind: eventNodeCreated, path: "/a"}))
}

func TestDroppedWatchersHearNothing(t *testing.T) {
	table := newWatchTable[string]()
	table.add(watchData, "/a", "x")
	table.add(watchData, "/a", "y")
	table.add(watchChild, "/b", "x")
	table.drop("x")
	require.Equal(t, 1, table.count())
	require.Equal(
		t, []string{"y 1 /a"}, fired(&table, event{kind: eventNodeCreated, path: "/a"}),
	)
}

func TestPersistentWatchesStay(t *testing.T) {
	table := newWatchTable[string]()
	table.persist(watchRecursive, "below", "/a")
	table.persist(watchPersistent, "here", "/a", "/a/b")
	table.add(watchData, "/a/b", "once")
	require.Equal(t, 7, table.count())
	require.Equal(t, []string{"below 3 /a/b", "here 3 /a/b", "once 3 /a/b"},
		fired(&table, event{kind: eventNodeDataChanged, path: "/a/b"}))
	require.Equal(t, []string{"below 2 /a/b", "here 2 /a/b", "here 4 /a"},
		fired(
			&table, event{kind: eventNodeDeleted, path: "/a/b"},
			event{kind: eventNodeChildrenChanged, path: "/a"},
		))
	require.Equal(t, 6, table.count())
	table.add(watchData, "/a", "below")
	require.Empty(t, fired(&table, event{kind: eventNodeCreated, path: "/a/c"}))
	require.True(t, table.remove(watchChild, "/a", "below"))
	require.False(t, table.remove(watchChild, "/a", "below"))
	require.Equal(t, 5, table.count())
}

func TestReadsSetWatches(t *testing.T) {
	b := newBench(t)
	_, err := b.write(opCreate, createRequest{
		path: "/closed", acl: []acl{{permWrite, identity{"world", "anyone"}}},
	})
	require.Equal(t, codeOK, err)
	for _, c := range []struct {
		op   opcode
		path string
		want []string
	}{
		{opExists, "/", []string{"0 /"}},
		{opExists, "/no", []string{"0 /no"}},
		{opExists, "/closed", []string{"0 /closed"}},
		{opGetData, "/", []string{"0 /"}},
		{opGetData, "/no", nil},
		{opGetData, "/closed", nil},
		{opGetChildren, "/", []string{"1 /"}},
		{opGetChildren2, "/", []string{"1 /"}},
		{opGetChildren2, "/no", nil},
	} {
		var set []string
		b.read(request{
			op: c.op, body: pathRequest{c.path, true},
		}, nil, func(kind watchKind, path string) {
			set = append(set, fmt.Sprintf("%d %s", kind, path))
		})
		require.Equal(t, c.want, set, "op %d %s", c.op, c.path)
		b.read(
			request{op: c.op, body: pathRequest{c.path, false}}, nil,
			func(watchKind, string) { t.Error("a watch nobody asked for") },
		)
	}
}

func TestRewatch(t *testing.T) {
	b := newBench(t)
	b.mustCreate("/old", 0)
	seen := b.zxid
	b.mustCreate("/new", 0)
	b.mustCreate("/old/x", 0)
	var set, missed []string
	all := []string{"/old", "/new", "/no"}
	for _, e := range b.rewatch(setWatchesRequest{
		relativeZxid: seen, data: all, exist: all, child: all,
	}, func(kind watchKind, path string) {
		set = append(set, fmt.Sprintf("%d %s", kind, path))
	}) {
		missed = append(missed, fmt.Sprintf("%d %s", e.kind, e.path))
	}
	require.Equal(
		t, []string{"3 /new", "2 /no", "1 /old", "1 /new", "4 /old", "4 /new", "2 /no"},
		missed,
	)
	require.Equal(t, []string{"0 /old", "0 /no"}, set)
}

// A znode's path is nobody's business who may not read it: ZOOKEEPER-4799.
func TestEventsAreForReaders(t *testing.T) {
	b := newBench(t)
	me := identity{"digest", "a:b"}
	_, err := b.write(opCreate, createRequest{path: "/mine", acl: []acl{{permAll, me}}})
	require.Equal(t, codeOK, err)
	require.False(t, b.events[0].mayHear(nil))
	require.True(t, b.events[0].mayHear([]identity{me}))
	require.True(t, b.events[1].mayHear(nil))
	missed := b.rewatch(setWatchesRequest{exist: []string{"/mine"}}, nil)
	require.True(t, missed[0].mayHear(nil))
}
