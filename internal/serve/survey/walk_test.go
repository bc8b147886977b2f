package survey_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/zktest"
)

// slow has a walk that lasts.
func slow(rate float64) survey.Config {
	c := config()
	c.Rate = rate
	return c
}

// What joins and leaves a directory after the walk has listed it, and before it is
// watched, is known as if it had been watched.
func TestWhatChangesDuringTheFirstWalk(t *testing.T) {
	const members = 30
	inScene(t, slow(10), func(s *scene) {
		s.mustCreate("/groups", 0)
		s.mustCreate("/groups/api", 0)
		for i := range members {
			s.mustCreate(fmt.Sprintf("/groups/api/%02d", i), zk.FlagEphemeral)
		}
		time.Sleep(time.Minute) // what is young is watched at once
	}, func(s *scene) {
		for len(s.registrations()) < 10 {
			time.Sleep(100 * time.Millisecond)
		}
		gone := s.survey.State().Registrations[0].Path
		require.NoError(s, s.client.Delete(gone, -1))
		s.mustCreate("/groups/api/late", zk.FlagEphemeral)
		time.Sleep(time.Minute)
		require.Len(s, s.registrations(), members)
		require.Contains(s, s.registrations(), "/groups/api/late ")
		require.NotContains(s, s.registrations(), gone+" ")
	})
}

// An outage between any two requests of the first walk hides nothing.
func TestAnOutageInTheFirstWalk(t *testing.T) {
	for n := range uint64(25) {
		t.Run(fmt.Sprintf("after %d requests", n), func(t *testing.T) {
			inScene(t, slow(0.5), func(s *scene) {
				require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
				s.mustCreate("/groups", 0)
				s.mustCreate("/groups/api", 0)
				s.mustCreate("/groups/api/one", zk.FlagEphemeral)
				time.Sleep(time.Minute)
			}, func(s *scene) {
				if !s.walkOn(n) {
					return
				}
				s.cluster.Link("survey").Reset()
				s.cluster.Link("survey").Cut()
				time.Sleep(3 * time.Second)
				s.cluster.Link("survey").Heal()
				time.Sleep(2 * time.Minute)
				require.Equal(s, []string{"x holds"}, states(s.lock("/lock")))
				require.Equal(s, []string{"/groups/api/one "}, s.registrations())
			})
		})
	}
}

// An outage while a registration is read does not hide it.
func TestARegistrationWhoseReadFails(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/groups", 0)
		s.mustCreate("/groups/one", zk.FlagEphemeral)
		s.cluster.Link("survey").LoseReply(zktest.OpGet)
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Equal(s, []string{"/groups/one "}, s.registrations())
	})
}

// Beyond the limit of registrations it is those that there are too many of.
func TestTooManyRegistrations(t *testing.T) {
	const known = 10_000
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/groups", 0)
		for i := range known + 1 {
			s.mustCreate(fmt.Sprintf("/groups/%d", i), zk.FlagEphemeral)
		}
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Len(s, s.registrations(), known)
		findings := s.survey.State().Findings
		require.Len(s, findings, 1)
		require.Equal(s, "there are more registrations than the 10000 that are shown",
			findings[0].Text)
		require.NoError(s, s.client.Delete("/groups/0", -1))
		require.NoError(s, s.client.Delete("/groups/1", -1))
		time.Sleep(15 * time.Minute)
		require.Empty(s, s.survey.State().Findings)
	})
}

// While a later walk goes on, what is wrong remains what it was. What was mended is right
// at once where it is watched, else after the next walk.
func TestFindingsDuringALaterWalk(t *testing.T) {
	c := slow(1)
	c.Old = time.Hour
	inScene(t, c, func(s *scene) {
		wrongs[survey.Unrelated](s)
		wrongs[survey.Skipped](s)
	}, func(s *scene) {
		for s.survey.State().Walked.IsZero() {
			time.Sleep(time.Second)
		}
		first := s.survey.State()
		require.Len(s, first.Findings, 2)
		for s.survey.State().Walked.Equal(first.Walked) {
			require.Equal(s, first.Findings, s.survey.State().Findings)
			time.Sleep(time.Second)
		}
		require.NoError(s, s.client.Delete("/lock/config", -1))
		s.wait()
		require.Len(s, s.survey.State().Findings, 1)
		require.NoError(s, s.client.Delete("/closed/x", -1))
		require.NoError(s, s.client.Delete("/closed", -1))
		time.Sleep(15 * time.Minute)
		require.Empty(s, s.survey.State().Findings)
	})
}

// A survey ends soon, whatever is still to be read.
func TestItEndsSoon(t *testing.T) {
	const waiters = 1000
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, cluster: zktest.Start(t)}
		s.client = s.looks(t)
		s.mustCreate("/lock", 0)
		for range waiters {
			s.mustCreate("/lock/lock-", zk.FlagEphemeral|zk.FlagSequence)
		}
		s.cluster.Link("survey").Delay(time.Second, time.Second)
		s.survey = survey.New(s.client, config())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.survey.Run(ctx) }()
		for s.survey.Requests()[survey.OpRead] == 0 {
			time.Sleep(time.Second)
		}
		began := time.Now()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// A server deletes the gate of a semaphore while nobody passes it. Its leases remain.
func TestASemaphoreWhoseGateHasGone(t *testing.T) {
	for _, root := range []string{"/", "/semaphore"} {
		c := config()
		c.Roots = []string{root}
		var lease *recipes.Lease
		var semaphore *recipes.InterProcessSemaphoreV2
		inScene(t, c, func(s *scene) {
			var err error
			semaphore, err = recipes.NewInterProcessSemaphoreV2(s.client, "/semaphore", 2,
				recipes.WithData([]byte("x")))
			require.NoError(s, err)
			lease, err = semaphore.Acquire(s.Context())
			require.NoError(s, err)
			time.Sleep(10 * time.Minute)
			require.Len(s, s.cluster.Znodes(), 3, "there is no gate")
		}, func(s *scene) {
			s.wait()
			require.Equal(s, []string{"x holds"}, states(s.lock("/semaphore")))
			require.Equal(s, "semaphore", s.lock("/semaphore").Recipe)
			require.Len(s, s.survey.State().Locks, 1)
			second, err := semaphore.Acquire(s.Context())
			require.NoError(s, err)
			s.wait()
			require.Equal(s, []string{"x holds", "x holds"},
				states(s.lock("/semaphore")))
			time.Sleep(time.Hour)
			require.NoError(s, lease.Release(s.Context()))
			require.NoError(s, second.Release(s.Context()))
			s.wait()
			require.Empty(s, states(s.lock("/semaphore")))
			require.NotContains(s, fmt.Sprint(s.survey.State().Findings), "unrelated")
		})
	}
}

// Of a lock that may no longer be read no event comes, and nothing old is told.
func TestALockThatMayNoLongerBeRead(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		lease, err := recipes.NewInterProcessSemaphoreV2(s.client, "/semaphore", 2)
		require.NoError(s, err)
		_, err = lease.Acquire(s.Context())
		require.NoError(s, err)
	}, func(s *scene) {
		require.Len(s, s.survey.State().Locks, 2)
		auth := s.client.Unwrap().AddAuth("digest", []byte("user:password"))
		require.NoError(s, auth)
		for _, path := range []string{"/lock", "/semaphore/leases"} {
			closed := zk.DigestACL(zk.PermAll, "user", "password")
			_, err := s.client.Unwrap().SetACL(path, closed, -1)
			require.NoError(s, err)
		}
		for range 3 {
			time.Sleep(15 * time.Minute)
			state := s.survey.State()
			require.Empty(s, state.Locks)
			require.Len(s, state.Findings, 2)
			require.Equal(s, "it was not looked at: no permission to read it",
				state.Findings[0].Text)
		}
		require.Empty(s, s.events)
		for _, path := range []string{"/lock", "/semaphore/leases"} {
			_, err := s.client.Unwrap().SetACL(path, zk.WorldACL(zk.PermAll), -1)
			require.NoError(s, err)
		}
		time.Sleep(15 * time.Minute)
		require.Len(s, s.survey.State().Locks, 2)
		require.NotContains(s, fmt.Sprint(s.survey.State().Findings), "permission")
	})
}
