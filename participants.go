package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// A Participant is a znode in a lock's queue.
type Participant struct {
	Node    string    // its full path
	Data    []byte    // what it holds: by default the address of the host that made it
	Session int64     // the ZooKeeper session that it lives in
	Since   time.Time // when it joined the queue, by the server's clock
	Holding bool      // whether its turn has come
}

// ParticipantNodes returns the full paths of the participants, in the order of the queue, as of now at the leader (Curator's
// getParticipantNodes). A lock that was never used has none.
func (r *reentrant) ParticipantNodes(ctx context.Context) ([]string, error) {
	return participantNodes(ctx, r.conn, r.config, r.queue)
}

func participantNodes(ctx context.Context, conn Conn, config session.Config, queue *seqnode.Queue) ([]string, error) {
	s := session.Use(conn, config)
	defer s.Done()
	members, err := queue.Members(ctx, s)
	if err != nil {
		return nil, wrap("participants of", queue.Dir, err)
	}
	nodes := make([]string, 0, len(members))
	for _, m := range members {
		if m.Kind == queue.Kind {
			nodes = append(nodes, queue.Path(m))
		}
	}
	return nodes, nil
}

// participantsAtOnce bounds the reads under way.
const participantsAtOnce = 32

// Participants returns the whole queue, in order. It takes a read for each participant; those who leave meanwhile are not in it.
func (r *reentrant) Participants(ctx context.Context) ([]Participant, error) {
	const op = "participants of"
	s := session.Use(r.conn, r.config)
	defer s.Done()
	members, err := r.queue.Members(ctx, s)
	if err != nil {
		return nil, wrap(op, r.path, err)
	}
	reads := make([]*session.Pending[Participant], len(members))
	found := make([]Participant, 0, len(members))
	for i := range len(members) + participantsAtOnce {
		if at := i - participantsAtOnce; at >= 0 && at < len(members) {
			p, err := reads[at].Wait(ctx)
			switch {
			case err == nil:
				found = append(found, p)
			case !errors.Is(err, zk.ErrNoNode):
				return nil, wrap(op, r.path, err)
			}
		}
		if i < len(members) {
			reads[i] = r.participant(s, members, i)
		}
	}
	return found, nil
}

func (r *reentrant) participant(s *session.Session, members []seqnode.Name, i int) *session.Pending[Participant] {
	node, holding := r.queue.Path(members[i]), r.queue.Rule(members, i) < 0
	return session.Start(s, func() (p Participant, err error) {
		err = s.Observe(func() error {
			data, stat, err := r.conn.Get(node)
			if err == nil {
				p = Participant{Node: node, Data: data, Session: stat.EphemeralOwner, Since: time.UnixMilli(stat.Ctime), Holding: holding}
			}
			return err
		})
		return p, err
	})
}
