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
