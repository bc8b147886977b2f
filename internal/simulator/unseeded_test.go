//go:build !go1.26

package simulator_test

import "testing"

// seedGlobalRandom does nothing before Go 1.26: the replay of a seed that failed may need
// some tries.
func seedGlobalRandom(*testing.T, uint64) {}
