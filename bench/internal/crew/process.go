// Package crew has the worker processes: each peer's are started when they are first
// needed, and then do one load after the other. One that fails, hangs or ends is
// replaced.
package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A process is a worker, for one load at a time.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

// start starts a worker. It ends with its standard input.
func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), stderr: &tail{}}
	p.cmd.Stderr = p.stderr
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return p, nil
}

// do has the worker do a load. After an error the process is of no use any more.
func (p *process) do(ctx context.Context, l load.Load) (load.Result, error) {
	type answer struct {
		line []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		err := json.NewEncoder(p.in).Encode(l)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		line, err := p.out.ReadBytes('\n')
		answered <- answer{line, err}
	}()
	var r load.Result
	select {
	case a := <-answered:
		if a.err != nil {
			p.kill() // by then all that it said has come
			return r, fmt.Errorf("the worker is gone: %w: %s", a.err, p.stderr)
		}
		if err := json.Unmarshal(a.line, &r); err != nil {
			return r, fmt.Errorf("the worker says %q: %w", a.line, err)
		}
		return r, nil
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
}

// close lets the worker end, and kills it if it does not.
func (p *process) close() {
	_ = p.in.Close() // if it fails, the process is gone
	timer := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait() // how it ends is of no interest
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	p.close()
}

// A tail keeps the end of what is written to it, by the process until Wait returns.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2000
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(b), nil
}

func (t *tail) String() string { return string(t.text) }
