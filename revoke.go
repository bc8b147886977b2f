package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// revokeMessage is Revoker.REVOKE_MESSAGE: set as a lock znode's data, it asks for the
// lock back.
const revokeMessage = "__REVOKE__"

// errNoMember says that a path is not that of a participant.
var errNoMember = errors.New("this is not the path of a lock's znode; " +
	"Participants and Inspect return those, such as …-lock-0000000007")

// AttemptRevoke asks the participant whose znode is nodePath to give up the lock, or its
// wait for it (Curator's Revoker.attemptRevoke). Whether it does is up to it: the request
// is heard if the lock was made revocable. A znode that is gone is no error. An outage is
// waited out until ctx is done. The data of the znode is lost.
//
// Before it sends anything, it returns an error for a path whose name is not that of a
// znode in a queue: the name of a recipe, or of kazoo's Lock, and a sequence number.
func AttemptRevoke(ctx context.Context, conn Conn, nodePath string) error {
	const op = "revoke"
	if err := checkConn(conn); err != nil {
		return wrap(op, nodePath, err)
	}
	if err := zkpath.Check(nodePath); err != nil {
		return refuse(op, nodePath, err)
	}
	if err := notNil(ctx); err != nil {
		return wrap(op, nodePath, err)
	}
	if _, name := zkpath.Split(nodePath); !seqnode.IsMember(name, inspected...) {
		return wrap(op, nodePath, errNoMember)
	}
	settings, _ := newSettings(nil)
	s := session.Use(conn, settings.sessionConfig(conn))
	defer s.Release()
	err := s.Retry(ctx, func() error {
		_, err := session.Call(ctx, s, func() (*zk.Stat, error) {
			return s.Set(nodePath, []byte(revokeMessage), -1)
		})
		return err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return wrap(op, nodePath, err)
	}
	return nil
}
