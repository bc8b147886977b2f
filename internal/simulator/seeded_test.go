//go:build go1.26

package simulator_test

import (
	"testing"
	"testing/cryptotest"
)

// seedGlobalRandom makes crypto/rand follow the seed, too, until the test ends.
func seedGlobalRandom(t *testing.T, seed uint64) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
}
