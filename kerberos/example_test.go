package kerberos_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/kerberos"
)

// A service logs in by its keytab. What it creates is its own.
func ExampleFromKeytab() {
	ctx := context.Background()
	login, err := kerberos.FromKeytab("batch/host1.example.com@EXAMPLE.COM",
		"/etc/security/batch.keytab")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := recipes.Connect(ctx, "zk1.example.com:2181", 10*time.Second,
		recipes.WithSASL(login))
	if err != nil {
		fmt.Println(err) // matches zk.ErrAuthFailed if the login was rejected
		return
	}
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, "/locks/report",
		recipes.WithACL(zk.AuthACL(zk.PermAll)))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
		return report(ctx, hold.FencingToken())
	})
	fmt.Println(err)
}

func report(context.Context, int64) error { return nil }

// A person has run kinit.
func ExampleFromCache() {
	login, err := kerberos.FromCache(kerberos.WithConfigFile("/etc/krb5.conf"),
		kerberos.WithService("zookeeper"))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := recipes.Connect(context.Background(), "zk1.example.com:2181",
		10*time.Second, recipes.WithSASL(login))
	if err != nil {
		fmt.Println(err)
		return
	}
	client.Close()
}
