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
		require.Positive(t, both, "the page is wrong: this is safe")
	})
}

func TestOnRecipesOneManages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, err := restartTheManager(t.Context(), onRecipes)
		require.NoError(t, err)
		require.Zero(t, both)
	})
}
