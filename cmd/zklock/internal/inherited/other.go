//go:build !cgo && !(linux && (amd64 || arm64))

package inherited

import (
	"os/signal"
	"syscall"
)

// atStart has what the runtime itself tells.
func atStart() (now state) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			now.ignored |= 1 << (s - 1)
		}
	}
	return now
}
