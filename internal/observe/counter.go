package observe

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// Numbered returns the name of a znode of the given kind that was created just now. It
// fails if that has no sequence number, or one so large that the server may hand it out
// twice.
func Numbered(path, kind string) (order.Name, error) {
	dir, text := zkpath.Split(path)
	name, ok := order.Parse(text, []string{kind})
	switch {
	case !ok:
		return name, fmt.Errorf("%w: created %s, which has no sequence number",
			zk.ErrAPIError, path)
	case order.NearLimit(name.Seq):
		return name, fmt.Errorf("the sequence counter of %s is at %d, near its end at "+
			"2147483647, where ZooKeeper hands out equal numbers (ZOOKEEPER-4706): "+
			"delete %s while nobody uses it, or lock another path", dir, name.Seq, dir)
	}
	return name, nil
}
