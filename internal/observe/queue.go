package observe

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Queue is what an observer knows of one directory: where it is, and whose znodes stand
// in it. It has no state and is safe for concurrent use.
type Queue struct {
	Dir   string
	Kinds []string // whose znodes stand in the queue
	// what should not be in the directory; nil: nobody cares
	Lint *Lint
}

// Members returns the queue as the leader knows it, in order; a directory that does not
// exist is an empty queue.
func (q Queue) Members(ctx context.Context, conn *zkconn.Conn) ([]seqname.Name, error) {
	children, err := q.list(ctx, conn, true)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.Participants(children), nil
}

func (q Queue) list(
	ctx context.Context, conn *zkconn.Conn, sync bool,
) ([]string, error) {
	return calls.Call(ctx, conn, func() ([]string, error) {
		children, _, err := conn.List(q.Dir, sync)
		return children, err
	})
}

// Among returns those children of the directory that stand in the queue, in its order.
func (q Queue) Among(children []string) []seqname.Name {
	return seqname.Participants(children, q.Kinds)
}

// Participants is Among, and reports what else is there to the Lint.
func (q Queue) Participants(children []string) []seqname.Name {
	names := q.Among(children)
	q.Lint.Report(q.Dir, q.Lint.Foreign(children, q.Kinds, len(names)))
	return names
}

// Path returns the path of a member.
func (q Queue) Path(m seqname.Name) string { return zkpath.Join(q.Dir, m.Text) }
