package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Members of one group, in Go and in Java, see each other, with their payloads, and miss
// those that have left.
func TestAGroupOfGoAndJava(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	goPeer, java := newGo(t), newJava(t)
	inJava := java.make("groupmember", path, "java", "Java")
	java.do("enlist", inJava)
	inGo, err := recipes.NewGroupMember(goPeer, path, "go", []byte("Go"))
	require.NoError(t, err)
	require.NoError(t, inGo.Await(t.Context()))
	awaitGroup(t, goPeer, java, path, inJava, "go=Go", "java=Java")

	require.NoError(t, inGo.SetData(t.Context(), []byte("Go-changed")))
	java.do("payload", inJava, "Java-changed")
	awaitGroup(t, goPeer, java, path, inJava, "go=Go-changed", "java=Java-changed")

	members, err := recipes.Members(t.Context(), goPeer, path)
	require.NoError(t, err)
	require.Equal(t, goPeer.SessionID(), members[0].Session)
	require.Equal(t, java.session, members[1].Session)

	// A name is a lock on it, across both languages.
	rival, err := recipes.NewPersistentNode(goPeer, path+"/java", []byte("Go's"))
	require.NoError(t, err)
	rival.Start()
	require.NoError(t, inGo.Close(t.Context()))
	awaitGroup(t, goPeer, java, path, inJava, "java=Java-changed")
	require.Nil(t, rival.Hold())
	java.do("desert", inJava)
	require.NoError(t, rival.Await(t.Context()))
	require.NoError(t, rival.Close(t.Context()))
}

// CuratorCache, which has no idea of groups, sees our members: as they join, with a new
// payload, after a loss, and no more once they have left.
func TestCuratorCacheSeesOurMembers(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	goPeer, java := newGoAt(t, serversOf(t), locktest.Short), newJava(t)
	cache := java.make("cache", path)
	sees := func(want ...string) {
		t.Helper()
		var seen []string
		locktest.Eventually(t, func() bool {
			seen = java.do("cached", cache, path)
			return slices.Equal(seen, want)
		}, "Java sees %v, not %v", &seen, want)
	}
	var members []*recipes.GroupMember
	for _, id := range []string{"one", "two"} {
		m, err := recipes.NewGroupMember(goPeer, path, id, []byte("data"))
		require.NoError(t, err)
		require.NoError(t, m.Await(t.Context()))
		members = append(members, m)
	}
	sees("one=data", "two=data")
	require.NoError(t, members[0].SetData(t.Context(), []byte("changed")))
	sees("one=changed", "two=data")

	lost := members[0].Hold().Lost()
	goPeer.tap.Partition()
	<-lost
	goPeer.tap.Heal()
	for _, m := range members {
		require.NoError(t, m.Await(t.Context()))
	}
	require.NoError(t, members[1].SetData(t.Context(), []byte("next")))
	sees("one=changed", "two=next")

	require.NoError(t, members[0].Close(t.Context()))
	sees("two=next")
	require.NoError(t, members[1].Close(t.Context()))
	sees()
}

// awaitGroup waits until both sides see the members.
func awaitGroup(
	t *testing.T, look recipes.Conn, java *javaPeer, path, inJava string, want ...string,
) {
	t.Helper()
	var inGo []string
	for members, err := range recipes.WatchMembers(t.Context(), look, path) {
		require.NoError(t, err)
		inGo = nil
		for _, m := range members {
			inGo = append(inGo, fmt.Sprintf("%s=%s", m.ID, m.Data))
		}
		if strings.Join(inGo, ",") == strings.Join(want, ",") {
			break
		}
	}
	require.Equal(t, want, inGo)
	var seen []string
	locktest.Eventually(t, func() bool {
		seen = java.do("members", inJava)
		return strings.Join(seen, ",") == strings.Join(want, ",")
	}, "Java sees %v", seen)
}
