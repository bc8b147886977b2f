package client_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

const (
	saslUser     = "bob"
	saslPassword = "hunter2, =Жук" //nolint:gosec // of the test's own server
	saslTimeout  = 6 * time.Second
)

var saslUsers = map[string]string{saslUser: saslPassword, "ann": "secret"}

// saslACL is for the user alone.
func saslACL() []zk.ACL {
	return []zk.ACL{{Scheme: "sasl", ID: saslUser, Perms: zk.PermAll}}
}

// saslServers starts servers that know these users of SASL.
func saslServers(t *testing.T, users map[string]string, servers int) (addrs []string) {
	t.Helper()
	options := []zkserver.Option{zkserver.Servers(servers)}
	if users != nil {
		options = append(options, zkserver.SASLUsers(users))
	}
	for _, s := range zkserver.Start(t, options...).Servers {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// A saslNet dials, and cuts what it dialled last.
type saslNet struct {
	through zk.Dialer

	mu   sync.Mutex // guards what follows
	last net.Conn
	to   []string
}

func (n *saslNet) dial(network, address string, d time.Duration) (net.Conn, error) {
	conn, err := n.through(network, address, d)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last, n.to = conn, append(n.to, address)
	return conn, err
}

func (n *saslNet) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last.Close()
}

func saslConnect(
	t *testing.T, servers []string, opts ...recipes.ClientOption,
) (*recipes.Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := locktest.Open(ctx, t, strings.Join(servers, ","), saslTimeout, opts...)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

func saslMust(
	t *testing.T, servers []string, opts ...recipes.ClientOption,
) *recipes.Client {
	t.Helper()
	c, err := saslConnect(t, servers, opts...)
	require.NoError(t, err)
	return c
}

func asUser(user, password string) recipes.ClientOption {
	return recipes.WithSASL(recipes.SASLDigestMD5(user, password))
}

// saslLog logs all that there is.
func saslLog(log *hostileLog) recipes.ClientOption {
	return recipes.WithClientLogger(slog.New(slog.NewTextHandler(log,
		&slog.HandlerOptions{Level: slog.LevelDebug})))
}

func TestSASL(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, servers []string){
		"rights": saslRights, "lock": saslLock, "refused": saslRefused,
		"cut":   func(t *testing.T, servers []string) { saslCut(t, servers[:1]) },
		"moved": saslCut,
	} {
		zkserver.Run(t, name,
			func(t *testing.T) { test(t, saslServers(t, saslUsers, 3)) })
	}
}

// What an ACL gives to a user of SASL is that user's alone.
func saslRights(t *testing.T, servers []string) {
	bob := saslMust(t, servers, asUser(saslUser, saslPassword))
	others := map[string]*recipes.Client{
		"ann":    saslMust(t, servers, asUser("ann", "secret")),
		"nobody": saslMust(t, servers),
	}
	byAuth := zk.AuthACL(zk.PermAll)
	for i, acl := range [][]zk.ACL{saslACL(), byAuth} {
		path := fmt.Sprint(zkserver.Path(t), i)
		_, err := bob.Create(path, []byte("x"), 0, acl)
		require.NoError(t, err)
		_, _, err = bob.Get(path)
		require.NoError(t, err)
		given, _, err := bob.Unwrap().GetACL(path)
		require.NoError(t, err)
		require.Equal(t, saslACL(), given)
		for name, other := range others {
			_, err = other.Sync(path)
			require.NoError(t, err)
			_, _, err = other.Get(path)
			require.ErrorIs(t, err, zk.ErrNoAuth, name)
			_, err = other.Set(path, nil, -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, name)
		}
	}
	for id, want := range map[string]error{
		"a": nil, "a/b@c": nil, "a@b@c": zk.ErrInvalidACL, "a/b/c@d": zk.ErrInvalidACL,
	} {
		_, err := bob.Create(zkserver.Path(t), nil, 0, []zk.ACL{
			{Scheme: "sasl", ID: id, Perms: zk.PermAll},
		})
		require.ErrorIs(t, err, want, id)
	}
}

func saslLock(t *testing.T, servers []string) {
	path := zkserver.Path(t)
	bob := saslMust(t, servers, asUser(saslUser, saslPassword))
	lock := locktest.NewMutex(t, bob, path, recipes.WithACL(saslACL()))
	require.NoError(t, lock.Acquire(t.Context()))
	ann := saslMust(t, servers, asUser("ann", "secret"))
	_, err := ann.Sync(path)
	require.NoError(t, err)
	theirs := locktest.NewMutex(t, ann, path)
	_, err = theirs.AcquireTimeout(t.Context(), time.Minute)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, lock.Release(t.Context()))
}

// Connect ends at once, and says who was refused, and no password.
func saslRefused(t *testing.T, servers []string) {
	for name, login := range map[string][2]string{
		"wrong password": {saslUser, "guess"}, "unknown user": {"eve", "nobody's"},
		"another's password": {"ann", saslPassword},
	} {
		log := &hostileLog{}
		began := time.Now()
		_, err := saslConnect(t, servers, asUser(login[0], login[1]), saslLog(log))
		require.ErrorIs(t, err, zk.ErrAuthFailed, name)
		require.ErrorContains(t, err, fmt.Sprintf("DIGEST-MD5 as %q", login[0]))
		require.ErrorContains(t, err, "the server refuses it")
		require.Contains(t, log.String(), "level=ERROR")
		require.NotContains(t, err.Error()+log.String(), login[1])
		require.Less(t, time.Since(began), 10*time.Second)
	}
}

// A session keeps its rights when it goes on through another connection, before anything
// that waits for it is sent.
func saslCut(t *testing.T, servers []string) {
	zkserver.Resuming(t)
	network := &saslNet{through: zkserver.Dial(t)}
	bob := saslMust(t, servers, asUser(saslUser, saslPassword),
		recipes.WithDialer(network.dial), recipes.WithHostProvider(&clientOrder{}))
	path := zkserver.Path(t)
	_, err := bob.Create(path, []byte("x"), 0, saslACL())
	require.NoError(t, err)
	session := bob.SessionID()
	for range 3 {
		_, _, events, err := bob.GetW(path)
		require.NoError(t, err)
		network.cut()
		saslOnceConnected(t, func() error {
			_, err := bob.Set(path, []byte("y"), -1)
			return err
		})
		select {
		case e := <-events:
			require.Equal(t, zk.EventNodeDataChanged, e.Type, "its watch was set again")
		case <-time.After(saslTimeout):
			t.Fatal("no event")
		}
	}
	require.Equal(t, session, bob.SessionID())
	network.mu.Lock()
	defer network.mu.Unlock()
	require.Equal(t, len(servers), len(distinct(network.to)))
}

// saslOnceConnected calls until the call gets through.
func saslOnceConnected(t *testing.T, call func() error) {
	t.Helper()
	for end := time.Now().Add(saslTimeout); ; time.Sleep(10 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		require.NotErrorIs(t, err, zk.ErrNoAuth)
		require.NotErrorIs(t, err, zk.ErrAuthFailed)
		require.True(t, time.Now().Before(end), err)
	}
}

func distinct(all []string) map[string]bool {
	found := map[string]bool{}
	for _, one := range all {
		found[one] = true
	}
	return found
}

// A server without SASL answers every message with a null token.
func TestSASLWithAServerThatHasNone(t *testing.T) {
	zkserver.Test(t, func(t *testing.T) {
		servers := saslServers(t, nil, 1)
		_, err := saslConnect(t, servers, asUser(saslUser, saslPassword))
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the server does not use SASL")
		require.ErrorContains(t, err, `DIGEST-MD5 as "bob"`)
		c := saslMust(t, servers)
		_, err = c.Create(zkserver.Path(t), nil, 0, saslACL())
		require.ErrorIs(t, err, zk.ErrInvalidACL, "it has no such scheme, either")
	})
}

// Servers that want SASL get it before anything else, and whoever does not bring it is
// told what is missing.
func TestSASLThatTheServersRequire(t *testing.T) {
	zkserver.Real(t, "sessionRequireClientSASLAuth")
	for name, flags := range map[string][]string{
		"sessionRequireClientSASLAuth": {"-Dzookeeper.sessionRequireClientSASLAuth=true"},
		"enforce.auth": {
			"-Dzookeeper.enforce.auth.enabled=true",
			"-Dzookeeper.enforce.auth.schemes=sasl",
		},
		"allowSaslFailedClients": {
			"-Dzookeeper.allowSaslFailedClients=true",
			"-Dzookeeper.enforce.auth.enabled=true",
			"-Dzookeeper.enforce.auth.schemes=sasl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := zkserver.Start(t, zkserver.SASLUsers(saslUsers),
				zkserver.JVM(flags...)).Servers[0]
			servers := []string{server.Addr + "/chroot"}
			network := &saslNet{through: zkserver.Dial(t)}
			bob := saslMust(t, servers, asUser(saslUser, saslPassword),
				recipes.WithDialer(network.dial))
			network.cut()
			saslOnceConnected(t, func() error {
				_, err := bob.Create("/a", nil, 0, saslACL())
				return err
			})
			_, err := saslConnect(t, servers, asUser(saslUser, "guess"))
			require.ErrorIs(t, err, zk.ErrAuthFailed)

			_, err = saslConnect(t, servers)
			require.ErrorIs(t, err, zk.ErrAuthFailed)
			require.ErrorContains(t, err, "the server requires authentication")
			log := &hostileLog{}
			nobody := saslMust(t, []string{server.Addr}, saslLog(log))
			_, _, err = nobody.Get("/")
			require.ErrorIs(t, err, zk.ErrAuthFailed)
			nobody.Close()
			require.Contains(t, log.String(), "set WithSASL")
		})
	}
}

// ZooKeeper 3.8.0 keeps the name of the user that was looked up last for all connections,
// and an unknown name leaves it as it is: whoever knows a password can log in by any name
// that nobody has. docs/security.md says so. 3.9 has no such defect, from 3.9.3 on.
func TestARealServerTakesUnknownUsersWithTheLastPassword(t *testing.T) {
	zkserver.Real(t, "that defect")
	servers := []string{
		zkserver.Start(t, zkserver.SASLUsers(saslUsers)).Servers[0].Addr,
	}
	saslMust(t, servers, asUser(saslUser, saslPassword))
	if fixed := !strings.HasPrefix(versionOf(t, servers[0]), "3.8.0"); fixed {
		_, err := saslConnect(t, servers, asUser("eve", saslPassword))
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		return
	}
	eve := saslMust(t, servers, asUser("eve", saslPassword))
	path := zkserver.Path(t)
	_, err := eve.Create(path, nil, 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	acl, _, err := eve.Unwrap().GetACL(path)
	require.NoError(t, err)
	require.Equal(t, []zk.ACL{{Scheme: "sasl", ID: "eve", Perms: zk.PermAll}}, acl)
}

// versionOf returns the version of a server, as its command srvr begins with it.
func versionOf(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "srvr")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	version, found := strings.CutPrefix(string(answer), "Zookeeper version: ")
	require.True(t, found, "%s", answer)
	return version
}
