package kerberos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zkrecipes/recipes"
)

// A login is what logs a principal in at each handshake, also at several at a time.
type login struct {
	settings
	source source
	user   principal
	skew   time.Duration // of the clock that servers are told; for tests

	mu       sync.Mutex // guards what follows; not held while a KDC is asked
	granting ticket     // the last one, or the zero ticket
	services map[string]ticket
	renewal  *time.Timer // of granting, or nil
}

// A source is where ticket-granting tickets come from.
type source interface {
	grant(ctx context.Context, l *login, c *config.Config) (ticket, error)
	renews() bool // whether a ticket is to be renewed before it expires
}

// Name implements [recipes.SASL].
func (l *login) Name() string { return fmt.Sprintf("GSSAPI as %q", l.user) }

// String keeps the keys of tickets out of what a format prints.
func (l *login) String() string { return l.Name() }

// GoString does so for %#v.
func (l *login) GoString() string { return l.Name() }

// Begin implements [recipes.SASL].
func (l *login) Begin(
	ctx context.Context, host string,
) (recipes.SASLExchange, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	t, err := l.ticket(ctx, host)
	if err != nil {
		return nil, err
	}
	return &exchange{login: l, server: l.service + "/" + host, ticket: t}, nil
}

// A KDC that does not answer within patience is not waited for if the last ticket for the
// server is still valid. It is half of the shortest time for a handshake.
const patience = 500 * time.Millisecond

// ticket returns a ticket for a server. It is a new one for each handshake: the server's
// key may have been renewed since the last, and then that is worth nothing.
func (l *login) ticket(ctx context.Context, host string) (ticket, error) {
	type result struct {
		ticket
		error
	}
	fetched := make(chan result, 1)
	go func() {
		t, err := l.fetch(ctx, host)
		fetched <- result{t, err}
	}()
	l.mu.Lock()
	last := l.services[host]
	l.mu.Unlock()
	var enough <-chan time.Time // nil: there is no other ticket
	if last.valid() {
		enough = time.After(patience)
	}
	select {
	case r := <-fetched:
		if last.valid() && isUnreachable(r.error) {
			return last, nil
		}
		return r.ticket, r.error
	case <-enough:
		return last, nil
	case <-ctx.Done():
		return ticket{}, fmt.Errorf("the KDC does not answer: %w", context.Cause(ctx))
	}
}

// fetch gets a ticket for a server from the KDC, and keeps it. A ticket-granting ticket
// that the KDC rejects is replaced once.
func (l *login) fetch(ctx context.Context, host string) (ticket, error) {
	c, err := readConfig(l.config)
	if err != nil {
		return ticket{}, permanent(err)
	}
	for again := false; ; again = true {
		granting, err := l.source.grant(ctx, l, c)
		if err != nil {
			return ticket{}, err
		}
		t, err := l.askFor(ctx, c, granting, host)
		if isRejected(err) && !again {
			l.forget()
			continue
		}
		if err == nil {
			l.mu.Lock()
			l.services[host] = t
			l.mu.Unlock()
		}
		return t, err
	}
}

// askFor asks the KDC of the server's realm, which krb5.conf may say is another one.
func (l *login) askFor(
	ctx context.Context, c *config.Config, with ticket, host string,
) (ticket, error) {
	realm := l.user.realm
	if other := c.ResolveRealm(host); other != "" && other != realm {
		var err error
		with, err = l.request(ctx, c, with, granting(other), realm, false)
		if err != nil {
			return ticket{}, err
		}
		realm = other
	}
	server := types.PrincipalName{
		NameType: nametype.KRB_NT_SRV_HST, NameString: []string{l.service, host},
	}
	return l.request(ctx, c, with, server, realm, false)
}

// held returns the last ticket-granting ticket, which may have expired.
func (l *login) held() ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granting
}

func (l *login) forget() { l.keep(ticket{}) }

// permanent adds to an error what ends Connect: it is the same at the next try.
func permanent(err error) error { return fmt.Errorf("%w (%w)", err, zk.ErrAuthFailed) }
