package survey_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/zktest"
)

// A scene is a cluster, a client of it and a survey by way of links of their own.
type scene struct {
	*testing.T
	cluster *zktest.Cluster
	client  *recipes.Client
	config  survey.Config // prepare may change it
	survey  *survey.Survey
	events  []survey.Event // valid after wait
}

// config is what most tests have.
func config() survey.Config {
	return survey.Config{
		Roots: []string{"/"}, Rate: 1000, PerLock: 5, Rescan: 10 * time.Minute,
		Old: 10 * time.Minute,
	}
}

// inScene runs a test in virtual time. prepare may be nil; it is called before the survey
// begins.
func inScene(
	t *testing.T, c survey.Config, prepare, test func(s *scene),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, config: c, cluster: zktest.Start(t, zktest.WithShuffle())}
		s.client = locktest.ConnectThrough(t, s.cluster, "client")
		if prepare != nil {
			prepare(s)
		}
		looks := s.looks(t)
		s.config.Seen = func(e survey.Event) { s.events = append(s.events, e) }
		s.survey = survey.New(looks, s.config)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- s.survey.Run(ctx) }()
		s.wait()
		test(s)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// replyAtMost is what a reply to the survey may have, in bytes.
const replyAtMost = 1 << 20

// looks is the client of the survey.
func (s *scene) looks(t *testing.T) *recipes.Client {
	t.Helper()
	client, err := recipes.Connect(t.Context(), s.cluster.Names()[0], 10*time.Second,
		recipes.WithDialer(s.cluster.Link("survey").Dial),
		recipes.WithMaxReply(replyAtMost))
	require.NoError(t, err)
	t.Cleanup(func() {
		s.cluster.Link("survey").Heal()
		client.Close()
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	return client
}

// wait waits until the survey knows what there is.
func (s *scene) wait() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func (s *scene) mutex(path string, data string) *recipes.InterProcessMutex {
	s.Helper()
	lock, err := recipes.NewInterProcessMutex(s.client, path,
		recipes.WithData([]byte(data)))
	require.NoError(s, err)
	return lock
}

// lock returns what is known of a lock, which must be known.
func (s *scene) lock(path string) survey.Lock {
	s.Helper()
	for _, l := range s.survey.State().Locks {
		if l.Path == path {
			return l
		}
	}
	s.Fatalf("%s is not known", path)
	return survey.Lock{}
}

// states are who is in a queue, in order.
func states(l survey.Lock) (all []string) {
	for _, p := range l.Queue {
		all = append(all, p.Data+" "+p.State)
	}
	return all
}

func TestAHandOver(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		first, second := s.mutex("/a/lock", "first"), s.mutex("/a/lock", "second")
		ctx := recipes.WithOwner(s.Context())
		began := time.Now()
		require.NoError(s, first.Acquire(ctx))
		granted := locktest.Start(func() error { return second.Acquire(s.Context()) })
		s.wait()
		require.Equal(s, []string{"first holds", "second waits"},
			states(s.lock("/a/lock")))
		time.Sleep(time.Minute)
		require.NoError(s, first.Release(ctx))
		require.NoError(s, <-granted)
		handedOver := time.Now()
		s.wait()
		l := s.lock("/a/lock")
		require.Equal(s, []string{"second holds"}, states(l))
		require.WithinDuration(s, began, l.Queue[0].Since, time.Second)
		require.WithinDuration(s, handedOver, l.Queue[0].Held, time.Second)
		require.Equal(s, "mutex", l.Recipe)
		require.Equal(s, uint64(2), l.Handovers)
		require.Zero(s, l.Missed)
		_, stays, ok := s.survey.Detail("/a/lock")
		require.True(s, ok)
		require.Len(s, stays, 1)
		require.Equal(s, "first", stays[0].Data)
		require.WithinDuration(s, handedOver, stays[0].Left, time.Second)
		require.Len(s, s.events, 3)
		require.Equal(s, survey.Left, s.events[2].Kind)
		require.InDelta(s, time.Minute, s.events[2].HeldFor(), float64(5*time.Second))
		require.InDelta(s, time.Minute, s.events[1].Waited(), float64(5*time.Second))
	})
}

// Of whoever holds and waits, all recipes, it knows what Inspect says at that moment.
func TestItKnowsWhatInspectSays(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		random := rand.New(rand.NewPCG(1, 2))
		paths := map[string]bool{}
		ctx, cancel := context.WithCancel(s.Context())
		kinds := slices.Concat(locktest.Kinds, locktest.Elections)
		for i, k := range slices.Repeat(kinds, 4) {
			path := fmt.Sprintf("/locks/%d", i%len(locktest.Kinds))
			lock, err := k.Make(s.client, path)
			require.NoError(s, err)
			for _, dir := range k.Dirs {
				paths[queues.LockOf(path+dir)] = true
			}
			hold := time.Duration(1+random.IntN(60)) * time.Second
			go func() {
				owner := recipes.WithOwner(ctx)
				for ctx.Err() == nil {
					if lock.Acquire(owner) == nil {
						time.Sleep(hold)
						_ = lock.Release(owner)
					}
				}
			}()
		}
		for range 50 {
			// All changes are at whole seconds.
			time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			second := time.Now().Truncate(time.Second)
			time.Sleep(time.Until(second.Add(1500 * time.Millisecond)))
			synctest.Wait()
			for path := range paths {
				now, err := recipes.Inspect(s.Context(), s.client, path)
				require.NoError(s, err)
				want := queues.Pair(queues.RowsOf(path, now))
				got := []queues.Row{}
				for _, l := range s.survey.State().Locks {
					if l.Path == path {
						for _, p := range l.Queue {
							got = append(got, p.Row)
						}
					}
				}
				require.Equal(s, want, got, path)
			}
		}
		cancel()
		time.Sleep(time.Hour) // for those who wait
	})
}

// Changes that come faster than a lock is looked at are counted, though not seen.
func TestWhatWasMissed(t *testing.T) {
	c := config()
	c.PerLock = 1
	inScene(t, c, nil, func(s *scene) {
		lock := s.mutex("/lock", "x")
		ctx := recipes.WithOwner(s.Context())
		const times = 1000
		for range times {
			require.NoError(s, lock.Acquire(ctx))
			time.Sleep(10 * time.Millisecond)
			require.NoError(s, lock.Release(ctx))
		}
		s.wait()
		l := s.lock("/lock")
		require.InDelta(s, times, l.Handovers+l.Missed, 1)
		require.Less(s, l.Handovers, uint64(20))
	})
}

// A survey that looks at a lock in use sends no more than it may, and creates nothing.
func TestItOnlyReads(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		lock := s.mutex("/lock", "x")
		ctx := recipes.WithOwner(s.Context())
		require.NoError(s, lock.Acquire(ctx))
		s.wait()
		before, znodes := s.survey.Requests(), s.cluster.Znodes()
		time.Sleep(5 * time.Minute)
		sent := s.survey.Requests()
		require.Equal(s, znodes, s.cluster.Znodes())
		require.Equal(s, before[survey.OpList], sent[survey.OpList], "nothing is polled")
		require.InDelta(s, 300, sent.All()-before.All(), 2, "a sign of life each second")
	})
}

// A lock that is in nobody's queue when the walk comes by, or is created later, or again,
// is seen as soon as it is used.
func TestLocksThatAreUsedLater(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		world := zk.WorldACL(zk.PermAll)
		for _, path := range []string{"/old", "/old/idle", "/old/used", "/old/used/x"} {
			_, err := s.client.Create(path, nil, 0, world)
			require.NoError(s, err)
		}
		require.NoError(s, s.client.Delete("/old/used/x", -1))
		lock := s.mutex("/old/other", "x")
		require.NoError(s, lock.Acquire(recipes.WithOwner(s.Context())))
	}, func(s *scene) {
		for _, path := range []string{
			"/old/used", "/old/new", "/old/new", "/top/of/all",
		} {
			lock := s.mutex(path, "somebody")
			ctx := recipes.WithOwner(s.Context())
			require.NoError(s, lock.Acquire(ctx))
			s.wait()
			require.Equal(s, []string{"somebody holds"}, states(s.lock(path)), path)
			require.NoError(s, lock.Release(ctx))
			s.wait()
			require.Empty(s, states(s.lock(path)), path)
			time.Sleep(5 * time.Minute) // a container goes meanwhile
		}
	})
}

// Parents may be created before the lock that is meant: whoever looks in between does not
// miss it.
func TestALockWhoseParentsComeFirst(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		for _, path := range []string{"/a", "/a/b", "/a/b/c", "/a/b/c/d"} {
			_, err := s.client.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(s, err)
			s.wait()
		}
		lock := s.mutex("/a/b/c/d", "x")
		require.NoError(s, lock.Acquire(s.Context()))
		s.wait()
		require.Equal(s, []string{"x holds"}, states(s.lock("/a/b/c/d")))
	})
}

// A container that goes and is created again while its parent is not looked at, as each
// directory is only so often, is not taken for the one that has gone.
func TestALockWhosePathReturns(t *testing.T) {
	c := config()
	c.PerLock = 1
	inScene(t, c, func(s *scene) {
		for _, path := range []string{"/locks", "/locks/b", "/locks/b/x"} {
			s.mustCreate(path, 0)
		}
		require.NoError(s, s.client.Delete("/locks/b/x", -1)) // so it may be a lock
	}, func(s *scene) {
		s.mustCreate("/locks/other", 0) // the parent is looked at, and then not for 1 s
		synctest.Wait()
		require.NoError(s, s.client.Delete("/locks/b", -1))
		synctest.Wait()
		require.NoError(s, s.mutex("/locks/b", "x").Acquire(s.Context()))
		s.wait()
		require.Equal(s, []string{"x holds"}, states(s.lock("/locks/b")))
	})
}

// A lock that is created while the walk goes on is not missed, wherever the walk is.
func TestLocksThatAreCreatedDuringTheWalk(t *testing.T) {
	const locks = 100
	inScene(t, config(), func(s *scene) {
		s.cluster.Link("survey").Delay(0, 20*time.Millisecond)
		for i := range locks {
			go func() {
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
				lock := s.mutex(fmt.Sprintf("/%d/%d/%d", i%3, i%7, i), "x")
				_ = lock.Acquire(recipes.WithOwner(context.Background()))
			}()
		}
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Len(s, s.survey.State().Locks, locks)
	})
}

// scenes with something wrong, and what is found.
var wrongs = map[survey.FindingKind]func(s *scene){
	survey.Ownerless: func(s *scene) {
		s.mustCreate("/lock", 0)
		s.mustCreate("/lock/lock-0000000001", 0)
	},
	survey.Apart: func(s *scene) {
		s.mustCreate("/lock", 0)
		s.mustCreate("/lock/lock-0000000001", zk.FlagEphemeral)
		s.mustCreate("/lock/lock-1500000000", zk.FlagEphemeral)
	},
	survey.Counter: func(s *scene) {
		s.mustCreate("/lock", 0)
		require.NoError(s, s.cluster.SetSequence("/lock", 2_000_000_000))
		s.mustCreate("/lock/lock-", zk.FlagEphemeral|zk.FlagSequence)
	},
	survey.Old: func(s *scene) {
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		time.Sleep(11 * time.Minute)
	},
	survey.Mixed: func(s *scene) {
		s.mustCreate("/lock", 0)
		s.mustCreate("/lock/lock-", zk.FlagEphemeral|zk.FlagSequence)
		s.mustCreate("/lock/latch-", zk.FlagEphemeral|zk.FlagSequence)
	},
	survey.Rights: func(s *scene) {
		s.mustCreate("/lock", 0)
		_, err := s.client.Create("/lock/lock-", nil, zk.FlagEphemeral|zk.FlagSequence,
			zk.WorldACL(zk.PermRead))
		require.NoError(s, err)
	},
	survey.Unrelated: func(s *scene) {
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		s.mustCreate("/lock/config", 0)
	},
	survey.Skipped: func(s *scene) {
		_, err := s.client.Create("/closed", nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
		require.NoError(s, err)
		s.mustCreate("/closed/x", 0)
	},
	survey.Deadlock: func(s *scene) {
		for _, two := range [][2]string{{"/a", "/b"}, {"/b", "/a"}} {
			client := locktest.ConnectThrough(s.T, s.cluster, two[0])
			locks := make([]*recipes.InterProcessMutex, 2)
			for i, path := range two {
				var err error
				locks[i], err = recipes.NewInterProcessMutex(client, path)
				require.NoError(s, err)
			}
			ctx := recipes.WithOwner(s.Context())
			require.NoError(s, locks[0].Acquire(ctx))
			go func() {
				time.Sleep(time.Second)
				_ = locks[1].Acquire(ctx)
			}()
		}
		time.Sleep(2 * time.Second)
	},
}

func (s *scene) mustCreate(path string, flags int32) {
	s.Helper()
	_, err := s.client.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
	require.NoError(s, err)
}

// What is wrong is found, and nothing else is.
func TestFindings(t *testing.T) {
	for kind, make := range wrongs {
		t.Run(string(kind), func(t *testing.T) {
			inScene(t, config(), make, func(s *scene) {
				var kinds []survey.FindingKind
				for _, f := range s.survey.State().Findings {
					kinds = append(kinds, f.Kind)
				}
				require.Equal(s, []survey.FindingKind{kind}, kinds,
					s.survey.State().Findings)
			})
		})
	}
}

// A finding names whom it concerns: of a deadlock each lock, of a long hold the holder.
// Of a head without a session nothing is said twice.
func TestWhomAFindingConcerns(t *testing.T) {
	inScene(t, config(), wrongs[survey.Deadlock], func(s *scene) {
		f := s.survey.State().Findings[0]
		require.True(s, f.Concerns("/a"))
		require.True(s, f.Concerns("/b"))
		require.False(s, f.Concerns("/c"))
	})
	inScene(t, config(), wrongs[survey.Old], func(s *scene) {
		require.Contains(s, s.survey.State().Findings[0].Text, "x has held it since ")
	})
	inScene(t, config(), func(s *scene) {
		wrongs[survey.Ownerless](s)
		time.Sleep(time.Hour)
	}, func(s *scene) {
		require.Len(s, s.survey.State().Findings, 1)
		require.Equal(s, survey.Ownerless, s.survey.State().Findings[0].Kind)
	})
}

// The page says what each finding is called in /metrics and /api/locks.
func TestThePageNamesEachKind(t *testing.T) {
	page, err := os.ReadFile("../../../docs/serve.md")
	require.NoError(t, err)
	for _, kind := range survey.FindingKinds {
		require.Regexp(t, fmt.Sprintf("(?m)^\\| [^|]+, `%s` \\|", kind), string(page))
	}
}

// Of locks in good order nothing is said.
func TestNoFindings(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		for i, k := range slices.Concat(locktest.Kinds, locktest.Elections) {
			lock, err := k.Make(s.client, fmt.Sprintf("/locks/%d", i))
			require.NoError(s, err)
			require.NoError(s, lock.Acquire(recipes.WithOwner(s.Context())))
		}
	}, func(s *scene) {
		state := s.survey.State()
		require.Empty(s, state.Findings)
		for _, l := range state.Locks {
			require.Zero(s, l.Handovers, "nobody has seen one")
		}
		require.Empty(s, s.events)
	})
}

// An outage shows within seconds, and is over when all that was known is known again.
func TestAnOutage(t *testing.T) {
	for name, way := range map[string]func(s *scene){
		"a cut":   func(s *scene) { s.cluster.Link("survey").Cut() },
		"silence": func(s *scene) { s.cluster.Link("survey").Stall(zktest.Both) },
	} {
		for _, lasts := range []time.Duration{5 * time.Second, time.Minute} {
			t.Run(fmt.Sprintf("%s of %v", name, lasts), func(t *testing.T) {
				inScene(t, config(), nil, func(s *scene) {
					first, second := s.mutex("/lock", "first"), s.mutex("/lock", "second")
					ctx := recipes.WithOwner(s.Context())
					require.NoError(s, first.Acquire(ctx))
					s.wait()
					require.Zero(s, s.survey.State().Outdated)
					way(s)
					began := time.Now()
					time.Sleep(5 * time.Second)
					require.WithinDuration(s, began, s.survey.State().Outdated,
						1500*time.Millisecond)
					require.NoError(s, first.Release(ctx))
					require.NoError(s, second.Acquire(s.Context()))
					time.Sleep(lasts - 5*time.Second)
					require.NotZero(s, s.survey.State().Outdated)
					s.cluster.Link("survey").Heal()
					for !s.survey.State().Outdated.IsZero() {
						time.Sleep(100 * time.Millisecond)
						require.Less(s, time.Since(began), lasts+30*time.Second)
					}
					synctest.Wait()
					require.Equal(s, []string{"second holds"}, states(s.lock("/lock")))
				})
			})
		}
	}
}

// What was watched in a session that has expired is old until it is looked at again.
func TestWhatAnExpiredSessionWatchedIsOld(t *testing.T) {
	c := config()
	c.Rate = 0.5
	inScene(t, c, nil, func(s *scene) {
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		time.Sleep(time.Minute)
		require.Zero(s, s.lock("/lock").Outdated)
		for _, session := range s.cluster.Sessions() {
			if session != s.client.SessionID() {
				s.cluster.ExpireSession(session)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		require.NotZero(s, s.lock("/lock").Outdated)
		require.NotZero(s, s.survey.State().Outdated)
		time.Sleep(time.Minute)
		require.Zero(s, s.survey.State().Outdated)
	})
}

// A session that has expired takes all watches with it.
func TestAnExpiredSession(t *testing.T) {
	inScene(t, config(), nil, func(s *scene) {
		lock := s.mutex("/lock", "x")
		idle := s.mutex("/idle", "x")
		ctx := recipes.WithOwner(s.Context())
		require.NoError(s, lock.Acquire(ctx))
		require.NoError(s, idle.Acquire(ctx))
		require.NoError(s, idle.Release(ctx))
		s.wait()
		for _, session := range s.cluster.Sessions() {
			if session != s.client.SessionID() {
				s.cluster.ExpireSession(session)
			}
		}
		time.Sleep(5 * time.Second)
		require.NoError(s, lock.Release(ctx))
		require.NoError(s, idle.Acquire(ctx))
		s.wait()
		require.Empty(s, states(s.lock("/lock")))
		require.Equal(s, []string{"x holds"}, states(s.lock("/idle")))
		require.Zero(s, s.survey.State().Outdated)
	})
}

// Of who may not be read it is known that they are there, and with NoData no data are.
func TestWhatMayNotBeRead(t *testing.T) {
	c := config()
	for _, c.NoData = range []bool{false, true} {
		inScene(t, c, func(s *scene) {
			require.NoError(s, s.mutex("/lock", "open").Acquire(s.Context()))
			_, err := s.client.Create("/lock/lock-", []byte("closed"),
				zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermDelete))
			require.NoError(s, err)
		}, func(s *scene) {
			want := []string{"open holds", " waits"}
			if c.NoData {
				want[0] = " holds"
				require.Zero(s, s.survey.Requests()[survey.OpRead])
			}
			require.Equal(s, want, states(s.lock("/lock")))
		})
	}
}

// A directory with more children than a list may have is not listed.
func TestALongDirectory(t *testing.T) {
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/long", 0)
		for i := range 20_001 {
			s.mustCreate(fmt.Sprintf("/long/%d", i), 0)
		}
	}, func(s *scene) {
		findings := s.survey.State().Findings
		require.Len(s, findings, 1)
		require.Equal(s, survey.Skipped, findings[0].Kind)
		require.Contains(s, findings[0].Text, "it has 20001 children")
		require.Less(s, s.survey.Requests().All(), uint64(20))
	})
}

// A list that is too long for the connection cuts it. It is not asked for again at once,
// and all else is seen.
func TestADirectoryThatCutsTheConnection(t *testing.T) {
	const children, name = 300, 4000
	inScene(t, config(), func(s *scene) {
		s.mustCreate("/long", 0)
		for i := range children {
			s.mustCreate(fmt.Sprintf("/long/%0*d", name, i), 0)
		}
		require.Greater(s, children*name, replyAtMost)
		require.NoError(s, s.mutex("/seen", "x").Acquire(s.Context()))
	}, func(s *scene) {
		time.Sleep(time.Minute)
		require.Equal(s, []string{"x holds"}, states(s.lock("/seen")))
		state := s.survey.State()
		require.Zero(s, state.Outdated)
		require.Len(s, state.Findings, 1)
		require.Equal(s, survey.Skipped, state.Findings[0].Kind)
		require.Equal(s, "/long", state.Findings[0].Path)
		require.Less(s, s.survey.Requests()[survey.OpList], uint64(20))
	})
}
