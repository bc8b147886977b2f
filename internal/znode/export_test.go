package znode

import "github.com/go-zookeeper/zk"

// SetWatch is what the watch's goroutine does with one that is set.
func (n *Node) SetWatch(events <-chan zk.Event) { n.watched(events, 1) }

// Discard deletes a znode of ours that no Node has.
var Discard = discard
