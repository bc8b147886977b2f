package main

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestByHandTheZnodeOfADyingSessionCountsAsOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, err := restartTheManager(t.Context(), byHand)
		require.NoError(t, err)
		require.Positive(t, both, "then the hand-written way is safe, and the page is wrong")
	})
}

func TestOnRecipesOneManages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, err := restartTheManager(t.Context(), onRecipes)
		require.NoError(t, err)
		require.Zero(t, both)
	})
}
