package znode

import (
	"crypto/rand"
	"fmt"
	"strings"
)

const protectedPrefix = "_c_" // Curator's ProtectedMode

// newID returns a random UUID (RFC 9562, version 4), by which a process finds a znode
// whose creation was not acknowledged.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// hasID tells whether a znode's name was made with the id.
func hasID(name, id string) bool {
	return strings.HasPrefix(name, protectedPrefix) &&
		strings.HasPrefix(name[len(protectedPrefix):], id)
}
