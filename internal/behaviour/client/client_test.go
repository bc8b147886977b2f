package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// clientPatience is far more than a healthy server needs, and much less than a client
// that retries what is hopeless would take.
const clientPatience = 20 * time.Second

// clientAtOnce is the most that a call may take which has nothing to wait for.
const clientAtOnce = 5 * time.Second

// clientLeaks fails the test if a goroutine is left at its end that was not there before.
// Such a test must not be parallel to others.
func clientLeaks(t *testing.T) {
	t.Helper()
	if zkserver.Virtual(t) {
		return // a bubble does not end before all its goroutines have
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before,
			// What restarting and freezing a server leaves: the child's waiter, idle
			// connections to a container engine.
			goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/internal/"+
				"zkserver.(*processHost).start.func1"),
			// of a server in this process
			goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/zktest.(*conn).read"),
			goleak.IgnoreAnyFunction("github.com/zkrecipes/recipes/zktest.(*conn).write"),
			goleak.IgnoreAnyFunction(
				"github.com/zkrecipes/recipes/zktest.(*Cluster).accept",
			),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	})
}

func clientContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientPatience)
	t.Cleanup(cancel)
	return ctx
}

// untilRedialled returns a ctx for Connect that ends when an attempt has failed, and the
// option by which it does: with the second dial.
func untilRedialled(t *testing.T) (context.Context, recipes.ClientOption) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var dials atomic.Int32
	return ctx, recipes.WithDialer(
		func(network, addr string, timeout time.Duration) (net.Conn, error) {
			if dials.Add(1) == 2 {
				cancel()
			}
			return net.DialTimeout(network, addr, timeout)
		})
}

// clientFor is a client that must connect, closed at the end of the test.
func clientFor(
	t *testing.T, servers string, opts ...recipes.ClientOption,
) *recipes.Client {
	t.Helper()
	c, err := locktest.Open(clientContext(t), t, servers, 10*time.Second, opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestConnectReportsWhatTheServerGrants(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers := zkserver.Shared(t).Connect()
		clientLeaks(t)

		for _, asked := range []time.Duration{
			time.Millisecond, 10 * time.Second, time.Hour,
		} {
			c, err := locktest.Open(clientContext(t), t, servers, asked)
			require.NoError(t, err)
			granted := c.SessionTimeout()
			switch asked {
			case time.Millisecond:
				require.Greater(t, granted, asked)
			case time.Hour:
				require.Less(t, granted, asked)
			default:
				require.Equal(t, asked, granted)
			}
			require.Equal(t, zk.StateHasSession, c.State())
			require.NotZero(t, c.SessionID())
			require.Equal(t, c.SessionID(), c.Unwrap().SessionID())
			c.Close()
		}
	})
}

func TestChrootIsCreatedAndHidden(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		outside := clientFor(t, servers)

		// missing, nested, existing
		for _, chroot := range []string{root, root + "/a/b", root + "/a"} {
			c := clientFor(t, servers+chroot)
			acl := zk.WorldACL(zk.PermAll)

			created, err := c.Create("/n", []byte("1"), 0, acl)
			require.NoError(t, err)
			require.Equal(t, "/n", created)
			data, stat, err := outside.Get(chroot + "/n")
			require.NoError(t, err)
			require.Equal(t, "1", string(data))
			require.Zero(t, stat.EphemeralOwner)

			_, err = c.Set("/n", []byte("2"), 0)
			require.NoError(t, err)
			data, _, changed, err := c.GetW("/n")
			require.NoError(t, err)
			require.Equal(t, "2", string(data))
			_, _, listed, err := c.ChildrenW("/n")
			require.NoError(t, err)

			sequential, err := c.Create(
				"/n/s-", nil, zk.FlagSequence|zk.FlagEphemeral, acl)
			require.NoError(t, err)
			require.Equal(t, "/n/s-0000000000", sequential)
			require.Equal(
				t, chroot+"/n", (<-listed).Path, "an event carries the server's path",
			)
			container, err := c.CreateContainer("/n/c", nil, zk.FlagContainer, acl)
			require.NoError(t, err)
			require.Equal(t, "/n/c", container)
			children, _, err := c.Children("/n")
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"c", "s-0000000000"}, children)

			synced, err := c.Sync("/n")
			require.NoError(t, err)
			require.Equal(t, "/n", synced)
			for _, path := range []string{"/n/c", sequential, "/n"} {
				require.NoError(t, c.Delete(path, -1))
			}
			require.Equal(t, zk.EventNodeDeleted, (<-changed).Type)
			_, _, err = outside.Get(chroot + "/n")
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
	})
}

func TestChrootIsCreatedByManyAtOnce(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				c, err := locktest.Open(
					clientContext(t), t, servers+root+"/a/b/c/d", 10*time.Second,
				)
				if assert.NoError(t, err) {
					c.Close()
				}
			})
		}
		all.Wait()
	})
}

func TestChrootItselfIsTheRoot(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, chroot := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		outside, c := clientFor(t, servers), clientFor(t, servers+chroot)

		_, err := c.Set("/", []byte("here"), -1)
		require.NoError(t, err)
		data, _, err := outside.Get(chroot)
		require.NoError(t, err)
		require.Equal(t, "here", string(data))
		synced, err := c.Sync("/")
		require.NoError(t, err)
		require.Equal(t, "/", synced)

		created, err := c.Create("/", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.Equal(t, "/0000000000", created)
		_, _, err = outside.Get(chroot + "/0000000000")
		require.NoError(t, err, "a child of the chroot, not a sibling")

		flags := int32(zk.FlagSequence | zk.FlagEphemeral)
		created, err = outside.Create("/", nil, flags, zk.WorldACL(zk.PermAll))
		require.NoError(t, err, "without a chroot")
		require.Regexp(t, `^/\d{10}$`, created)
	})
}

// The server closes the connection on a request that is too long, again and again. What
// counts is the path that it sees.
func TestTheLargestDataBelowAChroot(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		for _, chroot := range []string{"", strings.Repeat("/tenant-0123456789", 20)} {
			c := clientFor(t, servers+root+chroot)
			mutex := func(size int) (*recipes.InterProcessMutex, error) {
				return recipes.NewInterProcessMutex(
					c, "/m", recipes.WithData(make([]byte, size)),
				)
			}
			tooMuch := sort.Search(1<<20, func(size int) bool {
				_, err := mutex(size)
				return err != nil
			})
			_, err := mutex(tooMuch)
			require.ErrorContains(t, err,
				fmt.Sprintf("exceed the maximum of %d", tooMuch-1))
			require.Greater(t, tooMuch, 1<<20-1000)
			lock, err := mutex(tooMuch - 1)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(locktest.Owner(t), clientPatience)
			defer cancel()
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		}
	})
}

func TestNoPathLeadsOutOfTheChroot(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, chroot := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		outside, c := clientFor(t, servers), clientFor(t, servers+chroot)
		acl := zk.WorldACL(zk.PermAll)

		for _, path := range []string{
			"", "sibling", "/../sibling", "/x/..", "/x/", "//x",
		} {
			_, err := c.Create(path, nil, 0, acl)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, err = c.CreateContainer(path, nil, zk.FlagContainer, acl)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			require.ErrorIs(t, c.Delete(path, -1), zk.ErrInvalidPath, path)
			_, _, err = c.Get(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, _, _, err = c.GetW(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, err = c.Set(path, nil, -1)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, _, err = c.Children(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, _, _, err = c.ChildrenW(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
			_, err = c.Sync(path)
			require.ErrorIs(t, err, zk.ErrInvalidPath, path)
		}
		_, _, err := outside.Get(chroot + "sibling")
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

func TestChrootThatMayNotBeCreated(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		outside := clientFor(t, servers)
		_, err := outside.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		_, err = outside.Create(root+"/there", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		_, err = outside.Unwrap().SetACL(root, zk.WorldACL(zk.PermRead), -1)
		require.NoError(t, err)

		start := time.Now()
		_, err = locktest.Open(
			clientContext(t), t, servers+root+"/missing/deep", 10*time.Second,
		)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, root+"/missing/deep")
		require.ErrorContains(t, err, "lacks CREATE on "+root+")")
		require.Less(t, time.Since(start), clientAtOnce)

		c := clientFor(t, servers+root+"/there")
		_, err = c.Create("/n", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err, "what exists needs no permission to create it")
	})
}

func TestConnectRefusesBadArguments(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	refuse := func(
		word, servers string, timeout time.Duration, opts ...recipes.ClientOption,
	) {
		t.Helper()
		c, err := recipes.Connect(t.Context(), servers, timeout, opts...)
		require.Nil(t, c)
		require.ErrorContains(t, err, "Connect")
		require.ErrorContains(t, err, word)
	}
	for _, servers := range []string{
		"", " ", ",", "/", "/chroot", "h,", ",h", "h,,i",
		"h:", ":2181", "h:x", "h:0", "h:-1", "h:65536", "h:1:2", "::1", "[::1",
		"[]:2181", "[::1]x", "zk://h:2181", "h i", "user@h", "h/a,i/a",
		"h//a", "h/a/", "h/a//b", "h/.", "h/a/../b", "h/a/./b", "h/a\x00", "h/a\u007f",
		"h/\xff",
	} {
		refuse("connect string", servers, time.Second)
	}
	for _, timeout := range []time.Duration{
		0, -time.Second, time.Microsecond, math.MaxInt64,
		(math.MaxInt32 + 1) * time.Millisecond,
	} {
		refuse("session timeout", "h", timeout)
	}
	refuse("option 1", "h", math.MaxInt32*time.Millisecond, nil) // a good timeout
	refuse("option 1", "h", time.Second, nil)
	refuse("WithTLS", "h", time.Second, recipes.WithTLS(nil))
	refuse("WithClientServerTick", "h", time.Second, recipes.WithClientServerTick(0))
	refuse("WithClientServerTick: 2562047h47m16.854775807s exceeds", "h", time.Second,
		recipes.WithClientServerTick(math.MaxInt64))
	refuse("WithAuth", "h", time.Second, recipes.WithAuth("", []byte("x")))
	refuse("WithDialer", "h", time.Second, recipes.WithDialer(nil))
	refuse("WithHostProvider", "h", time.Second, recipes.WithHostProvider(nil))
	refuse("WithHostProvider", "h", time.Second,
		recipes.WithHostProvider((*clientOrder)(nil)))
	refuse("WithClientLogger", "h", time.Second, recipes.WithClientLogger(nil))
}

func TestDigestAuthentication(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, node := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)

		owner := clientFor(t, servers, recipes.WithAuth("digest", []byte("anna:secret")))
		_, err := owner.Create(
			node, []byte("hers"), 0, zk.DigestACL(zk.PermAll, "anna", "secret"),
		)
		require.NoError(t, err)

		// The second of two credentials counts as well as the first.
		right := clientFor(t, servers,
			recipes.WithAuth("digest", []byte("bert:other")),
			recipes.WithAuth("digest", []byte("anna:secret")))
		data, _, err := right.Get(node)
		require.NoError(t, err)
		require.Equal(t, "hers", string(data))

		guess := []byte("anna:guess!")
		withGuess := recipes.WithAuth("digest", guess)
		copy(guess, "anna:secret") // the option has a copy
		wrong := clientFor(t, servers, withGuess)
		_, _, err = wrong.Get(node)
		require.ErrorIs(t, err, zk.ErrNoAuth)

		start := time.Now()
		_, err = locktest.Open(
			clientContext(t), t, servers, 10*time.Second,
			recipes.WithAuth("no-such-scheme", []byte("x")),
		)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "no-such-scheme")
		require.Less(t, time.Since(start), clientAtOnce)
	})
}

func TestChrootInsideAProtectedParentNeedsTheCredentials(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, root := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		anna := recipes.WithAuth("digest", []byte("anna:secret"))
		_, err := clientFor(t, servers, anna).Create(
			root, nil, 0, zk.DigestACL(zk.PermAll, "anna", "secret"),
		)
		require.NoError(t, err)

		_, err = locktest.Open(clientContext(t), t, servers+root+"/app", 10*time.Second)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		clientFor(t, servers+root+"/app", anna) // sends the credentials before it creates
	})
}

func TestClientOutlivesARestartOfTheServer(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		cluster := zkserver.Start(t)
		clientLeaks(t)
		c := clientFor(t, cluster.Connect()+"/app")
		session := c.SessionID()
		_, err := c.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)

		require.NoError(t, cluster.Servers[0].Kill())
		require.NoError(t, cluster.Servers[0].Restart())

		require.Eventually(t, func() bool {
			_, stat, err := c.Get("/mine")
			return err == nil && stat.EphemeralOwner == session
		}, clientPatience, 50*time.Millisecond)
		require.Equal(t, 10*time.Second, c.SessionTimeout())
	})
}

func TestConnectToAFrozenServerWaitsForItToThaw(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		cluster := zkserver.Start(t)
		clientLeaks(t)
		require.NoError(t, cluster.Servers[0].Freeze())

		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := locktest.Open(ctx, t, cluster.Connect(), 10*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "still waiting for "+cluster.Servers[0].Addr)
		require.Less(t, time.Since(start), 300*time.Millisecond+clientAtOnce)

		done := make(chan error, 1)
		go func() {
			c, err := locktest.Open(clientContext(t), t, cluster.Connect(),
				10*time.Second)
			if err == nil {
				c.Close()
			}
			done <- err
		}()
		require.NoError(t, cluster.Servers[0].Thaw())
		require.NoError(t, <-done)
	})
}

func TestCloseAgainstAFrozenServer(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		cluster := zkserver.Start(t)
		clientLeaks(t)
		c, err := locktest.Open(clientContext(t), t, cluster.Connect(), 10*time.Second)
		require.NoError(t, err)
		_, _, watch, err := c.GetW("/")
		require.NoError(t, err)
		require.NoError(t, cluster.Servers[0].Freeze())

		pending := make(chan error, 1)
		go func() {
			_, _, err := c.Get("/")
			pending <- err
		}()
		start := time.Now()
		c.Close()
		require.Less(t, time.Since(start), 3*time.Second)
		require.ErrorIs(t, <-pending, zk.ErrConnectionClosed)
		require.ErrorIs(
			t, (<-watch).Err, zk.ErrClosing,
			"a watch is told, although the server is silent",
		)
	})
}

func TestCloseInAnOutageTellsAllWatches(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		cluster := zkserver.Start(t)
		clientLeaks(t)
		c, err := locktest.Open(clientContext(t), t, cluster.Connect(), 10*time.Second)
		require.NoError(t, err)
		watches := make([]<-chan zk.Event, 300)
		for i := range watches {
			path, err := c.Create(
				"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll),
			)
			require.NoError(t, err)
			_, _, watches[i], err = c.GetW(path)
			require.NoError(t, err)
		}
		require.NoError(t, cluster.Servers[0].Kill())
		require.Eventually(
			t, func() bool { return c.State() != zk.StateHasSession }, clientPatience,
			time.Millisecond,
		)

		c.Close()
		for _, watch := range watches {
			select {
			case e := <-watch:
				require.ErrorIs(t, e.Err, zk.ErrClosing)
			default:
				require.Fail(t, "Close has returned, and a watch still waits")
			}
		}
	})
}

func TestCloseEndsTheSession(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers, node := zkserver.Shared(t).Connect(), zkserver.Path(t)
		clientLeaks(t)
		outside := clientFor(t, servers)
		c, err := locktest.Open(clientContext(t), t, servers, 10*time.Second)
		require.NoError(t, err)
		_, err = c.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)

		var all sync.WaitGroup
		for range 4 {
			all.Go(c.Close)
		}
		all.Wait()
		_, _, err = outside.Get(node)
		require.ErrorIs(
			t, err, zk.ErrNoNode, "the server has ended the session when Close returns",
		)
		c.Close()
		clientRequireClosed(t, c)
	})
}

// clientRequireClosed requires that no method works any more.
func clientRequireClosed(t *testing.T, c *recipes.Client) {
	t.Helper()
	acl := zk.WorldACL(zk.PermAll)
	calls := map[string]func() error{
		"Children":  func() error { _, _, err := c.Children("/"); return err },
		"ChildrenW": func() error { _, _, _, err := c.ChildrenW("/"); return err },
		"Create": func() error {
			_, err := c.Create("/x", nil, 0, acl)
			return err
		},
		"CreateContainer": func() error {
			_, err := c.CreateContainer("/x", nil, zk.FlagContainer, acl)
			return err
		},
		"Delete": func() error { return c.Delete("/x", -1) },
		"Get":    func() error { _, _, err := c.Get("/"); return err },
		"GetW":   func() error { _, _, _, err := c.GetW("/"); return err },
		"Set":    func() error { _, err := c.Set("/", nil, -1); return err },
		"Sync":   func() error { _, err := c.Sync("/"); return err },
	}
	for name, call := range calls {
		err := call()
		require.ErrorIs(t, err, zk.ErrConnectionClosed, name)
		require.ErrorContains(t, err, "client was closed", name)
	}
}

func TestConnectWithAContextThatIsDone(t *testing.T) {
	before := goleak.IgnoreCurrent()
	why := errors.New("not today")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := recipes.Connect(ctx, "h", time.Second, recipes.WithDialer(nil))
	require.ErrorContains(t, err, "WithDialer", "bad arguments are told also then")

	var untouched clientOrder
	_, err = recipes.Connect(ctx, "h", time.Second, recipes.WithHostProvider(&untouched))
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, `Connect to "h"`)
	goleak.VerifyNone(t, before)
	require.Nil(t, untouched.servers)
}
