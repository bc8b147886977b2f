package znode

import (
	"crypto/rand"
	"fmt"
	"strings"
)

const protectedPrefix = "_c_" // Curator's ProtectedMode

// The versions of the UUIDs (RFC 9562): of a znode that is deleted as soon as its owner
// leaves it, as all of Curator's are, and of one that may be cached. 8 is for whatever a
// program wants to say with it.
const (
	versionRandom = '4'
	versionCached = '8'
)

// versionAt is where the version stands in a znode's name.
const versionAt = len(protectedPrefix) + len("00000000-0000-")

// newID returns a random UUID, by which a process finds a znode whose creation was not
// acknowledged.
func newID(version byte) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	b[6] = b[6]&0x0f | (version-'0')<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// MayBeCached tells from a znode's name whether it can be there although nobody uses it,
// and is deleted soon after another participant has queued behind it.
func MayBeCached(name string) bool {
	const end = len(protectedPrefix) + len("00000000-0000-8000-8000-000000000000")
	return len(name) > end && strings.HasPrefix(name, protectedPrefix) &&
		name[versionAt-1] == '-' && name[versionAt] == versionCached && name[end] == '-'
}

// IsProtected tells whether a library has created a znode of that name, and not somebody
// by hand: Curator, zk.Lock and this one begin the names of their znodes so.
func IsProtected(name string) bool { return strings.HasPrefix(name, protectedPrefix) }

// hasID tells whether a znode's name was made with the id.
func hasID(name, id string) bool {
	return strings.HasPrefix(name, protectedPrefix) &&
		strings.HasPrefix(name[len(protectedPrefix):], id)
}
