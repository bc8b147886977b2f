package seqnode

import (
	"time"
)

// A patience bounds how long a waiter waits for anybody ahead to leave. A waiter sleeps
// until its predecessor goes, and hears of nobody else ahead. So it lists the queue each
// time that the patience is due. It belongs to one waiter: a lost znode takes it along.
type patience struct {
	every time.Duration
	due   <-chan time.Time
	ahead int // how many were ahead when the queue was last looked at
}
