package zkserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// A program is ./containers, the way to the container engine: a child process that ends,
// and removes what it created, when the pipe to it closes. The system closes the pipe
// however this process ends.
type program struct {
	client *rpc.Client
	end    func() error // closes the pipe and returns how the program ended
}

// programDir is the directory of the program's module. The module is not among the
// requirements of the library's, so only the sources can tell where it is.
func programDir() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	return programNextTo(file)
}

func programNextTo(file string) (string, error) {
	if !filepath.IsAbs(file) {
		return "", errors.New("a binary that is built with -trimpath cannot find the " +
			"sources of its container program; build it without that flag")
	}
	dir := filepath.Join(filepath.Dir(file), "containers")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("no sources of the container program: %w", err)
	}
	return dir, nil
}

// startProgram builds and starts the program. It returns at once: the first call waits
// for the build, and fails if that does.
func startProgram(dir string) (*program, error) {
	// It builds in a temporary directory, which it removes, and leaves the executable in
	// Go's cache for the next process. No flag of the environment may edit the go.mod.
	cmd := exec.Command("go", "run", "-mod=readonly", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	cmd.SysProcAttr = ownGroup()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &program{
		client: jsonrpc.NewClient(pipes{out, in}),
		end: sync.OnceValue(func() error {
			_ = in.Close() // closed already if the program is gone
			err := cmd.Wait()
			return fmt.Errorf("the container program ended (%w): %s", err, tail(
				stderr.String()))
		}),
	}, nil
}

// pipes make one connection of the program's output and input.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// args are the arguments of a call, by the names of the fields that ./containers has for
// them in methods.go.
type args map[string]any

// call calls a method of the program. A call with a ctx that ends goes on there, but no
// longer than the deadline of ctx; what it creates is removed at the end of this process.
func (p *program) call(ctx context.Context, method string, a args, reply any) error {
	timeout := limit
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	all := args{"Timeout": timeout}
	for name, value := range a {
		all[name] = value
	}
	call := p.client.Go("Engine."+method, all, reply, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-call.Done:
	}
	var told rpc.ServerError
	if call.Error == nil || errors.As(call.Error, &told) {
		return call.Error
	}
	return p.end() // the connection broke
}
