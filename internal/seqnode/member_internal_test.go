package seqnode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/znode"
)

func TestQueuesOfOneValue(t *testing.T) {
	t.Parallel()
	q := &Queue{Spec: znode.Spec{Dir: "/lock"}, Value: new(int)}
	same, other := *q, &Queue{Value: new(int)}
	m := &Member{queue: q}
	require.True(t, m.isOneWith(&Member{queue: &same}))
	require.False(t, m.isOneWith(&Member{queue: other}))
	nameless := &Member{queue: &Queue{}}
	require.True(t, nameless.isOneWith(nameless))
	require.False(t, nameless.isOneWith(&Member{queue: &Queue{}}))
}
