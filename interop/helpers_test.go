package interop_test

import (
	"testing"
	"time"
)

// patience bounds a wait for what must happen; nothing is shown by its length.
const patience = 20 * time.Second

// within returns what arrives on ch, which must not take longer than patience.
func within[T any](tb testing.TB, ch <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-ch:
		return v
	case <-time.After(patience):
		tb.Fatalf("timed out: %s", what)
		return v
	}
}

// eventually waits for what must happen. It is for conditions that nothing tells of; they are looked at, not slept for.
func eventually(tb testing.TB, ok func() bool, format string, args ...any) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf(format, args...)
		}
	}
}

// start runs f on a goroutine of its own, whose result comes on the channel.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
