package recipes

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/registration"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// GroupMember is a member of a group, as Curator's recipe of that name: a
// [PersistentNode] at path/id, whose data is the member's payload. Use it if others look
// for all processes of one kind; they call [Members] or [WatchMembers]. Java members see
// it, and are seen.
type GroupMember struct {
	node *PersistentNode
	id   string
}

// NewGroupMember returns the member id of the group at path. The options are those of
// [NewPersistentNode]. An id that is no name of a znode is an error.
func NewGroupMember(
	conn Conn, path, id string, data []byte, opts ...Option,
) (*GroupMember, error) {
	const op = "NewGroupMember"
	if _, err := build(conn, path, opts); err != nil {
		return nil, refuse(op, path, err)
	}
	if err := checkID(id); err != nil {
		return nil, wrap(op, path, err)
	}
	n, err := newPersistentNode(conn, zkpath.Join(path, id), data, opts)
	if err != nil {
		return nil, wrap(op, path, err)
	}
	return &GroupMember{n, id}, nil
}

// checkID refuses what is no name of a znode.
func checkID(id string) error {
	if id == "" || strings.Contains(id, "/") {
		return fmt.Errorf("id: %q is no name of a znode: it must not be empty, or have "+
			"a \"/\"", id)
	}
	if err := zkpath.Check("/" + id); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	return nil
}

// inner is nil of a nil GroupMember, and of a zero one.
func (m *GroupMember) inner() *PersistentNode {
	if m == nil {
		return nil
	}
	return m.node
}

// ID returns the member's id.
func (m *GroupMember) ID() string {
	if m == nil {
		return ""
	}
	return m.id
}

// Path returns the path of the member's znode.
func (m *GroupMember) Path() string { return m.inner().Path() }

// Start joins the group in the background, as [PersistentNode.Start] does.
func (m *GroupMember) Start() { m.inner().Start() }

// Await joins the group, and waits for that, as [PersistentNode.Await] does.
func (m *GroupMember) Await(ctx context.Context) error { return m.inner().Await(ctx) }

// Hold returns the hold behind the membership, as [PersistentNode.Hold] does.
func (m *GroupMember) Hold() *Hold { return m.inner().Hold() }

// SetData sets the payload, as [PersistentNode.SetData] does.
func (m *GroupMember) SetData(ctx context.Context, data []byte) error {
	return m.inner().SetData(ctx, data)
}

// Close leaves the group, as [PersistentNode.Close] does.
func (m *GroupMember) Close(ctx context.Context) error { return m.inner().Close(ctx) }

// A Member is a child of a group's znode. If it is not ephemeral, Session is 0.
type Member struct {
	ID      string    // the name of its znode
	Data    []byte    // all of it; nil if it is longer than WithMaxReply allows
	Session int64     // the ZooKeeper session that it lives in
	Since   time.Time // when it was created, by the server's clock
}

// String returns all fields, with the session as in the servers' logs.
func (m Member) String() string {
	return fmt.Sprintf("%s: session %s, since %s, data %q", m.ID, sessionText(m.Session),
		m.Since.Format(time.RFC3339Nano), m.Data)
}

// Members returns the members of the group at path, by id, as the leader has it now. A
// group that does not exist has none. It sends a sync, a list, and a read for each
// member; those that leave meanwhile are not included. The session needs READ on the
// group and on each member.
func Members(ctx context.Context, conn Conn, path string) ([]Member, error) {
	const op = "members of"
	use, err := lookAtGroup(ctx, conn, path)
	if err != nil {
		return nil, refuse(op, path, err)
	}
	defer use.Release()
	found, err := registration.Members(ctx, use, path)
	if err != nil {
		return nil, wrapAsked(op, path, err)
	}
	return membersOf(found), nil
}

// WatchMembers yields the members of the group at path, by id, now and at each change: a
// join, a leave, a change of data. It joins nothing and creates no znode; while the group
// does not exist it yields no members. It blocks between changes. Those that come faster
// than they are read are merged: the last value is eventually true. It lists the group at
// most ten times a second, and makes at most a thousand reads a second. A change of data
// that was longer than WithMaxReply allows is not seen before the next reconnect.
//
// The loop survives outages and ended sessions, silently, and ends with ctx. A permanent
// error, such as a closed connection, is yielded last. A loop that is left leaves only
// its watches, which all readers of a connection share: one on the group, and one on each
// member.
func WatchMembers(
	ctx context.Context, conn Conn, path string,
) iter.Seq2[[]Member, error] {
	const op = "members of"
	return func(yield func([]Member, error) bool) {
		use, err := lookAtGroup(ctx, conn, path)
		if err != nil {
			yield(nil, refuse(op, path, err))
			return
		}
		defer use.Release()
		err = registration.Watch(ctx, use, path, func(now []registration.Member) bool {
			return yield(membersOf(now), nil)
		})
		if err != nil && ctx.Err() == nil {
			yield(nil, wrapAsked(op, path, err))
		}
	}
}

// lookAtGroup returns the connection of one who looks at a group.
func lookAtGroup(ctx context.Context, conn Conn, path string) (*zkconn.Conn, error) {
	settings, err := build(conn, path, nil)
	switch {
	case err != nil:
		return nil, err
	case ctx == nil:
		return nil, errNilCtx
	}
	return zkconn.Use(conn, settings.sessionConfig(conn)), nil
}

func membersOf(found []registration.Member) []Member {
	members := make([]Member, len(found))
	for i, m := range found {
		members[i] = Member{
			ID: m.Name, Data: slices.Clone(m.Data), Session: m.Stat.EphemeralOwner,
			Since: time.UnixMilli(m.Stat.Ctime),
		}
	}
	return members
}
