package observe

import (
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// Numbered returns the name of a znode of the given kind that was created just now. It
// fails if that has no sequence number, or one so large that the server may hand it out
// twice.
func Numbered(path, kind string) (seqname.Name, error) {
	dir, text := zkpath.Split(path)
	name, ok := seqname.Parse(text, []string{kind})
	switch {
	case !ok:
		return name, fmt.Errorf("%w: created %s, which has no sequence number",
			zk.ErrAPIError, path)
	case nearLimit(name.Seq):
		return name, fmt.Errorf("the sequence counter of %s is at %d, near its end at "+
			"2147483647, where ZooKeeper hands out equal numbers (ZOOKEEPER-4706): "+
			"delete %s while nobody uses it, or lock another path", dir, name.Seq, dir)
	}
	return name, nil
}

// limitMargin is far more than the creates that can be under way at once.
const limitMargin = 1 << 16

// nearLimit reports whether the counter is so close to 2^31-1 that the server may hand
// out one number twice: from 3.6 on it sticks there, with numbers around -2^31 in between
// (ZOOKEEPER-3249, ZOOKEEPER-4706).
func nearLimit(seq int32) bool {
	return seq > math.MaxInt32-limitMargin || seq < math.MinInt32+limitMargin
}
