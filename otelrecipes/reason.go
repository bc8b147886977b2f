package otelrecipes

import (
	"errors"
	"strings"

	"github.com/zkrecipes/recipes"
)

// reasons are the texts by which causes of a loss are known that have no error of their
// own in package recipes. The tests make each of them happen.
var reasons = []struct{ text, reason string }{
	{"the ZooKeeper session has ended", "session ended"},
	{"out of touch with ZooKeeper", "out of touch"},
	{"was deleted", "znode gone"},
	{"the connection was closed by its owner", "closed"},
}

const (
	holdExpired = "hold expired"
	otherReason = "other"
)

// allReasons are those that there are.
func allReasons() []string {
	all := []string{holdExpired, otherReason}
	for _, r := range reasons {
		all = append(all, r.reason)
	}
	return all
}

// reason is that of a loss, one of allReasons.
func reason(err error) string {
	if errors.Is(err, recipes.ErrHoldExpired) {
		return holdExpired
	}
	for _, r := range reasons {
		if err != nil && strings.Contains(err.Error(), r.text) {
			return r.reason
		}
	}
	return otherReason
}
