package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/crew"
	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// shareCommand measures a Go and a Java process that use one lock all the time.
type shareCommand struct {
	Java   []int         `default:"1,4,16" help:"Numbers of users in the Java process."`
	Users  int           `default:"16" help:"In the Go process."`
	Rounds int           `default:"7" help:"How often everything is measured."`
	Time   time.Duration `default:"3s" help:"Of one measurement."`
	Limit  time.Duration `default:"2m" help:"After which one is given up."`
}

// goPeers are those of the Go process. The first one does not cache.
var goPeers = []string{peer.Recipes, peer.Cached1, peer.Cached, peer.Cached256}

// Run measures and prints a table.
func (c *shareCommand) Run(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	java, err := crew.CompileJava(ctx, "java", filepath.Join(temp, "classes"))
	if err != nil {
		return err
	}
	servers, err := service.Start(ctx, service.ZooKeeper, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	// A crew does one load at a time.
	commands := map[string][]string{}
	for _, name := range goPeers {
		commands[name] = []string{self, "worker", name}
	}
	ours := crew.New(commands, c.Limit)
	theirs := crew.New(map[string][]string{plan.Curator: java.Command("share")}, c.Limit)
	defer ours.Close()
	defer theirs.Close()
	shares := report.NewShares(goPeers)
	for round := range c.Rounds + 1 { // the first one warms up
		for _, users := range c.Java {
			for _, name := range goPeers {
				pair, err := c.measure(ctx, ours, theirs, name, users, servers.Addrs)
				if err != nil {
					return err
				}
				if round > 0 {
					shares.Add(users, name, pair)
				}
			}
		}
	}
	fmt.Print(shares)
	return nil
}

// measure has both processes use one lock, and returns the speeds of both.
func (c *shareCommand) measure(
	ctx context.Context, ours, theirs *crew.Crew, name string, javaUsers int,
	addrs []string,
) (pair report.Pair, err error) {
	l := (&plan.Plan{Time: c.Time}).OnePath(addrs)
	var results [2]load.Result
	var both sync.WaitGroup
	both.Go(func() { results[0] = ours.Do(ctx, name, 1, users(l, c.Users))[0] })
	both.Go(func() {
		results[1] = theirs.Do(ctx, plan.Curator, 1, users(l, javaUsers))[0]
	})
	both.Wait()
	for i, r := range results {
		if r.Fault != "" {
			return pair, errors.New(r.Fault)
		}
		speed := float64(r.Ops) / r.Took.Seconds()
		if i == 0 {
			pair.Ours = speed
		} else {
			pair.Theirs = speed
		}
	}
	return pair, nil
}

func users(l load.Load, n int) load.Load {
	l.Users = n
	return l
}
