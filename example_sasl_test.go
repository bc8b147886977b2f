package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

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
