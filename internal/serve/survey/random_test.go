package survey_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/serve/survey"
)

// A throng is clients that create and delete locks, semaphores and registrations.
type throng struct {
	*scene
	random  *rand.Rand
	clients []*recipes.Client
}

// places are the directories in which participants and registrations are, and with which
// names; "": with that of a registration.
var places = map[string]string{
	"/w/a": "lock-", "/w/b": "lock-", "/w/c": "__READ__",
	"/w/s/locks": "lock-", "/w/s/leases": "lease-",
	"/w/group": "", "/w/group/inner": "lock-",
}

// act does something at random, if it can.
func (c *throng) act() {
	dirs := []string{
		"/w/a", "/w/b", "/w/c", "/w/s", "/w/s/locks", "/w/s/leases", "/w/group",
		"/w/group/inner",
	}
	dir := dirs[c.random.IntN(len(dirs))]
	whole := dir // of a semaphore a gate may go alone
	if dir == "/w/s/leases" {
		whole = "/w/s"
	}
	switch c.random.IntN(8) {
	case 0, 1, 2:
		c.enter(dir)
	case 3, 4:
		if dir != "/w/s" {
			c.leave(dir)
		}
	case 5:
		c.raze(whole)
	case 6: // the same again
		c.raze(whole)
		c.pause(5)
		c.enter(dir)
	case 7: // a registration instead
		if !strings.HasPrefix(dir, "/w/s/") {
			c.raze(dir)
			c.create(dir, zk.FlagEphemeral)
		}
	}
}

func (c *throng) pause(most int) {
	time.Sleep(time.Duration(c.random.IntN(most)) * time.Millisecond)
}

func (c *throng) create(path string, flags int32) {
	client := c.clients[c.random.IntN(len(c.clients))]
	_, _ = client.Create(path, nil, flags, zk.WorldACL(zk.PermAll)) // if it can be
}

// enter creates a participant, or a registration, and what it has to be in.
func (c *throng) enter(dir string) {
	for i, r := range dir {
		if r == '/' && i > 0 {
			c.create(dir[:i], 0)
		}
	}
	c.create(dir, 0)
	if strings.HasPrefix(dir, "/w/s") {
		c.create("/w/s/leases", 0)
		c.create("/w/s/locks", 0)
	}
	switch prefix, known := places[dir]; {
	case !known:
		c.enter(dir + []string{"/locks", "/leases"}[c.random.IntN(2)])
	case prefix == "":
		c.create(dir+"/"+[]string{"x", "y"}[c.random.IntN(2)], zk.FlagEphemeral)
	default:
		c.create(dir+"/"+prefix, zk.FlagEphemeral|zk.FlagSequence)
	}
}

// leave deletes one znode in a directory, if there is one.
func (c *throng) leave(dir string) {
	children, _, err := c.client.Children(dir)
	if err == nil && len(children) > 0 {
		slices.Sort(children)
		_ = c.client.Delete(dir+"/"+children[0], -1) // which may have children
	}
}

// raze deletes all that is at a path.
func (s *scene) raze(path string) {
	children, _, err := s.client.Children(path)
	if err != nil {
		return
	}
	for _, child := range children {
		s.raze(path + "/" + child)
	}
	_ = s.client.Delete(path, -1) // by nobody else
}

// disturb does something to the link of the survey, or to its session.
func (c *throng) disturb() {
	link := c.cluster.Link("survey")
	switch c.random.IntN(4) {
	case 0:
		link.Cut()
		c.pause(3000)
		link.Heal()
	case 1:
		link.Reset()
	case 2:
		c.expire(c.clients...)
	}
}

// shown is what a page would show of what there is.
func shown(state survey.State) string {
	var text strings.Builder
	for _, l := range state.Locks {
		if len(l.Queue) == 0 {
			continue // it was used
		}
		fmt.Fprintln(&text, l.Path, l.Recipe, l.Outdated)
		for _, p := range l.Queue {
			fmt.Fprintln(&text, "  ", p.Node, p.State, p.Session, p.Since)
		}
	}
	for _, r := range state.Registrations {
		fmt.Fprintln(&text, r)
	}
	for _, f := range state.Findings {
		if f.Kind != survey.Unrelated {
			fmt.Fprintln(&text, f.Kind, f.Path, f.Text)
		}
	}
	fmt.Fprintln(&text, state.Outdated)
	return text.String()
}

// again is what a new survey knows.
func (c *throng) again(client *recipes.Client) string {
	config := c.config
	config.Seen = nil
	other := survey.New(client, config)
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx) }()
	c.wait()
	known := shown(other.State())
	cancel()
	require.ErrorIs(c, <-ended, context.Canceled)
	return known
}

// Whatever was created and deleted, in whichever order, and whatever the survey's
// connection went through: once it is quiet the survey knows what a new one finds.
func TestItKnowsWhatANewSurveyFinds(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomly(t, seed) })
	}
}

func randomly(t *testing.T, seed uint64) {
	c := config()
	c.PerLock = 1
	inScene(t, c, func(s *scene) {
		s.mustCreate("/w", 0)
		s.mustCreate("/w/keep", 0)
		s.mustCreate("/w/keep/lock-", zk.FlagEphemeral|zk.FlagSequence)
	}, func(s *scene) {
		c := throng{scene: s, random: rand.New(rand.NewPCG(1, seed))}
		looks := locktest.ConnectThrough(s.T, s.cluster, "looks")
		c.clients = []*recipes.Client{
			s.client, locktest.ConnectThrough(s.T, s.cluster, "two"), looks,
		}
		s.cluster.Link("survey").Delay(0, 5*time.Millisecond)
		for round := range 25 {
			for range c.random.IntN(40) {
				c.act()
				c.pause([]int{1, 10, 300}[c.random.IntN(3)] + 1)
			}
			if c.random.IntN(2) == 0 {
				c.disturb()
				for range c.random.IntN(10) {
					c.act()
				}
				time.Sleep(5 * time.Second)
			}
			time.Sleep(time.Second) // two looks at a directory, 1 s each, and a visit
			s.wait()
			got := shown(s.survey.State())
			require.Equal(s, c.again(looks), got, "round %d", round)
		}
	})
}
