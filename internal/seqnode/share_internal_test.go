package seqnode

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who waits for the delete of a kept place's znode is woken when the Node is lost, and
// asks its Share why: which has to know by then.
func TestSharesAreToldBeforeTheirNode(t *testing.T) {
	t.Parallel()
	cause := errors.New("it was lost")
	n := &Node{}
	sh := &Share{Node: n, cancelExpiry: func() {}}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	n.shares = map[*Share]struct{}{sh: {}}
	told := false
	n.loseNow = func(error) { told = sh.lost.Err() != nil }
	n.loseLocked(cause)
	require.True(t, told)
	require.ErrorIs(t, context.Cause(sh.lost), cause)
}
