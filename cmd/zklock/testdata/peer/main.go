// Peer uses Go's locks as a test tells it to, by the protocol of test/interop: one line
// for each command on standard input, "ID THREAD VERB ARGUMENT...", and one line of
// answer, "ID ok VALUE..." or "ID failed ERROR". It ends with its standard input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// A lock is one for a single owner.
type lock interface {
	acquire() error
	release() error
}

// ours is a mutex of this library.
type ours struct {
	*recipes.InterProcessMutex
	hold *recipes.Hold
}

func (o *ours) acquire() (err error) {
	o.hold, err = recipes.Acquire(recipes.WithOwner(context.Background()), o)
	return err
}

func (o *ours) release() error { return o.hold.Release(context.Background()) }

// theirs is a zk.Lock.
type theirs struct{ *zk.Lock }

func (t theirs) acquire() error { return t.Lock.Lock() }
func (t theirs) release() error { return t.Unlock() }

// A peer is one session. Its locks are made before they are used.
type peer struct {
	client *recipes.Client
	conn   *zk.Conn
	locks  map[string]lock
}

func main() {
	p := &peer{locks: map[string]lock{}}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch words[2] {
		case "acquire":
			go answer(words[0], nil, p.locks[words[3]].acquire)
		case "release":
			go answer(words[0], nil, p.locks[words[3]].release)
		case "make":
			answer(words[0], nil, func() error { return p.make(words[3], words[6]) })
		case "open", "openzk":
			var session string
			answer(words[0], &session, func() (err error) {
				session, err = p.open(words[2], words[4], words[5])
				return err
			})
		}
	}
}

func (p *peer) open(verb, servers, millis string) (session string, err error) {
	n, err := strconv.Atoi(millis)
	if err != nil {
		return "", err
	}
	timeout := time.Duration(n) * time.Millisecond
	if verb == "openzk" {
		conn, events, err := zk.Connect([]string{servers}, timeout, zk.WithLogInfo(false))
		if err != nil {
			return "", err
		}
		for e := range events {
			if e.State == zk.StateHasSession {
				break
			}
		}
		p.conn = conn
		return strconv.FormatInt(conn.SessionID(), 10), nil
	}
	p.client, err = recipes.Connect(context.Background(), servers, timeout)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(p.client.SessionID(), 10), nil
}

func (p *peer) make(name, path string) error {
	if p.conn != nil {
		p.locks[name] = theirs{zk.NewLock(p.conn, path, zk.WorldACL(zk.PermAll))}
		return nil
	}
	mutex, err := recipes.NewInterProcessMutex(p.client, path)
	p.locks[name] = &ours{InterProcessMutex: mutex}
	return err
}

// answer does a command, and says what it has come to: "ok", with a value if there is
// one.
func answer(id string, value *string, do func() error) {
	line := id + " ok"
	if err := do(); err != nil {
		line = id + " failed " + strings.Join(strings.Fields(err.Error()), " ")
	} else if value != nil {
		line += " " + *value
	}
	fmt.Println(line)
}
