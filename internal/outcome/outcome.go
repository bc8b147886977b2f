package outcome

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// final are the answers of a server, and the refusals of the client, that no retry mends.
var final = []error{
	zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrInvalidACL,
	zk.ErrAuthFailed, zk.ErrReconfigDisabled, zk.ErrBadArguments,
}

var refused = []error{
	zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrPtrExpected, zk.ErrShortBuffer,
	zk.ErrUnhandledFieldType,
}

// Server codes without a name in the client are known by their text only. unknown are
// those that leave open whether the request was done: connection loss and operation
// timeout between servers. passing are all that a retry can mend: a server in read-only
// mode and a throttled request as well.
var (
	unknown = []string{"unknown error: -4", "unknown error: -7"}
	passing = append([]string{"unknown error: -119", "unknown error: -127"},
		unknown...)
)

// code is the text of what err wraps at last, by which an answer without a name in the
// client is known.
func code(err error) string {
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}

// Answered tells whether an outcome proves that the server got the request.
func Answered(err error) bool {
	return err == nil || isAny(err, final) || IsReplyTooLong(err) ||
		strings.HasPrefix(code(err), unnamed)
}

// leaderRefusals are the refusals of a write that come from the leader alone, who judges
// all writes (PrepRequestProcessor; a follower has none,
// FollowerZooKeeperServer.setupRequestProcessors). A follower refuses by itself with
// NoAuth and InvalidACL (ZooKeeperServer.authWriteRequest, with enableEagerACLCheck),
// -127 (RequestThrottler and FinalRequestProcessor), -119 (ReadOnlyRequestProcessor),
// -120 (QuorumZooKeeperServer.checkUpgradeSession), -5 and -6.
var leaderRefusals = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion,
	zk.ErrNoChildrenForEphemerals,
}

// Judged tells whether the outcome of a write proves that the leader has judged it. It is
// conservative: what a follower might answer by itself, cut off from its leader, does
// not.
func Judged(err error) bool { return err == nil || isAny(err, leaderRefusals) }

// Final tells whether no retry can mend err, of a call or of a wait. Lost connections,
// ended sessions and anything that is not known are not final, unless Permanent made
// them.
func Final(err error) bool {
	switch {
	case err == nil:
		return false
	case isAny(err, final), isAny(err, refused), errors.Is(err, ErrClosed),
		errors.Is(err, ErrTooShort), isPermanent(err), IsReplyTooLong(err):
		return true
	}
	return strings.HasPrefix(code(err), unnamed) && !slices.Contains(passing, code(err))
}

// Refused tells whether err is a refusal of a request that may pass: the rights that the
// session lacks may come back, and a list may get shorter. That is of interest to whoever
// must go on: for a call such an error is final. That a znode is gone is no refusal.
func Refused(err error) bool {
	return Final(err) && !isPermanent(err) && !errors.Is(err, ErrClosed) &&
		!errors.Is(err, zk.ErrNoNode)
}

// NotDone tells whether a call that failed with err surely did nothing.
func NotDone(err error) bool {
	switch {
	case err == nil, IsReplyTooLong(err):
		return false
	case isAny(err, refused), errors.Is(err, zk.ErrNoServer),
		errors.Is(err, zk.ErrSessionMoved), errors.As(err, new(unsent)):
		return true
	}
	return Answered(err) && !slices.Contains(unknown, code(err))
}

// Unimplemented tells whether the server does not know the operation; it closes the
// connection as well.
func Unimplemented(err error) bool {
	return err != nil && code(err) == "unknown error: -6"
}

// ConnectionLost tells whether err says that the connection broke, or was closed, under
// the call.
func ConnectionLost(err error) bool {
	return err != nil && !NotDone(err) && !Answered(err)
}

func isAny(err error, of []error) bool {
	for _, e := range of {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
