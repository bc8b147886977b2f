package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// A Participant is a znode in a lock's queue. Of one that this session is not permitted
// to read, only Node, Kind and Holding are known; Session is 0.
type Participant struct {
	Node     string    // its full path
	Kind     string    // "lock", "read", "write", "lease" or "latch"
	Data     []byte    // its first 4 KiB at most: by default a host's address
	DataSize int       // how many bytes it holds
	Session  int64     // the ZooKeeper session that it lives in
	Since    time.Time // when it joined the queue, by the server's clock
	Holding  bool      // whether its turn has come
}

// dataKept is how much of a znode's data a Participant has. What a stranger may store
// there is up to a megabyte for each.
const dataKept = 4096

// String returns all that there is to tell, with the session as the servers' logs have
// it.
func (p Participant) String() string {
	state := "waiting"
	if p.Holding {
		state = "holding"
	}
	return fmt.Sprintf("%s: %s, %s, session %s, since %s, data %q", p.Node, p.Kind, state,
		sessionText(p.Session), p.Since.Format(time.RFC3339Nano), p.Data)
}

// latchName is what Curator calls the znodes of LeaderLatch.
const latchName = "latch-"

// kazooName is what the locks of kazoo call their znodes, and its writers; see WithNames.
const kazooName = "__lock__"

// kindOf is a Participant's Kind, by the name of its znode, where that is one of ours.
var kindOf = map[string]string{
	mutexName: "lock", readName: "read", writeName: "write", leaseName: "lease",
	latchName: "latch",
}

// isForeign tells whether a name is another library's.
func isForeign(name string) bool { return kindOf[name] == "" }

// kindBy is a Participant's Kind, by the name of any znode.
func kindBy(name string) string { return cmp.Or(kindOf[name], kindOf[mutexName]) }

// ParticipantNodes returns the full paths of the participants, in the order of the queue,
// as of now at the leader (Curator's getParticipantNodes). A lock that was never used has
// none.
func (r *reentrant) ParticipantNodes(ctx context.Context) ([]string, error) {
	if err := usable("participants of", r.where(), ctx); err != nil {
		return nil, err
	}
	return participantNodes(ctx, r.conn, r.config, r.queue)
}

func participantNodes(
	ctx context.Context, conn Conn, config session.Config, queue *seqnode.Queue,
) ([]string, error) {
	s := session.Use(conn, config)
	defer s.Release()
	members, err := queue.Members(ctx, s)
	if err != nil {
		return nil, wrap("participants of", queue.Dir, err)
	}
	nodes := make([]string, 0, len(members))
	for _, m := range members {
		writes := isForeign(m.Kind) && queue.Kind != readName
		if m.Kind == queue.Kind || writes {
			nodes = append(nodes, queue.Path(m))
		}
	}
	return nodes, nil
}

// Participants returns the whole queue, in order. It takes a read for each participant;
// those who leave meanwhile are not in it.
func (r *reentrant) Participants(ctx context.Context) ([]Participant, error) {
	if err := usable("participants of", r.where(), ctx); err != nil {
		return nil, err
	}
	s := session.Use(r.conn, r.config)
	defer s.Release()
	members, err := r.queue.Members(ctx, s)
	if err != nil {
		return nil, wrap("participants of", r.path, err)
	}
	seen, err := look(ctx, s, r.queue, members, r.queue.Rule)
	if err != nil {
		return nil, wrap("participants of", r.path, err)
	}
	return participantsOf(seen), nil
}

// A sight is a participant as it was read.
type sight struct {
	Participant
	czxid int64
}

func participantsOf(seen []sight) []Participant {
	found := make([]Participant, len(seen))
	for i, one := range seen {
		found[i] = one.Participant
	}
	return found
}

// looksAtOnce bounds the reads under way.
const looksAtOnce = 32

// look reads the members of a queue, in order, and judges by rule who holds. Those who
// leave meanwhile are left out.
func look(
	ctx context.Context, s *session.Session, q *seqnode.Queue, members []seqnode.Name,
	rule seqnode.Rule,
) ([]sight, error) {
	reads := make([]*session.Pending[sight], len(members))
	seen := make([]sight, 0, len(members))
	for i := range len(members) + looksAtOnce {
		if at := i - looksAtOnce; at >= 0 && at < len(members) {
			one, err := reads[at].Wait(ctx)
			switch {
			case err == nil:
				one.Kind = kindBy(members[at].Kind)
				one.Holding = rule(members[:at], members[at]) < 0
				seen = append(seen, one)
			case !errors.Is(err, zk.ErrNoNode):
				return nil, err
			}
		}
		if i < len(members) {
			reads[i] = lookAt(s, q.Path(members[i]))
		}
	}
	return seen, nil
}

func lookAt(s *session.Session, node string) *session.Pending[sight] {
	return session.Start(s, func() (sight, error) {
		data, stat, err := s.Get(node)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			return sight{Participant: Participant{Node: node}}, nil
		case err != nil:
			return sight{}, err
		}
		kept := data
		if len(data) > dataKept {
			kept = slices.Clone(data[:dataKept]) // or all of it would stay in memory
		}
		return sight{Participant: Participant{
			Node: node, Data: kept, DataSize: len(data), Session: stat.EphemeralOwner,
			Since: time.UnixMilli(stat.Ctime),
		}, czxid: stat.Czxid}, nil
	})
}
