package survey_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/serve/survey"
)

// paths are those of the locks that are known.
func (s *scene) paths() (all []string) {
	for _, l := range s.survey.State().Locks {
		all = append(all, l.Path)
	}
	return all
}

// expire ends the survey's session.
func (s *scene) expire(others ...*recipes.Client) {
	known := map[int64]bool{s.client.SessionID(): true}
	for _, other := range others {
		known[other.SessionID()] = true
	}
	for _, session := range s.cluster.Sessions() {
		if !known[session] {
			s.cluster.ExpireSession(session)
		}
	}
}

// multi does it all in one transaction.
func multi(t *testing.T, client *recipes.Client, ops ...any) {
	t.Helper()
	_, err := client.Unwrap().Multi(ops...)
	require.NoError(t, err)
}

func deleted(path string) any { return &zk.DeleteRequest{Path: path, Version: -1} }

func created(path string, flags int32) any {
	return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll), Flags: flags}
}

// The gate of a new semaphore is there before its leases are: nobody can tell it from a
// mutex then. Nothing stays of that.
func TestASemaphoreWhoseGateComesFirst(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		s.mustCreate("/s", 0)
		s.mustCreate("/s/locks", 0)
		s.mustCreate("/s/locks/lock-", zk.FlagEphemeral|zk.FlagSequence)
		s.wait()
		s.mustCreate("/s/leases", 0)
		s.mustCreate("/s/leases/lease-", zk.FlagEphemeral|zk.FlagSequence)
		s.wait()
		require.Equal(s, []string{"/s"}, s.paths())
		require.Len(s, s.lock("/s").Queue, 2)
		require.NoError(s, s.client.Delete("/s/locks/lock-0000000000", -1))
		s.wait()
		require.Len(s, s.lock("/s").Queue, 1)
	})
}

// The gate of a semaphore that goes and returns between two looks is no lock of its own.
func TestASemaphoreWhoseGateReturns(t *testing.T) {
	c := config()
	c.PerLock = 1
	inScene(t, c, func(s *scene) {
		for _, path := range []string{"/s", "/s/leases", "/s/locks"} {
			s.mustCreate(path, 0)
		}
		s.mustCreate("/s/leases/lease-", zk.FlagEphemeral|zk.FlagSequence)
	}, func(s *scene) {
		s.cluster.Link("survey").Delay(100*time.Millisecond, 100*time.Millisecond)
		s.mustCreate("/s/other", 0) // it is looked at, and then not for 1 s
		time.Sleep(500 * time.Millisecond)
		require.NoError(s, s.client.Delete("/s/locks", -1))
		time.Sleep(250 * time.Millisecond) // after the look, and before a visit
		s.mustCreate("/s/locks", 0)
		s.mustCreate("/s/locks/lock-", zk.FlagEphemeral|zk.FlagSequence)
		time.Sleep(5 * time.Second)
		require.Equal(s, []string{"/s"}, s.paths())
		require.Len(s, s.lock("/s").Queue, 2)
	})
}

// Of a lock that nobody used, and that goes while the survey has no session, nothing old
// is told after the next walk.
func TestAnIdleLockThatGoesUnseen(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		ctx := recipes.WithOwner(s.Context())
		s.mustCreate("/locks", 0)
		lock := s.mutex("/locks/a", "x")
		require.NoError(s, lock.Acquire(ctx))
		s.wait()
		require.NoError(s, lock.Release(ctx))
		s.wait()
		s.expire()
		require.NoError(s, s.client.Delete("/locks/a", -1))
		time.Sleep(time.Minute)
		require.Zero(s, s.survey.State().Outdated)
		require.Equal(s, []string{"/locks/a"}, s.paths(), "as it was used not long ago")
		require.Equal(s, 2, s.survey.State().Watched, "/ and /locks")
	})
}

// What a directory was listed with may go before it is visited, and return before the
// directory is looked at again.
func TestWhatReturnsAfterItsVisit(t *testing.T) {
	for name, returns := range map[string]func(s *scene, after time.Duration){
		"a lock": func(s *scene, after time.Duration) {
			multi(s.T, s.client, created("/w/c", 0), created("/w/c/x", 0))
			time.Sleep(after)
			multi(s.T, s.client, deleted("/w/c/x"), deleted("/w/c"))
			time.Sleep(150 * time.Millisecond)
			multi(s.T, s.client, created("/w/c", 0),
				created("/w/c/lock-", zk.FlagEphemeral|zk.FlagSequence))
			time.Sleep(5 * time.Second)
			require.Equal(s, []string{"/w/c", "/w/keep"}, s.paths())
		},
		"a registration": func(s *scene, after time.Duration) {
			s.mustCreate("/w/c", zk.FlagEphemeral)
			time.Sleep(after)
			require.NoError(s, s.client.Delete("/w/c", -1))
			time.Sleep(150 * time.Millisecond)
			s.mustCreate("/w/c", zk.FlagEphemeral)
			time.Sleep(5 * time.Second)
			require.Equal(s, []string{"/w/c "}, s.registrations())
		},
	} {
		// The event, the list, its reply, exists and its reply are on their way for
		// 100 ms each. What has gone before exists is asked, or before the next request:
		for _, after := range []time.Duration{350, 550} {
			t.Run(fmt.Sprintf("%s, after %d ms", name, after), func(t *testing.T) {
				c := config()
				c.PerLock = 1
				inScene(t, c, func(s *scene) {
					require.NoError(s, s.mutex("/w/keep", "x").Acquire(s.Context()))
				}, func(s *scene) {
					s.cluster.Link("survey").Delay(100*time.Millisecond,
						100*time.Millisecond)
					time.Sleep(time.Second)
					returns(s, after*time.Millisecond)
				})
			})
		}
	}
}

// The same, in the first walk: of a directory that is watched for what else is in it.
func TestWhatReturnsDuringTheFirstWalk(t *testing.T) {
	inScene(t, slow(1), func(s *scene) {
		for _, path := range []string{"/d", "/d/c"} {
			s.mustCreate(path, 0)
		}
		s.mustCreate("/d/r", zk.FlagEphemeral)
		time.Sleep(time.Minute)
	}, func(s *scene) {
		sent := func(op survey.Op, n uint64) {
			for s.survey.Requests()[op] < n {
				time.Sleep(10 * time.Millisecond)
			}
		}
		sent(survey.OpList, 3) // of /, twice, and /d
		require.NoError(s, s.client.Delete("/d/c", -1))
		sent(survey.OpExists, 3) // of /, /d and /d/c
		s.mustCreate("/d/c", 0)
		s.mustCreate("/d/c/lock-", zk.FlagEphemeral|zk.FlagSequence)
		time.Sleep(time.Minute)
		require.Equal(s, []string{"/d/c"}, s.paths())
	})
}

// A directory that goes and returns between two looks is another one, whatever the names
// in it are.
func TestADirectoryThatReturnsWithTheSameNames(t *testing.T) {
	for _, name := range []string{"lock-0000000000", "member"} {
		t.Run(name, func(t *testing.T) { returnsWith(t, "/d/"+name) })
	}
}

func returnsWith(t *testing.T, path string) {
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/d", 0)
		s.mustCreate(path, zk.FlagEphemeral)
	}, func(s *scene) {
		time.Sleep(time.Minute)
		other := locktest.ConnectThrough(s.T, s.cluster, "other")
		multi(s.T, other, deleted(path), deleted("/d"), created("/d", 0),
			created(path, zk.FlagEphemeral))
		s.wait()
		var session string
		var since time.Time
		if state := s.survey.State(); len(state.Locks) > 0 {
			session, since = state.Locks[0].Queue[0].Session, state.Locks[0].HeldSince()
		} else {
			session = state.Registrations[0].Session
			since = state.Registrations[0].Since
		}
		require.Equal(s, fmt.Sprintf("0x%x", uint64(other.SessionID())), session)
		require.WithinDuration(s, time.Now(), since, 5*time.Second)
	})
}

// A registration takes the place of a directory that was watched.
func TestARegistrationInThePlaceOfADirectory(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		s.mustCreate("/d", 0)
		s.wait()
		multi(s.T, s.client, deleted("/d"), created("/d", zk.FlagEphemeral))
		s.wait()
		require.Equal(s, []string{"/d "}, s.registrations())
	})
}

// A root that does not exist is asked for once every 5 s, after many walks, too.
func TestARootThatDoesNotExist(t *testing.T) {
	c := config()
	c.Roots = []string{"/none"}
	inScene(t, c, nil, func(s *scene) {
		time.Sleep(time.Hour)
		before := s.survey.Requests()[survey.OpExists]
		time.Sleep(time.Minute)
		require.InDelta(s, 12, s.survey.Requests()[survey.OpExists]-before, 1)
		require.NoError(s, s.mutex("/none", "x").Acquire(s.Context()))
		time.Sleep(7 * time.Second)
		require.Equal(s, []string{"/none"}, s.paths())
	})
}

// A semaphore is none the less one if its gate goes, returns and goes between two looks.
func TestASemaphoreWhoseGateComesAndGoes(t *testing.T) {
	c := config()
	c.PerLock = 1
	const turn = zk.FlagEphemeral | zk.FlagSequence
	first := "/s/locks/lock-0000000000"
	inScene(t, c, func(s *scene) {
		for _, path := range []string{"/s", "/s/leases", "/s/locks"} {
			s.mustCreate(path, 0)
		}
		s.mustCreate("/s/leases/lease-", turn)
	}, func(s *scene) {
		s.mustCreate("/s/locks/lock-", turn) // the gate is looked at now, and in 1 s
		time.Sleep(100 * time.Millisecond)
		multi(s.T, s.client, deleted(first), deleted("/s/locks"))
		time.Sleep(400 * time.Millisecond) // the semaphore is, and in 1 s
		multi(s.T, s.client, created("/s/locks", 0), created("/s/locks/lock-", turn))
		time.Sleep(550 * time.Millisecond) // the gate is
		multi(s.T, s.client, deleted(first), deleted("/s/locks"))
		s.wait()
		require.Equal(s, "semaphore", s.lock("/s").Recipe)
		require.Len(s, s.lock("/s").Queue, 1)
	})
}

// The gate of a semaphore goes after any request of the walk: its leases tell what it is.
func TestAGateThatGoesDuringTheWalk(t *testing.T) {
	for n := range uint64(7) {
		t.Run(fmt.Sprintf("after %d requests", n), func(t *testing.T) {
			inScene(t, slow(0.5), func(s *scene) {
				for _, path := range []string{"/s", "/s/leases", "/s/locks"} {
					s.mustCreate(path, 0)
				}
				s.mustCreate("/s/leases/lease-", zk.FlagEphemeral|zk.FlagSequence)
			}, func(s *scene) {
				require.True(s, s.walkOn(n), "n is too large")
				require.NoError(s, s.client.Delete("/s/locks", -1))
				time.Sleep(time.Minute)
				require.Equal(s, "semaphore", s.lock("/s").Recipe)
				require.Len(s, s.lock("/s").Queue, 1)
			})
		})
	}
}

// walkOn waits until the first walk has sent n requests; false: it has ended before.
func (s *scene) walkOn(n uint64) bool {
	for walk := uint64(0); walk < n; {
		if !s.survey.State().Walked.IsZero() {
			return false
		}
		time.Sleep(10 * time.Millisecond)
		sent := s.survey.Requests()
		walk = sent.All() - sent[survey.OpSync]
	}
	return true
}

// A semaphore that nobody has used for long, and whose gate has gone, is known as soon as
// it is used: by its gate, which returns, or by a lease. So is one that is new.
func TestASemaphoreWithoutAGate(t *testing.T) {
	for _, age := range []time.Duration{0, time.Minute} {
		for _, dir := range []string{"/s/leases", "/s/locks"} {
			t.Run(fmt.Sprintf("%v old, used by %s", age, dir), func(t *testing.T) {
				inScene(t, config(), func(s *scene) {
					s.mustCreate("/s", 0)
					s.mustCreate("/s/leases", 0)
					time.Sleep(age)
				}, func(s *scene) {
					if dir == "/s/locks" {
						s.mustCreate(dir, 0)
					}
					s.mustCreate(dir+"/"+places["/w"+dir],
						zk.FlagEphemeral|zk.FlagSequence)
					s.wait()
					require.Equal(s, "semaphore", s.lock("/s").Recipe)
					require.Len(s, s.lock("/s").Queue, 1)
					require.Len(s, s.survey.State().Locks, 1)
				})
			})
		}
	}
}

// A registration that is met while its directory is not watched, and leaves before that
// is looked at, is gone then.
func TestARegistrationInADirectoryThatIsNotWatched(t *testing.T) {
	c := slow(0.5)
	c.PerLock = 0.5
	inScene(t, c, func(s *scene) {
		for _, path := range []string{"/w", "/w/g", "/w/g/inner"} {
			s.mustCreate(path, 0)
		}
		s.mustCreate("/w/g/other", zk.FlagEphemeral)
	}, func(s *scene) {
		time.Sleep(time.Minute) // for the walk
		require.NoError(s, s.client.Delete("/w/g/other", -1))
		// /w/g is looked at now, and not again for 2 s. So that inner has gone is found
		// first, and where it is listed still, it is visited once more.
		time.Sleep(time.Second)
		multi(s.T, s.client, deleted("/w/g/inner"), deleted("/w/g"),
			created("/w/g", zk.FlagEphemeral))
		time.Sleep(1500 * time.Millisecond) // the look at /w/g finds that
		multi(s.T, s.client, deleted("/w/g"), created("/w/g", 0),
			created("/w/g/inner", zk.FlagEphemeral))
		for !slices.Contains(s.registrations(), "/w/g/inner ") {
			time.Sleep(100 * time.Millisecond)
		}
		multi(s.T, s.client, deleted("/w/g/inner"), deleted("/w/g"), created("/w/g", 0))
		time.Sleep(time.Minute)
		require.NotContains(s, s.registrations(), "/w/g/inner ")
	})
}

// A registration that comes and goes between two looks at its directory, and that the
// walk meets meanwhile, is gone after the next look.
func TestARegistrationBetweenTwoLooks(t *testing.T) {
	for n := range uint64(9) {
		t.Run(fmt.Sprintf("after %d requests", n), func(t *testing.T) {
			c := slow(0.5)
			c.PerLock = 0.02
			inScene(t, c, func(s *scene) {
				s.mustCreate("/g", 0)
				s.mustCreate("/g/x", zk.FlagEphemeral)
				s.mustCreate("/g/y", zk.FlagEphemeral)
			}, func(s *scene) {
				require.True(s, s.walkOn(n), "n is too large")
				require.NoError(s, s.client.Delete("/g/y", -1))
				require.True(s, s.walkOn(n+1), "n is too large")
				s.mustCreate("/g/y", zk.FlagEphemeral)
				time.Sleep(12 * time.Second)
				require.NoError(s, s.client.Delete("/g/y", -1))
				time.Sleep(3 * time.Minute)
				require.Equal(s, []string{"/g/x "}, s.registrations())
			})
		})
	}
}

// A server does not tell of a change if the login may not read the path just then, and
// the watch is gone. The next walk finds it out.
func TestAPathThatMayNotBeReadForAWhile(t *testing.T) {
	const node = "/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b1-lock-"
	const joins = zk.FlagEphemeral | zk.FlagSequence
	c := config()
	c.Rescan = time.Minute
	inScene(t, c, nil, func(s *scene) {
		for _, path := range []string{"/w", "/d", "/d/w", "/s", "/s/locks", "/s/leases"} {
			s.mustCreate(path, 0)
		}
		s.mustCreate("/w"+node, joins)
		s.mustCreate("/d/w"+node, joins)
		s.mustCreate("/s/leases/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b1-lease-", joins)
		s.wait()
		deaf := []string{"/w", "/d", "/s/leases"}
		setRights(s, deaf, zk.PermAll&^zk.PermRead)
		s.mustCreate("/w"+node, joins)
		s.mustCreate("/d/new", 0)
		s.mustCreate("/d/new"+node, joins)
		s.mustCreate("/s/leases/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b2-lease-", joins)
		time.Sleep(2 * time.Second)
		setRights(s, deaf, zk.PermAll)
		time.Sleep(2 * time.Minute)
		require.Len(s, s.lock("/w").Queue, 2)
		require.Len(s, s.lock("/d/new").Queue, 1)
		require.Len(s, s.lock("/s").Queue, 2)
		s.mustCreate("/w"+node, joins)
		s.wait()
		require.Len(s, s.lock("/w").Queue, 3, "it is watched again")
	})
}

func setRights(s *scene, paths []string, rights int32) {
	s.Helper()
	for _, path := range paths {
		_, err := s.client.Unwrap().SetACL(path, zk.WorldACL(rights), -1)
		require.NoError(s, err)
	}
}
