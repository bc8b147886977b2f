package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
)

// Missing tells whether the server says that there is no such znode. It takes a small
// read.
func (s *Conn) Missing(ctx context.Context, path string) bool {
	_, err := calls.Call(ctx, s, func() (none struct{}, err error) {
		_, err = s.Stat(path)
		return none, err
	})
	return errors.Is(err, zk.ErrNoNode)
}
