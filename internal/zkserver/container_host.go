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

// A containerHost runs a server in a container.
type containerHost struct {
	container *testcontainers.DockerContainer
	api       client.APIClient
	addr      string // for clients
}

func (h *containerHost) dataDir() string { return containerData }

func (h *containerHost) start(ctx context.Context) error {
	err := h.container.Start(ctx)
	if err != nil && portTaken(err.Error()) {
		err = errors.Join(errPortTaken, err)
	}
	return err
}

// The signals that a processHost gets, and not the engine's pause: engines differ in
// whether a paused container can be killed. By the time that the engine has sent one, the
// server's threads run on, for a dozen milliseconds on a busy machine: it is frozen when
// it no longer answers.
func (h *containerHost) freeze(ctx context.Context) error {
	if err := h.signal(ctx, "STOP"); err != nil {
		return err
	}
	for {
		quick, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
		_, err := fourLetter(quick, h.addr, "srvr")
		cancel()
		if err != nil {
			return context.Cause(ctx)
		}
	}
}

func (h *containerHost) thaw(ctx context.Context) error { return h.signal(ctx, "CONT") }

func (h *containerHost) kill(ctx context.Context) error {
	if err := h.signal(ctx, "KILL"); err != nil {
		return err
	}
	for {
		state, err := h.container.State(ctx)
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

func (h *containerHost) signal(ctx context.Context, name string) error {
	_, err := h.api.ContainerKill(
		ctx, h.container.GetContainerID(), client.ContainerKillOptions{Signal: name},
	)
	return err
}

func (h *containerHost) ended(ctx context.Context) error {
	state, err := h.container.State(ctx)
	if err != nil || state.Running {
		return err
	}
	return fmt.Errorf(
		"its container ended with exit code %d %s; its log ends:\n%s", state.ExitCode,
		state.Error, tail(h.log(ctx)),
	)
}

// remove does not stop the container first: there is nothing to save, and a frozen one
// would not listen.
func (h *containerHost) remove(ctx context.Context) error {
	return h.container.Terminate(ctx, testcontainers.StopTimeout(0))
}

func (h *containerHost) log(ctx context.Context) string {
	r, err := h.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
