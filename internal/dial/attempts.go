package dial

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/wire"
)

// attempts remembers how the attempts to connect went since the last that ended with an
// answer.
type attempts struct {
	mu       sync.Mutex // guards what follows
	trying   string     // the server that was dialled last, "" once it answered
	failure  error      // why the last attempt failed, nil once one succeeded
	refusals int        // in a row
	slow     int        // that took all their time, since one succeeded
	cut      error      // why a connection was cut last, for a malformed reply
	untold   error      // the same; nil once tellCut has returned it

	hungUpSince time.Time // when a server first hung up at a handshake; else zero
	compared    time.Time // when histories were last compared since; see compares
	toldHungUp  bool      // it was logged that this lasts
}

func (a *attempts) began(server string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trying = server
}

// failed returns how many refusals there were in a row, with this failure.
func (a *attempts) failed(err error) (refusals int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = err
	if isTimeout(err) {
		a.slow++
	}
	if isRefusal(err) {
		a.refusals++
	} else {
		a.refusals = 0
	}
	return a.refusals
}

func (a *attempts) succeeded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trying, a.failure, a.refusals, a.slow = "", nil, 0, 0
	a.hungUpSince, a.compared, a.toldHungUp = time.Time{}, time.Time{}, false
}

// grown is how long the next attempt may take, if the first may take least, and there are
// so many servers. Each round in which the attempts took all their time makes it half as
// long again, up to most: so a slow server is reached eventually.
func (a *attempts) grown(least, most time.Duration, servers int) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range a.slow / max(servers, 1) {
		if least += least / 2; least >= most {
			return most
		}
	}
	return least
}

// hungUp records that a server has hung up at a handshake, and returns since when servers
// do. Once, it says to tell of that: when it has lasted for too long, and histories were
// compared, so that an older history is not the reason.
func (a *attempts) hungUp(now time.Time) (since time.Time, tell bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hungUpSince.IsZero() {
		a.hungUpSince = now
	}
	tell = !a.toldHungUp && !a.compared.IsZero()
	a.toldHungUp = a.toldHungUp || tell
	return a.hungUpSince, tell
}

func (a *attempts) cutOff(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut, a.untold = err, err
}

// tellCut returns why a connection was cut since the last call.
func (a *attempts) tellCut() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.untold
	a.untold = nil
	return err
}

// explain adds to cause what the caller was waiting for.
func (a *attempts) explain(cause error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(cause, a.failure) { // it was given to Config.GiveUp
		return cause
	}
	if a.cut != nil {
		cause = fmt.Errorf("%w; a connection was cut: %s", cause, a.cut.Error())
	}
	switch {
	case a.failure != nil:
		// As text: a dial that timed out would pass for context.DeadlineExceeded where
		// the cause is another.
		return fmt.Errorf("%w; last attempt: %s", cause, a.failure.Error())
	case a.trying != "":
		return fmt.Errorf("%w; still waiting for %s", cause, a.trying)
	}
	return cause
}

// isTimeout reports whether an attempt failed since its time was over.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() ||
		errors.Is(err, errSlowMechanism)
}

// isRefusal reports whether an attempt failed in a way that is no different at the next:
// for a certificate, or because the server does not talk TLS, or ZooKeeper.
func isRefusal(err error) bool {
	// An alert of TLS has no exported type. One that is about the client's certificate
	// comes with TLS 1.3 only at the first read.
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		return true
	}
	var (
		verification *tls.CertificateVerificationError
		plain        tls.RecordHeaderError
		invalid      x509.CertificateInvalidError
		name         x509.HostnameError
		authority    x509.UnknownAuthorityError
	)
	return errors.Is(err, wire.ErrNotZooKeeper) || errors.As(err, new(wire.Malformed)) ||
		errors.As(err, &verification) ||
		errors.As(err, &plain) || errors.As(err, &invalid) || errors.As(err, &name) ||
		errors.As(err, &authority)
}

// compares reports whether the next attempt to resume a session compares histories: once
// in a session timeout, while servers hang up for longer than that.
func (a *attempts) compares(now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hungUpSince.IsZero() || now.Sub(a.hungUpSince) < every ||
		now.Sub(a.compared) < every {
		return false
	}
	a.compared = now
	return true
}
