package zktest_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// No ACL stops a super user, who may also change the configuration of an ensemble.
func ExampleWithSuperUser() {
	cluster, err := zktest.New(
		zktest.WithServers(3), zktest.WithSuperUser("root", "secret"))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	_, err = conn.Create("/bobs", nil, 0, zk.DigestACL(zk.PermAll, "bob", "hunter2"))
	fmt.Println(err)
	_, _, err = conn.Get("/bobs")
	fmt.Println(err)
	if err := conn.AddAuth("digest", []byte("root:secret")); err != nil {
		panic(err)
	}
	_, _, err = conn.Get("/bobs")
	fmt.Println(err)
	// Output:
	// <nil>
	// zk: not authenticated
	// <nil>
}

// What clients read in /zookeeper/config changes, and nothing else.
func ExampleWithReconfig() {
	cluster, err := zktest.New(zktest.WithServers(3), zktest.WithReconfig(),
		zktest.WithSuperUser("root", "secret"))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	_, err = conn.IncrementalReconfig(nil, []string{"3"}, -1)
	fmt.Println(errors.Is(err, zk.ErrNoAuth))
	if err := conn.AddAuth("digest", []byte("root:secret")); err != nil {
		panic(err)
	}
	if _, err = conn.IncrementalReconfig(nil, []string{"3"}, -1); err != nil {
		panic(err)
	}
	config, _, err := conn.Get("/zookeeper/config")
	fmt.Printf("%s %v\n", config[:len(config)-len("100000000")], err)
	// Output:
	// true
	// server.1=zktest-1:2888:3888:participant
	// server.2=zktest-2:2888:3888:participant
	// version= <nil>
}

// A server that finds no leader tells so when it is asked.
func ExampleWithReadOnlyMode() {
	cluster, err := zktest.New(zktest.WithServers(3), zktest.WithReadOnlyMode(),
		zktest.WithTick(10*time.Millisecond))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	addr := cluster.Addrs()[0]
	cluster.Server(1).Stop()
	cluster.Server(2).Stop()
	for answer := ""; answer != "ro"; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "isro") // else there is no answer
		text, _ := io.ReadAll(conn)         // likewise
		answer = string(text)
		_ = conn.Close()
	}
	fmt.Println("reads only")
	// Output:
	// reads only
}

// A client dials with TLS, here with one that trusts any server.
func ExampleWithTLS() {
	certificate, err := tls.X509KeyPair(exampleCertificate())
	if err != nil {
		panic(err)
	}
	cluster, err := zktest.New(zktest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	}))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	dial := func(network, addr string, limit time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: limit}, network, addr, &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // it is an example
		})
	}
	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second,
		zk.WithDialer(dial), zk.WithLogger(silent{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	children, _, err := conn.Children("/")
	fmt.Println(children, err)
	// Output:
	// [zookeeper] <nil>
}

// A test that needs years of virtual time says so.
func ExampleWithTimeLimit() {
	cluster, err := zktest.New(zktest.WithTimeLimit(3 * 365 * 24 * time.Hour))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
}
