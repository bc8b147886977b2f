package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A branch is what somebody sees in an incident, what to run, and what to do at each of
// its results.
type branch struct {
	see, run string
	results  [][2]string // what is shown, and what to do
}

// incident is the tree of docs/operations.md, which has a heading for each branch.
var incident = []branch{
	{"Stuck", "zklock doctor PATH", [][2]string{
		{"held for …, it works", "wait, or revoke"},
		{"held for …, it is stuck", "restart its program, or evict"},
		{"belongs to no session", "evict"},
	}},
	{"Lost", "errors.Is(err, …)", [][2]string{
		{"ErrOutOfTouch", "find the outage, or the pause"},
		{"ErrNodeDeleted", "servers' logs: did it expire?"},
	}},
	{"Flapping", "the log of the client", [][2]string{
		{"answers are slow", "disks, or the network"},
		{"session expired", "pauses, or a longer timeout"},
	}},
	{"All wait", "zklock ls PATH", [][2]string{
		{"there is no such znode", "compare paths and chroots"},
		{"a holder that waits, too", "doctor --deadlocks"},
	}},
	{"Two at work", "zklock ls -r /", [][2]string{
		{"two paths", "a typing error in a chroot"},
		{"one path, one holder", "fence: it was suspended"},
	}},
}

// drawTree draws a row for each branch.
func drawTree(colors palette) []byte {
	const (
		rowTop, line       = 52, 32
		runX, showX, doX   = 150, 400, 620
		boxHeight, boxWide = 30, 190
	)
	c := &canvas{palette: colors}
	heads := []struct {
		x    int
		text string
	}{{24, "You see"}, {runX, "look at"}, {showX, "which shows"}, {doX, "so"}}
	for _, h := range heads {
		c.text(point{h.x, 32}, "start", c.faint, h.text)
	}
	y := rowTop
	var said []string
	for _, b := range incident {
		middle := y + (len(b.results)-1)*line/2
		c.text(point{24, middle + 19}, "start", c.ink, b.see)
		corner := point{runX + boxWide, middle + boxHeight}
		c.rect("run", point{runX, middle}, corner, "none",
			` stroke="`+c.request+`" stroke-width="1.6"`)
		c.text(point{runX + 10, middle + 19}, "start", c.ink, "`"+b.run+"`")
		for i, r := range b.results {
			at := point{showX - 8, y + i*line + 15}
			c.line("branch", point{runX + boxWide, middle + 15}, at, c.faint, "")
			c.text(point{showX, at.y + 4}, "start", c.ink, r[0])
			c.text(point{doX, at.y + 4}, "start", c.ink, r[1])
			said = append(said, b.see+": "+b.run+" shows "+r[0]+": "+r[1])
		}
		y += len(b.results)*line + 16
		c.line("between", point{24, y - 8}, point{canvasWidth - 24, y - 8}, c.veil, "")
	}
	return c.finish(y+8, "An incident, as a tree of decisions",
		strings.Join(said, ". ")+".")
}

// With -update the picture is written. The page has the headings, commands and results
// of the picture.
func TestTheTreeOfAnIncident(t *testing.T) {
	t.Parallel()
	_, page, found := strings.Cut(read(t, "docs/operations.md"), "\n## An incident\n")
	require.True(t, found)
	sections := strings.Split(page, "\n### ")
	for i, b := range incident {
		section := sections[i+1]
		require.True(t, strings.HasPrefix(section, b.see+"\n"), b.see)
		if command, zklock := strings.CutPrefix(b.run, "zklock "); zklock {
			require.Contains(t, section, strings.TrimSuffix(command, " PATH"))
		}
	}
	for _, colors := range palettes {
		file := filepath.Join(root, "docs/pictures/incident"+colors.suffix+".svg")
		if *update {
			require.NoError(t, os.WriteFile(file, drawTree(colors), 0o644))
		}
		drawn, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(drawTree(colors)), string(drawn), file)
	}
}
