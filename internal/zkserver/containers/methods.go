package main

import (
	"context"
	"time"
)

// methods are what the parent can call. Their arguments and replies are JSON objects that
// internal/zkserver has as types of its own: calls.go there.
type methods struct{ engine *engine }

// A Call is in the arguments of every method.
type Call struct {
	Timeout time.Duration // of the whole call
}

func (c Call) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.Timeout)
}

// An Image is what Find looks for.
type Image struct {
	Call
	Name string
}

// A Place is where the published ports of the containers are.
type Place struct{ Host string }

// Find connects to the engine and pulls the image, unless the engine has it. It must be
// the first call.
func (m *methods) Find(image Image, place *Place) error {
	ctx, cancel := image.context()
	defer cancel()
	var err error
	place.Host, err = m.engine.find(ctx, image.Name)
	return err
}

// A Plan describes the containers of one cluster.
type Plan struct {
	Call
	Containers []Spec
}

// A Spec describes one container.
type Spec struct {
	Image    string
	Env      map[string]string
	Files    map[string]string // path and content
	Alias    string            // its name for the other containers of the plan
	Port     int               // inside
	HostIP   string            // publishes the port, on all addresses if empty
	HostPort int
}

// A Made lists what Prepare created.
type Made struct {
	Containers []string // IDs, in the order of the plan
	Network    string   // ID; empty if there is only one container
}

// Prepare creates the containers of a plan, and a network if there are several. It starts
// none. After an error nothing is left.
func (m *methods) Prepare(plan Plan, made *Made) error {
	ctx, cancel := plan.context()
	defer cancel()
	var err error
	*made, err = m.engine.prepare(ctx, plan.Containers)
	return err
}

// A Target is a container, or a network, by its ID.
type Target struct {
	Call
	ID string
}

// A Nothing is the reply of a method that has none.
type Nothing struct{}

// Start starts a container that does not run.
func (m *methods) Start(target Target, _ *Nothing) error {
	ctx, cancel := target.context()
	defer cancel()
	c, err := m.engine.container(target.ID)
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// A Signal is one for the first process of a container.
type Signal struct {
	Target
	Name string
}

// Signal sends a signal and does not wait for its effect.
func (m *methods) Signal(signal Signal, _ *Nothing) error {
	ctx, cancel := signal.context()
	defer cancel()
	return m.engine.signal(ctx, signal.ID, signal.Name)
}

// A State tells whether a container runs, and how it ended.
type State struct {
	Running  bool
	ExitCode int
	Error    string
}

// State asks the engine for the state of a container.
func (m *methods) State(target Target, state *State) error {
	ctx, cancel := target.context()
	defer cancel()
	c, err := m.engine.container(target.ID)
	if err != nil {
		return err
	}
	found, err := c.State(ctx)
	if err != nil {
		return err
	}
	*state = State{found.Running, found.ExitCode, found.Error}
	return nil
}

// A Log is what the processes of a container have written.
type Log struct{ Text string }

// Log returns the whole log of a container, from its first start.
func (m *methods) Log(target Target, log *Log) error {
	ctx, cancel := target.context()
	defer cancel()
	var err error
	log.Text, err = m.engine.log(ctx, target.ID)
	return err
}

// Remove removes a container with its data, whatever its state, or a network.
func (m *methods) Remove(target Target, _ *Nothing) error {
	ctx, cancel := target.context()
	defer cancel()
	return m.engine.remove(ctx, target.ID)
}
