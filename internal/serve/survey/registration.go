package survey

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Registration is an ephemeral znode with a name that somebody has chosen: a Curator
// PersistentNode or GroupMember, the znode of "zklock register", or what a program has
// created by itself. It says that its session is there.
type Registration struct {
	Path    string    `json:"path"`
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
	Data    string    `json:"data"` // as of the last walk, or of its create
	// Address is that of its session's connection; "": it is not known.
	Address string `json:"address,omitempty"`
}

// A visited registration is one that was there when it was visited last.
type visited struct {
	Registration
	czxid int64
	walk  int // the number of the walk during which that was
}

// registrationsAtMost is how many registrations are known.
const registrationsAtMost = 10_000

// numbered are the names that a server has given a number: no recipe registers so.
var numbered = regexp.MustCompile(`\d{10}$`)

// register takes note of an ephemeral znode that is in no queue. It fails only with ctx.
func (s *Survey) register(ctx context.Context, path string) (what found, err error) {
	if numbered.MatchString(path) {
		return aZnode, nil
	}
	var one inmate
	if err := s.insist(ctx, path, func() (err error) {
		one, err = s.read(path)
		return err
	}); err != nil {
		return aZnode, err
	}
	if one.gone || one.Session == 0 {
		s.forgetRegistration(path)
		s.later(ctx, path)
		return nothing, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changedLocked()
	parent, name := zkpath.Split(path)
	if d := s.dirs[parent]; d != nil && d.stat != nil {
		if (view{children: d.children, stat: d.stat}).lacks(name, one.czxid) {
			return nothing, nil
		}
		d.includeLocked(name)
	}
	_, known := s.registered[path]
	switch {
	case !known && len(s.registered) >= registrationsAtMost:
		s.exceeded.add(fmt.Sprintf("there are more registrations than the %d that are "+
			"shown", registrationsAtMost), "", s.round)
		return aZnode, nil
	}
	s.registered[path] = visited{Registration{
		Path: path, Session: fmt.Sprintf("0x%x", uint64(one.Session)),
		Since: one.Since, Data: string(one.Data),
	}, one.czxid, s.round}
	return aZnode, nil
}

// forgetGoneLocked forgets the registrations in a directory that were met while nobody
// looked at it, and that are gone as it is now.
func (s *Survey) forgetGoneLocked(dir string, now view) {
	for path, r := range s.registered {
		if parent, name := zkpath.Split(path); parent == dir && now.lacks(name, r.czxid) {
			delete(s.registered, path)
		}
	}
}

func (s *Survey) forgetRegistration(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.registered, path)
}

// isRegistered tells whether a registration is known at a path.
func (s *Survey) isRegistered(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.registered[path]
	return known
}

// registrationsLocked are all, by path. In the path of a lock an ephemeral znode is no
// registration, but unrelated.
func (s *Survey) registrationsLocked() []Registration {
	all := make([]Registration, 0, len(s.registered))
	for path, r := range s.registered {
		if l := s.locks[zkpath.Parent(path)]; l == nil || l.recipe == "" {
			r.Address = s.addresses[r.Session]
			all = append(all, r.Registration)
		}
	}
	slices.SortFunc(all, func(a, b Registration) int {
		return cmp.Compare(a.Path, b.Path)
	})
	return all
}
