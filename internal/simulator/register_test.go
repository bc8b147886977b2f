package simulator_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/simulator"
)

func TestRegisterRefusesALowerToken(t *testing.T) {
	r := simulator.NewRegister()
	accept := func(token, version int64) {
		t.Helper()
		v, ok := r.Write("/p", token)
		require.True(t, ok)
		require.Equal(t, version, v)
	}
	require.True(t, r.Read("/p", 1))
	accept(5, 1)
	accept(5, 2)
	accept(9, 3)
	_, ok := r.Write("/p", 8)
	require.False(t, ok)
	require.False(t, r.Read("/p", 8))
	require.True(t, r.Read("/p", 9))
	require.True(t, r.Read("/p", 12), "a reader's token raises nothing")
	accept(9, 4)
	require.True(t, r.Read("/q", 1), "each path has its own")
}
