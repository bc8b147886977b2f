package zk

// The servers of go-zookeeper's own tests, in the place of its file of the same name:
// those of an ensemble are one zktest, each of which its admin surface stops and starts.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A ServerConfigServer is one of the servers that a ServerConfig names.
type ServerConfigServer struct {
	ID, PeerPort, LeaderElectionPort int
	Host                             string
}

// A ServerConfig is the little of zoo.cfg that matters here.
type ServerConfig struct {
	DataDir    string
	ClientPort int
	Servers    []ServerConfigServer
}

// Marshall writes what NewIntegrationTestServer reads.
func (sc ServerConfig) Marshall(w io.Writer) error {
	first := sc.Servers[0].PeerPort - 1
	_, err := fmt.Fprintf(w, "clientPort=%d\nfirst=%d\nservers=%d\n",
		sc.ClientPort, first, len(sc.Servers))
	return err
}

// An ensemble is a zktest.
type ensemble struct {
	cmd   *exec.Cmd
	admin string
}

var (
	mu        sync.Mutex
	ensembles = map[int]*ensemble{} // by the port of the first server
)

type server struct {
	port, first, servers int
}

func NewIntegrationTestServer(
	_ *testing.T, configPath string, _, _ io.Writer,
) (*server, error) {
	text, err := os.ReadFile(configPath)
	if err != nil {
		return nil, err
	}
	number := func(key string) int {
		found := regexp.MustCompile(key + `=(\d+)`).FindSubmatch(text)
		n, _ := strconv.Atoi(string(found[1]))
		return n
	}
	return &server{number("clientPort"), number("first"), number("servers")}, nil
}

func (srv *server) Start() error {
	mu.Lock()
	defer mu.Unlock()
	one := ensembles[srv.first]
	if one == nil {
		return srv.launch()
	}
	return srv.order(one, "start")
}

// launch starts all servers of the ensemble, and stops all but this one.
func (srv *server) launch() error {
	var addrs []string
	for i := 0; i < srv.servers; i++ {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", srv.first+3*i))
	}
	one := &ensemble{cmd: exec.Command(os.Getenv("ZKTEST"), "-with-parent", "-reconfig",
		"-tick", "500ms", "-super", "super:test", "-shuffle",
		"-listen", strings.Join(addrs, ","))}
	out, err := one.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := one.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // the connect string
	lines.Scan()
	one.admin = lines.Text()
	ensembles[srv.first] = one
	for i := 0; i < srv.servers; i++ {
		if other := (&server{srv.first + 3*i, srv.first, srv.servers}); *other != *srv {
			if err := other.order(one, "stop"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (srv *server) order(one *ensemble, what string) error {
	answer, err := http.Post(fmt.Sprintf(
		"%s/servers/%d/%s", one.admin, 1+(srv.port-srv.first)/3, what), "", nil)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (srv *server) Stop() error {
	mu.Lock()
	defer mu.Unlock()
	one := ensembles[srv.first]
	if one == nil {
		return nil
	}
	if err := srv.order(one, "stop"); err != nil {
		return err
	}
	// The end of a process takes as long at least. These tests rely on it: they send
	// requests right after it.
	time.Sleep(50 * time.Millisecond)
	return nil
}

// waitForSession waits until there is a session.
func waitForSession(ctx context.Context, events <-chan Event) error {
	for {
		select {
		case event, ok := <-events:
			switch {
			case !ok:
				return fmt.Errorf("connection closed before there was a session")
			case event.State == StateHasSession:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
