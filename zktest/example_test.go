package zktest_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// In a test, Start(t) ends the service by itself.
func Example() {
	server, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	conn, events, err := zk.Connect(server.Addrs(), 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	path, err := conn.Create("/job-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	server.ExpireSession(conn.SessionID())
	for e := range events {
		if e.State == zk.StateExpired {
			fmt.Println("expired;", len(server.Znodes()), "znodes left")
			return
		}
	}
	// Output:
	// /job-0000000000 <nil>
	// expired; 0 znodes left
}
