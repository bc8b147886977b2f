//go:build !linux

package worker

import "time"

// cpuTime is not known here.
func cpuTime(...int) *time.Duration { return nil }
