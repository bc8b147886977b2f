package main

import (
	"context"
	"strings"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// A candidate leads while its latch does. The library closes Lost of the term, and with
// it ends the leadership, before another candidate can be elected.
type candidate struct {
	*recipes.LeaderLatch
	client *recipes.Client
	stop   context.CancelFunc
	done   chan bool
}

func onRecipes(
	ctx context.Context, cluster *zktest.Cluster, id string,
) (controller, error) {
	client, err := recipes.Connect(ctx, strings.Join(cluster.Names(), ","),
		sessionTimeout, recipes.WithDialer(cluster.Link(id).Dial))
	if err != nil {
		return nil, err
	}
	latch, err := recipes.NewLeaderLatch(client, leaderPath, recipes.WithData([]byte(id)))
	if err != nil {
		return nil, err
	}
	c := &candidate{LeaderLatch: latch, client: client, done: make(chan bool)}
	ctx, c.stop = context.WithCancel(ctx)
	go c.campaign(ctx)
	return c, nil
}

// campaign rejoins after each loss.
func (c *candidate) campaign(ctx context.Context) {
	defer close(c.done)
	for {
		term, err := c.Await(ctx)
		if err != nil {
			return // the candidate was closed
		}
		select {
		case <-term.Lost(): // here a controller unloads its modules
		case <-ctx.Done():
			return
		}
	}
}

func (c *candidate) leads() bool { return c.HasLeadership() }

func (c *candidate) close() {
	c.stop()
	<-c.done
	c.client.Close()
}
