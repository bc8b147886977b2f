package dial_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
)

const timeout = time.Second

// world is a name service and a network.
type world struct {
	ips    []string
	err    error
	takes  time.Duration
	dialed []string
	up     []string // the addresses that accept
}

var errRefused = errors.New("connection refused")

func (w *world) hosts() *dial.Hosts {
	return &dial.Hosts{
		Lookup: func(ctx context.Context, host string) ([]string, error) {
			if host != "zk1" {
				return nil, errors.New("asked for " + host)
			}
			ips, err := w.ips, w.err
			select {
			case <-time.After(w.takes):
				return slices.Clone(ips), err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			w.dialed = append(w.dialed, address)
			if !slices.Contains(w.up, address) {
				<-ctx.Done()
				return nil, errRefused
			}
			conn, _ := net.Pipe()
			return conn, nil
		},
	}
}

// connect dials and returns how long that took. A lookup that goes on has been asked by
// then, so that the world can change.
func connect(t *testing.T, hosts *dial.Hosts) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	conn, err := hosts.Connect(t.Context(), "tcp", "zk1:2181", timeout)
	if err == nil {
		conn.Close()
	}
	took := time.Since(began)
	synctest.Wait()
	return took, err
}

// A name service that is down, or silent, is of no concern to a client that has been
// connected before.
func TestKeptAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(w *world)
		takes time.Duration
	}{
		"the name service does not answer": {
			func(w *world) { w.takes = time.Hour }, timeout / 4,
		},
		"it refuses":   {func(w *world) { w.err = errors.New("server failure") }, 0},
		"it forgot":    {func(w *world) { w.ips = nil }, 0},
		"it takes its": {func(w *world) { w.takes = timeout / 2 }, timeout / 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{ips: []string{"10.0.0.1"}, up: []string{"10.0.0.1:2181"}}
				hosts := w.hosts()
				_, err := connect(t, hosts)
				require.NoError(t, err)
				c.fails(w)
				for range 3 {
					took, err := connect(t, hosts)
					require.NoError(t, err)
					require.Equal(t, c.takes, took)
				}
			})
		})
	}
}

func TestLookupsRenewTheAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{ips: []string{"10.0.0.1"}, up: []string{"10.0.0.1:2181"}}
		hosts := w.hosts()
		_, err := connect(t, hosts)
		require.NoError(t, err)

		w.ips, w.up = []string{"10.0.0.2"}, []string{"10.0.0.2:2181"} // it has moved
		_, err = connect(t, hosts)
		require.NoError(t, err)
		w.takes = time.Hour
		_, err = connect(t, hosts)
		require.NoError(t, err, "the newest are kept")

		w.ips, w.up = []string{"10.0.0.3"}, []string{"10.0.0.3:2181"}
		w.takes = timeout / 2
		_, err = connect(t, hosts)
		require.ErrorIs(t, err, errRefused, "the kept address leads nowhere now")
		w.takes = time.Hour
		_, err = connect(t, hosts)
		require.NoError(t, err, "the late answer was kept")
	})
}

// Without addresses a lookup has the time of a dial, not the name service's own.
func TestALookupIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{takes: 20 * time.Second}
		took, err := connect(t, w.hosts())
		require.Equal(t, timeout, took)
		var unanswered *net.DNSError
		require.ErrorAs(t, err, &unanswered)
		require.True(t, unanswered.IsTimeout)
		require.ErrorContains(t, err, "zk1")

		w = &world{err: errors.New("server failure")}
		took, err = connect(t, w.hosts())
		require.Zero(t, took)
		require.ErrorIs(t, err, w.err)

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errRefused)
		w = &world{takes: time.Hour}
		_, err = w.hosts().Connect(ctx, "tcp", "zk1:2181", timeout)
		require.ErrorIs(t, err, errRefused)
	})
}

func TestEachAddressHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{ips: []string{"10.0.0.1", "10.0.0.2"}, up: []string{"10.0.0.2:2181"}}
		for range 20 {
			w.dialed = nil
			took, err := connect(t, w.hosts())
			require.NoError(t, err)
			require.Equal(t, time.Duration(len(w.dialed)-1)*timeout/2, took)
		}
		w = &world{ips: []string{"1", "2", "3", "4", "5", "6"}}
		took, err := connect(t, w.hosts())
		require.ErrorIs(t, err, errRefused)
		require.Equal(t, timeout/3*6, took)
		require.Len(t, w.dialed, 6)
	})
}
