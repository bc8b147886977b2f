//go:build unix

package kdc

import (
	"syscall"
	"testing"
)

// Freeze stops the KDC where it stands: it answers nothing.
func (k *KDC) Freeze(tb testing.TB) {
	tb.Helper()
	k.signal(tb, syscall.SIGSTOP)
}

// Thaw lets a frozen KDC go on.
func (k *KDC) Thaw(tb testing.TB) {
	tb.Helper()
	k.signal(tb, syscall.SIGCONT)
}

func (k *KDC) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := k.kdc.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}
