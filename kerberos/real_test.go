package kerberos

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/kdc"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

const timeout = 6 * time.Second

// A place is a KDC and a ZooKeeper server that knows itself there as zookeeper/localhost.
type place struct {
	*kdc.KDC
	servers      string
	serverKeytab string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{KDC: kdc.Start(t)}
	p.Add(t, "zookeeper/localhost", "")
	p.serverKeytab = p.Keytab(t, "zookeeper/localhost", "server.keytab")
	cluster := zkserver.Start(t, zkserver.Kerberos(
		"zookeeper/localhost@"+kdc.Realm, p.serverKeytab, p.Config))
	_, port, err := net.SplitHostPort(cluster.Servers[0].Addr)
	require.NoError(t, err)
	p.servers = "localhost:" + port
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.Servers[0].Log())
		}
	})
	return p
}

// user adds a user, whose keytab it returns; options are those of kadmin's addprinc.
func (p *place) user(t *testing.T, name, options string) (keytab string) {
	t.Helper()
	p.Add(t, name, options)
	return p.Keytab(t, name, strings.ReplaceAll(name, "/", "-")+".keytab")
}

func (p *place) fromKeytab(t *testing.T, name, keytab string) *login {
	t.Helper()
	s, err := FromKeytab(name, keytab, WithConfigFile(p.Config))
	require.NoError(t, err)
	return s.(*login)
}

func (p *place) fromCache(t *testing.T, path string) *login {
	t.Helper()
	t.Setenv("KRB5CCNAME", "FILE:"+path)
	s, err := FromCache(WithConfigFile(p.Config))
	require.NoError(t, err)
	return s.(*login)
}

// A session is a Client whose connection can be cut, with all that it has logged.
type session struct {
	*recipes.Client
	mu   sync.Mutex // guards what follows
	last net.Conn
	log  strings.Builder
}

func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *session) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *session) dial(network, address string, d time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = conn
	return conn, err
}

func (s *session) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Close()
}

func (p *place) connect(t *testing.T, with recipes.SASL) (*session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	s := &session{}
	c, err := recipes.Connect(ctx, p.servers, timeout, recipes.WithSASL(with),
		recipes.WithDialer(s.dial), recipes.WithClientLogger(slog.New(
			slog.NewTextHandler(s, nil))))
	if err == nil {
		s.Client = c
		t.Cleanup(c.Close)
	}
	return s, err
}

func (p *place) mustConnect(t *testing.T, with recipes.SASL) *session {
	t.Helper()
	s, err := p.connect(t, with)
	require.NoError(t, err)
	return s
}

// protect creates a znode that is the user's alone, and returns its path.
func (s *session) protect(t *testing.T) (path string) {
	t.Helper()
	path = zkserver.Path(t)
	_, err := s.Create(path, []byte("x"), 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)
	return path
}

// goesOn cuts the connection, and waits until the session has its rights on another one.
func (s *session) goesOn(t *testing.T, path string) {
	t.Helper()
	id := s.SessionID()
	s.cut()
	for end := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Set(path, []byte("y"), -1)
		if err == nil {
			require.Equal(t, id, s.SessionID())
			return
		}
		require.NotErrorIs(t, err, zk.ErrNoAuth)
		require.True(t, time.Now().Before(end), "%v: %s", err, s.logged())
	}
}

func TestReal(t *testing.T) {
	p := newPlace(t)
	t.Run("keytab", p.keytab)
}

// What an ACL gives to a principal is that principal's alone, on each connection.
func (p *place) keytab(t *testing.T) {
	bob := p.mustConnect(t, p.fromKeytab(t, "bob", p.user(t, "bob", "")))
	batch := p.mustConnect(t, p.fromKeytab(t, "batch/host@EXAMPLE.COM",
		p.user(t, "batch/host", "")))
	for s, id := range map[*session]string{
		bob: "bob@EXAMPLE.COM", batch: "batch/host@EXAMPLE.COM",
	} {
		path := s.protect(t)
		acl, _, err := s.Unwrap().GetACL(path)
		require.NoError(t, err)
		require.Equal(t, []zk.ACL{{Scheme: "sasl", ID: id, Perms: zk.PermAll}}, acl)
		s.goesOn(t, path)
	}
	lock, err := recipes.NewInterProcessMutex(bob, zkserver.Path(t),
		recipes.WithACL(zk.AuthACL(zk.PermAll)))
	require.NoError(t, err)
	require.NoError(t, lock.Acquire(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
	_ = fmt.Sprint(os.Args)
}
