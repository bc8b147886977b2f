package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What the page says: by hand each scene goes wrong, and here none does.
func TestTheScenesOfThePage(t *testing.T) {
	for name, c := range map[string]struct {
		scene  scene
		begin  start
		stands bool // the instance is registered after that
	}{
		"by hand, a second one of its name":        {secondOfItsName, byHand, false},
		"on recipes, a second one of its name":     {secondOfItsName, onRecipes, true},
		"by hand, somebody deletes the znode":      {deletedByOthers, byHand, false},
		"on recipes, somebody deletes the znode":   {deletedByOthers, onRecipes, true},
		"by hand, it is deregistered in an outage": {deregisterInAnOutage, byHand, true},
		"on recipes, it is deregistered in an outage": {
			deregisterInAnOutage, onRecipes, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registered, err := c.scene(t.Context(), c.begin)
				require.NoError(t, err)
				require.Equal(t, c.stands, registered)
				time.Sleep(time.Minute) // virtual: what is under way ends by itself
			})
		})
	}
}
