package zktest

import "time"

// A Snapshot is what the servers of a Cluster have on their disks: see Cluster.Snapshot.
// The zero Snapshot is nothing.
type Snapshot struct {
	tree        *tree // nil: nothing
	zxid, epoch int64
	sessions    []session
}

// Snapshot returns what has been committed so far.
func (c *Cluster) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.newestLocked()
	shot := Snapshot{
		tree: newest.tree.clone(), zxid: newest.zxid, epoch: c.epoch,
	}
	for _, id := range c.sessionIDsLocked() {
		if one := c.sessions[id]; !one.closing {
			shot.sessions = append(shot.sessions, *one)
		}
	}
	return shot
}

// Restore kills all servers, and starts those that were up again with a Snapshot of this
// Cluster, as when an ensemble is restored from a backup; with the zero Snapshot, as when
// all its disks are lost. What was committed since is forgotten. Sessions that the
// Snapshot has live on for their timeout, but servers hang up on clients that have seen a
// later zxid.
func (c *Cluster) Restore(shot Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		s.leaveLocked()
		s.emptyLocked()
		if shot.tree != nil {
			s.tree = shot.tree.clone()
		}
		s.watches = newWatchTable()
		s.applied, s.zxid, s.epoch = 0, shot.zxid, 0
	}
	c.log, c.zxid, c.epoch = txnLog{}, shot.zxid, shot.epoch
	c.sessions = map[int64]*session{}
	for _, one := range shot.sessions {
		c.sessions[one.id] = &one
	}
	c.deposeLocked(time.Now())
	c.settleLocked()
}
