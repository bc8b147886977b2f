package main

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

func TestByHandNobodyIsNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checked, err := cutTheHolder(t.Context(), byHand)
		require.NoError(t, err)
		require.NoError(t, checked, "the page is wrong: this is safe")
	})
}

func TestOnRecipesTheCheckReportsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checked, err := cutTheHolder(t.Context(), onRecipes)
		require.NoError(t, err)
		require.ErrorIs(t, checked, recipes.ErrLockLost)
	})
}
