package zktest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWatchersHearInTheOrderOfTheirWatches(t *testing.T) {
	table := newWatchTable()
	var want, heard []*conn
	for range 30 {
		who := &conn{}
		table.add(watchData, "/a", who)
		want = append(want, who)
	}
	created := []event{{kind: eventNodeCreated, path: "/a"}}
	table.trigger(created, func(who *conn, _ event) { heard = append(heard, who) })
	require.Len(t, heard, len(want))
	for i, who := range want {
		require.Same(t, who, heard[i])
	}
}
