package interop_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// viewer is what tells who is in a lock's queue.
type viewer interface {
	ParticipantNodes(ctx context.Context) ([]string, error)
	Participants(ctx context.Context) ([]recipes.Participant, error)
}

// Counterpart of Curator's getParticipantNodes in testBasic and others: both sides tell
// the same queue, and Go who is in it.
func TestParticipantsOfAMutex(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, goPeer, java := newGo(t), newGo(t), newJava(t)
	inGo, inJava := goPeer.lock(mutex, path), java.lock(mutex, path)
	view := inGo.lock.(viewer)
	nobody, err := view.ParticipantNodes(t.Context())
	require.NoError(t, err)
	require.Empty(t, nobody)
	require.Empty(t, inJava.owner().do("participants"))

	holder, other := inJava.contender(), newGo(t)
	require.True(t, holder.try(0))
	contenders := []contender{
		inGo.contender(), other.zkLock(path), inJava.contender(), inGo.contender(),
	}
	granted := queueUp(t, look, path, 1, contenders)
	nodes, err := view.ParticipantNodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 5)
	require.Equal(t, nodes, inJava.owner().do("participants"))

	participants, err := view.Participants(t.Context())
	require.NoError(t, err)
	sessions := []int64{
		java.session, goPeer.SessionID(), other.SessionID(), java.session,
		goPeer.SessionID(),
	}
	for i, p := range participants {
		require.Equal(t, nodes[i], p.Node)
		require.Equal(t, sessions[i], p.Session)
		require.Equal(t, i == 0, p.Holding)
		switch p.Session {
		case java.session: // Curator's default
			_, err := netip.ParseAddr(string(p.Data))
			require.NoError(t, err)
		case goPeer.SessionID():
			require.Contains(t, string(p.Data), fmt.Sprintf("(pid %d, ", os.Getpid()))
		}
	}
	holder.release()
	for i, c := range contenders {
		require.Equal(t, i, locktest.Within(t, granted, "the next is granted"))
		c.release()
	}
}

// Counterpart of Curator's TestInterProcessReadWriteLock.testGetParticipantNodes.
func TestParticipantsOfAReadWriteLock(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path)
	readers := []contender{inGo().read, inJava().read}
	for _, r := range readers {
		require.True(t, r.try(0))
	}
	contenders := []contender{
		inGo().write, inJava().write, inJava().read, inGo().read, inJava().read,
	}
	granted := queueUp(t, look, path, 2, contenders)
	goViews, javaViews := inGo(), inJava()
	for _, side := range []struct {
		inGo, inJava contender
		nodes        int
	}{{goViews.read, javaViews.read, 5}, {goViews.write, javaViews.write, 2}} {
		nodes, err := side.inGo.(*goOwner).lock.(viewer).ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, side.nodes)
		require.Equal(t, nodes, side.inJava.(*javaThread).do("participants"))
	}
	all, err := goViews.read.(*goOwner).lock.(viewer).Participants(t.Context())
	require.NoError(t, err)
	var holding []bool
	for _, p := range all {
		holding = append(holding, p.Holding)
	}
	require.Equal(t, []bool{true, true, false, false, false, false, false}, holding)

	for _, r := range readers {
		r.release()
	}
	for range contenders {
		contenders[locktest.Within(t, granted, "the next is granted")].release()
	}
}

// Counterpart of Curator's TestInterProcessSemaphore.testGetParticipantNodes. Curator's
// names are bare, and in no order.
func TestParticipantsOfASemaphore(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	inGo, java := newGo(t).semaphore(path, 4), newJava(t)
	inJava := java.semaphore(path, 4)
	require.Len(t, inGo.try(2, locktest.Patience), 2)
	javaLeases := inJava.try(2, locktest.Patience)
	nodes, err := inGo.ParticipantNodes(t.Context())
	require.NoError(t, err)
	var names []string
	for _, node := range nodes {
		name, ok := strings.CutPrefix(node, path+"/leases/")
		require.True(t, ok)
		names = append(names, name)
	}
	require.ElementsMatch(t, names, java.do("participants", inJava.name))
	require.ElementsMatch(t, javaLeases, names[2:])
}

// Counterpart of Curator's testWithNamespace: its namespace and the chroot of a connect
// string are the same lock's path in two ways.
func TestNamespaceAndChroot(t *testing.T) {
	eachExclusive(t, func(t *testing.T, r recipe) {
		namespace := zkserver.Path(t)
		inGo := newGoAt(
			t, serversOf(t)+namespace, steady,
		).lock(r, "/lock").contender()
		inJava := newJavaIn(
			t, sharedJVM(t), steady, namespace[1:],
		).lock(r, "/lock").contender()
		absolute := newGo(t).lock(r, namespace+"/lock").contender()
		for range 2 {
			require.True(t, inGo.try(0))
			require.False(t, inJava.try(0))
			inGo.release()
			require.True(t, inJava.try(0))
			require.False(t, inGo.try(0))
			require.False(t, absolute.try(0))
			inJava.release()
		}
	})
}
