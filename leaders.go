package recipes

import (
	"context"
	"iter"
	"slices"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
)

// Leaders yields the leader now, as Leader has it, and again each time that another leads
// or the data of the leader's znode changes; the zero Participant, whose Node is "",
// while nobody leads. It waits in between. Changes that come faster than they can be read
// are one: what was yielded last is true in the end, but not every leader is seen. A
// leader that steps down while others wait is followed by the next without a pause.
//
// It takes no part in the election and makes no znode. It watches the leader's znode and
// no other: who joins and leaves behind it wakes nobody. A change costs three requests.
// While nobody leads it watches the directory or, where that is missing, the nearest of
// its parents that is there, which it must be allowed to read.
//
// The loop outlives outages and the end of the session; meanwhile nothing is told. It
// ends when ctx does. What no retry can mend, a closed connection among it, is yielded
// last, as an error beside a zero Participant. A loop that is left leaves nothing behind
// but the watch, which all who look share and which the next change ends. Each loop over
// the value begins anew; several may run at once.
func (e *election) Leaders(ctx context.Context) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		if err := usable("leaders of", e.where(), ctx); err != nil {
			yield(Participant{}, err)
			return
		}
		s := session.Use(e.lock.conn, e.lock.config)
		defer s.Release()
		told, last := false, Participant{}
		err := e.lock.queue.FollowHead(ctx, s, func(
			ctx context.Context, members []seqnode.Name,
		) (more bool, err error) {
			leader, err := e.lookAtHead(ctx, s, members)
			if err != nil || told && leader.isSame(last) {
				return true, err
			}
			told, last = true, leader
			return yield(leader, nil), nil
		})
		if err != nil && ctx.Err() == nil {
			yield(Participant{}, wrap("leaders of", e.lock.path, err))
		}
	}
}

// isSame tells whether nothing of p has changed.
func (p Participant) isSame(q Participant) bool {
	return p.Node == q.Node && p.Holding == q.Holding && slices.Equal(p.Data, q.Data)
}

// WatchParticipants yields the queue, as Participants has it, now and each time that
// somebody joins or leaves, by a watch on the directory. It waits in between. Changes
// that come faster than they can be read are one.
//
// It takes no part in the queue and makes no znode. A change costs a list, and a read for
// each participant who was not there before: Data is what the znode held then, and a
// change of it alone is not told. Each slice is the caller's own, but for the bytes of
// Data.
//
// The loop outlives outages and the end of the session; meanwhile nothing is told. It
// ends when ctx does. What no retry can mend, a closed connection among it, is yielded
// last, as an error beside a nil slice. A loop that is left leaves nothing behind but the
// watch, which all who look share and which the next change ends. Where the directory is
// missing the nearest of its parents that is there is watched, which must be allowed to
// be read. Each loop over the value begins anew; several may run at once.
func (r *reentrant) WatchParticipants(
	ctx context.Context,
) iter.Seq2[[]Participant, error] {
	return func(yield func([]Participant, error) bool) {
		if err := usable("participants of", r.where(), ctx); err != nil {
			yield(nil, err)
			return
		}
		s := session.Use(r.conn, r.config)
		defer s.Release()
		told, last := false, []Participant(nil)
		err := r.queue.Follow(ctx, s, func(
			ctx context.Context, members []seqnode.Name,
		) (more bool, err error) {
			now, err := r.lookAtNew(ctx, s, members, last)
			if err != nil || told && slices.EqualFunc(now, last, Participant.isSame) {
				return true, err
			}
			told, last = true, now
			return yield(slices.Clone(now), nil), nil
		})
		if err != nil && ctx.Err() == nil {
			yield(nil, wrap("participants of", r.path, err))
		}
	}
}

// lookAtNew returns the members as participants, in order, and reads those of them who
// are not among the known. Those who leave meanwhile are left out.
func (r *reentrant) lookAtNew(
	ctx context.Context, s *session.Session, members []seqnode.Name, known []Participant,
) (all []Participant, err error) {
	seen := make(map[string]Participant, len(members))
	for _, p := range known {
		seen[p.Node] = p
	}
	joined := slices.DeleteFunc(slices.Clone(members), func(m seqnode.Name) bool {
		_, ok := seen[r.queue.Path(m)]
		return ok
	})
	read, err := look(ctx, s, r.queue, joined, r.queue.Rule)
	if err != nil {
		return nil, err
	}
	for _, one := range read {
		seen[one.Node] = one.Participant
	}
	for at, m := range members {
		if p, ok := seen[r.queue.Path(m)]; ok {
			p.Holding = r.queue.Rule(members[:at], m) < 0
			all = append(all, p)
		}
	}
	return all, nil
}
