package kerberos

import (
	"context"
	"fmt"
	"time"
	"weak"

	"github.com/jcmturner/gokrb5/v8/config"
)

// A keytabSource logs in by the file's key whenever there is no valid ticket.
type keytabSource struct{ file string }

func (s keytabSource) renews() bool { return false }

func (s keytabSource) grant(
	ctx context.Context, l *login, c *config.Config,
) (ticket, error) {
	if held := l.held(); held.valid() {
		return held, nil
	}
	keys, err := readKeytab(s.file, l.user)
	if err != nil {
		return ticket{}, permanent(err)
	}
	t, err := l.logIn(ctx, c, keys)
	if err == nil {
		l.keep(t)
	}
	return t, err
}

// A cacheSource takes the ticket of the file, or the one that the file's was renewed to.
type cacheSource struct{ file string }

func (s cacheSource) renews() bool { return true }

func (s cacheSource) grant(
	_ context.Context, l *login, _ *config.Config,
) (ticket, error) {
	cached, user, err := readCache(s.file)
	switch {
	case err != nil:
		return ticket{}, permanent(err)
	case user.String() != l.user.String():
		return ticket{}, permanent(fmt.Errorf("credential cache %s: now belongs to %s",
			s.file, user))
	}
	if held := l.held(); held.valid() && !cached.end.After(held.end) {
		return held, nil
	}
	if !cached.valid() {
		return ticket{}, permanent(fmt.Errorf("credential cache %s: the ticket has "+
			"expired at %s; run kinit", s.file, cached.end.Format(time.RFC3339)))
	}
	l.keep(cached)
	return cached, nil
}

// A ticket is renewed after three quarters of what is left of its life, and if that
// fails, of what is left then. In the last moments it is too late.
const renewShortest = 100 * time.Millisecond

// keep remembers a ticket-granting ticket, and has it renewed if that is to be done. The
// timer does not keep l alive: nobody says when a SASL is used no more.
func (l *login) keep(t ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granting = t
	if l.renewal != nil {
		l.renewal.Stop()
	}
	after := time.Until(t.end) * 3 / 4
	if !l.source.renews() || !t.renewTill.After(t.end) || after < renewShortest {
		return
	}
	unused := weak.Make(l)
	l.renewal = time.AfterFunc(after, func() {
		if l := unused.Value(); l != nil {
			l.renew()
		}
	})
}

// renew renews the newest ticket-granting ticket. Why it fails is seen at the next
// handshake, which begins with the ticket that there is.
func (l *login) renew() {
	ctx := context.Background() // each KDC is given up by itself
	c, err := readConfig(l.config)
	if err != nil {
		return
	}
	old, err := l.source.grant(ctx, l, c)
	if err != nil {
		return
	}
	realm := l.user.realm
	if t, err := l.request(ctx, c, old, granting(realm), realm, true); err == nil {
		l.keep(t)
	} else {
		l.keep(old)
	}
}
