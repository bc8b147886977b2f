package zkserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Server is one server of a [Cluster]. Its methods are for one goroutine at a time,
// except for FourLetter.
type Server struct {
	Addr string // host:port for clients; the same for life, over Kill and Restart
	host host
	dial zk.Dialer // nil: over the network
}

// A host is where a server runs: a child process or a container. It is prepared once, and
// then started and killed any number of times.
type host interface {
	start(context.Context) error
	freeze(context.Context) error
	thaw(context.Context) error
	kill(context.Context) error   // returns when the process is gone
	ended(context.Context) error  // why the server runs no longer; nil while it does
	remove(context.Context) error // stops it whatever its state, and removes its data
	dataDir() string
	log(context.Context) string
}

// PID is the server's process on this machine; 0 if it is none that this process has
// started: it runs in a container, in this process, or was there before.
func (s *Server) PID() int {
	if h, ok := s.host.(*processHost); ok && h.proc != nil {
		return h.proc.cmd.Process.Pid
	}
	return 0
}

// Freeze stops the server's process where it stands (SIGSTOP): its connections stay open,
// and new ones are accepted, but nothing is answered.
func (s *Server) Freeze() error { return s.do("freeze", s.host.freeze) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.do("thaw", s.host.thaw) }

// Kill ends the server's process at once (SIGKILL), frozen or not. Its data stay.
func (s *Server) Kill() error { return s.do("kill", s.host.kill) }

// Restart starts a killed server with the address and the data that it had, and returns
// when it serves. A member of an ensemble serves only together with a majority: where
// that is missing too, restart them at the same time.
func (s *Server) Restart() error {
	return s.do("restart", func(ctx context.Context) error {
		if s.host.ended(ctx) == nil {
			return errors.New("it has not been killed")
		}
		if err := s.host.start(ctx); err != nil {
			return err
		}
		return s.await(ctx)
	})
}

// FourLetter sends a command such as srvr, mntr, cons, wchs or dump, and returns the
// answer. It fails after two seconds without one.
func (s *Server) FourLetter(command string) (string, error) {
	return fourLetter(context.Background(), s.dial, s.Addr, command)
}

// Log returns the end of what the server has logged, or why there is none to be had.
func (s *Server) Log() string { return tail(s.host.log(context.Background())) }

// LogLines returns the lines with a text of all that the server has logged since it was
// started first.
func (s *Server) LogLines(with string) (found []string) {
	for line := range strings.Lines(s.host.log(context.Background())) {
		if strings.Contains(line, with) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

// tail is the end of a log, enough of it to show a Java exception with its causes.
func tail(text string) string {
	const most = 4000
	if len(text) > most {
		text = text[len(text)-most:]
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

func (s *Server) do(what string, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := step(ctx); err != nil {
		return s.failed(what, err)
	}
	return nil
}

func (s *Server) failed(what string, err error) error {
	return fmt.Errorf("zkserver: %s %s: %w", what, s.Addr, err)
}

// await returns when the server serves. It asks for the configuration, since nothing else
// tells our server from that of another test which took the port in the same moment.
func (s *Server) await(ctx context.Context) error {
	const pause, interval = 20 * time.Millisecond, 500 * time.Millisecond
	ours := "dataDir=" + s.host.dataDir() + "/"
	for lastCheck := time.Now(); ; {
		// Less than FourLetter's patience: a server that is starting may take a question
		// and forget it.
		quick, cancel := context.WithTimeout(ctx, interval)
		answer, err := fourLetter(quick, s.dial, s.Addr, "conf")
		cancel()
		if err == nil && strings.Contains(answer, ours) {
			return nil
		}
		// Not every time: an engine takes long to tell.
		if time.Since(lastCheck) > interval {
			if err := s.host.ended(ctx); err != nil {
				return fmt.Errorf("zkserver: %s did not start: %w", s.Addr, err)
			}
			lastCheck = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zkserver: %s does not serve: %w (last answer: %q); "+
				"its log ends:\n%s", s.Addr, errors.Join(context.Cause(ctx), err),
				answer, s.host.log(context.WithoutCancel(ctx)))
		case <-time.After(pause):
		}
	}
}

// externalHost is the host of a server that somebody else runs.
type externalHost struct{}

var errExternal = errors.New("a server of ZOOKEEPER_SERVERS is not ours to touch")

func (externalHost) start(context.Context) error  { return errExternal }
func (externalHost) freeze(context.Context) error { return errExternal }
func (externalHost) thaw(context.Context) error   { return errExternal }
func (externalHost) kill(context.Context) error   { return errExternal }
func (externalHost) ended(context.Context) error  { return errExternal }
func (externalHost) remove(context.Context) error { return nil }
func (externalHost) dataDir() string              { return "" }
func (externalHost) log(context.Context) string   { return "" }
