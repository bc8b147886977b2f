package acceptor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/acceptor"
)

const lock = "/lock-1"

// A tale is a trace that is written by hand. Znodes are named by their numbers, which are
// also their owners'; all are of client and session 1 unless another is told.
type tale struct {
	lines []acceptor.Line
	zxid  int64
}

func node(n int) string { return fmt.Sprintf("%s/%d-lock-%010d", lock, n, n) }

func (a *tale) add(l acceptor.Line) *tale {
	l.At = time.Duration(len(a.lines)) * time.Second
	a.lines = append(a.lines, l)
	return a
}

func (a *tale) owner(kind string, n int) *tale {
	return a.add(acceptor.Line{Kind: kind, Owner: n, Path: lock, Node: node(n)})
}

func (a *tale) commit(op, path string, session int64) *tale {
	a.zxid++
	return a.add(acceptor.Line{
		Kind: "committed", Op: op, Path: path, Session: session, Zxid: a.zxid,
	})
}

// makes lets a client make a znode and wait for the lock.
func (a *tale) makes(client int, session int64, n int) *tale {
	a.owner("called", n)
	a.add(acceptor.Line{
		Kind: "sent", Client: client, Op: "create", Path: node(n)[:len(node(n))-10],
	})
	return a.commit("create", node(n), session).owner("queued", n)
}

// asks lets a client get an answer, with a watch.
func (a *tale) asks(client int, op, path string) *tale {
	xid := int32(len(a.lines))
	a.add(acceptor.Line{Kind: "sent", Client: client, Op: op, Path: path, Xid: xid})
	return a.add(acceptor.Line{
		Kind: "answered", Client: client, Op: op, Path: path, Xid: xid, Watch: true,
		Zxid: a.zxid,
	})
}

func (a *tale) lists(client int) *tale     { return a.asks(client, "getChildren2", lock) }
func (a *tale) reads(n int) *tale          { return a.asks(1, "getData", node(n)) }
func (a *tale) hears(what, p string) *tale { return a.hearsLate(what, p, "") }

func (a *tale) hearsLate(what, path, late string) *tale {
	return a.add(acceptor.Line{
		Kind: "notified", Client: 1, Op: what, Path: path, Text: late,
	})
}

func (a *tale) granted(session int64, n int, token int64) *tale {
	return a.add(acceptor.Line{
		Kind: "granted", Owner: n, Path: lock, Node: node(n), Session: session,
		Token: token,
	})
}

// margin is that of the hold that was granted just before.
func (a *tale) margin() *tale {
	a.lines[len(a.lines)-1].Margin = time.Hour
	return a
}

// plain makes all clients plain connections.
func (a *tale) plain() *tale {
	for i := range a.lines {
		a.lines[i].Text = "plain"
	}
	return a
}

const deleted = "EventNodeDeleted"

// two are two owners of client 1, of whom the first holds the lock.
func two() *tale {
	a := (&tale{}).commit("create", lock, 0)
	return a.makes(1, 1, 1).makes(1, 1, 2).lists(1).granted(1, 1, 2)
}

// behind is an owner of client 1 behind another client's, who has left.
func behind(before func(*tale)) *tale {
	a := (&tale{}).commit("create", lock, 0)
	a.makes(2, 2, 1).lists(2).granted(2, 1, 2).makes(1, 1, 2).lists(1).reads(2)
	before(a)
	a.owner("releasing", 1).commit("delete", node(1), 2)
	return a.hears(deleted, node(1))
}

func nothing(*tale) {}

var tales = []struct {
	name, rejected string
	*tale
}{
	{"hand-over", "", two().owner("releasing", 1).reads(2).granted(1, 2, 3)},
	{
		"hand-over to an unwatched znode", "cannot know",
		two().owner("releasing", 1).granted(1, 2, 3),
	},
	{
		"listed after the hand-over", "",
		two().owner("releasing", 1).lists(1).granted(1, 2, 3),
	},
	{
		"a hand-over after a loss", "cannot know",
		two().owner("lost", 1).owner("releasing", 1).reads(2).granted(1, 2, 3),
	},
	{"no hand-over", "is held", two().reads(2).granted(1, 2, 3)},
	{"given up", "", two().makes(1, 1, 3).lists(1).reads(3).owner("releasing", 1).
		granted(1, 3, 4).owner("failed", 2)},
	{
		"given up, and granted", "give up",
		two().makes(1, 1, 3).lists(1).reads(3).owner("releasing", 1).
			granted(1, 3, 4).owner("releasing", 3).granted(1, 2, 3),
	},
	{"notification", "", behind(nothing).granted(1, 2, 3)},
	{"gone after its turn", "", behind(nothing).owner("removing", 2).
		commit("delete", node(2), 9).granted(1, 2, 3)},
	{"known before an outage", "cannot know", behind(func(a *tale) {
		a.asks(1, "connect", "")
	}).granted(1, 2, 3)},
	{"an outage that a plain connection does not show", "", behind(func(a *tale) {
		a.asks(1, "connect", "a").lists(1).reads(2)
		a.asks(1, "connect", "b").asks(1, "connect", "c").asks(1, "connect", "a")
	}).granted(1, 2, 3).plain()},
	{"an outage that it shows", "cannot know", behind(func(a *tale) {
		a.asks(1, "connect", "a").lists(1).reads(2).asks(1, "connect", "b")
	}).granted(1, 2, 3).plain()},
	{"the own znode has gone before", "cannot know", behind(func(a *tale) {
		a.owner("removing", 2).commit("delete", node(2), 9).hears(deleted, node(2))
	}).granted(1, 2, 3)},
	{"its data has changed", "cannot know", behind(func(a *tale) {
		a.hears("EventNodeDataChanged", node(2))
	}).granted(1, 2, 3)},
	{"late events", "cannot know", behind(func(a *tale) {
		a.hearsLate(deleted, node(1), "late")
	}).hearsLate(deleted, node(1), "late").granted(1, 2, 3)},
	{
		"a hand-over to another session", "cannot know",
		(&tale{}).commit("create", lock, 0).makes(1, 1, 1).lists(1).granted(1, 1, 2).
			makes(1, 5, 2).lists(1).reads(2).owner("releasing", 1).granted(5, 2, 3),
	},
	{
		"a hand-over to another client", "cannot know",
		(&tale{}).commit("create", lock, 0).makes(1, 1, 1).lists(1).granted(1, 1, 2).
			makes(2, 1, 2).lists(2).asks(2, "getData", node(2)).
			owner("releasing", 1).granted(1, 2, 3),
	},
	{"shown to be gone", "cannot know", two().owner("removing", 2).
		commit("delete", node(2), 9).hears(deleted, node(2)).
		asks(1, "getData", lock).owner("releasing", 1).granted(1, 2, 3)},
	{"gone before anybody left", "never its turn", behind(func(a *tale) {
		a.commit("close", "", 1)
	}).granted(1, 2, 3)},
	{
		"gone before the hand-over", "never its turn",
		two().reads(2).commit("delete", node(2), 1).owner("releasing", 1).
			granted(1, 2, 3),
	},
	{"another session", "of session", behind(nothing).granted(5, 2, 3)},
	{"a small token", "not greater", behind(nothing).granted(1, 2, 2)},
	{"by number", "", two().asks(1, "getData", lock).owner("releasing", 1).
		granted(1, 2, 3)},
	{
		"by number, with another between", "cannot know",
		(&tale{}).commit("create", lock, 0).asks(1, "getData", lock).makes(1, 1, 1).
			lists(1).granted(1, 1, 2).makes(2, 2, 2).makes(1, 1, 3).
			owner("releasing", 1).granted(1, 3, 4),
	},
	{
		"by number, in another directory", "cannot know",
		(&tale{}).commit("create", lock, 0).asks(1, "getData", lock).
			hears(deleted, lock).makes(1, 1, 1).makes(1, 1, 2).lists(1).
			granted(1, 1, 2).owner("releasing", 1).granted(1, 2, 3),
	},
	{
		"by number, from another directory", "cannot know",
		two().owner("releasing", 1).commit("delete", node(1), 1).
			commit("delete", node(2), 1).commit("delete", lock, 0).
			commit("create", lock, 0).asks(1, "getData", lock).makes(1, 1, 3).
			granted(1, 3, 9),
	},
	{"the margin", "margin", two().margin().owner("lost", 1).
		commit("delete", node(1), 1)},
	{"the margin is over", "", two().owner("lost", 1).commit("delete", node(1), 1)},
	{"the margin of another", "is held", behind(nothing).granted(1, 2, 3).margin().
		owner("lost", 2).makes(2, 2, 3).lists(2).granted(2, 3, 5)},
	{"a session that ends", "told before", two().commit("close", "", 1)},
	{"told before", "", two().owner("lost", 1).commit("close", "", 1)},
	{"a session that is ended", "", two().add(acceptor.Line{
		Kind: "expired", Session: 1,
	}).commit("close", "", 1)},
	{"deleted while it is held", "neither left nor", two().commit("delete", node(1), 1)},
	{"left behind", "is left", two().add(acceptor.Line{Kind: "over"})},
	{"closed by its client", "", behind(nothing).granted(1, 2, 3).margin().
		add(acceptor.Line{Kind: "closing", Session: 1}).owner("lost", 2).
		commit("close", "", 1).makes(2, 2, 3).lists(2).granted(2, 3, 5)},
	{"never told", "never told", two().owner("removing", 1).
		commit("delete", node(1), 9).commit("delete", node(2), 1).
		add(acceptor.Line{Kind: "over"})},
	{"no znode", "nobody has made", two().granted(1, 7, 9)},
}

func TestAccept(t *testing.T) {
	t.Parallel()
	for _, c := range tales {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := acceptor.Accept(c.lines)
			if c.rejected == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.rejected)
			require.NoError(t, acceptor.Accept(c.lines[:len(c.lines)-1]),
				"what comes before is rejected as well")
		})
	}
}
