package client_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A diary keeps what a Client tells its observer.
type diary struct {
	mu     sync.Mutex
	events []recipes.SessionEvent
}

func (d *diary) note(e recipes.SessionEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// kinds returns the kinds of the events so far, once all is told.
func (d *diary) kinds() (kinds []recipes.SessionEventKind) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// All observers are called, in the order in which they were given.
func TestSeveralClientObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		observe := func(name string) recipes.ClientOption {
			return recipes.WithClientObserver(func(e recipes.SessionEvent) {
				told = append(told, name+" "+e.Kind.String())
			})
		}
		cluster := zktest.Start(t)
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], 10*time.Second,
			recipes.WithDialer(cluster.Link("ours").Dial),
			observe("a"), observe("b"), observe("c"))
		require.NoError(t, err)
		client.Close()
		require.Equal(t, []string{
			"a connected", "b connected", "c connected",
			"a closed", "b closed", "c closed",
		}, told)
	})
}

func TestAClientTellsEachChangeOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told diary
		const timeout = 10 * time.Second
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], timeout,
			recipes.WithDialer(link.Dial), recipes.WithClientObserver(told.note))
		require.NoError(t, err)
		want := []recipes.SessionEventKind{recipes.SessionConnected}
		require.Equal(t, want, told.kinds())
		first := client.SessionID()

		link.Cut()
		time.Sleep(2 * time.Second) // and attempts to connect, which are no change
		want = append(want, recipes.SessionDisconnected)
		require.Equal(t, want, told.kinds())
		link.Heal()
		time.Sleep(2 * time.Second)
		want = append(want, recipes.SessionConnected)
		require.Equal(t, want, told.kinds())
		require.Equal(t, first, client.SessionID())

		require.True(t, cluster.ExpireSession(first))
		time.Sleep(5 * time.Second)
		want = append(want, recipes.SessionDisconnected, recipes.SessionExpired,
			recipes.SessionConnected)
		require.Equal(t, want, told.kinds())
		second := client.SessionID()
		require.NotEqual(t, first, second)

		client.Close()
		require.Equal(t, append(want, recipes.SessionClosed), told.kinds())
		errs := map[recipes.SessionEventKind]error{
			recipes.SessionDisconnected: zk.ErrConnectionClosed,
			recipes.SessionExpired:      zk.ErrSessionExpired,
		}
		for i, e := range told.events {
			id := first
			if i > 4 {
				id = second
			}
			require.Equal(t, recipes.SessionEvent{
				Kind: e.Kind, Server: cluster.Names()[0], Session: id, Timeout: timeout,
				Err: errs[e.Kind],
			}, e)
		}
	})
}

// Some servers begin another session without a word about the former (ClickHouse Keeper).
func TestAClientTellsOfASessionThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		var told diary
		hangUp := make(chan struct{})
		session := func(id int64) func(net.Conn) {
			return func(conn net.Conn) {
				go clientServe(id, 10*time.Second, nil)(conn)
				<-hangUp
			}
		}
		n := clientNet{"a:2181": clientInTurn(session(1), session(2))}
		client, err := recipes.Connect(t.Context(), "a", 10*time.Second,
			recipes.WithDialer(n.dial), recipes.WithClientObserver(told.note))
		require.NoError(t, err)
		hangUp <- struct{}{}
		time.Sleep(2 * time.Second)
		require.Equal(t, []recipes.SessionEventKind{
			recipes.SessionConnected, recipes.SessionDisconnected, recipes.SessionExpired,
			recipes.SessionConnected,
		}, told.kinds())
		require.Equal(t, int64(1), told.events[2].Session)
		require.Equal(t, int64(2), told.events[3].Session)
		close(hangUp)
		client.Close()
	})
}

// The observer holds nobody up: not the client, and Close for two seconds at most. It may
// call the Client, Close too.
func TestAClientObserverThatIsSlow(t *testing.T) {
	for name, slow := range map[string]func(*recipes.Client, context.Context){
		"it waits":  func(_ *recipes.Client, ctx context.Context) { <-ctx.Done() },
		"it asks":   func(c *recipes.Client, _ context.Context) { _, _ = c.Sync("/") },
		"it closes": func(c *recipes.Client, _ context.Context) { c.Close() },
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			cluster := zktest.Start(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			connected := make(chan *recipes.Client, 1)
			var told atomic.Int32
			client, err := recipes.Connect(t.Context(), cluster.Names()[0],
				10*time.Second, recipes.WithDialer(cluster.Link("ours").Dial),
				recipes.WithClientObserver(func(recipes.SessionEvent) {
					if told.Add(1) == 1 {
						slow(<-connected, ctx)
					}
				}))
			require.NoError(t, err)
			if name != "it closes" {
				_, err = client.Sync("/")
				require.NoError(t, err)
			}
			connected <- client
			began := time.Now()
			client.Close()
			require.LessOrEqual(t, time.Since(began), 3*time.Second)
			cancel()
			time.Sleep(time.Minute)
			require.EqualValues(t, 2, told.Load())
		})
	}
}

// What never had a session tells nothing.
func TestAConnectThatFailsTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		var told diary
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := clientNet{"a:2181": clientMute}
		_, err := recipes.Connect(ctx, "a", 10*time.Second,
			recipes.WithDialer(n.dial), recipes.WithClientObserver(told.note))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, told.kinds())
	})
}

// What happens while a Client closes is told no more. So the end is that of the session
// that the observer knows.
func TestAnExpiryWhileAClientCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told diary
		cluster := zktest.Start(t)
		client, err := recipes.Connect(t.Context(), cluster.Names()[0], 10*time.Second,
			recipes.WithDialer(cluster.Link("ours").Dial),
			recipes.WithClientObserver(told.note))
		require.NoError(t, err)
		session := client.SessionID()
		require.True(t, cluster.ExpireSession(session))
		time.Sleep(time.Second / 2) // it is about to connect again
		var next int64
		client.OnClose(func() {
			time.Sleep(900 * time.Millisecond)
			next = client.SessionID()
		})
		client.Close()
		require.NotEqual(t, session, next, "it has got another session meanwhile")
		require.Equal(t, []recipes.SessionEventKind{
			recipes.SessionConnected, recipes.SessionDisconnected, recipes.SessionClosed,
		}, told.kinds())
		require.Equal(t, session, told.events[2].Session)
	})
}
