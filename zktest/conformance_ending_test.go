package zktest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// TestConformanceCreatesAtTheEnd sends creates with the end of their session among them.
// Which of those behind it the real server still refuses, and which it does not answer at
// all, is a matter of its threads. An answer that all is well always has a name, and only
// those get it that came before. (Curator's protected create returns null all the same,
// and with any server, when two attempts in a row have failed: test/interop/doc.go.)
func TestConformanceCreatesAtTheEnd(t *testing.T) {
	needsGenuine(t)
	genuine := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual))
	refused := map[string]int{}
	for server, addr := range map[string]string{
		"real": genuine.Servers[0].Addr, "zktest": fake.Addrs()[0],
	} {
		t.Run(server, func(t *testing.T) {
			p := mustPlay(t, addr, nil)
			defer p.close()
			for i := range 50 {
				create := fmt.Sprintf("create2 /a%d- x ephemeralSequence", i)
				transcript, err := p.play(fmt.Sprintf("%s-%d", zkserver.Path(t), i),
					parseScript("r0 connect\nr0 together "+strings.Join([]string{
						create, "closeSession", create, create, create,
					}, " ; ")))
				require.NoError(t, err)
				// Behind the end there may be packets that the player waits for no more.
				named, rest, _ := strings.Cut(strings.Join(transcript[1], "\n"), " | ")
				require.Regexp(t, fmt.Sprintf(`^ok at .* "/a%d-0000000000" {`, i), named)
				ended, late, _ := strings.Cut(rest, ", then ")
				require.Regexp(t, `^ok at \S+$`, ended)
				require.NotContains(t, late, "ok")
				refused[server] += strings.Count(late, "SessionExpired")
			}
		})
	}
	t.Logf("refused, and not left without an answer: %v", refused)
}
