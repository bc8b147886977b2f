package zktest_test

import (
	"crypto/sha1" //nolint:gosec // the scheme digest's own
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }

// needsGenuine is for each test that compares.
func needsGenuine(t *testing.T) {
	t.Helper()
	zkserver.Real(t, "a real server to be compared with")
}

// opponent returns what makes players on a new zktest each, whose limits are those of the
// real server; or, where the scripts themselves are to be tried, on one more real server,
// which must pass.
func opponent(t *testing.T, genuine *player) func() *player {
	t.Helper()
	if os.Getenv("CONFORMANCE_AGAINST") == "real" {
		addr := ordinary.startReal(t)
		return func() *player { return mustPlay(t, addr, nil) }
	}
	shortest, longest := limits(t, genuine)
	return func() *player {
		cluster, err := zktest.New(
			zktest.WithTick(shortest/2), zktest.WithMaxSession(longest),
			zktest.WithSuperUser("super", password),
		)
		require.NoError(t, err)
		return mustPlay(t, cluster.Addrs()[0], cluster.Close)
	}
}

// limits returns the session timeouts between which a server chooses.
func limits(t *testing.T, p *player) (shortest, longest time.Duration) {
	t.Helper()
	ask := func(timeout time.Duration) time.Duration {
		r := &raw{p: p, name: "limits"}
		got, _, err := r.shake(grant{}, timeout.Milliseconds(), 0, nil)
		require.NoError(t, err)
		require.NoError(t, r.takeOver(got))
		return time.Duration(got.timeout) * time.Millisecond
	}
	_, err := p.ruler.CreateTTL(
		zkserver.Path(t), nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Hour,
	)
	require.NoError(
		t, err,
		"the real server has to know TTL nodes and a super user: see ordinary",
	)
	return ask(0), ask(time.Hour)
}

// mustPlay returns a player that stops its server, if that is given, when it is closed.
func mustPlay(t *testing.T, addr string, stop func()) *player {
	t.Helper()
	p, err := newPlayer(addr, dialTCP(addr))
	require.NoError(t, err)
	p.stop = stop
	return p
}

// compare plays a script on both servers at once, and returns where they differ, "" for
// nowhere. There is an error if one of them does not answer any more.
func compare(
	genuine, fake *player, script []step, play func(*player) ([][]string, error),
) (string, error) {
	var transcripts [2][][]string
	var errs [2]error
	var wg sync.WaitGroup
	for i, p := range []*player{genuine, fake} {
		wg.Go(func() { transcripts[i], errs[i] = play(p) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	return differences(script, transcripts[0], transcripts[1]), nil
}

// below plays a script below a node of its own.
func below(tb testing.TB, script []step) func(*player) ([][]string, error) {
	tb.Helper()
	base := zkserver.Path(tb)
	return func(p *player) ([][]string, error) { return p.play(base, script) }
}

// differences shows the script up to the last of the first few steps that came out
// differently.
func differences(script []step, want, got [][]string) string {
	const shown = 5
	var b strings.Builder
	last, differ := 0, 0
	for i, s := range script {
		if slices.Equal(want[i], got[i]) {
			continue
		}
		if differ++; differ > shown {
			fmt.Fprintln(&b, "... and more")
			break
		}
		for _, same := range script[last:i] {
			fmt.Fprintf(&b, "  %s\n", same.line)
		}
		last = i + 1
		fmt.Fprintf(&b, "* %s\n", s.line)
		for _, line := range want[i] {
			fmt.Fprintf(&b, "      want: %s\n", line)
		}
		for _, line := range got[i] {
			fmt.Fprintf(&b, "      got:  %s\n", line)
		}
	}
	if differ == 0 {
		return ""
	}
	return "other answers at the steps with a star:\n" + b.String()
}

// superFlag makes a real server know a super user, by USER:PASSWORD.
func superFlag(login string) string {
	sum := sha1.Sum([]byte(login)) //nolint:gosec // the scheme digest's own
	return "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:" +
		base64.StdEncoding.EncodeToString(sum[:])
}
