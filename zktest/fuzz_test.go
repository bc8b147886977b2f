package zktest_test

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// FuzzConnection sends anything to a server, as the whole of a connection and in a
// session. Whatever it was, the server serves others from then on, and ends.
func FuzzConnection(f *testing.F) {
	hello := greeting(&rawClient{}, time.Minute, 0)
	f.Add([]byte("ruok"))
	f.Add(slices.Concat([]byte{0, 0, 0, byte(len(hello))}, hello))
	for _, packet := range [][]byte{
		creation(1, "/a", 3), existence(1, "/"), synchrony(1), ping(), farewell(1),
		ask(1, 103, func(b *buffer) { b.bytes(nil) }), ask(1, 107, nil),
		ask(1, 16, func(b *buffer) { b.bytes(nil) }), ask(1, 102, nil),
	} {
		f.Add(slices.Concat([]byte{0, 0, 0, byte(len(packet))}, packet))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(t, zktest.WithReconfig(), zktest.WithServers(3),
				zktest.WithSuperUser("a", "b"), zktest.WithTimeLimit(time.Hour))
			for _, inSession := range []bool{false, true} {
				bad := dialRaw(t, c.Link("bad"), c.Leader())
				if inSession {
					bad.open(time.Minute)
				}
				go func() {
					_, _ = bad.Write(sent) // the server may hang up in the middle of it
				}()
				go func() {
					_, _ = io.Copy(io.Discard, bad) // until either end hangs up
				}()
				pass(time.Second)
				good := dialRaw(t, c.Link("good"), c.Leader()).open(time.Minute)
				good.send(existence(1, "/"))
				require.Equal(t, outcome{xid: 1}, good.answer())
				require.NoError(t, bad.Close())
				require.NoError(t, good.Close())
			}
		})
	})
}
