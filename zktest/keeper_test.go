package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// Whoever comes back to a Keeper gets another session, without a word about the former
// one, whose ephemeral znodes last for its timeout.
func TestAKeeperResumesNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, other := three(t, zktest.WithKeeper())
		watcher := connectTo(t, c, other)
		raw := dialRaw(t, c.Link("ours"), server).open(11 * time.Second)
		require.Equal(t, 11*time.Second, raw.timeout)
		require.Equal(t, make([]byte, 16), raw.secret)
		raw.send(creation(1, "/mine", zk.FlagEphemeral))
		require.Equal(t, outcome{1, 0}, raw.answer())
		_, _, gone, err := watcher.ExistsW("/mine")
		require.NoError(t, err)
		heard := time.Now()
		_ = raw.Close()

		again := dialRaw(t, c.Link("ours"), server)
		require.True(t, again.reopen(raw))
		require.NotEqual(t, raw.session, again.session)
		require.Contains(t, c.Sessions(), raw.session)
		require.Equal(t, []string{"/mine"}, c.Znodes())
		require.Equal(t, zk.EventNodeDeleted, soon(t, gone).Type)
		require.GreaterOrEqual(t, time.Since(heard), 11*time.Second)
		require.LessOrEqual(t, time.Since(heard), 11*time.Second+tickTime+tickTime/2)
	})
}

func TestTimeoutsOfAKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			opts          []zktest.Option
			asked, wanted time.Duration
		}{
			{nil, time.Second, 10 * time.Second},
			{nil, 11 * time.Second, 11 * time.Second},
			{nil, time.Hour, 100 * time.Second},
			{[]zktest.Option{zktest.WithMinSessionTimeout(time.Second)}, 0, time.Second},
			{
				[]zktest.Option{zktest.WithMinSessionTimeout(time.Hour)},
				0, time.Hour,
			},
			{[]zktest.Option{zktest.WithMaxSession(time.Minute)}, time.Hour, time.Minute},
		} {
			c := zktest.Start(t, append(tc.opts, zktest.WithKeeper())...)
			raw := dialRaw(t, c.Link(""), c.Server(0)).open(tc.asked)
			require.Equal(t, tc.wanted, raw.timeout)
		}
	})
}

func TestAKeeperWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := three(t, zktest.WithKeeper())
		for _, s := range without(c.Servers(), server) {
			s.Stop()
		}
		raw := dialRaw(t, c.Link(""), server)
		raw.send(greeting(&rawClient{}, time.Minute, 0))
		answer := raw.frame()
		require.NotNil(t, answer)
		require.Equal(t, int32(42), answer.getInt32())
		require.Equal(t, int32(60_000), answer.getInt32())
		require.Equal(t, int64(-1), answer.getInt64())
		require.True(t, raw.hungUp())
	})
}

// At a request that it does not know a Keeper hangs up without an answer. A later version
// knows more.
func TestAKeeperThatIsOld(t *testing.T) {
	container := func(xid int32) []byte {
		return ask(xid, 19, func(b *buffer) {
			b.bytes([]byte("/container"))
			b.bytes(nil)
			b.acl(anyone)
			b.int32(4)
		})
	}
	watches := func(xid int32) []byte {
		return ask(xid, 101, func(b *buffer) {
			b.int64(0)
			b.int32(0)
			b.int32(0)
			b.int32(0)
		})
	}
	for name, request := range map[string]func(xid int32) []byte{
		"create container": container, "set watches": watches,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t, zktest.WithKeeper(
					zktest.OpSetWatches, zktest.OpCreateContainer,
				))
				old := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
				old.send(request(1))
				require.True(t, old.hungUp())
				require.Empty(t, c.Znodes())
				require.Equal(t, []int64{old.session}, c.Sessions())

				c = zktest.Start(t, zktest.WithKeeper())
				today := dialRaw(t, c.Link(""), c.Server(0)).open(sessionTimeout)
				today.send(request(1))
				require.Equal(t, outcome{1, 0}, today.answer())
			})
		})
	}
}

// What a follower answers by itself does not keep a session alive, unlike in ZooKeeper.
func TestReadsFromAKeeperThatFollows(t *testing.T) {
	for name, tc := range map[string]struct {
		request func(xid int32) []byte
		lasts   bool
	}{
		"read":  {func(xid int32) []byte { return existence(xid, "/x") }, false},
		"sync":  {synchrony, true},
		"ping":  {func(int32) []byte { return ping() }, true},
		"write": {func(xid int32) []byte { return creation(xid, "/x", 0) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server, _ := three(t, zktest.WithKeeper())
				raw := dialRaw(t, c.Link(""), server).open(sessionTimeout)
				for xid := range int32(2 * sessionTimeout / tickTime) {
					raw.send(tc.request(xid + 1))
					raw.answer()
					pass(tickTime)
					if len(c.Sessions()) == 0 {
						break
					}
				}
				require.Equal(t, tc.lasts, len(c.Sessions()) == 1)
			})
		})
	}
}
