package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Participant is a znode in a lock's queue. If this session may not read it, only Node,
// Kind and Holding are known; Session is 0.
type Participant struct {
	Node     string    // its full path
	Kind     string    // "lock", "read", "write", "lease" or "latch"
	Data     []byte    // its first 4 KiB at most; see WithData
	DataSize int       // how many bytes it holds
	Session  int64     // the ZooKeeper session that it lives in; 0: none, see String
	Since    time.Time // when it joined the queue, by the server's clock
	Holding  bool      // whether its turn has come
}

// dataKept is how much of a znode's data a Participant has. What a stranger may store
// there is up to a megabyte for each.
const dataKept = 4096

// String returns all fields, with the session as in the servers' logs. If a znode that it
// could read belongs to no session, it says that nobody will remove it.
func (p Participant) String() string {
	state, session := "waiting", "session "+sessionText(p.Session)
	if p.Holding {
		state = "holding"
	}
	if p.Session == 0 && !p.Since.IsZero() {
		session = "no session: nobody will remove it"
	}
	return fmt.Sprintf("%s: %s, %s, %s, since %s, data %q", p.Node, p.Kind, state,
		session, p.Since.Format(time.RFC3339Nano), p.Data)
}

// latchName is what Curator calls the znodes of LeaderLatch.
const latchName = observe.LatchName

// isForeign tells whether a name is another library's.
func isForeign(name string) bool { return observe.KindOf(name) == "" }

// kindBy is a Participant's Kind, by the name of any znode.
func kindBy(name string) string {
	return cmp.Or(observe.KindOf(name), observe.KindOf(mutexName))
}

// ParticipantNodes is InterProcessMutex.ParticipantNodes.
func (r *reentrant) ParticipantNodes(ctx context.Context) ([]string, error) {
	if err := usable("participants of", r.where(), ctx); err != nil {
		return nil, err
	}
	return participantNodes(ctx, r.conn, r.config, r.queue)
}

func participantNodes(
	ctx context.Context, conn Conn, config zkconn.Config, queue *seqnode.Queue,
) ([]string, error) {
	use := zkconn.Use(conn, config)
	defer use.Release()
	members, err := queue.Observed().Members(ctx, use)
	if err != nil {
		return nil, wrapAsked("participants of", queue.Dir, err)
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

// Participants is InterProcessMutex.Participants.
func (r *reentrant) Participants(ctx context.Context) ([]Participant, error) {
	if err := usable("participants of", r.where(), ctx); err != nil {
		return nil, err
	}
	use := zkconn.Use(r.conn, r.config)
	defer use.Release()
	members, err := r.queue.Observed().Members(ctx, use)
	if err != nil {
		return nil, wrapAsked("participants of", r.path, err)
	}
	seen, err := readAll(ctx, use, r.queue.Observed(), members, r.queue.Excludes, nil)
	if err != nil {
		return nil, wrapAsked("participants of", r.path, err)
	}
	return participantsOf(seen), nil
}

// A reading is a participant as it was read.
type reading struct {
	Participant
	czxid int64
}

func participantsOf(seen []reading) []Participant {
	found := make([]Participant, len(seen))
	for i, one := range seen {
		found[i] = one.Participant
	}
	return found
}

// looksAtOnce bounds the reads under way.
const looksAtOnce = 32

// readAll returns the members of a queue as participants, in order, and judges by rule
// who holds. It reads those that are not among the known. Those that leave meanwhile are
// left out, and so are directories.
func readAll(
	ctx context.Context, use *zkconn.Conn, q observe.Queue, members []seqname.Name,
	rule order.Excludes, known []reading,
) (all []reading, err error) {
	seen := make(map[string]reading, len(members))
	for _, one := range known {
		seen[one.Node] = one
	}
	reads := make([]*calls.Pending[reading], len(members))
	ahead := make([]seqname.Name, 0, len(members))
	for i := range len(members) + looksAtOnce - 1 {
		if i < len(members) {
			node := q.Path(members[i])
			if _, ok := seen[node]; !ok {
				reads[i] = lookAt(use, node)
			}
		}
		at := i - looksAtOnce + 1
		if at < 0 {
			continue
		}
		m := members[at]
		one, err := seen[q.Path(m)], error(nil)
		if reads[at] != nil {
			one, err = reads[at].Wait(ctx)
		}
		switch {
		case errors.Is(err, errDirectory):
			continue
		case err == nil:
			one.Kind, one.Holding = kindBy(m.Kind), rule.Blocker(ahead, m) < 0
			all = append(all, one)
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
		ahead = append(ahead, m)
	}
	return all, nil
}

// errDirectory says that what looks like a member is none.
var errDirectory = errors.New("it has, or has had, children")

func lookAt(use *zkconn.Conn, node string) *calls.Pending[reading] {
	return calls.Start(use, func() (reading, error) {
		data, stat, err := use.Read(node)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			return reading{Participant: Participant{Node: node}}, nil
		case err != nil:
			return reading{}, err
		case zkconn.IsDirectory(stat):
			return reading{}, errDirectory
		}
		session := stat.EphemeralOwner
		if zkconn.IsOwnerless(stat) {
			session = 0
		}
		kept := data
		if len(data) > dataKept {
			kept = slices.Clone(data[:dataKept]) // or all of it would stay in memory
		}
		return reading{Participant: Participant{
			Node: node, Data: kept, DataSize: int(stat.DataLength), Session: session,
			Since: time.UnixMilli(stat.Ctime),
		}, czxid: stat.Czxid}, nil
	})
}

// isSame tells whether nothing has changed. In a directory that was created again another
// znode can have the same name.
func (r reading) isSame(as reading) bool {
	return r.Node == as.Node && r.czxid == as.czxid && r.Holding == as.Holding &&
		r.DataSize == as.DataSize && slices.Equal(r.Data, as.Data)
}

// WatchParticipants is InterProcessMutex.WatchParticipants.
func (r *reentrant) WatchParticipants(
	ctx context.Context,
) iter.Seq2[[]Participant, error] {
	return func(yield func([]Participant, error) bool) {
		if err := usable("participants of", r.where(), ctx); err != nil {
			yield(nil, err)
			return
		}
		use := zkconn.Use(r.conn, r.config)
		defer use.Release()
		told, last := false, []reading(nil)
		err := r.queue.Observed().Follow(ctx, use, func(
			ctx context.Context, members []seqname.Name, anew bool,
		) (more bool, err error) {
			known := last
			if anew {
				known = nil
			}
			now, err := readAll(
				ctx, use, r.queue.Observed(), members, r.queue.Excludes, known)
			if err != nil || told && slices.EqualFunc(now, last, reading.isSame) {
				return true, err
			}
			told, last = true, now
			return yield(participantsOf(now), nil), nil
		})
		if err != nil && ctx.Err() == nil {
			yield(nil, wrapAsked("participants of", r.path, err))
		}
	}
}

// Inspect returns the queue of whatever recipe uses path, in order, as the leader has it
// now. Use it to see a queue without a lock value. It sends a read for each participant;
// those that leave meanwhile are not included. For a semaphore it returns the leases
// ("lease"), then the callers that wait for more ("lock"); see docs/semaphore.md. If
// recipes share a path, Holding is decided within each recipe.
func Inspect(ctx context.Context, conn Conn, path string) ([]Participant, error) {
	const op = "inspect"
	settings, err := build(conn, path, nil)
	if err == nil {
		err = notNil(ctx)
	}
	if err != nil {
		return nil, refuse(op, path, err)
	}
	use := zkconn.Use(conn, settings.sessionConfig(conn))
	defer use.Release()
	var in [3][]reading
	for i, sub := range []string{"", leasesDir, locksDir} {
		if in[i], err = inspectDir(ctx, use, path, sub); err != nil {
			return nil, wrapAsked(op, path, err)
		}
	}
	judgeSemaphore(in[2], in[1])
	return participantsOf(slices.Concat(in[:]...)), nil
}

// inspectDir looks at the participants in a lock's directory, "", or in one of a
// semaphore's.
func inspectDir(
	ctx context.Context, use *zkconn.Conn, path, sub string,
) ([]reading, error) {
	q := observe.Queue{Dir: zkpath.Join(path, sub), Kinds: observe.Names(sub)}
	members, err := q.Members(ctx, use)
	if err != nil {
		return nil, err
	}
	return readAll(ctx, use, q, members, observe.Excludes, nil)
}

// judgeSemaphore corrects what no rule of one directory tells.
func judgeSemaphore(gate, leases []reading) {
	for i := range gate {
		gate[i].Holding = false
	}
	if len(gate) == 0 {
		return
	}
	lodgers := make([]observe.Lodger, len(leases))
	for i, lease := range leases {
		lodgers[i] = lease.lodger()
	}
	if i := observe.Unheld(gate[0].lodger(), lodgers); i >= 0 {
		leases[i].Holding = false
	}
}

func (r reading) lodger() observe.Lodger {
	return observe.Lodger{Session: r.Session, Czxid: r.czxid}
}
