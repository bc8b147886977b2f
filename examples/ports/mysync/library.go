package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// An owner has the lock while its hold lasts.
type owner struct {
	client *recipes.Client
	lock   *recipes.InterProcessMutex
	hold   *recipes.Hold // nil before the first one
}

func onRecipes(
	ctx context.Context, cluster *zktest.Cluster, link string, who identity,
) (manager, error) {
	data, err := json.Marshal(who) // for people who look
	if err != nil {
		return nil, err
	}
	client, err := recipes.Connect(ctx, strings.Join(cluster.Names(), ","),
		sessionTimeout, recipes.WithDialer(cluster.Link(link).Dial))
	if err != nil {
		return nil, err
	}
	lock, err := recipes.NewInterProcessMutex(client, lockPath, recipes.WithData(data))
	if err != nil {
		return nil, err
	}
	return &owner{client: client, lock: lock}, nil
}

// acquire sends no request while the hold lasts. Err reports a loss before another
// process can have the lock.
func (m *owner) acquire() bool {
	ctx := context.Background()
	if m.hold != nil {
		if m.hold.Err() == nil {
			return true
		}
		_ = m.hold.Release(ctx) // it is lost
	}
	hold, err := recipes.Acquire(ctx, m.lock, recipes.WaitAtMost(0))
	m.hold = hold
	return err == nil
}

func (m *owner) close() { m.client.Close() }
