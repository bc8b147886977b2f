package dial

import (
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/wire"
)

// Servers hang up without a word on a client that has seen a zxid later than theirs. One
// that lags will come so far. But an ensemble that has come back empty, or restored from
// an older snapshot, never does, or in years: it would never get this client back, while
// a new one connects at once.
//
// So once servers have hung up for a whole session timeout, one attempt asks for a new
// session, in the place of zk's, as a client that has seen nothing, and how far the
// ensemble has come. A new session is a transaction, and a sync is answered by the
// leader: so in the history that this client knows that is no less than what it has seen,
// even through a server that lags. If it is less, the history is another, in which the
// session, which has ended by this client's clock as well, means nothing. zk is told that
// it has expired, and with it forgets the zxid.

// history is what an attempt compares with what zk has seen.
type history struct {
	seen int64 // 0: it does not compare
}

// compare ends an attempt that has asked for a new session. It returns an error, and
// leaves the rest to the next attempts, unless the ensemble's history is older.
func (c *conn) compare(a wire.Answer) error {
	if err := c.authenticate(); err != nil {
		return err
	}
	zxid, err := c.stream.AskZxid(c.Conn)
	switch {
	case err != nil:
		return fmt.Errorf("in a new session: %w", err)
	case zxid <= 0 || zxid >= c.history.seen:
		return fmt.Errorf("the servers hang up, but give new sessions, and have come "+
			"as far as this client (zxid 0x%x)", zxid)
	}
	c.dialer.config.Log.Error("zookeeper: the ensemble's history is older than what "+
		"this client has seen: fencing tokens start over", "server", c.server,
		"zxid", fmt.Sprintf("0x%x", zxid), "seen", fmt.Sprintf("0x%x", c.history.seen),
		"cause", "it has come back empty, or was restored from an older snapshot, or a "+
			"server has forged what this client has seen",
		"advice", "reset what your stores have recorded of fencing tokens")
	c.expire(a)
	return nil
}

// compares tells whether the next attempt to resume a session compares histories: once in
// a session timeout, while servers hang up for longer than that.
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
