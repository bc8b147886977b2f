package main

import (
	"context"
	"strings"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

type onClient struct {
	client *recipes.Client
	node   *recipes.PersistentNode
}

func onRecipes(
	ctx context.Context, cluster *zktest.Cluster, link string,
) (registry, error) {
	client, err := recipes.Connect(ctx, strings.Join(cluster.Names(), ","),
		sessionTimeout, recipes.WithDialer(cluster.Link(link).Dial))
	if err != nil {
		return nil, err
	}
	node, err := recipes.NewPersistentNode(client, instance, nil)
	if err != nil {
		return nil, err
	}
	return onClient{client, node}, nil
}

func (r onClient) register(ctx context.Context) error { return r.node.Await(ctx) }

func (r onClient) deregister(ctx context.Context) error { return r.node.Close(ctx) }

func (r onClient) close() {
	_ = r.node.Close(context.Background())
	r.client.Close()
}
