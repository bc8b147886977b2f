package outcome

// meanings are what the servers' codes say for which the client has no name (ZooKeeper's
// KeeperException.Code), and what to do. Those that a request of this library cannot get
// are not among them: no watcher, request timeout and the like.
var meanings = map[string]string{
	"unknown error: -1": "system error: the server failed; see its log",
	"unknown error: -2": "not tried, or the server's data contradict each other; see " +
		"the first error, or its log",
	"unknown error: -3": "data inconsistency: see the server's log",
	"unknown error: -4": "the server lost its connection to the others",
	"unknown error: -5": "marshalling error: something between us and the server " +
		"changes requests",
	"unknown error: -6":   "unimplemented: the server does not know the request",
	"unknown error: -7":   "the server got no answer from the others in time",
	"unknown error: -119": "the server is read-only: it has lost the others",
	"unknown error: -120": "the session is local, and cannot have ephemeral znodes: set " +
		"localSessionsUpgradingEnabled on the servers, or not localSessionsEnabled",
	"unknown error: -124": "the server demands a login by SASL; see WithSASL",
	"unknown error: -125": "quota exceeded: raise or remove the one on the path or above " +
		"it, below /zookeeper/quota",
	"unknown error: -127": "throttled: the server has too many requests",
}

// WithMeaning returns err with what its code means, if the client has no name for that.
func WithMeaning(err error) error {
	if err == nil {
		return nil
	}
	meaning, ok := meanings[code(err)]
	if !ok {
		return err
	}
	return &meant{err, meaning}
}

// A meant error is known by its code as before: that is what it wraps at last.
type meant struct {
	error
	meaning string
}

func (m *meant) Error() string { return m.error.Error() + " (" + m.meaning + ")" }

func (m *meant) Unwrap() error { return m.error }
