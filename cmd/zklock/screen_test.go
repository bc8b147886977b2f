package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A terminal of 80 columns shows who holds, and since when.
func TestPageFits(t *testing.T) {
	const width = 80
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	lines := page("/locks/report", view{at: since, rows: []row{{
		Path: "/locks/report", Kind: "write", State: holds, Since: since,
		Node: "/locks/report/_c_5a4b3c2d-1e0f-4a5b-8c6d-7e8f9a0b1c2d-__WRIT__0000000007",
		Data: "192.168.100.100", Session: "0x1000000000000001",
	}}})
	require.Len(t, lines, headLines+2)
	shown := lines[headLines+1][:width]
	for _, want := range []string{
		"write", holds, "2026-01-02 03:04:05", "0x1000000000000001", "192.168.100.100",
	} {
		require.Contains(t, shown, want)
	}
}
