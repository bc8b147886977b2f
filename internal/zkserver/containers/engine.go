package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
)

// patience is how long the engine may take to answer at all.
const patience = 5 * time.Second

// An engine is the container engine that testcontainers finds, and what this program has
// created there. The first call must be find; then any number of goroutines may use it.
type engine struct {
	provider *testcontainers.DockerProvider

	mu         sync.Mutex // guards what follows, never across a call of the engine
	containers map[string]*testcontainers.DockerContainer
	networks   map[string]*testcontainers.DockerNetwork
}

// find returns where the published ports are, if the engine answers and has the image.
func (e *engine) find(ctx context.Context, image string) (host string, err error) {
	// Not NewDockerProvider: that knows no default network, and puts every container into
	// an additional one.
	found, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return "", err
	}
	provider, ok := found.(*testcontainers.DockerProvider)
	if !ok {
		return "", fmt.Errorf("testcontainers returns a %T", found)
	}
	quick, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := provider.Health(quick); err != nil {
		return "", err
	}
	host, err = provider.DaemonHost(quick)
	if err != nil {
		return "", err
	}
	e.provider = provider
	e.containers = map[string]*testcontainers.DockerContainer{}
	e.networks = map[string]*testcontainers.DockerNetwork{}
	return host, e.pull(ctx, image)
}

// pull gets the image unless it is there. It tries once; testcontainers would try for a
// quarter of an hour.
func (e *engine) pull(ctx context.Context, image string) error {
	api := e.provider.Client()
	if _, err := api.ImageInspect(ctx, image); err == nil {
		return nil
	}
	response, err := api.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = response.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", image, err)
	}
	return nil
}

func (e *engine) prepare(ctx context.Context, specs []Spec) (made Made, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, e.removeAll(context.WithoutCancel(ctx), made))
			made = Made{}
		}
	}()
	shared := ""
	if len(specs) > 1 {
		n, err := network.New(ctx)
		if err != nil {
			return made, fmt.Errorf("create a network: %w", err)
		}
		e.mu.Lock()
		e.networks[n.ID] = n
		e.mu.Unlock()
		made.Network, shared = n.ID, n.Name
	}
	for _, spec := range specs {
		created, err := e.provider.CreateContainer(ctx, spec.request(shared))
		// There can be a container, and an error too.
		if c, ok := created.(*testcontainers.DockerContainer); ok && c != nil {
			e.mu.Lock()
			e.containers[c.GetContainerID()] = c
			e.mu.Unlock()
			made.Containers = append(made.Containers, c.GetContainerID())
		}
		if err != nil {
			return made, fmt.Errorf("create a container of %s: %w", spec.Image, err)
		}
	}
	return made, nil
}

func (e *engine) container(id string) (*testcontainers.DockerContainer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.containers[id]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("no container with the ID %q", id)
}

func (e *engine) signal(ctx context.Context, id, name string) error {
	if _, err := e.container(id); err != nil {
		return err
	}
	_, err := e.provider.Client().ContainerKill(
		ctx, id, client.ContainerKillOptions{Signal: name},
	)
	return err
}

func (e *engine) log(ctx context.Context, id string) (string, error) {
	c, err := e.container(id)
	if err != nil {
		return "", err
	}
	r, err := c.Logs(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

// remove does not stop a container first: there is nothing to save, and a frozen process
// would not react.
func (e *engine) remove(ctx context.Context, id string) error {
	e.mu.Lock()
	c, n := e.containers[id], e.networks[id]
	e.mu.Unlock()
	var err error
	switch {
	case c != nil:
		err = c.Terminate(ctx, testcontainers.StopTimeout(0))
	case n != nil:
		err = n.Remove(ctx)
	default:
		err = fmt.Errorf("no container or network with the ID %q", id)
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.containers, id)
	delete(e.networks, id)
	return nil
}

// removeAll removes the containers first: the engine keeps a network that is in use.
func (e *engine) removeAll(ctx context.Context, made Made) error {
	var errs []error
	for _, id := range made.Containers {
		errs = append(errs, e.remove(ctx, id))
	}
	if made.Network != "" {
		errs = append(errs, e.remove(ctx, made.Network))
	}
	return errors.Join(errs...)
}

// close removes everything that is left, the containers first. No other call may be in
// progress.
func (e *engine) close(ctx context.Context) error {
	if e.provider == nil {
		return nil
	}
	var errs []error
	for _, id := range slices.Concat(
		slices.Collect(maps.Keys(e.containers)), slices.Collect(maps.Keys(e.networks)),
	) {
		errs = append(errs, e.remove(ctx, id))
	}
	return errors.Join(append(errs, e.provider.Close())...)
}
