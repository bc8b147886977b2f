package main

import (
	"context"
	"strings"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

type onClient struct {
	client *recipes.Client
	mutex  *recipes.InterProcessMutex
}

func onRecipes(
	ctx context.Context, cluster *zktest.Cluster, link string,
) (process, error) {
	client, err := recipes.Connect(ctx, strings.Join(cluster.Names(), ","),
		sessionTimeout, recipes.WithDialer(cluster.Link(link).Dial))
	if err != nil {
		return nil, err
	}
	mutex, err := recipes.NewInterProcessMutex(client, lockPath)
	if err != nil {
		return nil, err
	}
	return onClient{client, mutex}, nil
}

func (p onClient) lock(ctx context.Context) (held, error) {
	hold, err := recipes.Acquire(ctx, p.mutex)
	if err != nil {
		return nil, err
	}
	return holding{hold}, nil
}

func (p onClient) close() { p.client.Close() }

type holding struct{ hold *recipes.Hold }

// check sends no request. The work could also use Hold.Context, which ends at the loss,
// in the middle of a step.
func (h holding) check() error { return h.hold.Err() }

func (h holding) unlock(ctx context.Context) error { return h.hold.Release(ctx) }
