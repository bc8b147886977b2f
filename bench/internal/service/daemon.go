package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// daemons are servers that run as children of this process.
type daemons struct {
	dir  string // of their data and logs
	cmds []*exec.Cmd
}

// newDaemons makes the directory: in memory, if there is such a place, so that etcd's
// waiting for the disk is none. ZooKeeper is told not to wait, redis not to write.
func newDaemons() (*daemons, error) {
	place := "/dev/shm"
	if _, err := os.Stat(place); err != nil {
		place = ""
	}
	dir, err := os.MkdirTemp(place, "bench-")
	return &daemons{dir: dir}, err
}

// run starts one.
func (d *daemons) run(program string, arguments ...string) error {
	path, err := lookUp(program)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, fmt.Sprintf("log-%d", len(d.cmds))))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, arguments...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, d.dir
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmds = append(d.cmds, cmd)
	return nil
}

func (d *daemons) pids() (pids []int) {
	for _, cmd := range d.cmds {
		pids = append(pids, cmd.Process.Pid)
	}
	return pids
}

func lookUp(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf(
			"%s: %w (Debian: apt-get install %s-server)", program, ErrMissing,
			strings.TrimSuffix(program, "-server"),
		)
	}
	return path, nil
}

// await asks the servers, all at once, until each of them serves.
func (d *daemons) await(
	ctx context.Context, addrs []string, serves func(addr string) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, addr := range addrs {
		g.Go(func() error {
			for {
				err := serves(addr)
				if err == nil {
					return nil
				}
				select {
				case <-ctx.Done():
					return fmt.Errorf("%s does not serve: %w\n%s", addr, err, d.logs())
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	return g.Wait()
}

// logs are the ends of what they have said.
func (d *daemons) logs() string {
	var all strings.Builder
	for i := range d.cmds {
		text, err := os.ReadFile(filepath.Join(d.dir, fmt.Sprintf("log-%d", i)))
		if err == nil {
			all.Write(text[max(0, len(text)-1000):])
		}
	}
	return all.String()
}

// close stops all and removes what they have written.
func (d *daemons) close() error {
	for _, cmd := range d.cmds {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, cmd := range d.cmds {
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // how it ends is of no interest
		kill.Stop()
	}
	return os.RemoveAll(d.dir)
}

// freeAddrs returns addresses on loopback where nothing listens.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, errors.Join(err, listenErr)
		}
		defer l.Close() // after the last one is found, so that all differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// port is that of an address.
func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

var dotted = regexp.MustCompile(`\d+\.\d+\.\d+`)

// version is the first one that a program tells.
func version(program string) string {
	out, err := exec.Command(program, "--version").Output()
	if found := dotted.Find(out); err == nil && found != nil {
		return string(found)
	}
	return "of unknown version"
}
