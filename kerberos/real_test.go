package kerberos

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/kdc"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// TestReal is all with a real KDC and a real ZooKeeper.
func TestReal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"keytab": p.keytab, "cache": p.cache, "expired": p.expired,
			"renewed ticket": p.renewedTicket, "renewed keytab": p.renewedKeytab,
			"refused": p.refused, "clock": p.clock, "forged": p.forged,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("renewed servers", p.renewedServers)
	t.Run("no KDC", p.noKDC)
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
		for other := range map[*session]bool{bob: true, batch: true} {
			_, _, err := other.Get(path)
			require.Equal(t, other != s, errors.Is(err, zk.ErrNoAuth), err)
		}
	}
	lock, err := recipes.NewInterProcessMutex(bob, zkserver.Path(t),
		recipes.WithACL(zk.AuthACL(zk.PermAll)))
	require.NoError(t, err)
	require.NoError(t, lock.Acquire(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
}

func (p *place) cache(t *testing.T) {
	file := p.Login(t, "ann", p.user(t, "ann", ""), "ann.cache")
	s := p.mustConnect(t, p.fromCache(t, file))
	path := s.protect(t)
	s.goesOn(t, path)
	acl, _, err := s.Unwrap().GetACL(path)
	require.NoError(t, err)
	require.Equal(t, "ann@EXAMPLE.COM", acl[0].ID)

	p.Login(t, "robin", p.user(t, "robin", ""), "ann.cache")
	s.cut()
	s.eventuallyLogs(t, "now belongs to robin@EXAMPLE.COM")
}

// An expired ticket ends Connect at once. With a new one in the file all is well, also
// for a session that waits.
func (p *place) expired(t *testing.T) {
	keytab := p.user(t, "exp", "")
	file := p.Login(t, "exp", keytab, "exp.cache")
	login := p.fromCache(t, file)
	s := p.mustConnect(t, login)
	path := s.protect(t)
	p.Login(t, "exp", keytab, "exp.cache", "-l", "1s")
	awaitExpiry(t, p.fromCache(t, file))
	login.forget() // as if that one had been there from the beginning

	_, err := p.connect(t, login)
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, `GSSAPI as "exp@EXAMPLE.COM": credential cache `+file+
		": the ticket has expired")
	_, err = s.Set(path, nil, -1)
	require.NoError(t, err, "the session goes on while it is connected")
	s.cut()
	s.eventuallyLogs(t, "the ticket has expired")
	require.Contains(t, s.logged(), "level=ERROR")
	p.Login(t, "exp", keytab, "exp.cache")
	s.goesOn(t, path)
}

func awaitExpiry(t *testing.T, l *login) {
	t.Helper()
	time.Sleep(time.Until(l.held().end) + time.Millisecond)
	require.False(t, l.held().valid())
}

// A ticket that is renewable is renewed while nobody does anything, and that of a keytab
// is replaced when it is needed.
func (p *place) renewedTicket(t *testing.T) {
	keytab := p.user(t, "ren", "")
	file := p.Login(t, "ren", keytab, "ren.cache", "-l", "20s", "-r", "1h")
	login := p.fromCache(t, file)
	s := p.mustConnect(t, login)
	path := s.protect(t)
	first := login.held().end

	brief := p.fromKeytab(t, "brief", p.user(t, "brief", "-maxlife 2s"))
	other := p.mustConnect(t, brief)
	otherPath := other.protect(t)
	awaitExpiry(t, brief)
	other.goesOn(t, otherPath)

	require.Eventually(t, func() bool { return login.held().end.After(first) }, atMost,
		10*time.Millisecond)
	s.goesOn(t, path)
	cached, _, err := readCache(file)
	require.NoError(t, err)
	require.Equal(t, first, cached.end, "the file stays as it is")
}

// A login reads the keytab that there is by then, also if the key was changed within one
// second.
func (p *place) renewedKeytab(t *testing.T) {
	keytab := p.user(t, "key", "")
	login := p.fromKeytab(t, "key", keytab)
	s := p.mustConnect(t, login)
	path := s.protect(t)
	old, err := os.ReadFile(keytab)
	require.NoError(t, err)
	p.Keytab(t, "key", "key.keytab")
	p.Keytab(t, "key", "key.keytab")
	login.forget() // as if it had expired
	s.goesOn(t, path)

	require.NoError(t, os.WriteFile(keytab, old, 0o600))
	_, err = p.connect(t, p.fromKeytab(t, "key", keytab))
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "the KDC rejects the key of key@EXAMPLE.COM")
	login.forget()
	s.cut()
	s.eventuallyLogs(t, "the KDC rejects the key of key@EXAMPLE.COM")
	p.Keytab(t, "key", "key.keytab")
	s.goesOn(t, path)
}

// Connect ends at once, and says who was rejected and why.
func (p *place) refused(t *testing.T) {
	keytab := p.user(t, "ref", "")
	for _, c := range []struct {
		options      []Option
		change, want string
	}{
		{
			[]Option{WithService("kafka")},
			"",
			"the KDC does not know the server kafka/localhost",
		},
		{
			nil,
			"modprinc -allow_tix ref",
			"the KDC rejects ref@EXAMPLE.COM with error 18 KDC_ERR_CLIENT_REVOKED",
		},
		{nil, "delprinc -force ref", "the KDC does not know ref@EXAMPLE.COM"},
	} {
		if c.change != "" {
			p.Admin(t, c.change)
		}
		options := append(c.options, WithConfigFile(p.Config))
		s, err := FromKeytab("ref", keytab, options...)
		require.NoError(t, err)
		_, err = p.connect(t, s)
		require.ErrorIs(t, err, zk.ErrAuthFailed, "it does not try for as long as it may")
		require.ErrorContains(t, err, `SASL with GSSAPI as "ref@EXAMPLE.COM": `+c.want)
	}
}

// A server rejects a client whose clock is wrong, and a KDC does.
func (p *place) clock(t *testing.T) {
	login := p.fromKeytab(t, "tim", p.user(t, "tim", ""))
	login.skew = 10 * time.Minute
	_, err := p.connect(t, login)
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "the server refuses it")

	late := kdc.Start(t, kdc.Faketime("+1h"))
	late.Add(t, "tim", "")
	other := &place{KDC: late, servers: p.servers}
	_, err = p.connect(t, other.fromKeytab(t, "tim", late.Keytab(t, "tim", "keytab")))
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "the clocks of this machine and of the KDC differ")
}

// A new key of the server's makes the tickets for it worthless, and one of the KDC's
// those that it has granted. The next handshake has new ones.
func (p *place) renewedServers(t *testing.T) {
	s := p.mustConnect(t, p.fromKeytab(t, "sam", p.user(t, "sam", "")))
	path := s.protect(t)
	require.NoError(t, os.Remove(p.serverKeytab))
	p.Keytab(t, "zookeeper/localhost", "server.keytab")
	p.Admin(t, "cpw -randkey krbtgt/EXAMPLE.COM")
	s.goesOn(t, path)
	require.NotContains(t, s.logged(), "authentication failed")
}

// A session survives a KDC that does not answer, by its last ticket for the server. A new
// one cannot.
func (p *place) noKDC(t *testing.T) {
	login := p.fromKeytab(t, "kim", p.user(t, "kim", ""))
	s := p.mustConnect(t, login)
	path := s.protect(t)
	anew := p.fromKeytab(t, "kim", p.File("kim.keytab"))
	p.Freeze(t)
	t.Cleanup(func() { p.Thaw(t) })
	failed := make(chan error)
	hasty := *p
	hasty.timeout = 6 * time.Second // a handshake may take as long as that
	go func() {
		_, err := hasty.connect(t, anew)
		failed <- err
	}()
	s.goesOn(t, path)

	err := <-failed
	require.NotErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, `GSSAPI as "kim@EXAMPLE.COM"`)
	require.ErrorContains(t, err, "the mechanism took all the time for the handshake")
}

// A server can be in another realm, if krb5.conf says so and the realms trust each other.
func TestARealServerInAnotherRealm(t *testing.T) {
	t.Parallel()
	const other = "OTHER.EXAMPLE.COM"
	ours, theirs := kdc.Start(t), kdc.Start(t, kdc.InRealm(other))
	for _, k := range []*kdc.KDC{ours, theirs} {
		k.Admin(t, "addprinc -pw shared krbtgt/"+other+"@"+kdc.Realm)
	}
	ours.Add(t, "bob", "")
	theirs.Add(t, "zookeeper/localhost", "")
	var both string
	for _, k := range []*kdc.KDC{ours, theirs} {
		text, err := os.ReadFile(k.Config)
		require.NoError(t, err)
		both += string(text)
	}
	_, realms, _ := strings.Cut(both, "[realms]")
	p := &place{KDC: ours}
	login := p.fromKeytab(t, "bob", ours.Keytab(t, "bob", "bob.keytab"))
	_, err := login.ticket(t.Context(), "localhost")
	require.ErrorContains(t, err, "the KDC does not know the server zookeeper/localhost")

	first, second, _ := strings.Cut(realms, "[libdefaults]")
	_, second, _ = strings.Cut(second, "[realms]")
	login.config = write(t, "krb5.conf", "[libdefaults]\n default_realm = "+kdc.Realm+
		"\n[realms]"+first+second+"[domain_realm]\n localhost = "+other+"\n")
	found, err := login.ticket(t.Context(), "localhost")
	require.NoError(t, err)
	require.Equal(t, other, found.Realm)
}
