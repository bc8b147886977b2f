package lockcache

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/znode"
)

// waitFor returns an entry for which two wait.
func waitFor() *entry { return &entry{waiting: []*waiter{{}, {}}} }

func held(users int) *generation {
	return &generation{node: &znode.Node{Path: "/lock/held"}, users: users}
}

// What the second waiter receives, by what is known of its entry.
func TestWhereOneStandsThatWaitsForAnEntry(t *testing.T) {
	t.Parallel()
	queued := queuedAt{"/lock/next", 3}
	position := seqnode.Position{Ahead: 2, Behind: "/lock/b"}
	for name, c := range map[string]struct {
		current, next *generation
		together      bool
		want          queuedAt
		where         string
	}{
		"nothing is known": {},
		"it has not joined": {
			next: &generation{},
		},
		"it has joined": {
			next: &generation{queued: queued, position: position},
			want: queuedAt{"/lock/next", 4}, where: "3 ahead, behind /lock/b",
		},
		"readers have joined": {
			next:     &generation{queued: queued, position: position},
			together: true, want: queued, where: "2 ahead, behind /lock/b",
		},
		"it is held": {
			current: held(1),
			want:    queuedAt{"/lock/held", 2},
			where:   seqnode.BehindOurs(2, "/lock/held").String(),
		},
		"it is held by readers": {
			current: held(5), together: true,
			want:  queuedAt{"/lock/held", 5},
			where: seqnode.BehindOurs(5, "/lock/held").String(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := waitFor()
			e.current, e.next, e.together = c.current, c.next, c.together
			if e.current != nil {
				e.current.entry = e
			}
			require.Equal(t, c.want, e.positionLocked(1))
			require.Equal(t, c.where, e.whereLocked(1).Text)
		})
	}
}

// Readers wait next to a generation that admits no more of them, and behind its users
// otherwise.
func TestWhichGenerationIsInTheWay(t *testing.T) {
	t.Parallel()
	e := &entry{}
	require.Nil(t, e.blockerLocked())
	g := held(1)
	g.entry, e.current = e, g
	for _, together := range []bool{false, true} {
		for _, closed := range []bool{false, true} {
			e.together, g.closed = together, closed
			if together && closed {
				require.Nil(t, e.blockerLocked())
			} else {
				require.Same(t, g, e.blockerLocked())
			}
		}
	}
}
