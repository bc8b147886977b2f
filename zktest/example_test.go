package zktest_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// In a test, Start(t) ends the Cluster by itself.
func Example() {
	cluster, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, events, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	path, err := conn.Create(
		"/job-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll),
	)
	fmt.Println(path, err)
	cluster.ExpireSession(conn.SessionID())
	for e := range events {
		if e.State == zk.StateExpired {
			fmt.Println("expired;", len(cluster.Znodes()), "znodes left")
			return
		}
	}
	// Output:
	// /job-0000000000 <nil>
	// expired; 0 znodes left
}

// What a client saw can be compared with what happened.
func ExampleWithLog() {
	var deleted []string
	cluster, err := zktest.New(zktest.WithLog(func(x zktest.Transaction) {
		if x.Op == zktest.OpDelete {
			deleted = append(deleted, x.Path)
		}
	}))
	if err != nil {
		panic(err)
	}
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	_, err = conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err, conn.Delete("/job", -1), conn.Delete("/job", -1))
	conn.Close()
	cluster.Close() // it calls nobody any more
	fmt.Println(deleted)
	// Output:
	// <nil> <nil> zk: node does not exist
	// [/job]
}
