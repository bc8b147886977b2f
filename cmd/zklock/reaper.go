package main

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"
)

// A reaper waits for all children of this process, for as long as there are any. Where
// the process is a subreaper (see adoptOrphans), those that its descendants have left
// behind are among them: nobody else waits for them in a container without an init.
type reaper struct {
	mu      sync.Mutex // guards what follows; held while a process is started
	started map[int]chan<- syscall.WaitStatus
	running bool
}

var reaping = &reaper{started: map[int]chan<- syscall.WaitStatus{}}

// start starts a process. The channel receives its stops, but for one that follows
// another which nobody has received yet, and then its end, and is closed.
func (r *reaper) start(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	changes := make(chan syscall.WaitStatus, 2) // a stop, and the end
	r.started[cmd.Process.Pid] = changes
	if !r.running {
		r.running = true
		go r.reap()
	}
	return changes, nil
}

// reap is not os.Process.Wait: that one does not tell of a child that stops, nor of one
// that somebody else has started.
func (r *reaper) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // there is no child
			if r.idle() {
				return
			}
		default:
			r.tell(pid, status)
		}
	}
}

// idle tells whether the reaper may end. One that was started meanwhile is a child.
func (r *reaper) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.started) > 0
	return !r.running
}

func (r *reaper) tell(pid int, status syscall.WaitStatus) {
	r.mu.Lock()
	changes := r.started[pid]
	ended := !status.Stopped()
	if ended {
		delete(r.started, pid)
	}
	r.mu.Unlock()
	if changes == nil { // somebody else's
		return
	}
	if ended || len(changes) == 0 {
		changes <- status // there is room
	}
	if ended {
		close(changes)
	}
}
