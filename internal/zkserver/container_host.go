package zkserver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// containerData is where ZooKeeper's official image keeps the data.
const containerData = "/data"

// A containerHost runs a server in a container.
type containerHost struct {
	program *program
	id      string
	addr    string // for clients
}

func (h *containerHost) dataDir() string { return containerData }

func (h *containerHost) call(ctx context.Context, method string, reply any) error {
	return h.program.call(ctx, method, args{"ID": h.id}, reply)
}

func (h *containerHost) start(ctx context.Context) error {
	err := h.call(ctx, "Start", nil)
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
		_, err := fourLetter(quick, nil, h.addr, "srvr")
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
		state, err := h.state(ctx)
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
	return h.program.call(ctx, "Signal", args{"ID": h.id, "Name": name}, nil)
}

// A containerState tells whether a container runs, and how it ended.
type containerState struct {
	Running  bool
	ExitCode int
	Error    string
}

func (h *containerHost) state(ctx context.Context) (state containerState, err error) {
	err = h.call(ctx, "State", &state)
	return state, err
}

func (h *containerHost) ended(ctx context.Context) error {
	state, err := h.state(ctx)
	if err != nil || state.Running {
		return err
	}
	return fmt.Errorf(
		"its container ended with exit code %d %s; its log ends:\n%s", state.ExitCode,
		state.Error, tail(h.log(ctx)),
	)
}

func (h *containerHost) remove(ctx context.Context) error {
	return h.call(ctx, "Remove", nil)
}

func (h *containerHost) log(ctx context.Context) string {
	var log struct{ Text string }
	if err := h.call(ctx, "Log", &log); err != nil {
		return err.Error()
	}
	return log.Text
}
