package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/queues"
)

// A narrow terminal shows who holds rather than when, and in which session.
func TestPageIsNarrow(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	const session = "0x1000000000000001"
	const kind, waits = queues.PairKind, queues.Waits
	for width, want := range map[int][]string{
		100: {kind, waits, "2026-01-02 03:04:05", session, "host-1 (pid 4711, load)"},
		80:  {kind, waits, "03:04:05", session, "host-1 (pid 4711, load)"},
		60:  {kind, waits, "03:04:05", "host-1 (pid 4711, load)"},
		50:  {kind, waits, "host-1 (pid 4711, load)"},
		10:  {kind},
	} {
		lines := page("/locks/a", view{at: since, rows: []queues.Row{{
			Path: "/locks/a", Kind: queues.PairKind, State: queues.Waits, Since: since,
			Node: "/locks/a/lock-0000000007", Data: "host-1 (pid 4711, load)",
			Session: session,
		}}}, width)
		shown := lines[headLines+1]
		shown = shown[:min(width, len(shown))]
		at := 0
		for _, part := range want {
			require.Contains(t, shown[at:], part, width)
			at += strings.Index(shown[at:], part) + len(part)
		}
		require.Equal(t, width == 100, strings.Contains(shown, "2026"), width)
		require.Equal(t, width >= 80, strings.Contains(shown, session), width)
	}
}

// A terminal of 80 columns shows who holds, and since when.
func TestPageFits(t *testing.T) {
	const width = 80
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	lines := page("/locks/report", view{at: since, rows: []queues.Row{{
		Path: "/locks/report", Kind: "write", State: queues.Holds, Since: since,
		Node: "/locks/report/_c_5a4b3c2d-1e0f-4a5b-8c6d-7e8f9a0b1c2d-__WRIT__0000000007",
		Data: "192.168.100.100", Session: "0x1000000000000001",
	}}}, width)
	require.Len(t, lines, headLines+2)
	shown := lines[headLines+1][:width]
	for _, want := range []string{
		"write", queues.Holds, "2026-01-02 03:04:05", "0x1000000000000001",
		"192.168.100.100",
	} {
		require.Contains(t, shown, want)
	}
}
