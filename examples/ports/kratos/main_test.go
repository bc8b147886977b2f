package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// after returns whether the instance is registered after a scene.
func after(t *testing.T, s scene, begin start) (registered bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		registered, err = s(t.Context(), begin)
		require.NoError(t, err)
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	return registered
}

func TestByHandTheZnodeOfADyingSessionCounts(t *testing.T) {
	registered := after(t, reconnectToKeeper, byHand)
	require.False(t, registered, "the page is wrong: this is safe")
}

func TestOnRecipesTheInstanceIsRegisteredAgain(t *testing.T) {
	require.True(t, after(t, reconnectToKeeper, onRecipes))
}

func TestByHandTheInstanceComesBack(t *testing.T) {
	registered := after(t, deregisterInAnOutage, byHand)
	require.True(t, registered, "the page is wrong: this is safe")
}

func TestOnRecipesTheInstanceStaysAway(t *testing.T) {
	require.False(t, after(t, deregisterInAnOutage, onRecipes))
}
