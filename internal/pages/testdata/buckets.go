package page

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"
)

func Run(t *testing.T) {
	paths := map[string]bool{}
	for i := range 10000 {
		paths[pathOf(fmt.Sprint("customer ", i))] = true
	}
	require.Len(t, paths, 256)
	require.Equal(t, pathOf("ann"), pathOf("ann"))
}

func pathOf(customer string) string {
	//pages:block
	return path
}
