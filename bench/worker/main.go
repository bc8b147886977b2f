// The program worker is a worker process of bench and no more: it needs of the library
// only what users do, so it can be built with another version of it. See compare.sh.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/worker"
)

func main() {
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: worker PEER")
	}
	p, known := peer.Find(args[0])
	if !known {
		return fmt.Errorf("there is no peer %q", args[0])
	}
	return worker.Serve(context.Background(), p, os.Stdin, os.Stdout)
}
