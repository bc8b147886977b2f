package zkconn

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
)

// List lists a directory as the server that answers knows it. With sync it has caught up
// with the leader before: the list shows whatever anybody had seen by then.
func (s *Conn) List(dir string, sync bool) ([]string, *zk.Stat, error) {
	if sync {
		if err := s.Sync(dir); err != nil {
			return nil, nil, err
		}
	}
	return s.Children(dir)
}

// CatchUp sends a sync, before a list that is sent otherwise.
func (s *Conn) CatchUp(ctx context.Context, dir string) error {
	_, err := calls.Call(ctx, s, func() (none struct{}, err error) {
		return none, s.Sync(dir)
	})
	return err
}
