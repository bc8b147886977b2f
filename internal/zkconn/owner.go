package zkconn

import (
	"math"

	"github.com/go-zookeeper/zk"
)

// containerOwner is what some servers return as the owner of a container.
const containerOwner = math.MinInt64

// IsOwnerless tells whether a znode belongs to no session: it stays until somebody
// deletes it.
func IsOwnerless(stat *zk.Stat) bool {
	return stat.EphemeralOwner == 0 || stat.EphemeralOwner == containerOwner
}

// IsDirectory tells whether a znode is no participant of any queue, whatever its name: it
// has children, or has had some, as a lock's path does.
func IsDirectory(stat *zk.Stat) bool {
	return IsOwnerless(stat) && (stat.NumChildren > 0 || stat.Cversion > 0)
}
