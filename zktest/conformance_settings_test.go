package zktest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// TestConformanceMinSessionTimeout compares what is granted below two ticks.
func TestConformanceMinSessionTimeout(t *testing.T) {
	needsGenuine(t)
	const shortest = 300 * time.Millisecond
	cluster := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual),
		zkserver.Config("minSessionTimeout=300"))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual),
		zktest.WithMinSessionTimeout(shortest))
	conform(t, cluster.Servers[0].Addr, fake.Addrs()[0], `
		r0 connect timeout=0
		r1 connect timeout=1
		r2 connect timeout=299
		r3 connect timeout=300
		r4 connect timeout=301
		r5 connect timeout=999
		r6 connect timeout=10001
		r5 connect as=r5 timeout=1
	`)
}

// TestConformanceSASL compares logins, and what ACLs make of them.
func TestConformanceSASL(t *testing.T) {
	needsGenuine(t)
	users := map[string]string{"bob": "secret", "ann": "hunter2"}
	cluster := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual),
		zkserver.SASLUsers(users))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual),
		zktest.WithSASLUsers(users))
	conform(t, cluster.Servers[0].Addr, fake.Addrs()[0], `
		r0 sasl ""
		r0 sasl x
		r0 exists .
		r1 sasl x
		r1 exists .
		r2 sasl null
		r2 exists .
		r2 sasl ""
		r2 sasl ""
		r3 login bob wrong
		r3 login eve nobodys
		r3 login bob hunter2
		r3 login bob secret
		r3 create /a x persistent sasl/bob:cdrwa
		r3 getACL /a
		r3 create /b x persistent auth:cdrwa
		r3 getACL /b
		r4 getData /a
		r4 create /c x persistent sasl/ann:r
		r4 login ann hunter2
		r4 getData /a
		r4 getData /c
		r4 setData /c y -1
		r4 auth 0 digest ann:hunter2
		r4 create /d x persistent auth:r
		r5 create /e x persistent sasl/:r
		r5 create /f x persistent sasl/a@b:r
		r5 create /g x persistent sasl/a@b@c:r
		r5 create /h x persistent sasl/a/b@c:r
		r5 create /i x persistent sasl/a/b/c@d:r
		r5 create /j x persistent sasl/a@b/c:r
		r5 auth 0 sasl bob
		r3 login bob secret
		r3 exists .
		r3 sasl x
		r3 exists .
		r6 connect
		r6 login ann hunter2
		r7 connect as=r6
		r7 getData /c
		r7 login bob secret
		r7 getData /c
		r7 getData /a
		r3 connect as=r3
		r3 getData /a
		r3 login bob secret
		r3 getData /a
	`)
}

// eagerly refuses what no leader has to be asked for. A zxid of 0 in the answer shows who
// refused; that the next one is not skipped, that the leader has not heard of it.
const eagerly = `
	c0 create /ro x persistent world:r
	c0 create /none x persistent none
	c0 create /bad x persistent digest/bob:r
	c0 exists /ro
	r0 create /ro/child x
	r0 create2 /ro/child x
	r0 create /ro/child- x ephemeralSequence
	r0 delete /ro/child -1
	r0 delete /ro -1
	c0 create /ro x persistent world:r
	r0 setData /ro y -1
	r0 setData /ro y 77
	r0 setACL /ro world:cdrwa -1
	r0 setACL /missing none -1
	r0 setACL /missing world:cdrwa -1
	r0 create /bad x persistent nonsense/x:r
	r0 create2 /bad x persistent null
	r0 create /missing/bad x persistent none
	r0 create /missing/good x
	r0 setData /missing x -1
	r0 create !relative x persistent none
	r0 create !/zookeeper x persistent none
	r0 delete !/ -1
	r0 create /ok x
	r0 exists /ok
	# of these the leader is asked
	r0 createContainer /ro/c x container
	r0 createTTL /ro/t x ttl world:cdrwa 5000
	r0 multi create /ro/m x persistent
	r0 check /ro 5
	r0 create /ro x
	r0 exists /ok
	r0 create /last x
	r0 exists /last
	r0 auth 0 digest bob:secret
	r0 create /bobs x persistent auth:cdrwa
	r0 setData /bobs y -1
	r1 setData /bobs z -1
	r1 create /bobs/child x
	r1 delete /bobs -1
	r0 exists /bobs
`

// TestConformanceEagerACLCheck compares what a server refuses by itself: as a follower,
// as the leader, and where it is the only one.
func TestConformanceEagerACLCheck(t *testing.T) {
	needsGenuine(t)
	const jvm = "-Dzookeeper.enableEagerACLCheck=true"
	shared := []zkserver.Option{
		zkserver.Tick(tick), zkserver.MaxSession(usual),
		zkserver.JVM(jvm, "-Dzookeeper.extendedTypesEnabled=true"),
	}
	newFake := func(t *testing.T, servers int) *zktest.Cluster {
		t.Helper()
		return zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual),
			zktest.WithServers(servers), zktest.WithEagerACLCheck())
	}
	t.Run("standalone", func(t *testing.T) {
		genuine := zkserver.Start(t, shared...)
		conform(t, genuine.Servers[0].Addr, newFake(t, 1).Addrs()[0], eagerly)
	})
	ensemble := zkserver.Start(t, append(shared, zkserver.Servers(3))...)
	for _, role := range []string{"leader", "follower"} {
		t.Run(role, func(t *testing.T) {
			fake := newFake(t, 3)
			at := slices.IndexFunc(fake.Servers(), func(s *zktest.Server) bool {
				return s.Leading() == (role == "leader")
			})
			conform(t, serverOf(t, ensemble, role), fake.Addrs()[at], eagerly)
		})
	}
}

// serverOf returns the address of a server of an ensemble that is in a role.
func serverOf(t *testing.T, c *zkserver.Cluster, role string) string {
	t.Helper()
	for _, s := range c.Servers {
		answer, err := s.FourLetter("srvr")
		require.NoError(t, err)
		if strings.Contains(answer, "Mode: "+role) {
			return s.Addr
		}
	}
	t.Fatalf("the ensemble has no %s", role)
	return ""
}

// conform plays a script on both servers, and wants the same answers.
func conform(t *testing.T, genuineAddr, fakeAddr, text string) {
	t.Helper()
	genuine, fake := mustPlay(t, genuineAddr, nil), mustPlay(t, fakeAddr, nil)
	defer genuine.close()
	defer fake.close()
	script := parseScript(text)
	transcript, difference, err := compare(genuine, fake, script, below(t, script))
	logTranscript(t, script, transcript)
	require.NoError(t, err)
	require.Empty(t, difference)
}

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
