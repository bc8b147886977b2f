// The program zklock is flock(1) for a cluster: it runs commands under locks in
// ZooKeeper, elects leaders, and shows who holds and who waits. README.md shows what one
// types and sees.
package main

import (
	"context"
	"io"
	"os"
)

func main() {
	switch {
	case os.Args[0] == guardName && len(os.Args) > 1:
		os.Exit(listen(os.Stdin, os.Stdout))
	case os.Args[0] == guardName:
		os.Exit(guard(os.Stdin))
	}
	settle()
	errZone = localZone()
	os.Exit(zklock(context.Background(), os.Args, os.Stdout, os.Stderr))
}

// zklock does what args say, and returns the exit code.
func zklock(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	if len(args) > 1 && args[1] == completeName {
		complete(app, args[2:], stdout)
		return 0
	}
	app.Metadata = map[string]any{typedKey: args}
	return report(stderr, untopical(app.Run(ctx, spread(app, args))))
}
