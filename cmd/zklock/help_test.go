package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
)

// Each command has two examples, which are commands that zklock would run.
func TestExamples(t *testing.T) {
	app := newApp(io.Discard, io.Discard)
	require.Len(t, examples, len(app.Commands)+1)
	for _, name := range append([]string{app.Name}, namesOf(app)...) {
		require.Len(t, examples[name], 2, name)
		for _, example := range examples[name] {
			_, line, _ := strings.Cut("; "+example, "zklock ")
			args := split("zklock " + line)
			if end := slices.IndexFunc(args, isOperator); end >= 0 {
				args = args[:end]
			}
			parsed, ran := newApp(io.Discard, io.Discard), ""
			for _, cmd := range parsed.Commands {
				cmd.Action = func(_ context.Context, cmd *cli.Command) error {
					ran = cmd.Name
					if cmd.StopOnNthArg == nil {
						return nil
					}
					require.Contains(t, example, " "+cmd.Args().First()+" -- ")
					require.NotEmpty(t, cmd.Args().Get(1), example)
					return nil
				}
			}
			require.NoError(t, parsed.Run(t.Context(), args), example)
			if name == app.Name {
				require.NotEmpty(t, ran, example)
			} else {
				require.Equal(t, name, ran, example)
			}
		}
	}
}

func namesOf(app *cli.Command) (names []string) {
	for _, cmd := range app.Commands {
		names = append(names, cmd.Name)
	}
	return names
}

// isOperator tells whether a word of an example is the shell's, not zklock's.
func isOperator(word string) bool {
	return strings.HasPrefix(word, "|") || strings.HasPrefix(word, ">")
}
