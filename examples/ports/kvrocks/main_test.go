package main

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestByHandACutOffLeaderLeadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two, err := cutTheLeader(t.Context(), byHand)
		require.NoError(t, err)
		require.True(t, two, "then the hand-written way is safe, and the page is wrong")
	})
}

func TestOnRecipesThereIsOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two, err := cutTheLeader(t.Context(), onRecipes)
		require.NoError(t, err)
		require.False(t, two)
	})
}
