package zkserver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoutePeers(t *testing.T) {
	t.Parallel()
	members := []PeerPorts{
		{Quorum: 11, Election: 12},
		{Quorum: 21, Election: 22},
		{Quorum: 31, Election: 32},
	}
	direct := []string{
		"server.1=127.0.0.1:11:12", "server.2=127.0.0.1:21:22",
		"server.3=127.0.0.1:31:32",
	}
	lines, err := settings{}.memberLines(members, 1)
	require.NoError(t, err)
	require.Equal(t, direct, lines)

	s, err := newSettings([]Option{RoutePeers(func(
		from, to int, actual PeerPorts,
	) (PeerPorts, error) {
		far := 1000*(from+1) + 100*(to+1)
		return PeerPorts{
			Quorum: far + actual.Quorum, Election: far + actual.Election,
		}, nil
	})})
	require.NoError(t, err)
	lines, err = s.memberLines(members, 1)
	require.NoError(t, err)
	require.Equal(t, []string{
		"server.1=127.0.0.1:2111:2112", direct[1], "server.3=127.0.0.1:2331:2332",
	}, lines,
		"itself it must find where it listens")

	lines, err = s.memberLines(members[:1], 0)
	require.NoError(t, err)
	require.Empty(t, lines, "a single server is no ensemble")

	failed := errors.New("no way")
	RoutePeers(
		func(int, int, PeerPorts) (PeerPorts, error) { return PeerPorts{}, failed },
	)(&s)
	_, err = s.memberLines(members, 0)
	require.ErrorIs(t, err, failed)
	require.ErrorContains(t, err, "route server 1 to server 2")
}
