// The program etcd is etcd's server, of the version that go.mod names: Debian's is older
// than the client.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
