package seqnode

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// listed is what a list was good for besides the facts that it told.
type listed struct {
	names   []seqname.Name // the participants, in order
	foreign string         // one of what should not be in the directory; "": nothing
}

// An answer is one to a list, and when that was asked for.
type answer struct {
	asked    order.Question
	epoch    order.Epoch
	children []string
	stat     *zk.Stat
	err      error
}

// children lists the directory.
func (q *Queue) children(
	s *zkconn.Conn, asked order.Question, epoch order.Epoch,
) answer {
	a := answer{asked: asked, epoch: epoch}
	a.children, a.stat, a.err = s.Children(q.Dir)
	return a
}
