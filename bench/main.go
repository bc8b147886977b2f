// The program bench measures this library next to its peers; README.md says how.
//
// One process plans, starts servers and writes the report. Worker processes
// use the peers' locks; for the libraries in Go they are this program again.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/worker"
)

// commands are what the program does.
type commands struct {
	Run     runCommand     `cmd:"" default:"withargs" help:"Measure and report."`
	Report  reportCommand  `cmd:"" help:"Write the report of former runs anew."`
	Readme  readmeCommand  `cmd:"" help:"Print the rows of the project's README."`
	Compare compareCommand `cmd:"" help:"Compare two versions; see compare.sh."`
	Share   shareCommand   `cmd:"" help:"Measure caching next to Curator on one path."`
	Worker  workerCommand  `cmd:"" hidden:"" help:"Be a worker process."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	parsed := kong.Parse(&commands{},
		kong.Name("bench"),
		kong.Description("Measures the lock recipes next to their peers."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := parsed.Run()
	stop()
	parsed.FatalIfErrorf(err)
}

// workerCommand is what the program does as its own worker.
type workerCommand struct {
	Peer string `arg:""`
}

// Run ignores interrupts: those of a terminal go to all processes, and a worker ends with
// its standard input.
func (c *workerCommand) Run() error {
	p, known := peer.Find(c.Peer)
	if !known {
		return errUnknownPeer(c.Peer)
	}
	return worker.Serve(context.Background(), p, os.Stdin, os.Stdout)
}

type errUnknownPeer string

func (e errUnknownPeer) Error() string { return "there is no peer " + string(e) }
