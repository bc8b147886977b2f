package recipes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// An exposure looks whether the directories of a lock are open wider than the ACL of
// WithACL, and warns of it. The ACL protects what the lock creates. A directory that
// somebody else created keeps its own ACL, and the permission to delete a participant's
// znode is one on its directory. It is safe for concurrent use.
type exposure struct {
	conn Conn
	acl  []zk.ACL // of the option
	log  *slog.Logger
	seen sync.Map // the directories that it has looked at
}

// joined is called when a znode stands in dir. At the first time it reads the ACL, next
// to the caller, who does not wait for it.
func (x *exposure) joined(use *zkconn.Conn, dir string) {
	if _, seen := x.seen.LoadOrStore(dir, true); seen {
		return
	}
	calls.Start(use, func() (struct{}, error) {
		var acl []zk.ACL
		err := use.Retry(context.Background(), func() (err error) {
			broken := usercode.Contain("GetACL", func() {
				acl, _, err = x.conn.GetACL(dir)
			})
			if broken != nil { // a wrapper's: nothing depends on it
				return outcome.Permanent(broken)
			}
			return err
		})
		if errors.Is(err, zk.ErrNoAuth) {
			x.log.Info("zookeeper lock: cannot read the parent znode's ACL; "+
				"whether WithACL protects the lock is unknown", "dir", dir, "error", err)
		}
		if who := strangers(acl, x.acl); len(who) > 0 {
			x.log.Warn("zookeeper lock: the parent znode is open to others than WithACL "+
				"says, who can remove holders or take their place", "dir", dir,
				"open", strings.Join(who, ", "),
				"advice", "set the ACL of the parent znode, and of those above it")
		}
		return struct{}{}, nil
	})
}

// rightsOverOthers are what an owner of a directory has over the znodes in it.
var rightsOverOthers = []struct {
	perm int32
	name string
}{{zk.PermCreate, "CREATE"}, {zk.PermDelete, "DELETE"}, {zk.PermAdmin, "ADMIN"}}

// strangers are those to whom an ACL grants such rights, and another one does not.
func strangers(acl, granted []zk.ACL) (who []string) {
	for _, entry := range acl {
		var rights []string
		for _, r := range rightsOverOthers {
			if entry.Perms&r.perm != 0 && !grants(granted, entry, r.perm) {
				rights = append(rights, r.name)
			}
		}
		if len(rights) > 0 {
			rights := strings.Join(rights, " ")
			who = append(who, entry.Scheme+":"+entry.ID+" has "+rights)
		}
	}
	return who
}

// grants tells whether an ACL grants a right to whom an entry of another one names.
func grants(acl []zk.ACL, entry zk.ACL, perm int32) bool {
	return slices.ContainsFunc(acl, func(given zk.ACL) bool {
		return given.Perms&perm != 0 && names(given, entry)
	})
}

// names tells whether what the option has may stand for the one of an entry. Scheme auth
// stands for whatever the session has proved to be, which is never an address. A server
// hides the hash of a digest from those without ADMIN.
func names(given, entry zk.ACL) bool {
	switch {
	case given.Scheme == "world":
		return true
	case given.Scheme == "auth":
		return entry.Scheme != "world" && entry.Scheme != "ip"
	case given.Scheme != entry.Scheme:
		return false
	case given.Scheme == "digest" && strings.HasSuffix(entry.ID, ":x"):
		user, _, _ := strings.Cut(given.ID, ":")
		return entry.ID == user+":x"
	}
	return given.ID == entry.ID
}

// newLint warns, once, of another recipe's znodes at the path of a lock: recipes that do
// not see each other's znodes do not exclude each other.
func (s *settings) newLint(recipe, path string) *observe.Lint {
	log := s.logger
	return &observe.Lint{Find: findForeign, Tell: func(dir, found string) {
		other, advice := recipeOf(found), "give each recipe a path of its own"
		if other == kazooLock {
			advice = "count them by WithNames, or " + advice
		}
		log.Warn("zookeeper lock: another recipe uses this path, "+
			"and the two do not exclude each other", "path", path, "recipe", recipe,
			"other", other, "node", zkpath.Join(dir, found), "advice", advice)
	}}
}

const kazooLock = "kazoo lock"

// recipeOf is the recipe that has such a znode, "" where none has.
func recipeOf(child string) string {
	switch {
	case seqname.IsMember(child, mutexName):
		return "mutex or leader selector"
	case seqname.IsMember(child, readName, writeName):
		return "read/write lock"
	case seqname.IsMember(child, latchName):
		return "leader latch"
	case seqname.IsMember(child, leaseName), child == leasesDir:
		return "semaphore"
	case seqname.IsMember(child, observe.KazooName):
		return kazooLock
	}
	return ""
}

// findForeign returns one of children that another recipe uses than the one whose znodes
// have the names of kinds, "" where there is none.
func findForeign(children, kinds []string) string {
	isForeign := func(child string) bool {
		return child != leasesDir && recipeOf(child) != "" &&
			!seqname.IsMember(child, kinds...)
	}
	if at := slices.IndexFunc(children, isForeign); at >= 0 {
		return children[at]
	}
	// One of the two alone may be anything.
	if slices.Contains(children, leasesDir) && slices.Contains(children, locksDir) {
		return leasesDir
	}
	return ""
}
