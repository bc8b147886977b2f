package kerberos

import (
	"cmp"
	"context"
	"log/slog"
	"net"
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

// timeout is of sessions that outlast a machine that stands still for 5 s, a third of it
// after the last ping.
const timeout = 15 * time.Second

// atMost bounds a wait for what must happen; nothing is shown by its length.
const atMost = time.Minute

// A place is a KDC and a ZooKeeper server that knows itself there as zookeeper/localhost.
type place struct {
	*kdc.KDC
	servers      string
	serverKeytab string
	timeout      time.Duration // of sessions, if it is another
}

func newPlace(t *testing.T) *place {
	t.Helper()
	zkserver.Real(t, "Kerberos")
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
	l, err := fromCache(func() (string, error) { return path, nil },
		[]Option{WithConfigFile(p.Config)})
	require.NoError(t, err)
	return l
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
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	s := &session{}
	c, err := recipes.Connect(ctx, p.servers, cmp.Or(p.timeout, timeout),
		recipes.WithSASL(with), recipes.WithDialer(s.dial),
		recipes.WithClientLogger(slog.New(slog.NewTextHandler(s, nil))))
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
	for end := time.Now().Add(atMost); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Set(path, []byte("y"), -1)
		if err == nil {
			require.Equal(t, id, s.SessionID())
			return
		}
		require.NotErrorIs(t, err, zk.ErrNoAuth)
		require.True(t, time.Now().Before(end), "%v: %s", err, s.logged())
	}
}

func (s *session) eventuallyLogs(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.logged(), text) },
		atMost, 10*time.Millisecond, "%s", text)
}
