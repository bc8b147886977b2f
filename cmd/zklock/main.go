// The program zklock is flock(1) for a cluster: it runs commands under locks in
// ZooKeeper, elects leaders, and shows who holds and who waits. README.md shows what one
// types and sees.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	switch {
	case isEar():
		listen(os.Stdin, os.Stdout)
		return
	case os.Args[0] == guardName:
		os.Exit(guard(os.Stdin))
	}
	settle()
	errZone = localZone()
	os.Exit(zklock(context.Background(), os.Args, os.Stdout, os.Stderr))
}

// zklock does what args say, and returns the exit code.
func zklock(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	app := newApp(out, stderr)
	if len(args) > 1 && args[1] == completeName {
		complete(app, args[2:], stdout)
		return 0
	}
	app.Metadata = map[string]any{typedKey: args}
	return report(stderr, cmp.Or(untopical(app.Run(ctx, spread(app, args))), out.err))
}

// An output remembers that something could not be written: not all that write to it tell.
type output struct {
	to  io.Writer
	err error
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.err = unwritten(err)
	}
	return n, o.err
}

// unwritten is an error of standard output. If nobody reads that, zklock ends as any
// program in a pipeline does.
func unwritten(err error) error {
	if errors.Is(err, syscall.EPIPE) && !signal.Ignored(syscall.SIGPIPE) {
		return endedBy(syscall.SIGPIPE)
	}
	return fmt.Errorf("standard output: %w", err)
}
