package main

import (
	"context"
	"encoding/json"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
)

// serveArgument makes the test binary be the program.
const serveArgument = "serve"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveArgument {
		main()
		return
	}
	os.Exit(m.Run())
}

// within bounds one call, on a loaded machine too.
const within = time.Minute

// A parent is the other end of the program.
type parent struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	client *rpc.Client
}

func start(t *testing.T, env ...string) *parent {
	t.Helper()
	p := &parent{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], serveArgument)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	p.out, err = p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.client = jsonrpc.NewClient(stream{p.out, p.in})
	return p
}

func (p *parent) call(method string, args, reply any) {
	p.t.Helper()
	require.NoError(p.t, p.client.Call("Engine."+method, args, reply))
}

func target(id string) Target { return Target{Call{within}, id} }

// specs are n containers that do not serve anything.
func specs(n int) []Spec {
	image := os.Getenv("ZOOKEEPER_IMAGE")
	if image == "" {
		image = "zookeeper:3.9.3"
	}
	all := make([]Spec, n)
	for i := range all {
		all[i] = Spec{
			Image: image, Alias: string(rune('a' + i)), Port: 2181, HostIP: "127.0.0.1",
			Env:   map[string]string{"JVMFLAGS": "-Xmx64m"},
			Files: map[string]string{"/conf/zoo.cfg": "dataDir=/data\nclientPort=2181\n"},
		}
	}
	return all
}

func TestTheEndOfTheInputRemovesAllThatIsLeft(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	for name, part := range map[string]func(*parent, Made){
		"end of input": func(p *parent, _ Made) {
			require.NoError(p.t, p.in.Close())
		},
		// As with a parent that is killed during a call: the reply breaks the pipe.
		"no reader of the replies": func(p *parent, made Made) {
			require.NoError(p.t, p.out.Close())
			require.NoError(p.t, json.NewEncoder(p.in).Encode(map[string]any{
				"method": "Engine.State", "params": []any{target(made.Containers[0])},
			}))
			require.NoError(p.t, p.in.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			all, made := specs(3), Made{}
			p.call("Find", Image{Call{within}, all[0].Image}, &Place{})
			p.call("Prepare", Plan{Call{within}, all}, &made)
			require.Len(t, made.Containers, 3)
			require.NotEmpty(t, made.Network)
			p.call("Start", target(made.Containers[0]), nil)
			p.call("Remove", target(made.Containers[1]), nil)
			require.Equal(t, []bool{true, false, true, true}, exist(t, made))

			part(p, made)
			require.NoError(t, p.cmd.Wait())
			require.Equal(t, make([]bool, 4), exist(t, made))
		})
	}
}

// exist returns of each container and of the network whether the engine has it.
func exist(t *testing.T, made Made) []bool {
	t.Helper()
	provider, err := testcontainers.NewDockerProvider()
	require.NoError(t, err)
	defer func() { require.NoError(t, provider.Close()) }()
	var all []bool
	for _, id := range made.Containers {
		_, err := provider.Client().ContainerInspect(
			t.Context(), id, client.ContainerInspectOptions{},
		)
		all = append(all, there(t, err))
	}
	_, err = provider.Client().NetworkInspect(
		t.Context(), made.Network, client.NetworkInspectOptions{},
	)
	return append(all, there(t, err))
}

func there(t *testing.T, err error) bool {
	t.Helper()
	if !errdefs.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

func TestAFailedPrepareLeavesNothing(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	e, all := &engine{}, specs(2)
	_, err := e.find(ctx, all[0].Image)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.close(ctx)) }()
	all[1].Image = "not an image"
	made, err := e.prepare(ctx, all)
	require.ErrorContains(t, err, "create a container of not an image")
	require.NotContains(t, err.Error(), "ID", "the first could not be removed")
	require.Empty(t, made)
	require.Empty(t, e.containers)
	require.Empty(t, e.networks)
}

func TestWithoutAnEngine(t *testing.T) {
	p := start(t, "DOCKER_HOST=unix:///nowhere.sock")
	err := p.client.Call("Engine.Find", Image{Call{within}, "zookeeper"}, &Place{})
	require.ErrorContains(t, err, "/nowhere.sock")
	err = p.client.Call("Engine.Start", target("x"), nil)
	require.ErrorContains(t, err, `no container with the ID "x"`)
	err = p.client.Call("Engine.Remove", target("x"), nil)
	require.ErrorContains(t, err, `no container or network with the ID "x"`)
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait())
}
