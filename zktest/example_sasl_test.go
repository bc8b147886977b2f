package zktest_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// Servers with users of SASL know the scheme in ACLs.
func ExampleWithSASLUsers() {
	cluster, err := zktest.New(zktest.WithSASLUsers(map[string]string{"bob": "hunter2"}))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	bobs := []zk.ACL{{Scheme: "sasl", ID: "bob", Perms: zk.PermAll}}
	_, err = conn.Create("/private", nil, 0, bobs)
	fmt.Println(err)
	_, _, err = conn.Get("/private") // conn has not logged in
	fmt.Println(err)
	// Output:
	// <nil>
	// zk: not authenticated
}
