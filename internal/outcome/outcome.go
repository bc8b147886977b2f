package outcome

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// final are the answers of a server that no retry changes, and unsendable those of the
// client to what it does not send.
var final = []error{
	zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrInvalidACL,
	zk.ErrAuthFailed, zk.ErrReconfigDisabled, zk.ErrBadArguments,
}

var unsendable = []error{
	zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrPtrExpected, zk.ErrShortBuffer,
	zk.ErrUnhandledFieldType,
}

// Server codes without a name in the client are known by their text only. After those in
// unknown the outcome of the request is unknown: connection loss and operation timeout
// between servers. Those in passing may be gone at a retry: also a server in read-only
// mode, and a throttled request.
var (
	unknown = []string{"unknown error: -4", "unknown error: -7"}
	passing = append([]string{"unknown error: -119", "unknown error: -127"},
		unknown...)
)

// code is the text of the innermost error of err, by which an answer without a name in
// the client is known.
func code(err error) string {
	if Cancellation(err) != nil {
		return "" // the text is that of its cause
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}

// Answered reports whether an outcome proves that the server got the request.
func Answered(err error) bool {
	return err == nil || isAny(err, final) || IsReplyTooLong(err) ||
		strings.HasPrefix(code(err), unnamed)
}

// leaderAnswers are the errors of a write that only the leader sends, which judges all
// writes (PrepRequestProcessor; a follower has none,
// FollowerZooKeeperServer.setupRequestProcessors). A follower rejects by itself with
// NoAuth and InvalidACL (ZooKeeperServer.authWriteRequest, with enableEagerACLCheck),
// -127 (RequestThrottler and FinalRequestProcessor), -119 (ReadOnlyRequestProcessor),
// -120 (QuorumZooKeeperServer.checkUpgradeSession), -5 and -6.
var leaderAnswers = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals,
}

// Judged reports whether the outcome of a write proves that the leader has judged it. It
// is conservative: what a follower might answer by itself, cut off from its leader, does
// not.
func Judged(err error) bool { return err == nil || isAny(err, leaderAnswers) }

// Final reports whether err, of a call or of a wait, is permanent: no retry can succeed.
// Lost connections, ended sessions and unknown errors are not, unless Permanent made them
// so.
func Final(err error) bool {
	switch {
	case err == nil:
		return false
	case isAny(err, final), isAny(err, unsendable), errors.Is(err, ErrClosed),
		errors.Is(err, ErrTooShort), isPermanent(err), IsReplyTooLong(err), isBroken(err):
		return true
	}
	return strings.HasPrefix(code(err), unnamed) && !slices.Contains(passing, code(err))
}

// Refused reports whether err rejects a request that may be accepted later: a missing
// permission may be granted, a list may become shorter, and a Broken call may return the
// next time. It is for an obligation, which must go on; for a caller's request such an
// error is final. That a znode is gone is no refusal.
func Refused(err error) bool {
	return Final(err) && !isPermanent(err) && !errors.Is(err, ErrClosed) &&
		!errors.Is(err, zk.ErrNoNode)
}

// NotDone reports whether a request that failed with err certainly did nothing.
func NotDone(err error) bool {
	switch {
	case err == nil, IsReplyTooLong(err): // it was done, only the reply was skipped
		return false
	case isAny(err, unsendable), errors.Is(err, zk.ErrNoServer),
		errors.Is(err, zk.ErrSessionMoved), errors.As(err, new(unsent)):
		return true
	}
	return Answered(err) && !slices.Contains(unknown, code(err))
}

// Unimplemented reports whether the server does not know the operation. It also closes
// the connection.
func Unimplemented(err error) bool {
	return err != nil && code(err) == "unknown error: -6"
}

// ConnectionLost reports whether err says that the connection broke, or was closed, under
// the call.
func ConnectionLost(err error) bool {
	return err != nil && !NotDone(err) && !Answered(err) && !isBroken(err)
}

func isAny(err error, of []error) bool {
	for _, e := range of {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

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
	"unknown error: -120": "the session is local, and cannot have ephemeral znodes: " +
		"set localSessionsUpgradingEnabled on the servers, or not localSessionsEnabled",
	"unknown error: -124": "the server demands a login by SASL; see WithSASL",
	"unknown error: -125": "quota exceeded: raise or remove the one on the path or " +
		"above it, below /zookeeper/quota",
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
