package pages_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// printed is the first block below a heading of a page, without what a reader types.
func printed(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, page), "\n"+heading+"\n")
	require.True(t, ok, heading)
	_, text, ok = strings.Cut(text, "```console\n")
	require.True(t, ok, heading)
	text, _, _ = strings.Cut(text, "```\n")
	return regexp.MustCompile(`(?m)^\$ .*\n`).ReplaceAllString(text, "")
}

// shortened is a regular expression of what was printed and has "…" in some places, or
// as a line of its own.
func shortened(text string) string {
	text = regexp.QuoteMeta(text)
	text = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(text, `(?:.*\n)*`)
	return strings.ReplaceAll(text, "…", ".*")
}

// What a program logs whose answers are slow, and then whose session expires.
func TestTheLogOfAProgramThatFlaps(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("program")
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))
		client, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
			sessionTimeout, recipes.WithDialer(link.Dial),
			recipes.WithClientLogger(logger))
		require.NoError(t, err)
		defer client.Close()
		lock, err := recipes.NewInterProcessMutex(client, "/locks/report",
			recipes.WithLogger(logger))
		require.NoError(t, err)
		_, err = recipes.Acquire(t.Context(), lock)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		link.Delay(time.Second, time.Second)
		time.Sleep(30 * time.Second)
		link.Delay(0, 0)
		link.Freeze()
		time.Sleep(2 * sessionTimeout)
		link.Thaw()
		time.Sleep(time.Minute)
	})
	var warnings strings.Builder
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "WARN") {
			warnings.WriteString(line)
		}
	}
	block := printed(t, "docs/operations.md", "### Flapping")
	require.Regexp(t, `\A`+shortened(block)+`\z`, warnings.String())
}

// The README has what its first program prints.
func TestWhatTheFirstProgramPrints(t *testing.T) {
	t.Parallel()
	require.Equal(t, read(t, "internal/pages/testdata/first.txt"),
		printed(t, "README.md", "## Quick start"))
}
