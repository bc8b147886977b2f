package page

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		world := zk.WorldACL(zk.PermAll)
		for _, path := range []string{"/config", "/config-old"} {
			_, err := b.Other.Create(path, []byte("old"), 0, world)
			require.NoError(t, err)
		}
		ctx := recipes.WithOwner(t.Context())
		require.NoError(t, b.Lock.Acquire(ctx))
		hold := b.Lock.Hold(ctx)
		require.NoError(t, write(hold, []byte("new")))
		require.Equal(t, "new", config(t, b))

		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		require.ErrorIs(t, write(hold, []byte("late")), recipes.ErrLockLost)
		require.Equal(t, "new", config(t, b))
	})
}

func config(t *testing.T, b *locktest.Bubble) string {
	data, _, err := b.Other.Get("/config")
	require.NoError(t, err)
	return string(data)
}

func write(hold *recipes.Hold, data []byte) error {
	//pages:block
	return err
}
