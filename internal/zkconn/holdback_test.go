package zkconn_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestsAreHeldBackWhereNothingTellsOfAClose(t *testing.T) {
	for name, tells := range map[string]bool{"it tells": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(time.Hour)
				if tells {
					cfg.WhenClosed = func(func()) (stop func()) { return func() {} }
				}
				s := useWith(t, newFake(), cfg)
				took := func() time.Duration {
					began := time.Now()
					require.NoError(t, contact(s))
					return time.Since(began)
				}
				require.Zero(t, took())
				s.HoldBack()
				time.Sleep(4 * time.Millisecond)
				s.HoldBack() // one more has gone
				if tells {
					require.Zero(t, took())
				} else {
					require.Equal(t, 10*time.Millisecond, took())
				}
				require.Zero(t, took())
			})
		})
	}
}
