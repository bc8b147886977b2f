package lockcache

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

func stubQueue(t *testing.T) (*seqnode.Queue, *zkconn.Conn) {
	t.Helper()
	return &seqnode.Queue{
		Spec: stubconn.Spec(), Kinds: []string{"lock-"},
		Excludes: func(_, _ seqname.Name) bool { return true },
	}, stubconn.Use(t, &stubconn.Conn{})
}

// A timer would keep it, and all that it knows, for as long as it might have been idle.
func TestAnEntryThatIsLostKeepsNoTimer(t *testing.T) {
	q, s := stubQueue(t)
	share, err := Enter(
		t.Context(), s, q, Policy{Idle: 24 * time.Hour, MaxHandovers: 1},
		seqnode.Request{},
	)
	require.NoError(t, err)
	share.Withdraw()
	g := share.generation
	g.entry.mu.Lock()
	require.NotNil(t, g.idle)
	g.entry.mu.Unlock()
	g.node.Lose(errors.New("over"))
	<-g.run.Done()
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	require.Nil(t, g.entry.current)
	require.Nil(t, g.idle)
}

// A Share that was released is not notified of a loss any more.
func TestNothingKeepsAShareThatWasReleased(t *testing.T) {
	q, s := stubQueue(t)
	policy := Policy{Idle: 24 * time.Hour, MaxHandovers: 1}
	first, err := Enter(t.Context(), s, q, policy, seqnode.Request{})
	require.NoError(t, err)
	first.Withdraw()
	share, err := Enter(t.Context(), s, q, policy, seqnode.Request{})
	require.NoError(t, err)
	released := weak.Make(share)
	share.Withdraw()
	runtime.GC()
	require.Nil(t, released.Value())
	first.Lose(errors.New("over"))
}
