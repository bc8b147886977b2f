package zktest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// TestShuffle has the same children come in another order each time, in all kinds of
// lists, and the same orders in each run with a seed.
func TestShuffle(t *testing.T) {
	play := func(seed uint64, more ...zktest.Option) (lists [][]string) {
		synctest.Test(t, func(t *testing.T) {
			options := []zktest.Option{zktest.WithSeed(seed), zktest.WithServers(3)}
			c := zktest.Start(t, append(options, more...)...)
			cl := connectTo(t, c, c.Leader())
			for i := range 10 {
				cl.create(fmt.Sprint("/", i), 0)
			}
			follower := without(c.Servers(), c.Leader())[0]
			follower.Stop()
			work(t, cl, 0, 400)
			follower.Start()
			there := connectTo(t, c, follower)
			for range 2 {
				for _, at := range []*zkClient{cl, there} {
					children, _, err := at.Children("/")
					require.NoError(t, err)
					lists = append(lists, children)
				}
			}
		})
		return lists
	}
	t.Setenv("ZKTEST_SHUFFLE", "")
	sorted := play(1)
	require.True(t, slices.IsSorted(sorted[0]))
	for _, list := range sorted {
		require.Equal(t, sorted[0], list)
	}
	shuffled := play(1, zktest.WithShuffle())
	for i, list := range shuffled {
		require.ElementsMatch(t, sorted[0], list)
		for _, other := range shuffled[:i] {
			require.NotEqual(t, other, list)
		}
		require.False(t, slices.IsSorted(list))
	}
	require.Equal(t, shuffled, play(1, zktest.WithShuffle()))
	require.NotEqual(t, shuffled, play(2, zktest.WithShuffle()))
	t.Setenv("ZKTEST_SHUFFLE", "yes")
	require.Equal(t, shuffled, play(1))
}
