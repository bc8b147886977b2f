package simulator

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

// Below the World's root.
const (
	storesDir = "/stores" // what is written to in one transaction with Hold.CheckOp
	// where nobody may create, delete or set anything; called like a lock's znode, for
	// who asks it for a lock back.
	forbiddenDir = "/forbidden-lock-0000000007"
)

// store is the znode that a lock's holders write to, for as long as ZooKeeper finds that
// they hold it.
func (w *World) store(lock string) string {
	name := strings.ReplaceAll(strings.Trim(lock, "/"), "/", "-")
	return w.Root + storesDir + "/" + name
}

// prepare makes what the workload needs besides the locks, once; false if ctx was done
// before.
func (w *World) prepare(ctx context.Context, conn recipes.Conn) bool {
	if w.prepared.Load() {
		return true
	}
	paths := []string{}
	for _, lock := range w.Locks {
		for _, p := range lock.Paths {
			paths = append(paths, w.store(p))
		}
	}
	if w.Trespass {
		paths = append(paths, w.Root+forbiddenDir)
	}
	for _, p := range paths {
		for w.makeZnode(conn, p) != nil {
			pause(ctx, w.Session/20)
			if ctx.Err() != nil {
				return false
			}
		}
	}
	w.prepared.Store(true)
	return true
}

// makeZnode makes a znode and those above it, unless they are there.
func (w *World) makeZnode(conn recipes.Conn, p string) error {
	rights := w.ACL
	if path.Base(p) == path.Base(forbiddenDir) {
		rights = zk.WorldACL(zk.PermRead)
	}
	_, err := conn.Create(p, nil, zk.FlagPersistent, rights)
	switch parent := path.Dir(p); {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode) && parent != p:
		if err := w.makeZnode(conn, parent); err != nil {
			return err
		}
		return w.makeZnode(conn, p)
	}
	return err
}

// guard is one write to the store that ZooKeeper makes only if the hold lasts. When
// the answer is lost, nobody knows whether it did.
func (u *use) guard(p part) {
	one := []part{p}
	u.record(one, Event{Kind: Writing, Guarded: true, Token: p.token, Node: p.node})
	u.rest(u.step.lag)
	u.pass()
	answers, err := u.setIfHeld(p)
	e := Event{Kind: Unsure, Guarded: true, Token: p.token}
	switch {
	case err == nil:
		e.Kind, e.Version = Written, int64(answers[len(answers)-1].Stat.Version)
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, recipes.ErrLockLost):
		e.Kind = Refused
	default:
		e.Text = err.Error()
	}
	u.record(one, e)
}

// setIfHeld makes the transaction. Who ignores a loss does not let the library look
// before.
func (u *use) setIfHeld(p part) ([]zk.MultiResponse, error) {
	set := &zk.SetDataRequest{Path: u.p.w.store(p.path), Version: -1}
	if u.step.ignoreLoss {
		return u.on.gated.Multi(p.hold.CheckOp(), set)
	}
	return p.hold.Multi(set)
}

// nonsense is an ACL that no server takes.
var nonsense = []zk.ACL{{Perms: zk.PermAll, Scheme: "nonsense", ID: "x"}}

// trespassAlways trespasses again and again until Finish.
func (o *owner) trespassAlways() {
	w := o.p.w
	for n := 0; !isClosed(w.stopping) && w.ctx.Err() == nil; n++ {
		d := w.dice(o.p.n, o.n, n)
		o.rest(d.upTo(w.Session / 5))
		if on := o.p.open(o.ctx); on != nil {
			o.pass()
			(&use{owner: o, step: step{trespass: d.trespass()}, on: on}).trespass()
		}
	}
}

// trespass makes a request that must be refused: an owner asks for what it has no right
// to.
func (u *use) trespass() {
	ctx, cancel := context.WithTimeoutCause(u.ctx, u.p.w.Session/10, errPatience)
	defer cancel()
	ctx = recipes.WithOwner(ctx)
	place := u.p.w.Root + forbiddenDir
	var opts []recipes.Option
	var err error
	switch u.step.trespass {
	case asks:
	case asksWithNonsense:
		opts = append(opts, recipes.WithACL(nonsense))
	case revokes:
		err = recipes.AttemptRevoke(ctx, u.on.conn, place)
	}
	if u.step.trespass != revokes {
		var lock *recipes.InterProcessMutex
		lock, err = recipes.NewInterProcessMutex(u.on.conn, place, opts...)
		if err == nil {
			err = lock.Acquire(ctx)
		}
	}
	switch {
	case err == nil:
		err = errors.New("it was not refused")
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL):
		return
	case u.outcome(ctx, err) != Unexpected:
		return
	}
	u.unexpected("trespass", err)
}
