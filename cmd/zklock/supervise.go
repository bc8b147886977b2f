package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/zkrecipes/recipes"
)

// A supervision is the life of a command under a lock.
type supervision struct {
	argv      []string
	path      string // of the lock
	held      *holding
	client    *recipes.Client
	killAfter time.Duration
	// background: CMD has the terminal only if it asks for it, so that Ctrl-C is zklock's
	background bool
	outlasts   bool           // CMD goes on after a loss
	signals    chan os.Signal // ending is caught already
	begun      func()         // called when CMD has been started; nil: nobody is
	stderr     io.Writer

	// of run
	tty     *terminal
	child   *child
	ear     *ear
	stopped bool          // the child is, and waits for resumed
	resumed chan struct{} // closed when the lock is known to be held still
	endedAt time.Time     // when the loss was told; zero: it was not
	ending  bool          // a signal that ends zklock has reached CMD
	// got has what zklock or the terminal has sent to CMD; ofEar what the ear will tell
	// of though zklock has sent it; ofItself what zklock will catch of what it sends to
	// its own group.
	got             map[syscall.Signal]bool
	ofEar, ofItself map[syscall.Signal]bool
	last            syscall.Signal // that was typed; 0: none
	raise           syscall.Signal // the one by which zklock is to end; 0: none
	foreign         bool           // a part of CMD runs as another user
}

// run runs the command until it ends. What is left of it when the lock is lost is killed
// before run returns. exited is the command's exit code, lost why it had to end.
func (s *supervision) run() (exited int, lost error, err error) {
	s.got, s.ofEar, s.ofItself = map[syscall.Signal]bool{}, map[syscall.Signal]bool{},
		map[syscall.Signal]bool{}
	passed := slices.Concat(forwarded, realTime())
	notify(s.signals, passed)
	defer plain(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	defer signal.Reset(passed...)
	s.tty = openTerminal()
	defer s.tty.close()
	ours := syscall.Getpgrp()
	if s.tty != nil {
		s.ear = startEar()
	}
	if s.child, err = startChild(s.argv, s.environment()); err != nil {
		s.ear.dismiss(func(syscall.Signal) {})
		return 0, nil, err
	}
	defer s.child.guard.dismiss()
	if s.begun != nil {
		s.begun()
	}
	if s.tty != nil {
		signal.Ignore(ofTerminal...) // they would stop zklock, and not CMD
	}
	s.ear.join(s.child.pid)
	if s.tty.isOf(ours) && !s.background && !piped() {
		s.tty.give(s.child.pid)
	}
	status := s.watch()
	s.ear.dismiss(s.typed)
	s.awaitItself()
	if s.tty.isOf(s.child.pid) && status.Signaled() {
		s.got[syscall.SIGINT], s.got[syscall.SIGQUIT] = true, true // if no ear heard it
		s.tty.give(ours)
		s.tty.mend()
	}
	s.tty.takeBack(s.child)
	switch {
	case status.Signaled() && s.got[status.Signal()]:
		s.raise = status.Signal()
	case status.Exited() && status.ExitStatus() != 0:
		s.raise = s.last // CMD caught it, and gave up: the script is to end all the same
	}
	if lost = s.loss(); lost != nil {
		s.lose()
		s.foreign = !s.child.endGroup(s.endedAt.Add(s.killAfter)) || s.foreign
	}
	return exitCode(status), lost, nil
}

// lost is closed when CMD has to end.
func (s *supervision) lost() <-chan struct{} {
	if s.outlasts {
		return nil
	}
	return s.held.whole.Lost()
}

// loss is why CMD has to end; nil: it does not.
func (s *supervision) loss() error {
	if s.outlasts {
		return nil
	}
	return s.held.whole.Err()
}

// environment tells CMD what it runs under.
func (s *supervision) environment() []string {
	return []string{
		"ZKLOCK_PATH=" + s.path,
		"ZKLOCK_NODE=" + s.held.hold.Path(),
		fmt.Sprintf("ZKLOCK_TOKEN=%d", s.held.hold.FencingToken()),
		fmt.Sprintf("%s=0x%x", sessionVariable, uint64(s.client.SessionID())),
	}
}

// watch serves the child until it has ended.
func (s *supervision) watch() syscall.WaitStatus {
	lost := s.lost()
	var kill <-chan time.Time
	heard := s.ear.signals()
	for {
		select {
		case status := <-s.child.changes:
			if !status.Stopped() {
				return status
			}
			s.stop(status.StopSignal())
		case one := <-s.signals:
			s.pass(one.(syscall.Signal))
		case one, more := <-heard:
			if !more {
				heard = nil
				continue
			}
			s.typed(one)
		case <-s.resumed:
			s.resumed = nil
			s.goOn()
		case <-lost:
			lost = nil
			s.lose()
			kill = time.After(s.killAfter)
		case <-kill:
			s.child.sendAll(syscall.SIGKILL)
		}
	}
}

// typed passes on what was typed at the terminal, which has sent it to CMD's group, to
// those who would have got it if CMD were in zklock's group: a script, for one.
func (s *supervision) typed(one syscall.Signal) {
	if s.ofEar[one] {
		delete(s.ofEar, one)
		return
	}
	s.got[one], s.ofItself[one], s.ending, s.last = true, true, true, one
	_ = syscall.Kill(0, one)
}

// lose asks the group to end, once; what somebody has stopped is woken for it. But where
// zklock itself was stopped with the child, others may have the lock by now: then the
// child does not run again.
func (s *supervision) lose() {
	switch {
	case !s.endedAt.IsZero():
		return
	case s.stopped:
		s.child.sendAll(syscall.SIGKILL)
	default:
		s.child.sendAll(syscall.SIGTERM)
		s.child.sendAll(syscall.SIGCONT)
	}
	s.endedAt = time.Now()
	if s.child.isForeign() {
		s.foreign = true
		say(s.stderr, "the lock was lost; "+foreignText)
	}
}

// foreignText says that zklock cannot end CMD.
const foreignText = "CMD, or a part of it, runs as another user: zklock cannot end it, " +
	"and it goes on without the lock"

// pass passes a signal on. Those of a terminal go to the whole group, as the terminal
// sends them; of a command's own, such as SIGUSR1, the processes that it has started may
// know nothing, and would die of it. Those that end also wake what somebody has stopped,
// as shells and timeout(1) do: else they would have no effect.
func (s *supervision) pass(one syscall.Signal) {
	if s.ofItself[one] {
		delete(s.ofItself, one)
		return
	}
	s.got[one] = true
	s.ofEar[one] = slices.Contains(typedSignals, os.Signal(one))
	switch one {
	case syscall.SIGCONT:
		s.resume()
	case syscall.SIGTSTP:
		if !s.stopped {
			s.child.sendAll(one)
		}
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGWINCH:
		s.child.sendAll(one)
	default:
		s.child.send(one)
	}
	if slices.Contains(ending, os.Signal(one)) {
		s.ending = true
		s.resume()
	}
}

// stop answers a child that was stopped. One that has asked for the terminal, while
// zklock has it, is given it. Else zklock stops too, with all of its own group, as the
// shell expects of its job. Where no shell waits for that, the kernel lets no terminal
// stop a process, and neither does zklock.
func (s *supervision) stop(by syscall.Signal) {
	if s.tty == nil || !s.endedAt.IsZero() {
		return
	}
	asked := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case asked && (s.tty.isOf(syscall.Getpgrp()) || s.tty.isOf(s.child.pid)):
		s.goOn()
	case jobControlled():
		s.stopped = true
		s.sayStopped()
		_ = syscall.Kill(0, syscall.SIGTSTP) // the others; it is caught here
		earlier := s.awaitOwn(syscall.SIGTSTP)
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		for _, one := range earlier {
			s.pass(one)
		}
	case by == syscall.SIGTSTP:
		s.goOn()
	}
}

// awaitOwn waits for a signal that zklock has just sent to its own group: heard after the
// next SIGCONT, it would be taken for another's, and stop the child again. It returns
// what came before.
func (s *supervision) awaitOwn(own syscall.Signal) (earlier []syscall.Signal) {
	if !actsOn(own) {
		return nil
	}
	for {
		one := (<-s.signals).(syscall.Signal)
		if one == own {
			return earlier
		}
		earlier = append(earlier, one)
	}
}

// awaitItself waits for what zklock has sent to its own group for the terminal, and has
// not caught yet: after CMD's end it would be taken for another's, and end zklock.
func (s *supervision) awaitItself() {
	for own := range s.ofItself {
		for _, one := range s.awaitOwn(own) {
			s.signals <- one // there is room, since awaitOwn took more
		}
	}
	clear(s.ofItself)
}

// sayStopped says what becomes of the lock while zklock stands still.
func (s *supervision) sayStopped() {
	within := s.client.SessionTimeout() / 2
	if s.outlasts {
		say(s.stderr, fmt.Sprintf("stopped; the znode remains for %v or so", within))
		return
	}
	say(s.stderr, fmt.Sprintf("stopped; the lock is kept for %v or so, and CMD is "+
		"ended if it is lost by then", within))
}

// resume lets the child go on when ZooKeeper has said that the lock is held: who was
// stopped cannot know. If it is lost, the loss ends the child.
func (s *supervision) resume() {
	switch {
	case s.resumed != nil:
		return
	case !s.stopped:
		s.child.sendAll(syscall.SIGCONT)
		return
	case s.outlasts:
		s.goOn()
		return
	}
	resumed := make(chan struct{})
	s.resumed = resumed
	go func() {
		if s.stillHeld() {
			close(resumed)
		}
	}()
}

// stillHeld asks until there is an answer, or the lock is lost.
func (s *supervision) stillHeld() bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = s.held.whole.Context(ctx)
	for ctx.Err() == nil {
		answer := make(chan error, 1)
		go func() {
			_, _, err := s.client.Get(s.held.hold.Path())
			answer <- err
		}()
		select {
		case err := <-answer:
			if err == nil {
				return ctx.Err() == nil
			}
		case <-ctx.Done():
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return false
}

// goOn lets a stopped child run, with the terminal if zklock has it.
func (s *supervision) goOn() {
	s.stopped = false
	if s.tty.isOf(syscall.Getpgrp()) {
		s.tty.give(s.child.pid)
	}
	s.child.sendAll(syscall.SIGCONT)
}

// errLimit is why CMD was ended whose time was up: no loss, as users see it.
var errLimit = errors.New("--max-hold is over")

func whyEnded(lost error) error {
	if errors.Is(lost, recipes.ErrHoldExpired) {
		return errLimit
	}
	return lost
}

// end says how CMD ended for which the lock was lost.
func (s *supervision) end(lost error) string {
	if s.foreign {
		return fmt.Sprintf("%v; %s", whyEnded(lost), foreignText)
	}
	return fmt.Sprintf("CMD was ended: %v", whyEnded(lost))
}

// outcome is what zklock returns after a command has ended with a code.
func (s *supervision) outcome(code int, lost error) error {
	switch {
	case lost != nil:
		return exit(exitLost, "%s", s.end(lost))
	case s.raise != 0:
		return endedBy(s.raise)
	}
	return exitWith(code)
}
