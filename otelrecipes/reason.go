package otelrecipes

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// reasons are what the causes of a loss are called.
var reasons = []struct {
	cause  error
	reason string
}{
	{recipes.ErrSessionEnded, "session ended"},
	{recipes.ErrOutOfTouch, "out of touch"},
	{recipes.ErrNodeDeleted, "znode gone"},
	{recipes.ErrHoldExpired, "hold expired"},
	{zk.ErrConnectionClosed, "closed"},
}

// reason is that of a loss. Of a cause that this version does not know it is "other".
func reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.cause) {
			return r.reason
		}
	}
	return "other"
}
