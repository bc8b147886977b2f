package locktest

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// FrontUses is how often a process has used a lock that asks nobody whether it is free.
const FrontUses = 3

// InFrontBubble runs a test in a bubble whose process ours has used the lock so often
// that it asks nobody whether the lock is free.
func InFrontBubble(t *testing.T, test func(t *testing.T, b *Bubble)) {
	t.Helper()
	InBubble(t, func(t *testing.T, b *Bubble) {
		UseTimes(t, b.Lock, FrontUses)
		test(t, b)
	})
}

// Join creates znodes of the other process, which hold the lock and wait.
func Join(t *testing.T, b *Bubble, times int) (nodes []string) {
	t.Helper()
	for range times {
		node, err := b.Other.Create("/lock/_c_0b2d2e5c-3b0b-4a0f-8f0b-1e6f1e7a9c55-lock-",
			nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		nodes = append(nodes, node)
	}
	return nodes
}
