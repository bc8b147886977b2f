package zktest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// TestConformanceContainerCheck compares which znodes a server deletes by itself.
func TestConformanceContainerCheck(t *testing.T) {
	needsGenuine(t)
	const every = 100 * time.Millisecond
	genuine := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(time.Minute),
		zkserver.JVM("-Dzookeeper.extendedTypesEnabled=true",
			"-Dznode.container.checkIntervalMs=100"))
	fake := zktest.Start(t, zktest.WithTick(2*every), zktest.WithMaxSession(time.Minute),
		zktest.WithContainerCheck(every))
	var left [2][]string
	for i, addr := range []string{genuine.Servers[0].Addr, fake.Addrs()[0]} {
		left[i] = afterReaping(t, addr)
	}
	require.Equal(t, left[0], left[1])
	require.Equal(t, []string{"parent", "unused", "used", "zookeeper"}, left[1])
}

// afterReaping returns what is left below the root of containers and TTL znodes.
func afterReaping(t *testing.T, addr string) []string {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(noLog{}))
	require.NoError(t, err)
	defer conn.Close()
	for _, path := range []string{"/unused", "/emptied", "/used"} {
		_, err := conn.CreateContainer(path, nil, zk.FlagContainer, anyone)
		require.NoError(t, err)
	}
	for _, path := range []string{"/late", "/parent"} {
		_, err := conn.CreateTTL(path, nil, zk.FlagTTL, anyone, 300*time.Millisecond)
		require.NoError(t, err)
	}
	for _, path := range []string{"/used/n", "/emptied/n", "/parent/n"} {
		_, err := conn.Create(path, nil, 0, anyone)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Delete("/emptied/n", -1))
	var children []string
	require.Eventually(t, func() bool {
		children, _, err = conn.Children("/")
		require.NoError(t, err)
		return !slices.Contains(children, "emptied") && !slices.Contains(children, "late")
	}, 20*time.Second, 10*time.Millisecond)
	time.Sleep(500 * time.Millisecond) // it looks several times, and keeps the others
	children, _, err = conn.Children("/")
	require.NoError(t, err)
	slices.Sort(children)
	return children
}
