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
		require.True(t, two, "the page is wrong: this is safe")
	})
}

func TestOnRecipesThereIsOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two, err := cutTheLeader(t.Context(), onRecipes)
		require.NoError(t, err)
		require.False(t, two)
	})
}
