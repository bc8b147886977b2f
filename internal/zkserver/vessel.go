package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// containerData is where ZooKeeper's official image keeps the data.
const containerData = "/data"

// A vessel is a server that runs in a container.
type vessel struct {
	box *testcontainers.DockerContainer
	api client.APIClient
}

func (v *vessel) dataDir() string { return containerData }

func (v *vessel) start(ctx context.Context) error {
	err := v.box.Start(ctx)
	if err != nil && portTaken(err.Error()) {
		err = errors.Join(errPortTaken, err)
	}
	return err
}

// The signals that a child gets, and not the engine's pause: engines differ in whether a paused container can be killed.
func (v *vessel) freeze(ctx context.Context) error { return v.signal(ctx, "STOP") }
func (v *vessel) thaw(ctx context.Context) error   { return v.signal(ctx, "CONT") }

func (v *vessel) kill(ctx context.Context) error {
	if err := v.signal(ctx, "KILL"); err != nil {
		return err
	}
	for {
		state, err := v.box.State(ctx)
		if err != nil || !state.Running {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (v *vessel) signal(ctx context.Context, name string) error {
	_, err := v.api.ContainerKill(ctx, v.box.GetContainerID(), client.ContainerKillOptions{Signal: name})
	return err
}

func (v *vessel) ended(ctx context.Context) error {
	state, err := v.box.State(ctx)
	if err != nil || state.Running {
		return err
	}
	return fmt.Errorf("its container ended with exit code %d %s; its log ends:\n%s", state.ExitCode, state.Error, v.log(ctx))
}

// remove does not stop the container first: there is nothing to save, and a frozen one would not listen.
func (v *vessel) remove(ctx context.Context) error {
	return v.box.Terminate(ctx, testcontainers.StopTimeout(0))
}

func (v *vessel) log(ctx context.Context) string {
	r, err := v.box.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return tail(text)
}
