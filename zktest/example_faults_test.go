package zktest_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// An ensemble with short ticks, whose delays can be repeated.
func ExampleCluster() {
	cluster, err := zktest.New(zktest.WithServers(3),
		zktest.WithTick(100*time.Millisecond),
		zktest.WithMinSessionTimeout(200*time.Millisecond),
		zktest.WithMaxSession(2*time.Second), zktest.WithSeed(1))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(len(cluster.Servers()), "servers;", cluster.Servers()[0].Addr())
	// Output: 3 servers; zktest-1:2181
}

// A server that other processes can reach, at an address of yours.
func ExampleWithListen() {
	cluster, err := zktest.New(zktest.WithListen("127.0.0.1:0"))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(len(cluster.Addrs()))
	// Output: 1
}

// A program that takes the first child of a list for the smallest one passes on sorted
// lists, and fails on a real server.
func ExampleWithShuffle() {
	cluster, err := zktest.New(zktest.WithShuffle(), zktest.WithSeed(3))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	for _, path := range []string{"/a", "/a/1", "/a/2", "/a/3", "/a/4", "/a/5"} {
		if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			panic(err)
		}
	}
	children, _, err := conn.Children("/a")
	if err != nil {
		panic(err)
	}
	fmt.Println(slices.IsSorted(children), slices.Sorted(slices.Values(children)))
	// Output: false [1 2 3 4 5]
}

// What a real server does late: take effect, forget who is gone, look for what is empty.
func ExampleWithSlowCommit() {
	cluster, err := zktest.New(zktest.WithSlowCommit(50*time.Millisecond),
		zktest.WithSlowClose(time.Second), zktest.WithContainerCheck(time.Second),
		zktest.WithEagerACLCheck())
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	began := time.Now()
	_, err = conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err, time.Since(began) >= 50*time.Millisecond)
	// Output: <nil> true
}

// An ensemble that is restored from a backup has forgotten what was written since. It
// hangs up on the clients that know better.
func ExampleCluster_Restore() {
	cluster, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	backup := cluster.Snapshot()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		panic(err)
	}
	before := cluster.Znodes()
	cluster.Restore(backup)
	fmt.Println(slices.Contains(before, "/a"), slices.Contains(cluster.Znodes(), "/a"))
	// Output: true false
}

// A link is how one client reaches the servers. Its faults are that client's alone.
func ExampleLink() {
	cluster, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	link := cluster.Link("worker 1")
	conn, _, err := zk.Connect([]string{cluster.Servers()[0].Addr()}, 4*time.Second,
		zk.WithDialer(link.Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(cluster.HostProvider()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, _, err = conn.Exists("/"); err != nil {
		panic(err)
	}
	link.Delay(20*time.Millisecond, 20*time.Millisecond) // each way
	link.LoseReply(zktest.OpCreate)                      // of the next create
	link.Stall(zktest.ToServer)
	link.Heal() // ends the stall
	_, _, err = conn.Exists("/")
	fmt.Println(err)
	// Output: <nil>
}

// HostileReplies has what no ZooKeeper sends, and clients must survive.
func ExampleHostileReplies() {
	get := func(r zktest.HostileReply) bool { return r.Op == zktest.OpGet }
	fmt.Println(slices.ContainsFunc(zktest.HostileReplies(), get))
	// Output: true
}

// The leader stops, and another server takes its place.
func ExampleServer() {
	cluster, err := zktest.New(zktest.WithServers(3))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	former := cluster.Leader()
	former.Stop()
	for cluster.Leader() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(cluster.Leader() != former)
	former.Start()
	// Output: true
}

// A client of ClickHouse Keeper that has to reconnect has another session, of which
// nothing tells it.
func ExampleWithKeeper() {
	cluster, err := zktest.New(zktest.WithKeeper())
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	link := cluster.Link("worker 1")
	conn, _, err := zk.Connect(cluster.Names(), 10*time.Second, zk.WithDialer(link.Dial),
		zk.WithHostProvider(cluster.HostProvider()), zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, _, err = conn.Exists("/"); err != nil {
		panic(err)
	}
	before := conn.SessionID()
	link.Reset()
	for conn.SessionID() == before {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(len(cluster.Sessions()), "sessions")
	// Output: 2 sessions
}
