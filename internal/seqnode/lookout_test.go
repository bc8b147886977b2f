package seqnode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/znode"
)

func TestQueuesOfOneValueHaveOneLookout(t *testing.T) {
	q := &Queue{Spec: znode.Spec{Dir: "/lock"}, Lookout: new(observe.Lookout)}
	same, other := *q, &Queue{Lookout: new(observe.Lookout)}
	m := &Member{queue: q}
	require.True(t, m.isOneWith(&Member{queue: &same}))
	require.False(t, m.isOneWith(&Member{queue: other}))
}
