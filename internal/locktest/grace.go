package locktest

import (
	"errors"
	"time"
)

// Grace is how long a call may go on after its time.
const Grace = 250 * time.Millisecond

// ErrChangedMind is the cause with which a test cancels a ctx.
var ErrChangedMind = errors.New("changed my mind")
