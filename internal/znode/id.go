package znode

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
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

// orphans are the znodes of one creation besides the one that is held.
type orphans struct {
	// there may be others than those; set before the Node is made
	unknown bool

	mu sync.Mutex // guards discarded
	// The paths of those that are being deleted, or were. Each needs that once: a list
	// may show one for as long as its delete is refused.
	discarded map[string]bool
}

// discard tells whether the one at path is to be deleted; false: it is, or was.
func (o *orphans) discard(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.discarded[path] {
		return false
	}
	if o.discarded == nil {
		o.discarded = map[string]bool{}
	}
	o.discarded[path] = true
	return true
}
