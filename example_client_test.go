package recipes_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A Client is also a plain client of ZooKeeper, in the session that the locks live in.
func ExampleClient() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	name := must(client.Create("/config-", []byte("a"), zk.FlagEphemeral|zk.FlagSequence,
		zk.WorldACL(zk.PermAll)))
	data, stat, err := client.Get(name)
	check(err)
	fmt.Printf("%s, version %d\n", data, stat.Version)
	fmt.Println("mine:", stat.EphemeralOwner == client.SessionID())
	// Output:
	// a, version 0
	// mine: true
}

// Only the user "locks" may create or delete what is below the chroot.
func ExampleWithChrootACL() {
	client := must(recipes.Connect(context.Background(), "zk1:2181/app", 10*time.Second,
		recipes.WithAuth("digest", []byte("locks:secret")),
		recipes.WithChrootACL(zk.AuthACL(zk.PermAll))))
	defer client.Close()
}

// The servers end a session after two seconds at the earliest here, though a tick is a
// second: the locks are told so.
func ExampleWithClientServerTick() {
	client := must(recipes.Connect(context.Background(), "zk1:2181", 10*time.Second,
		recipes.WithClientServerTick(time.Second)))
	defer client.Close()
}

// Of a connection that is not a Client, each lock is told the tick.
func ExampleWithServerTick() {
	conn, _, err := zk.Connect([]string{"zk1:2181"}, 10*time.Second)
	check(err)
	defer conn.Close()
	lock := must(recipes.NewInterProcessMutex(conn, "/locks/report",
		recipes.WithSessionTimeout(10*time.Second), recipes.WithServerTick(time.Second)))
	_ = lock
}

// The link of a test's cluster can lose what this client sends, or what it is sent.
func ExampleWithDialer() {
	cluster := must(zktest.New())
	defer cluster.Close()
	link := cluster.Link("worker 1")
	client := must(recipes.Connect(context.Background(), cluster.Servers()[0].Addr(),
		10*time.Second, recipes.WithDialer(link.Dial)))
	defer client.Close()
	_, _, err := client.Get("/nothing")
	fmt.Println(err)
	// Output: zk: node does not exist
}

// By default the first server is drawn by chance. Yours can know which one is near.
func ExampleWithHostProvider() {
	var near zk.HostProvider = new(zk.DNSHostProvider)
	client := must(recipes.Connect(context.Background(), "zk1:2181,zk2:2181",
		10*time.Second, recipes.WithHostProvider(near)))
	defer client.Close()
}

// A list of a million children needs more than the default.
func ExampleWithMaxReply() {
	client := must(recipes.Connect(context.Background(), "zk1:2181", 10*time.Second,
		recipes.WithMaxReply(256<<20)))
	defer client.Close()
}

// A lock logs what no caller is told: here that it cannot know the session timeout.
func ExampleWithLogger() {
	cluster := must(zktest.New())
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	check(err)
	defer conn.Close()
	var text bytes.Buffer
	wrapped := struct{ recipes.Conn }{conn} // it hides the type of conn
	lock := must(recipes.NewInterProcessMutex(wrapped, "/locks/report",
		recipes.WithLogger(slog.New(slog.NewTextHandler(&text, nil)))))
	check(recipes.Do(context.Background(), lock,
		func(context.Context, *recipes.Hold) error { return nil }))
	fmt.Println(strings.Contains(text.String(), "level=WARN"))
	// Output: true
}

// Options that all locks of a program share are kept in a slice.
func ExampleOption() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ours := []recipes.Option{
		recipes.WithData([]byte("host-17")),
		recipes.WithLogger(slog.Default()),
	}
	lock := must(recipes.NewInterProcessMutex(client, "/locks/shared-options", ours...))
	ctx := recipes.WithOwner(context.Background())
	check(lock.Acquire(ctx))
	for _, p := range must(lock.Participants(ctx)) {
		fmt.Printf("%s\n", p.Data)
	}
	if err := lock.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: host-17
}

// A rotating login asks for the password at each handshake, so that it can change while
// the program runs.
type rotating struct {
	user     string
	password func() string
}

func (r rotating) String() string { return "DIGEST-MD5 as " + r.user }

func (r rotating) Begin(host string) (recipes.SASLExchange, error) {
	return recipes.SASLDigestMD5(r.user, r.password()).Begin(host)
}

// Servers that require SASL want a user and a password, which may change.
func ExampleWithSASL() {
	cluster := must(zktest.New(
		zktest.WithSASLUsers(map[string]string{"bob": "hunter2"}),
	))
	defer cluster.Close()
	wrong := recipes.SASLDigestMD5("bob", "guess")
	changing := rotating{"bob", func() string { return "hunter2" }}
	for _, login := range []recipes.SASL{wrong, changing} {
		client, err := recipes.Connect(context.Background(), cluster.Addrs()[0],
			10*time.Second, recipes.WithSASL(login))
		fmt.Println(err == nil)
		if err == nil {
			client.Close()
		}
	}
	// Output:
	// false
	// true
}
