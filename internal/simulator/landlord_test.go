package simulator_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// A landlord changes the rights over the directories of the locks. No fault concerns its
// link.
type landlord struct {
	client *recipes.Client // nil: there is none

	// turn has the one token of whoever uses denied. It is no mutex, which would keep the
	// time from passing.
	turn   chan struct{}
	denied map[string]int
}

func (sim *simulation) openLandlord() error {
	if !sim.scene.denied {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	link := sim.cluster.Link("landlord")
	link.Delay(leastLatency, mostLatency)
	hosts := &shuffledHosts{random: rand.New(rand.NewPCG(sim.seed, 4))}
	client, err := recipes.Connect(ctx, strings.Join(sim.cluster.Names(), ","),
		simSession, recipes.WithDialer(link.Dial), recipes.WithHostProvider(hosts))
	sim.landlord = landlord{client, make(chan struct{}, 1), map[string]int{}}
	sim.landlord.turn <- struct{}{}
	return err
}

func (sim *simulation) denyDeletes(random *rand.Rand) (end func()) {
	var dirs []string
	for _, node := range sim.cluster.Znodes() {
		if dir := path.Dir(node); strings.Contains(node, "/_c_") {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nothing
	}
	slices.Sort(dirs)
	dir := dirs[random.IntN(len(dirs))]
	sim.landlord.change(dir, 1)
	return func() { sim.landlord.change(dir, -1) }
}

// change takes the right away, or gives it back once nobody takes it any more.
func (l *landlord) change(dir string, by int) {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	l.denied[dir] += by
	perms := int32(zk.PermAll)
	if l.denied[dir] > 0 {
		perms &^= zk.PermDelete
	}
	l.set(dir, perms)
}

// set insists, through any outage, unless the directory has gone.
func (l *landlord) set(dir string, perms int32) {
	for {
		_, err := l.client.Unwrap().SetACL(dir, zk.WorldACL(perms), -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return
		}
		time.Sleep(simSession / 20)
	}
}

// leave gives all rights back, and closes the connection.
func (l *landlord) leave() {
	if l.client == nil {
		return
	}
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	for dir := range l.denied {
		l.set(dir, zk.PermAll)
	}
	l.client.Close()
}
