package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/queues"
)

// The pages that show what "zklock ls" prints had times without their days. Znodes are
// shortened there.
func TestPagesShowTablesAsTheyArePrinted(t *testing.T) {
	t.Parallel()
	row := func(state, guid string, number int, session, since, data string) queues.Row {
		at, err := time.ParseInLocation(time.DateTime, since, time.Local)
		require.NoError(t, err)
		return queues.Row{
			Kind: "lock", State: state, Session: session, Since: at, Data: data,
			Node: fmt.Sprintf("…/_c_%s…-lock-%010d", guid, number),
		}
	}
	const one, begun = "0x1a21858329f0001", "2026-11-26 14:52:45"
	for page, rows := range map[string][]queues.Row{
		"README.md": {
			row(queues.Holds, "d422", 0, one, begun, "vm (pid 59, try)"),
			row(queues.Waits, "2385", 1, one, begun, "vm (pid 59, try)"),
		},
		"docs/operations.md": {
			row(queues.Holds, "20bc", 0, "0x1a21858329f0007", "2026-11-26 14:55:29",
				"host-1 (pid 5032)"),
			row(queues.Waits, "292e", 1, "0x1a21858329f0009", "2026-11-26 14:55:34",
				"host-2 (pid 5265)"),
		},
	} {
		var table strings.Builder
		require.NoError(t, writeTable(&table, rows, listed))
		text, err := os.ReadFile("../../" + page)
		require.NoError(t, err)
		require.Contains(t, string(text), " ls /locks/report\n"+table.String(), page)
	}
}
