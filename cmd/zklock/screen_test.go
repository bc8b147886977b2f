package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/queues"
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

// The README shows a queue as a terminal of 80 columns does.
func TestTheREADMEShowsAScreen(t *testing.T) {
	const width, path = 80, "/locks/report"
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	since := time.Date(2026, 11, 26, 14, 55, 29, 0, time.Local)
	var rows []queues.Row
	for i, state := range []string{queues.Holds, queues.Waits} {
		rows = append(rows, queues.Row{
			Path: path, Kind: queues.PairKind, State: state,
			Node:    fmt.Sprintf("%s/_c_20bc5c66-__WRIT__%010d", path, 2*i),
			Data:    fmt.Sprintf("host-%d (pid %d, make)", i+1, 5032+233*i),
			Session: fmt.Sprintf("0x1a21858329f%04x", 7+2*i),
			Since:   since.Add(time.Duration(5*i) * time.Second),
		})
	}
	screen := "$ zklock watch " + path + "\n"
	for _, line := range page(path, view{at: rows[1].Since, rows: rows}, width) {
		screen += line[:min(width, len(line))] + "\n"
	}
	require.Contains(t, string(readme), screen)
}
