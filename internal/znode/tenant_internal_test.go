package znode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A told takes note of the causes that it is told.
type told struct{ causes []error }

func (t *told) Lost(cause error) { t.causes = append(t.causes, cause) }

// One that waits for the delete of a shared znode is woken when the Node is lost, and
// asks its own part why: which has to know by then.
func TestTenantsAreToldBeforeTheirNode(t *testing.T) {
	t.Parallel()
	cause := errors.New("it was lost")
	tenant, before := &told{}, []error(nil)
	n := &Node{}
	n.life.tenants = map[Tenant]struct{}{tenant: {}}
	n.loss.ctx = t.Context()
	n.loss.cancel = func(error) { before = tenant.causes }
	n.loseLocked(cause)
	require.Equal(t, []error{cause}, before)
}
