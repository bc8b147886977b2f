package znode

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

const protectedPrefix = "_c_" // Curator's ProtectedMode

// The first two digits of the third group of a UUID, of which the former is the version
// (RFC 9562): 4 of a random one, as all of Curator's are. 8 is for whatever a program
// wants to say with it.
const (
	markCached        = "8c" // it may be there although nobody uses it; see MayBeCached
	markSingleAttempt = "8a" // it may be about to leave; see IsSingleAttempt
)

// markAt is where they stand in a znode's name.
const markAt = len(protectedPrefix) + len("00000000-0000-")

// newID returns a random UUID, by which a process finds a znode whose creation was not
// acknowledged. mark is "" if there is none.
func newID(mark string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	third := mark + h[12+len(mark):16]
	return h[:8] + "-" + h[8:12] + "-" + third + "-" + h[16:20] + "-" + h[20:]
}

// MayBeCached tells from a znode's name whether it can be there although nobody uses it,
// and is deleted soon after another participant has queued behind it.
func MayBeCached(name string) bool { return isMarked(name, markCached) }

// IsSingleAttempt tells from a znode's name whether it is a single attempt's. That one
// holds the lock, or leaves soon: it waits for no holder.
func IsSingleAttempt(name string) bool { return isMarked(name, markSingleAttempt) }

func isMarked(name, mark string) bool {
	const end = len(protectedPrefix) + len("00000000-0000-8000-8000-000000000000")
	return len(name) > end && strings.HasPrefix(name, protectedPrefix) &&
		name[markAt-1] == '-' && strings.HasPrefix(name[markAt:], mark) &&
		name[end] == '-'
}

// IsProtected tells whether a library has created a znode of that name, and not somebody
// by hand: Curator, zk.Lock and this one begin the names of their znodes so.
func IsProtected(name string) bool { return strings.HasPrefix(name, protectedPrefix) }

// hasID tells whether a znode's name was made with the id.
func hasID(name, id string) bool {
	return strings.HasPrefix(name, protectedPrefix) &&
		strings.HasPrefix(name[len(protectedPrefix):], id)
}
