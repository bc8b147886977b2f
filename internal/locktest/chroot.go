package locktest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A ChrootScene is a client below a chroot, and one that sees everything.
type ChrootScene struct {
	Cluster        *zktest.Cluster
	Client, Beside *recipes.Client
}

// Chroot is that of a [ChrootScene].
const Chroot = "/apps/app"

// NewChrootScene opens both clients, on an ensemble of their own. It is for bubbles.
func NewChrootScene(t *testing.T) *ChrootScene {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithShuffle())
	servers := strings.Join(cluster.Names(), ",")
	return &ChrootScene{
		Cluster: cluster,
		Client:  Connect(t, cluster.Link("ours"), servers+Chroot, 10*time.Second),
		Beside:  Connect(t, cluster.Link("beside"), servers, 10*time.Second),
	}
}

// DeleteAll deletes every znode.
func (s *ChrootScene) DeleteAll(t *testing.T) {
	t.Helper()
	synctest.Wait() // for what is deleted in the background
	for znodes := s.Cluster.Znodes(); len(znodes) > 0; znodes = s.Cluster.Znodes() {
		require.NoError(t, s.Beside.Delete(znodes[len(znodes)-1], -1))
	}
}
