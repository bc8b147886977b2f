package locktest

import (
	"testing"
	"time"
)

// Patience bounds a wait for what must happen; nothing is shown by its length.
const Patience = 20 * time.Second

// Eventually waits for what must happen. It is for conditions that nothing tells of; they
// are looked at, not slept for.
func Eventually(tb testing.TB, ok func() bool, format string, args ...any) {
	tb.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf(format, args...)
		}
	}
}

// Within returns what arrives on ch, which must not take longer than [Patience].
func Within[T any](tb testing.TB, ch <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-ch:
		return v
	case <-time.After(Patience):
		tb.Fatalf("timed out: %s", what)
		return v
	}
}

// Start runs f on a goroutine of its own, whose result comes on the channel.
func Start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
